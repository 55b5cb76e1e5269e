# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Differences that are expected: patterns for VMs and their options (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..._foundation.core import validate

Names = Sequence[str]
"""The names of a VM: its name, its name with the tenant, and its VMID."""


@dataclass(frozen=True)
class IgnorePattern:
    """One pattern. An empty option means the whole VM."""

    vm: str
    option: str

    def matches(self, names: Names, option: str) -> bool:
        """Return whether it matches an option of a VM, or the whole VM if the option is empty."""
        if not fnmatchcase(option, self.option):
            return False
        return any(fnmatchcase(name, self.vm) for name in names)


@dataclass(frozen=True)
class IgnorePatterns:
    """All patterns of a task."""

    patterns: tuple[IgnorePattern, ...] = ()

    def vm(self, names: Names) -> bool:
        """Return whether everything about a VM is ignored."""
        return any(not one.option and one.matches(names, "") for one in self.patterns)

    def option(self, names: Names, option: str) -> bool:
        """Return whether an option of a VM is ignored."""
        return any(one.matches(names, option) for one in self.patterns)


def read_ignored(given: Iterable[str]) -> IgnorePatterns:
    """Return the patterns of C(VM) and C(VM:OPTION). Raises ValidationFailed for an empty part.

    A name may contain a colon, such as C(ha_resources/vm:100), so each text gives one pattern for
    each of its colons as the separator, and one for the whole text.
    """
    return IgnorePatterns(tuple(pattern for text in given for pattern in _patterns(text)))


def names_of(name: str, tenant: str, vmid: int | None) -> Names:
    """Return the names of a VM in lower case: name, TENANT/NAME, and VMID if it has one."""
    names = (name.lower(), f"{tenant}/{name}".lower())
    if vmid is None:
        return names
    return (str(vmid), *names)


def _patterns(text: str) -> list[IgnorePattern]:
    parts = text.split(":")
    if not all(parts):
        raise validate.refused(
            "ignore",
            text,
            "is not a pattern",
            "Write it as VM or VM:OPTION, such as acme/web*:description",
        )
    found: list[IgnorePattern] = []
    for place in range(1, len(parts) + 1):
        name, option = ":".join(parts[:place]), ":".join(parts[place:])
        found.append(IgnorePattern(name.lower(), option))
    return found
