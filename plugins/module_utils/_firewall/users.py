# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses the removal of a security group that rules use.

Proxmox VE removes any group that has no rules itself. Rules that use it stay, and are ignored
(pve-firewall: PVE/API2/Firewall/Groups.pm, delete_security_group).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._cluster.state import fetch_cluster_state, read_members
from .._container.kind import CONTAINER
from .._core.errors import Conflict, NotFound, NotSupported
from .._core.parallel import side_by_side
from .._vm.kind import VM
from .find_scope import label_of_row
from .read import rules_of, vnets_of
from .scope import CLUSTER, NODE, VNET, Path, plain_scope

if TYPE_CHECKING:
    from .._api.client import Client

_READS_AT_ONCE = 8
_MAX_LISTED = 5


def require_group_unused(client: Client, name: str) -> None:
    """Raise Conflict if a rule of the cluster, a node, a VNet or a guest uses a group.

    It sends four requests, and one for each node, VNet and guest.
    """
    _require_no_users(name, _users_of(client, name))


def _users_of(client: Client, name: str) -> list[str]:
    places = _places(client)

    def is_user(place: tuple[str, Path]) -> bool:
        try:
            rules = rules_of(client.get(*place[1]))
        except (NotFound, NotSupported):
            return False
        return any(rule.type == "group" and rule.action == name for rule in rules)

    found = side_by_side(is_user, places, _READS_AT_ONCE)
    return [label for (label, _path), is_one in zip(places, found, strict=True) if is_one]


def _require_no_users(name: str, users: list[str]) -> None:
    if users:
        raise Conflict(
            attempted=f"Group '{name}' was not removed",
            answer=f"rules of {_joined(users)} use it",
            next_step="Remove these rules first",
            reason="in use",
            dispatched=False,
        )


def _joined(users: list[str]) -> str:
    rest = len(users) - _MAX_LISTED
    listed = ", ".join(users[:_MAX_LISTED])
    return f"{listed} and {rest} more" if rest > 0 else listed


def _places(client: Client) -> list[tuple[str, Path]]:
    """Return each place whose rules can use a group, with the path of its rules."""
    scopes = [plain_scope(CLUSTER, None)]
    scopes += [plain_scope(NODE, str(row["name"])) for row in read_members(client)]
    scopes += [plain_scope(VNET, name) for name in vnets_of(client)]
    found: list[tuple[str, Path]] = [(scope.label, scope.rules_path) for scope in scopes]
    guests = fetch_cluster_state(client, {VM.type, CONTAINER.type}).vms.values()
    found += [(label_of_row(row), (*row.path, "firewall", "rules")) for row in guests]
    return found
