# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks of a tenant in the options of a guest (pure).

An entry of O(networks) with a zone is a VNet of the tenant. Its ID follows from the tag of the
tenant and the name of the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...._foundation.cluster.tenant import PREFIX, group_name, tenant_tag, vnet_id
from ...._foundation.core import validate
from ...._foundation.core.errors import ValidationFailed
from ...kinds.model import GuestIsolation

# Keys of a network that describe its VNet; the others are options of a NIC.
OF_VNET = frozenset(
    "zone tag tag_range subnet snat dhcp_ranges dhcp_dns_server state gateway".split()
)
_WORDS = ("dhcp", "auto", "manual")


def tag_of(options: Mapping[str, Any]) -> str:
    """Return the tag of the tenant of a guest, empty without a tenant."""
    tenant = options.get("tenant")
    return tenant_tag(str(tenant), options.get("tenant_prefix") or PREFIX) if tenant else ""


def own_networks(
    networks: Mapping[str, Mapping[str, Any]], tag: str
) -> dict[str, Mapping[str, Any]]:
    """Return the networks as options of a NIC: a network with a zone becomes its VNet.

    Raises ValidationFailed for a VNet without a tenant.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for label, content in networks.items():
        found[label] = _as_nic(label, content, tag) if content.get("zone") else content
    return found


def _as_nic(label: str, content: Mapping[str, Any], tag: str) -> dict[str, Any]:
    if not tag:
        raise validate.refused(
            f"networks.{label}", content["zone"], "is a zone of a tenant's VNet", "Set tenant"
        )
    if content.get("bridge"):
        raise validate.refused(
            f"networks.{label}", content["bridge"], "is a bridge beside a zone", "Remove one"
        )
    nic = {key: value for key, value in content.items() if key not in OF_VNET}
    gateway = content.get("gateway")
    if gateway:
        nic["gateway6" if ":" in str(gateway) else "gateway"] = gateway
    return {"firewall": True, **nic, "bridge": vnet_id(tag, label)}


def unlisted_networks(
    items: Iterable[Mapping[str, Any]], networks: Mapping[str, Mapping[str, Any]], tag: str
) -> dict[str, dict[str, Any]]:
    """Return the VNets of the tenant for networks of NICs that no map has, as options of a NIC.

    None without a tenant. If the estate lists the VNets of the tenant, none either: the name is
    then unknown. A name that begins with vmbr is a bridge.
    """
    lists_vnets = any(content.get("zone") for content in networks.values())
    if not tag or lists_vnets:
        return {}
    labels = [str(item.get("network") or "") for item in items]
    unlisted = [one for one in labels if one and not one.startswith("vmbr")]
    return {label: {"firewall": True, "bridge": vnet_id(tag, label)} for label in unlisted}


def read_isolation(options: Mapping[str, Any]) -> GuestIsolation | None:
    """Return the VNets of the tenant that the NICs of a guest use; None if there are none.

    Raises ValidationFailed for a NIC on one of them whose firewall is switched off.
    """
    tag = tag_of(options)
    if not tag:
        return None
    networks: dict[str, str] = {}
    members: dict[str, tuple[str, ...]] = {}
    for item in options.get("nics") or ():
        label = item.get("network")
        if not label or item.get("state") == "absent":
            continue
        if item.get("bridge") == vnet_id(tag, label):
            networks[item["bridge"]] = label
            members[item["name"]] = _members(item)
    isolation = GuestIsolation(group_name(tag), members, networks) if members else None
    _require_filters(options.get("nics") or (), isolation)
    return isolation


def _members(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the addresses that a NIC may use: its static addresses, else those on its VNet."""
    found: list[str] = []
    for key in ("ip", "ip6"):
        address = str(item.get(key) or "").partition("/")[0].strip()
        if address and address not in _WORDS:
            found.append(address.lower())
    return tuple(found) or (f"dc/{item['bridge']}",)


def _require_filters(items: Iterable[Mapping[str, Any]], isolation: GuestIsolation | None) -> None:
    """Raise ValidationFailed for a NIC on a VNet of the tenant whose firewall is switched off."""
    isolated = {} if isolation is None else isolation.members
    for item in items:
        if item.get("name") in isolated and item.get("firewall") is False:
            raise ValidationFailed(
                attempted=f"nics.{item['name']} was refused",
                answer=f"network '{item['network']}' is isolated, and firewall is false",
                next_step="Remove firewall, or use a bridge instead of the network",
                reason="firewall",
            )
