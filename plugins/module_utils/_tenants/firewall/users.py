# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses the removal of a security group, alias or IP set that another scope uses.

Proxmox VE removes any group that has no rules itself, and any alias and IP set. Rules that use it
stay, and are ignored, so a packet that such a rule drops is accepted (pve-firewall:
PVE/API2/Firewall/Groups.pm, delete_security_group; PVE/Firewall.pm, generate_group_rules,
ruleset_generate_vm_rules and generate_ipset_chains).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._foundation.cluster.find.visible import require_all_guests_visible, sees_all_guests
from ..._foundation.cluster.state import fetch_cluster_state, read_members
from ..._foundation.core.errors import Conflict, NotFound, NotSupported
from ..._foundation.core.formatting import first_of
from ..._foundation.core.parallel import side_by_side
from ..._guests.kinds.words import CONTAINER, VM
from .find_scope import label_of_row
from .model import Firewall
from .read import aliases_of, groups_of, read_sets, rules_of, vnets_of
from .references import RemovedNames, raise_in_use, removed_names, uses_of
from .scope import CLUSTER, NODE, ROOT, VNET, FirewallScope, Path, plain_scope

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def require_group_unused(client: Client, name: str, leaving: Collection[int] = ()) -> None:
    """Raise Conflict if a rule of the cluster, a node, a VNet or a guest uses a group.

    `leaving` are guests that are removed first. It sends five requests, and one for each node, VNet
    and guest.
    """
    require_all_guests_visible(sees_all_guests(client), f"Group '{name}' was not removed", "")
    places = _places(client, leaving)

    def is_user(place: tuple[str, Path]) -> bool:
        try:
            rules = rules_of(client.get(*place[1]))
        except (NotFound, NotSupported):
            return False
        return any(rule.type == "group" and rule.action == name for rule in rules)

    found = side_by_side(is_user, places)
    _require_no_users(
        name, [label for (label, _path), is_one in zip(places, found, strict=True) if is_one]
    )


def _require_no_users(name: str, users: list[str]) -> None:
    if users:
        raise Conflict(
            f"Group '{name}' was not removed: rules of {first_of(users)} use it",
            "Remove these rules first",
            "in use",
        )


def require_names_unused(
    client: Client,
    scope: FirewallScope,
    before: Firewall,
    after: Firewall,
    leaving: Collection[int] = (),
    leaving_group: str = "",
) -> None:
    """Raise Conflict if another place uses an alias or IP set that the task removes.

    Names of a guest are used by the guest only. For names of the cluster it sends six requests, one
    for each node, VNet and security group, two for each guest, and one for each of its IP sets.
    Guests and the group that the task removes do not count.
    """
    removed = removed_names(scope, before, after)
    if not removed.aliases and not removed.sets:
        return
    if leaving_group or after.ip_sets == before.ip_sets:  # not all sets were read
        sets = dict(read_sets(client, scope.path))
        for name in before.ip_sets.keys() - after.ip_sets.keys():
            sets.pop(name, None)
        # sets whose members were read, or that have some by the plan
        known = {name: ip_set for name, ip_set in after.ip_sets.items() if ip_set.members}
        after = replace(after, ip_sets={**sets, **known})
    for name, use in uses_of(removed, after):
        raise_in_use(name, f"{use} of {scope.label}")
    if scope.kind != CLUSTER:
        return
    require_all_guests_visible(sees_all_guests(client), "Names of the cluster were not removed", "")
    places = _places(client, leaving)[1:]
    groups = groups_of(client.get(*ROOT, "groups")).keys() - {leaving_group}
    places += [(f"group '{name}'", (*ROOT, "groups", name)) for name in sorted(groups)]

    def find_use(place: tuple[str, Path]) -> tuple[str, str] | None:
        label, path = place
        for name, use in _uses_at(client, path, removed):
            return name, f"{use} of {label}"
        return None

    for found in side_by_side(find_use, places):
        if found is not None:
            raise_in_use(*found)


def _uses_at(client: Client, path: Path, removed: RemovedNames) -> list[tuple[str, str]]:
    """Return the uses in the rules at a path, and in the IP sets of a guest."""
    try:
        firewall = Firewall(rules=rules_of(client.get(*path)))
        own: set[str] = set()
        if path[2] in (VM.type, CONTAINER.type):
            base = path[:-1]
            sets = read_sets(client, base)
            firewall = replace(firewall, ip_sets=sets)
            own = {f"+{name}" for name in sets}
            if any(uses_of(removed, firewall, own)):
                own |= {name.lower() for name in aliases_of(client.get(*base, "aliases"))}
    except (NotFound, NotSupported):
        return []
    return list(uses_of(removed, firewall, own))


def _places(client: Client, leaving: Collection[int]) -> list[tuple[str, Path]]:
    """Return each place whose rules can use a group, with the path of its rules."""
    scopes = [plain_scope(CLUSTER, None)]
    scopes += [plain_scope(NODE, str(row["name"])) for row in read_members(client)]
    scopes += [plain_scope(VNET, name) for name in vnets_of(client)]
    found: list[tuple[str, Path]] = [(scope.label, scope.rules_path) for scope in scopes]
    guests = fetch_cluster_state(client).vms.values()
    for row in guests:
        if row.vmid not in leaving:
            found.append((label_of_row(row), (*row.path, "firewall", "rules")))
    return found
