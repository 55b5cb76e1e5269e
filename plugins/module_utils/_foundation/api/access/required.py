# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The privilege that a request needs and the caller lacks (pure).

Sources: the permission checks of the API's schema and of PVE's code, and the order in which PVE
evaluates them (pve-access-control: PVE/RPCEnvironment.pm, exec_api2_perm_check). Checks of facts
that are not known before the run, such as the groups of a user, count as passed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

from ..generated.rights import CHECKS
from ..path_templates import template_of
from ..root import ROOT
from .code_checks import Check, checks_of
from .privileges import BRIDGE, LOCAL, Privileges

_PLACEHOLDER = re.compile(r"\{([^}]+)\}")
# The privileges on an object that permit to change the rights on it (RPCEnvironment.pm,
# check_perm_modify).
_MODIFY = {"storage": "Datastore.Allocate", "vms": "VM.Allocate", "pool": "Pool.Allocate"}


@dataclass(frozen=True)
class RequiredRequest:
    """A request that is checked.

    `pools` are the pools that the guests of its plan join, `config` is the configuration of the
    guest that it changes or copies.
    """

    method: str
    path: Sequence[str | int]
    data: Mapping[str, Any]
    pools: frozenset[str] = frozenset()
    config: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def template(self) -> str:
        """The path with placeholders."""
        return template_of("/" + "/".join(quote(str(part), safe="") for part in self.path))

    @cached_property
    def values(self) -> dict[str, str]:
        """The parameters, and the names in the path."""
        words = zip(self.template[1:].split("/"), map(str, self.path), strict=False)
        names = {word.strip("{}"): part for word, part in words if word.startswith("{")}
        return {**{key: str(value) for key, value in self.data.items()}, **names}

    @cached_property
    def checks(self) -> list[Check]:
        """The permission checks of PVE, as far as they are known."""
        call = _PLACEHOLDER.sub("{}", f"{self.method} {self.template}")
        found = [CHECKS[call]] if call in CHECKS else []
        return [*found, *checks_of(call, self.values, self.data, self.config)]

    @property
    def kinds(self) -> set[str]:
        """The kinds of the checks."""
        return {one[0] for one in self.checks}

    @property
    def uses_zones(self) -> bool:
        """Whether the zones of VNets decide about the privileges."""
        return any(one[0] == "network" and not BRIDGE.fullmatch(one[1]) for one in self.checks)


def privileges_beside(
    request: RequiredRequest, release: tuple[int, ...], zones: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Return the privileges that a request needs on objects other than guests and pools: the ACL
    path, the privileges, and whether any of them is enough.
    """
    for check in (_in_force(one, release) for one in request.checks):
        if check and check[0] == "network":
            _kind, name, vlan = check
            path = f"/sdn/zones/{zones.get(name, LOCAL)}/{name}/{vlan}"
            yield path.rstrip("/"), ("SDN.Use",), False
        elif check and check[0] == "perm":
            _kind, path, privileges, *options = check
            more = dict(zip(options[::2], options[1::2], strict=True))
            place = _PLACEHOLDER.sub(lambda found: request.values.get(found[1], ""), path)
            if not place.startswith(("/vms/", "/pool/")):
                yield place, privileges, bool(more.get("any"))


def _in_force(check: Check, release: tuple[int, ...]) -> Check | None:
    """Return the check that a release makes, or None."""
    if check[0] != "since":
        return check
    _kind, since, newer, older = check
    effective: Check | None = newer if release >= tuple(since) else older
    return effective


def find_missing(request: RequiredRequest, held: Privileges) -> str | None:
    """Return the cause as PVE words it, such as C(/vms/100, VM.Clone), or None.

    The cause is empty if PVE names none.
    """
    if held.login == ROOT:
        return None
    caller = _Caller(held, request.pools, request.values)
    found = (caller.missing(check) for check in request.checks)
    return next((cause for cause in found if cause is not None), None)


def restricted_tags(
    options: Mapping[str, Any], old: Collection[str], new: Collection[str]
) -> list[str]:
    """Return the tags that change and that only Sys.Modify on / may change (pve-guest-common:
    GuestHelpers.pm, assert_tag_permissions).

    Without Sys.Audit, PVE shows the tags that the login may set, but not the restrictions: only a
    tag that the guest has is known to be restricted.
    """
    allowed = options.get("allowed-tags") or ()
    registered = options.get("registered-tags") or ()
    is_free = (options.get("user-tag-access") or {}).get("user-allow", "free") == "free"
    changed = sorted({*old} ^ {*new})
    unknown = {tag for tag in changed if tag not in allowed and (tag in old or not is_free)}
    return [tag for tag in changed if tag in registered or tag in unknown]


@dataclass(frozen=True)
class _Caller:
    """The privileges of the caller, and the parameters of a request."""

    held: Privileges
    pools: frozenset[str]
    values: Mapping[str, str]

    def missing(self, check: Check) -> str | None:
        """Return the cause of a refusal, None if the request is permitted or its check unknown."""
        effective = _in_force(check, self.held.release)
        if not effective:
            return None
        kind, *parts = effective
        if kind == "or":
            return None if any(self.missing(part) is None for part in parts) else ""
        if kind == "and":
            found = (self.missing(part) for part in parts)
            return next((cause for cause in found if cause is not None), None)
        if kind == "either":
            causes = [self.missing(part) for part in parts]
            return None if None in causes else causes[-1]
        checks: Mapping[str, Callable[..., str | None]] = {
            "moved": self._missing_old_pool,
            "network": self._missing_network,
            "owner": self._missing_stop,
            "perm": self._missing_on,
            "perm-modify": self._missing_modify,
            "root": str,
            "state storage": self._missing_state_storage,
            "tags": self._missing_tags,
            "userid-group": self._missing_group,
            "userid-param": self._missing_user,
        }
        return checks[kind](*parts) if kind in checks else None

    def _missing_on(self, path: str, privileges: Sequence[str], *options: Any) -> str | None:
        more = dict(zip(options[::2], options[1::2], strict=True))
        if more.get("require_param", "") not in ("", *self.values):
            return ""
        # PVE fills in a hyphen for a parameter that the request lacks, such as the realm in the
        # update of a realm sync job (pve-common: Tools.pm, template_replace).
        place = _PLACEHOLDER.sub(lambda found: self.values.get(found[1], "-"), path)
        effective = self._on(place)
        lacking = [name for name in privileges if name not in effective]
        if more.get("any"):
            is_enough = len(lacking) < len(privileges)
            return None if is_enough else f"{place}, {'|'.join(privileges)}"
        return f"{place}, {lacking[0]}" if lacking else None

    def _missing_network(self, name: str, vlan: str, privilege: str = "SDN.Use") -> str | None:
        paths = [f"{path}/{vlan}".rstrip("/") for path in self.held.networks(name)]
        if any(privilege in self.held.on(path) for path in paths):
            return None
        return f"{paths[0]}, {privilege}"

    def _missing_modify(self, path: str) -> str | None:
        place = _PLACEHOLDER.sub(lambda found: self.values[found[1]], path)
        more = _MODIFY.get(place[1:].partition("/")[0]) if place.count("/") > 1 else None
        privileges = ["Permissions.Modify", *filter(None, [more])]
        # the privileges of a pool count only if the guest is in it
        is_enough = self.held.on(place) & {*privileges}
        return None if is_enough else f"{place}, {'|'.join(privileges)}"

    def _missing_old_pool(self, vmid: str) -> str | None:
        """Return the cause if a guest cannot leave its pool (pve-manager: API2/Pool.pm)."""
        pool = self.held.pools.get(vmid)
        return self._missing_on(f"/pool/{pool}", ("Pool.Allocate",)) if pool else None

    def _missing_stop(self, owner: str) -> str | None:
        """Return the cause if a task cannot be stopped (pve-manager: API2/Tasks.pm)."""
        if self.held.login in (owner, owner.partition("!")[0]):
            return None
        return self._missing_on("/nodes/{node}", ("Sys.Modify",))

    def _missing_state_storage(self, names: Sequence[str]) -> str | None:
        """Return the cause if the memory of a VM with disks on these storages cannot be saved
        (qemu-server: QemuConfig.pm, find_vmstate_storage).
        """
        chosen: dict[bool, str] = {}
        for name in sorted(names):
            storage = self.held.storages.get(name, {})
            is_shared = bool(storage.get("shared"))
            if is_shared not in chosen or storage.get("path"):
                chosen[is_shared] = name
        target = chosen.get(True) or chosen.get(False) or "local"
        return self._missing_on(f"/storage/{target}", ("Datastore.AllocateSpace",))

    def _missing_tags(self, old: Sequence[str], new: Sequence[str]) -> str | None:
        """Return the cause if the datacenter restricts a tag."""
        if "Sys.Modify" in self.held.on("/"):
            return None
        found = restricted_tags(self.held.options, old, new)
        return f"/, Sys.Modify for modifying tag '{found[0]}'" if found else None

    def _missing_group(self, privileges: Sequence[str], *options: Any) -> str | None:
        above, wanted = "/access/groups", frozenset(privileges)
        if self.held.on(above) & wanted:
            return None
        given = self.values.get("groups", "").split(",") if options else []
        for path in (f"{above}/{name}".rstrip("/") for name in given):
            if not self.held.on(path) & wanted:
                return f"{path}, {'|'.join(privileges)}"
        may_be_member = any(
            self.held.on(path) & wanted for path in self.held.by_path if path.startswith(above)
        )
        return None if given or may_be_member else ""

    def _missing_user(self, what: str) -> str | None:
        user = self.values.get("userid", "")
        if what == "self":
            return None if user == self.held.login else ""
        return self._missing_on(f"/access/realm/{user.rpartition('@')[2]}", (what,))

    def _on(self, place: str) -> frozenset[str]:
        """Return the privileges on a path; a guest that joins a pool has the privileges there."""
        found = self.held.on(place)
        if place.startswith("/vms/"):
            found = found.union(*(self.held.on(f"/pool/{pool}") for pool in self.pools))
        return found
