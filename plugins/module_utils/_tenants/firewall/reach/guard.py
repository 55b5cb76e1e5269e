# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses a change of rules that would cut off the caller or the nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.core.errors import Conflict, ValidationFailed
from ..evaluate.chains import is_off
from ..evaluate.model import Address, FirewallCluster
from ..model import DesiredFirewall, Firewall
from ..plan import after_plan
from ..read import options_of
from ..rules.model import Rule
from ..scope import CLUSTER, GROUP, NODE, ROOT, FirewallScope
from .lockout import ClusterFirewalls, NodeAddress, find_cuts
from .read import local_address, read_cluster, read_cluster_firewall, read_places

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_CHECKED = (CLUSTER, NODE, GROUP)


def require_access(
    client: Client, scope: FirewallScope, desired: DesiredFirewall, params: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return warnings about connections that the new rules cut, if `allow_lockout` is set.

    Raises Conflict for such a change without `allow_lockout`. Only rules of the cluster, of nodes,
    and of the security groups that they use decide about these connections.
    """
    if scope.kind not in _CHECKED:
        return ()
    endpoint = client.connection.endpoint
    given = params.get("caller_address")
    caller = caller_of(given or local_address(endpoint.host, endpoint.port))
    options = options_of(client.get(*ROOT, "options"))
    after = {**options, **desired.options} if scope.kind == CLUSTER else options
    if is_off(after, "0"):
        return ()
    cuts = _cuts(client, scope, desired, caller)
    if not params.get("allow_lockout"):
        require_no_cuts(scope, cuts)
    return tuple(f"The new rules cut {cut}" for cut in cuts)


def require_no_cuts(scope: FirewallScope, cuts: list[str]) -> None:
    """Raise Conflict if a change would cut connections."""
    if cuts:
        raise Conflict(
            attempted=f"The firewall of {scope.label} was not changed",
            answer=f"the new rules would cut {'; '.join(cuts)}",
            next_step="Add rules that accept these connections, or set allow_lockout: true",
            reason="lockout",
            dispatched=False,
        )


def caller_of(text: str) -> Address | None:
    """Return the address of the caller; None if it is unknown or on the node itself.

    Raises ValidationFailed for a text that is not an address.
    """
    if not text:
        return None
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        raise ValidationFailed(
            attempted="caller_address was refused",
            answer=f"'{text}' is not an address",
            next_step="Write the address from which Proxmox VE sees this computer",
            reason="caller address",
            dispatched=False,
        ) from None
    return None if address.is_loopback else address


def _cuts(
    client: Client, scope: FirewallScope, desired: DesiredFirewall, caller: Address | None
) -> list[str]:
    firewall = read_cluster_firewall(client)
    places = read_places(client)
    new_firewall = after_plan(firewall, desired) if scope.kind == CLUSTER else firewall
    new_places = places
    if scope.kind == NODE:
        name = str(scope.path[1])
        new_places = tuple(_changed(place, name, desired) for place in places)
    rules = [rule for place in (*places, *new_places) for rule in place.node.firewall.rules]
    before = read_cluster(client, firewall, (*rules, *new_firewall.rules))
    after = FirewallCluster(new_firewall, groups_after(scope, before.groups, desired))
    return find_cuts(ClusterFirewalls(before, places), ClusterFirewalls(after, new_places), caller)


def groups_after(
    scope: FirewallScope, groups: Mapping[str, tuple[Rule, ...]], desired: DesiredFirewall
) -> Mapping[str, tuple[Rule, ...]]:
    """Return the security groups after a change of one of them (pure).

    A removed group has no rules. Only groups that are in use are listed.
    """
    if scope.kind != GROUP or scope.name not in groups:
        return groups
    before = Firewall(rules=groups[scope.name])
    return {**groups, scope.name: after_plan(before, desired).rules}


def _changed(place: NodeAddress, name: str, desired: DesiredFirewall) -> NodeAddress:
    if place.node.name != name:
        return place
    firewall: Firewall = after_plan(place.node.firewall, desired)
    return replace(place, node=replace(place.node, firewall=firewall))
