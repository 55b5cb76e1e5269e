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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ..generated.rights import CHECKS
from ..path_templates import template_of
from ..root import ROOT
from .code_checks import Check, checks_of
from .privileges import BRIDGE, Privileges

_PLACEHOLDER = re.compile(r"\{([^}]+)\}")
# The privileges on an object that permit to change the rights on it (RPCEnvironment.pm,
# check_perm_modify).
_MODIFY = {"storage": "Datastore.Allocate", "vms": "VM.Allocate", "pool": "Pool.Allocate"}
# Parameters that a request may lack although a check names them: PVE fills in a hyphen (pve-common:
# Tools.pm, template_replace). The update of a realm sync job has no realm.
_LEFT_OUT = {"realm"}
# The first releases with checks of a privilege on a path.
_SINCE = {"VM.Replicate": (9,), "/mapping/cpu": (9, 2)}


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

    @property
    def template(self) -> str:
        """The path with placeholders."""
        return template_of("/" + "/".join(quote(str(part), safe="") for part in self.path))

    @property
    def values(self) -> dict[str, str]:
        """The parameters, and the names in the path."""
        words = zip(self.template[1:].split("/"), map(str, self.path), strict=False)
        names = {word.strip("{}"): part for word, part in words if word.startswith("{")}
        return {**{key: str(value) for key, value in self.data.items()}, **names}

    @property
    def checks(self) -> list[Check]:
        """The permission checks of PVE, as far as they are known."""
        call = _PLACEHOLDER.sub("{}", f"{self.method} {self.template}")
        found = [CHECKS[call]] if call in CHECKS else []
        return [*found, *checks_of(call, self.values, self.data, self.config)]

    @property
    def depends_on_release(self) -> bool:
        """Whether PVE has a check of the request since a release only."""
        checks = str(self.checks)
        return any(name in checks for name in _SINCE)

    @property
    def uses_zones(self) -> bool:
        """Whether the zones of VNets decide about the privileges."""
        return any(one[0] == "network" and not BRIDGE.fullmatch(one[1]) for one in self.checks)


def find_missing(request: RequiredRequest, held: Privileges) -> str | None:
    """Return the cause as PVE words it, such as C(/vms/100, VM.Clone), or None.

    The cause is empty if PVE names none.
    """
    if held.login == ROOT:
        return None
    caller = _Caller(held, request.pools, request.values)
    found = (caller.missing(check) for check in request.checks)
    return next((cause for cause in found if cause is not None), None)


@dataclass(frozen=True)
class _Caller:
    """The privileges of the caller, and the parameters of a request."""

    held: Privileges
    pools: frozenset[str]
    values: Mapping[str, str]

    def missing(self, check: Check) -> str | None:
        """Return the cause of a refusal, None if the request is permitted or its check unknown."""
        kind, *parts = check
        if kind == "or":
            return None if any(self.missing(part) is None for part in parts) else ""
        if kind == "and":
            found = (self.missing(part) for part in parts)
            return next((cause for cause in found if cause is not None), None)
        if kind == "either":
            causes = [self.missing(part) for part in parts]
            return None if None in causes else causes[-1]
        checks: Mapping[str, Callable[..., str | None]] = {
            "network": self._missing_network,
            "perm": self._missing_on,
            "perm-modify": self._missing_modify,
            "root": str,
            "userid-group": self._missing_group,
            "userid-param": self._missing_user,
        }
        return checks[kind](*parts) if kind in checks else None

    def _missing_on(self, path: str, privileges: Sequence[str], *options: Any) -> str | None:
        more = dict(zip(options[::2], options[1::2], strict=True))
        if more.get("require_param", "") not in ("", *self.values):
            return ""
        if set(_PLACEHOLDER.findall(path)) - self.values.keys() - _LEFT_OUT:
            return None
        place = _PLACEHOLDER.sub(lambda found: self.values.get(found[1], "-"), path)
        if any(
            name in (*privileges, place.rpartition("/")[0]) and self.held.release < since
            for name, since in _SINCE.items()
        ):
            return None
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

    def _missing_modify(self, _path: str) -> str | None:
        path = self.values.get("path", "")
        more = _MODIFY.get(path[1:].partition("/")[0]) if path.count("/") > 1 else None
        privileges = ("Permissions.Modify", more) if more else ("Permissions.Modify",)
        return self._missing_on(path, privileges, "any", 1)

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
