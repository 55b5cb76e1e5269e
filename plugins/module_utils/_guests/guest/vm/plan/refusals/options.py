# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that the server or the user does not allow, refused before the first write (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ......_foundation.api.root import require_root
from ......_foundation.api.settings import ConnectionSettings
from ......_foundation.core import validate
from ......_foundation.core.errors import ValidationFailed
from ......_foundation.schema.check import (
    Refusal,
    disputed,
    find_refusals,
    refusal_error,
    taken_by,
    unknown_option,
    unknown_part,
)
from ......_foundation.schema.formats import OPTIONS, rule_of, sub_keys_of
from ......_foundation.schema.generated.qemu import CPU_MODELS
from ......_foundation.schema.root_only import root_only
from ......_foundation.schema.versions import Version, is_newer
from .....kinds.hardware import DesiredVm
from .....kinds.vm.config.changes import ConfigChange
from ....plan.intent import Release
from ....plan.refusals import raise_for_version


def uncertain_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that only some versions of PVE accept; usually there are none."""
    uncertain: dict[str, str] = {}
    for key in disputed(options):
        text = options[key]
        if unknown_option(key, text):
            continue
        uncertain[key] = text
    return uncertain


def require_version(label: str, options: Mapping[str, str], release: Release | None) -> None:
    """Raise NotSupported for options that the server's version of PVE does not accept, although
    another version does.

    `release` is None if no option is in doubt, see `uncertain_options`.
    """
    if release is None:
        return
    uncertain = uncertain_options(options)
    refused = find_refusals(uncertain, release)
    if not refused:
        return
    version = (release[0], release[1])
    causes: list[str] = []
    for key, why in sorted(refused.items()):
        takers = _takers(key, uncertain[key], version)
        causes.append(f"{key} ({why}; {takers})")
    raise_for_version(label, refused, causes, _number(version))


def require_names(desired: DesiredVm, release: Release | None) -> tuple[str, ...]:
    """Return warnings about options that only the server can judge.

    Options, sub-keys and words that are missing from the schema may be valid on a server that is
    newer than the schema. Raises ValidationFailed for any other server, which would refuse them.
    `release` is None if the schema has all names, see `unknown_names`.
    """
    unverified: list[str] = []
    unclear = "is known to the server only"
    cpu = desired.hardware.property_strings.get("cpu", {})
    model = cpu.get("cputype") or ""
    if model.startswith("custom-"):
        unverified.append(f"{desired.guest.label}: whether there is a CPU model {model} {unclear}")
    if release is None:
        return tuple(unverified)
    unknown = list(unknown_names(desired))
    number = _number(release)
    if not is_newer(release):
        raise _unknown_name(unknown[0], number)
    names = ", ".join(name.dotted for name in unknown)
    unverified.append(f"{desired.guest.label}: whether PVE {number} takes {names} {unclear}")
    return tuple(unverified)


@dataclass(frozen=True)
class UnknownName:
    """An option or sub-key, and why no known version takes it."""

    key: str
    part: str  # the sub-key, empty for an option
    text: str
    refusal: Refusal

    @property
    def dotted(self) -> str:
        """The name in messages."""
        if not self.part:
            return self.key
        return f"{self.key}.{self.part}"


def unknown_names(desired: DesiredVm) -> Iterator[UnknownName]:
    """Yield the options and sub-keys of the task that no known version takes."""
    for key, text in desired.hardware.scalars.items():
        refusal = unknown_option(key, text)
        if refusal:
            yield UnknownName(key, "", text, refusal)
    property_strings = dict(desired.hardware.property_strings)
    for disk in desired.hardware.disks:
        property_strings[disk.slot] = disk.options
    for key, values in property_strings.items():
        if rule_of(key) is None:
            refusal = unknown_option(key, "")
            if refusal:
                yield UnknownName(key, "", ",".join(values), refusal)
            continue
        for part, value in values.items():
            if value is None:
                continue
            refusal = unknown_part(key, part, value)
            if refusal:
                yield UnknownName(key, part, value, refusal)


def _unknown_name(name: UnknownName, number: str) -> ValidationFailed:
    """Return the error of a name that a server of that version does not have."""
    refusal = name.refusal
    if refusal.answer:
        return refusal_error(name.dotted, name.text, refusal)
    near: list[str] = []
    others = "Write it as PVE does"
    if not name.part:
        if rule_of(name.key) is None:
            near = get_close_matches(name.key, sorted(OPTIONS), 1)
            others = "Check the spelling"
    else:
        names = sorted(sub_keys_of(name.key))
        if name.part not in names:
            near = get_close_matches(name.part, names, 1)
            others = f"Use {', '.join(names)}"
        elif name.dotted == "cpu.cputype":
            near = get_close_matches(name.text, CPU_MODELS, 1)
    correction = others
    if near:
        correction = f"Did you mean '{near[0]}'?"
    return validate.refused(
        name.dotted,
        name.text[:40],
        f"was refused ({refusal.reason}; the server is PVE {number})",
        correction,
    )


def require_rights_of_root(
    label: str, change: ConfigChange, target: Mapping[str, str], connection: ConnectionSettings
) -> None:
    """Raise PermissionDenied for options that only root@pam, without a token, can change."""
    written = {*change.sets, *change.deletes}
    refused: dict[str, str] = {}
    for key in sorted(written - change.drives.keys):
        values = (change.sets.get(key), target.get(key))
        why = root_only(key, values)
        if why:
            refused[key] = why
    if refused:
        remedy = "use a resource mapping for a device, or let root set it"
        require_root(connection.login, f"{label} could not be planned", remedy, refused)


def _takers(key: str, value: str, server: Version) -> str:
    """Return which version accepts an option: the next after the server's, or the last version."""
    takers = taken_by(key, value)
    for version in takers:
        if version > server:
            return f"PVE {_number(version)} takes it"
    return f"PVE {_number(takers[-1])} took it"


def _number(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
