# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proof that options do not change a guest, from the plan that its module makes (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._foundation.core.errors import FleetError
from ..._foundation.resource.plan import Step
from ..._foundation.spec.fleet import with_defaults
from ..._guests.guest.export.exporter import ClusterContext, Exporter
from ..._guests.guest.export.settings import (
    InexpressibleSetting,
    Options,
    SettingAlternative,
    SettingGroup,
)
from ..._guests.kinds.model import Actual
from .model import PRESENT

_LISTS = ("devices", "disks", "mounts", "nics")
_DICTIONARIES = ("cloud_init", "features", "options")
_UNUSABLE = "pve.fleet has no option for it"
_OF_ADOPTION = frozenset(("tags", "digest"))


@dataclass
class ProvenOptions:
    """Options that leave a VM unchanged, and the settings that they do not express."""

    options: dict[str, Any]
    lost: list[InexpressibleSetting]


class ExportProof:
    """Plans a guest as its module does."""

    def __init__(
        self, exporter: Exporter, actual: Actual, around: ClusterContext, prefix: str
    ) -> None:
        self._exporter = exporter
        self._actual = actual
        self._around = around
        self._identity = {"vmid": actual.vmid}
        self._fixed = {"tenant_prefix": prefix, "state": PRESENT}
        self._base = self._steps(self._identity)

    @property
    def steps_of_any_run(self) -> tuple[str, ...]:
        """The steps of a run on the VM that no option causes."""
        return (self._base,) if isinstance(self._base, str) else _summaries(self._base)

    def keep(self, pieces: Sequence[SettingGroup]) -> ProvenOptions:
        """Return the options of the pieces that leave the VM unchanged."""
        best: list[Options] = [self._identity]
        omitted: list[InexpressibleSetting] = []
        for piece in pieces:
            if piece.ways:
                best.append(piece.ways[0].options)
                omitted += piece.ways[0].lost
            else:
                omitted += piece.lost
        options = combined(best)
        if self._steps(options) == self._base:
            return ProvenOptions(options, [_because(one) for one in omitted])
        return self._one_by_one(pieces)

    def _one_by_one(self, pieces: Iterable[SettingGroup]) -> ProvenOptions:
        """Return the same if the best alternatives of some pieces would change the VM."""
        accepted: list[Options] = [self._identity]
        omitted: list[InexpressibleSetting] = []
        for piece in pieces:
            found, reason = self._first_that_holds(accepted, piece)
            lost = piece.lost
            if found is not None:
                accepted.append(found.options)
                lost = found.lost
            omitted += [_because(one, reason) for one in lost]
        return ProvenOptions(combined(accepted), omitted)

    def _first_that_holds(
        self, accepted: Sequence[Options], piece: SettingGroup
    ) -> tuple[SettingAlternative | None, str]:
        """Return the first alternative without changes or None, and why the best causes changes."""
        reason = ""
        for way in piece.ways:
            options = combined([*accepted, way.options])
            steps = self._steps(options)
            if steps == self._base:
                return way, reason
            if not reason:
                reason = _reason(steps)
        return None, reason

    def why_not_adopted(self, options: Options) -> str:
        """Return why a run with a new tenant would do more than set tags, or an empty text."""
        steps = self._steps(options)
        if isinstance(steps, str):
            return steps
        written: set[str] = set()
        for step in steps:
            written.update(step.data)
        return "" if written <= _OF_ADOPTION else _reason(steps)

    def _steps(self, options: Options) -> tuple[Step, ...] | str:
        """Return the steps of a run with these options, or the reason of its refusal."""
        given = with_defaults(dict(self._exporter.spec), {**self._fixed, **options})
        try:
            return self._exporter.steps(given, self._actual, self._around)
        except FleetError as error:
            return error.message


def _summaries(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(step.summary for step in steps)


def _reason(steps: tuple[Step, ...] | str) -> str:
    """Return why options would change a VM."""
    if isinstance(steps, str):
        return steps
    changes = "; ".join(_summaries(steps))
    return f"a run would change it: {changes}"


def _because(one: InexpressibleSetting, reason: str = "") -> InexpressibleSetting:
    """Return a lost setting, with the reason if it has none of its own."""
    if one.reason:
        return one
    return replace(one, reason=reason or _UNUSABLE)


def combined(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options of several pieces merged into the options of one VM."""
    whole: dict[str, Any] = {}
    for options in parts:
        for name, value in options.items():
            if name in _LISTS:
                known = whole.get(name, ())
                whole[name] = [*known, *value]
            elif name in _DICTIONARIES:
                known = whole.get(name, {})
                whole[name] = {**known, **value}
            else:
                whole[name] = value
    return whole
