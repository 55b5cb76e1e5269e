# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The privileges of a login on a path, by the rules of Proxmox VE (pure).

Source: pve-access-control, RPCEnvironment.pm (permissions, compile_acl_path) and AccessControl.pm
(roles).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..._foundation.api.root import ROOT
from .grants import Grant

NO_ACCESS = "NoAccess"
# The paths that PVE reports even if they have no entry (get_effective_permissions).
TOP_PATHS = frozenset(
    {"/", "/access", "/access/groups", "/mapping", "/nodes", "/pool", "/sdn", "/storage", "/vms"}
)
AclEntry = tuple[str, Grant]
"""A path and a grant on it."""

Held = Mapping[str, bool]
"""Roles or privileges; a value is true if they also apply to the paths below."""

Keys = set[tuple[str, str, str, str]]


@dataclass(frozen=True)
class AccessControl:
    """The access control that decides about the privileges of one login.

    `roles` are privileges by role, `groups` are the groups of the login's user, and `pools` are the
    paths of members by pool. `separated`: the login is a token with privilege separation.
    """

    roles: Mapping[str, frozenset[str]]
    groups: frozenset[str]
    entries: frozenset[AclEntry]
    separated: bool = False
    pools: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def with_role(self, name: str, privileges: Iterable[str]) -> AccessControl:
        """Return a copy with other privileges of a role; a role without privileges gives none."""
        return replace(self, roles={**self.roles, name: frozenset(privileges)})

    def with_entries(
        self, adds: Collection[AclEntry] = (), removes: Collection[AclEntry] = ()
    ) -> AccessControl:
        """Return a copy with entries added and removed. Each key has only one entry."""
        touched = keys_of([*adds, *removes])
        kept = frozenset(one for one in self.entries if keys_of([one]).isdisjoint(touched))
        return replace(self, entries=kept.union(adds))

    def without_group(self, name: str) -> AccessControl:
        """Return a copy without a group."""
        return replace(self, groups=self.groups - {name})

    def without_pool(self, name: str) -> AccessControl:
        """Return a copy without a pool and the entries on it."""
        path = f"/pool/{name}"
        removes = frozenset(one for one in self.entries if one[0] == path)
        pools = {**self.pools, name: frozenset[str]()}
        return replace(self, entries=self.entries - removes, pools=pools)


def keys_of(entries: Iterable[AclEntry]) -> Keys:
    """Return the key of each entry: path, kind, name and role."""
    return {(path, *grant[:3]) for path, grant in entries}


def privileges(control: AccessControl, who: str, path: str) -> Held:
    """Return the privileges of a user or token on a path."""
    user, _mark, token = who.partition("!")
    if token and control.separated:
        granted = _granted(control, who, path, frozenset())
        owned = privileges(control, user, path)
        both = granted.keys() & owned.keys()
        return {name: granted[name] and owned[name] for name in both}
    if user == ROOT:
        return dict.fromkeys(control.roles["Administrator"], True)
    return _granted(control, user, path, control.groups)


def _granted(control: AccessControl, who: str, path: str, groups: frozenset[str]) -> Held:
    """Return the privileges from the roles on a path and on the pools that contain it."""
    roles = dict(_roles(control, who, path, groups))
    for pool, paths in control.pools.items():
        if path not in paths:
            continue
        for name in _roles(control, who, f"/pool/{pool}", groups):
            roles.setdefault(name, False)
    if NO_ACCESS in roles:
        return {}
    found: dict[str, bool] = {}
    for role, propagates in roles.items():
        held = control.roles.get(role, frozenset())
        found.update(dict.fromkeys(held.difference(found), propagates))
        if propagates:
            found.update(dict.fromkeys(held, True))
    return found


def _roles(control: AccessControl, who: str, path: str, groups: frozenset[str]) -> Held:
    """Return the roles on a path, or only NoAccess if it is among them.

    Entries on a lower path replace entries from above; entries of a user or token replace entries
    of groups.
    """
    found: Held = {}
    for place in places(path):
        own: dict[str, bool] = {}
        of_groups: dict[str, bool] = {}
        side = {who: own}
        side.update(dict.fromkeys(groups, of_groups))
        for at, grant in control.entries:
            holds = grant.propagate or place == path
            if at == place and holds:
                side.get(grant.who, {})[grant.role] = grant.propagate
        found = own or of_groups or found
    if NO_ACCESS in found:
        return {NO_ACCESS: found[NO_ACCESS]}
    return found


def places(path: str) -> Iterator[str]:
    """Yield the paths from the root down to a path."""
    yield "/"
    place = ""
    for name in path.strip("/").split("/"):
        place = f"{place}/{name}"
        if name:
            yield place


def read_privileges(answer: Mapping[str, Any]) -> frozenset[str]:
    """Return the privileges of a role, from its own answer or from its row in the listing."""
    if "roleid" in answer:
        return frozenset(one for one in str(answer.get("privs") or "").split(",") if one)
    return frozenset(name for name, held in answer.items() if held)


def paths_of(control: AccessControl) -> frozenset[str]:
    """Return the paths on which a privilege can begin or end."""
    paths = {path for path, _grant in control.entries}
    return TOP_PATHS.union(paths, *control.pools.values())


def lost_privileges(
    before: AccessControl, after: AccessControl, who: str
) -> dict[str, frozenset[str]]:
    """Return the privileges that a login loses, by path.

    A privilege that is already lost on a path above is not repeated.
    """
    found: dict[str, frozenset[str]] = {}
    gone: dict[str, frozenset[str]] = {}
    for path in sorted(paths_of(before) | paths_of(after)):
        had = privileges(before, who, path)
        has = privileges(after, who, path)
        gone[path] = frozenset(had.keys() - has.keys())
        above = [gone.get(place, frozenset()) for place in places(path)][:-1]
        rest = gone[path].difference(*above)
        if rest:
            found[path] = rest
    return found
