# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts about options of guests, of each version of PVE and of all together (data)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .generated import qemu
from .generated.older import DIFFERENCES, RELEASES

Version = tuple[int, int]
Rules = Mapping[str, Mapping[str, Any]]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


# The release of the newest version, and the releases from which the facts of the others come.
RELEASE = _numbers(qemu.VERSION)
NEWEST: Version = (RELEASE[0], RELEASE[1])
_RELEASES = {version: _numbers(text) for version, text in RELEASES.items()}

# The first version with each of these sub-keys, whose formats the schema only names
# (debian/changelog of qemu-server).
SINCE: Mapping[tuple[str, str], Version] = {
    ("pve-vm-cpu-conf", "guest-phys-bits"): (9, 1),
    ("pve-vm-cpu-conf", "level"): (9, 2),
}


def _older(newest: Rules, differences: Mapping[str, Mapping[str, Any] | None]) -> Rules:
    """Return the rules of an older version: the newest rules with the differences applied."""
    rules: dict[str, Mapping[str, Any]] = dict(newest)
    for name, rule in differences.items():
        if rule is None:
            rules.pop(name, None)
        elif isinstance(rule.get("format"), dict):
            parts = {**rules[name]["format"], **rule["format"]}
            rules[name] = {
                **rule,
                "format": {part: facts for part, facts in parts.items() if facts is not None},
            }
        else:
            rules[name] = rule
    return rules


def rules_by_version(
    newest: Rules, all_differences: Mapping[Version, Mapping[str, Mapping[str, Any] | None]]
) -> Mapping[Version, Rules]:
    """Return the rules of each version, the oldest first."""
    found: dict[Version, Rules] = {}
    for version, differences in sorted(all_differences.items()):
        found[version] = _older(newest, differences)
    return {**found, NEWEST: newest}


BY_VERSION = rules_by_version(qemu.OPTIONS, DIFFERENCES)


def together(by_version: Mapping[Version, Rules]) -> dict[str, Mapping[str, Any]]:
    """Return the rules by which options are read and written: the union of all versions.

    If a sub-key has two names, the name that every version accepts is used: a newer name is an
    alias of the older one.
    """
    rules: dict[str, Mapping[str, Any]] = {}
    for older in by_version.values():
        for name, rule in older.items():
            known = rules.get(name, {}).get("format")
            if isinstance(known, dict) and isinstance(rule.get("format"), dict):
                rule = {**rule, "format": _join(known, rule["format"])}
            rules[name] = rule
    return rules


def _join(old: Rules, new: Rules) -> dict[str, Mapping[str, Any]]:
    parts = {**old, **new}
    renamed = {
        rule["alias"]: name
        for name, rule in new.items()
        if rule.get("alias") and not old.get(name, rule).get("alias")
    }
    for now, before in renamed.items():
        parts[before] = {**new[now], **old[before]}
        parts[now] = {"alias": before}
    return {
        name: {**rule, "alias": renamed.get(rule["alias"], rule["alias"])}
        if name not in renamed and rule.get("alias")
        else rule
        for name, rule in parts.items()
    }


def is_newer(server: tuple[int, ...] | None) -> bool:
    """Return whether a server is newer than all facts, so it may know more names."""
    return server is not None and server > RELEASE


def deciding_versions(server: tuple[int, ...] | None) -> tuple[Version, ...]:
    """Return the versions that must agree before an option is refused.

    Without a server, these are all known versions. A server between two known versions may be like
    either; a server older or newer than all of them is treated as the nearest. A later release of
    a known version may have options of the next version, except in an old major version, which
    only gets fixes.
    """
    known = tuple(BY_VERSION)
    if server is None:
        return known
    version: Version = (server[0], server[1])
    at_least = (
        server if version[0] == NEWEST[0] and server > _RELEASES.get(version, server) else version
    )
    below = [known_version for known_version in known if known_version <= version][-1:]
    above = [known_version for known_version in known if known_version >= at_least][:1]
    return tuple(sorted({*below, *above}))
