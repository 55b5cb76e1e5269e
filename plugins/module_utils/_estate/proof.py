# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proof that options do not change a guest: they are planned as its module plans them (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._cluster.state import ClusterState
from .._container.plan.planner import CONTAINER_PLANNER
from .._container.run import read_container_options
from .._core.errors import FleetError
from .._guest.model import Actual
from .._guest.plan.origin import require_origin
from .._resource.plan import Step
from .._spec.container import container_spec
from .._spec.fleet import with_defaults
from .._spec.vm import vm_spec
from .._vm.plan.refusals.options import unknown_names
from .._vm.plan.update import plan_update
from .._vm.run import read_vm_options
from .model import PRESENT, Alternative, Lost, Options, SettingGroup

_LISTS = ("devices", "disks", "mounts", "nics")
_DICTIONARIES = ("cloud_init", "features", "options")
_UNUSABLE = "pve.fleet has no option for it"
_OF_ADOPTION = frozenset(("tags", "digest"))


@dataclass(frozen=True)
class ClusterContext:
    """The data of the cluster that the plan of a VM depends on: `bases` are the storages on which
    the disks of a template become base volumes.
    """

    cluster: ClusterState
    bases: Collection[str] = ()


@dataclass
class ProvenOptions:
    """The options that a VM can have, and the settings they leave out."""

    options: dict[str, Any]
    lost: list[Lost]


@dataclass(frozen=True)
class Planning:
    """How a kind of guests is planned.

    `spec` has all options with their defaults. `steps` returns the steps of a run on a guest with
    options, or the reason of a refusal; it may raise FleetError.
    """

    spec: Mapping[str, Any]
    steps: Callable[[Mapping[str, Any], Actual, ClusterContext], tuple[Step, ...] | str]


def _steps_of_vm(
    given: Mapping[str, Any], actual: Actual, around: ClusterContext
) -> tuple[Step, ...] | str:
    desired = read_vm_options(given).desired
    require_origin(desired.guest, actual, around.cluster)
    plan = plan_update(desired, actual, bases=around.bases)
    for name in unknown_names(desired):
        return f"{name.shown} is not known to this version of pve.fleet"
    return plan.steps


def _steps_of_container(
    given: Mapping[str, Any], actual: Actual, around: ClusterContext
) -> tuple[Step, ...] | str:
    desired = read_container_options(given).desired
    require_origin(desired.guest, actual, around.cluster)
    return CONTAINER_PLANNER.plan_update(desired, actual).steps


VM_PLANNING = Planning(vm_spec(), _steps_of_vm)
CONTAINER_PLANNING = Planning(container_spec(), _steps_of_container)


class Proof:
    """Plans a guest as its module does it."""

    def __init__(
        self, planning: Planning, actual: Actual, around: ClusterContext, prefix: str
    ) -> None:
        self._planning = planning
        self._actual = actual
        self._around = around
        self._identity = {"vmid": actual.vmid}
        self._fixed = {"tenant_prefix": prefix, "state": PRESENT}
        self._base = self._steps(self._identity)

    @property
    def steps_of_any_run(self) -> tuple[str, ...]:
        """The steps of a run on the VM that no option causes."""
        if isinstance(self._base, str):
            return (self._base,)
        return _summaries(self._base)

    def keep(self, pieces: Sequence[SettingGroup]) -> ProvenOptions:
        """Return the options of the pieces with which a run does not change the VM."""
        best: list[Options] = [self._identity]
        left_out: list[Lost] = []
        for piece in pieces:
            if piece.ways:
                best.append(piece.ways[0].options)
                left_out += piece.ways[0].lost
            else:
                left_out += piece.lost
        options = combined(best)
        if self._steps(options) == self._base:
            return ProvenOptions(options, [_because(one) for one in left_out])
        return self._one_by_one(pieces)

    def _one_by_one(self, pieces: Iterable[SettingGroup]) -> ProvenOptions:
        """Return the same for pieces of which some cannot be kept in their best way."""
        kept: list[Options] = [self._identity]
        left_out: list[Lost] = []
        for piece in pieces:
            found, reason = self._first_that_holds(kept, piece)
            lost = piece.lost
            if found is not None:
                kept.append(found.options)
                lost = found.lost
            for one in lost:
                left_out.append(_because(one, reason))
        return ProvenOptions(combined(kept), left_out)

    def _first_that_holds(
        self, kept: Sequence[Options], piece: SettingGroup
    ) -> tuple[Alternative | None, str]:
        """Return the first alternative without changes, or None, and the reason why the best one is
        not.
        """
        reason = ""
        for way in piece.ways:
            options = combined([*kept, way.options])
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
        if written <= _OF_ADOPTION:
            return ""
        return _reason(steps)

    def _steps(self, options: Options) -> tuple[Step, ...] | str:
        """Return the steps of a run with these options, or the reason of its refusal."""
        given = with_defaults(dict(self._planning.spec), {**self._fixed, **options})
        try:
            return self._planning.steps(given, self._actual, self._around)
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


def _because(one: Lost, reason: str = "") -> Lost:
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
