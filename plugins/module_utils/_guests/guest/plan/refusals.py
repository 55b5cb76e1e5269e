# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusals that apply to VMs and containers (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.cluster.placement import ADVICE_NETWORK
from ...._foundation.cluster.site import require_own_bridges
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.cluster.tenant import is_of_others, owns, parse_tags, tenants_of
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import (
    ConfigurationError,
    Conflict,
    NotFound,
    NotSupported,
    PermissionDenied,
    ValidationFailed,
)
from ...._foundation.core.formatting import first_of
from ...._foundation.resource.plan import Plan
from ...kinds.hardware import DesiredGuest
from ...kinds.kind import Kind, NicMtu
from ...kinds.model import Actual, Guest


def require_bridges(
    bridges: Collection[str],
    existing: frozenset[str] | None,
    node: str,
    connection: ConnectionSettings,
    networks: Mapping[str, str],
) -> None:
    """Raise ConfigurationError for a bridge that the node does not have.

    `existing` are the bridges of the node, None if none is needed. `networks` are the names of the
    tenant's networks by their VNets.
    """
    require_own_bridges(connection, bridges)
    missing = set(bridges) - (existing or frozenset())
    if missing:
        names = ", ".join(sorted(existing or ())) or "no bridge"
        name = min(missing)
        if name in networks:
            raise ConfigurationError(
                f"Network '{networks[name]}' could not be used on node {node}: the tenant has no "
                f"such network there, and the node has no VNet '{name}'",
                ADVICE_NETWORK,
                "unknown network",
            )
        raise ConfigurationError(
            f"Bridge '{name}' could not be used on node {node}: the node has "
            f"{names}{did_you_mean(name, existing or ())}",
            (
                "Name one of them; the token needs Sys.Audit on the node, or SDN.Use, to see a"
                " bridge"
            ),
            "unknown bridge",
        )


def mtus_of_bridges(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the MTU of each bridge of a node: its own, or the smallest of its ports."""
    named = {str(row["iface"]): row for row in rows}
    found: dict[str, int] = {}
    for name, row in named.items():
        if row.get("type") not in ("bridge", "OVSBridge"):
            continue
        ports = str(row.get("bridge_ports") or row.get("ovs_ports") or "").split()
        of_ports = [int(named.get(port, {}).get("mtu") or 1500) for port in ports]
        found[name] = int(row.get("mtu") or min(of_ports, default=1500))
    return found


def mtus_of_vnets(
    vnets: Iterable[Mapping[str, Any]], zones: Iterable[Mapping[str, Any]]
) -> dict[str, int]:
    """Return the MTU of each VNet whose zone has one (pve-network: SDN/Zones/*Plugin.pm,
    generate_sdn_config). Without one, it follows from interfaces that no listing names.
    """
    of_zones = {str(zone["zone"]): int(zone["mtu"]) for zone in zones if zone.get("mtu")}
    return {
        str(vnet["vnet"]): of_zones[str(vnet["zone"])]
        for vnet in vnets
        if str(vnet.get("zone")) in of_zones
    }


def require_mtus(kind: Kind, label: str, nics: Iterable[NicMtu], mtus: Mapping[str, int]) -> None:
    """Raise ValidationFailed for an MTU with which PVE does not start a guest: above the MTU of the
    bridge, or below the minimum. `mtus` are the MTUs of bridges.
    """
    for nic in nics:
        maximum = mtus.get(nic.bridge, nic.mtu)
        minimum = kind.minimum_mtu
        if minimum <= nic.mtu <= maximum:
            continue
        answer = f"{nic.mtu} is less than {minimum}"
        if nic.mtu > maximum:
            answer = f"{nic.mtu} is more than the MTU {maximum} of bridge {nic.bridge}"
        raise ValidationFailed(
            f"The MTU of {nic.nic} of {label} was refused: {answer}",
            "Choose another mtu, or change the MTU of the bridge"
            " (pve.fleet.node_network) or of its zone (pve.fleet.sdn)",
            "mtu",
        )


@dataclass(frozen=True)
class PoolOwner:
    """The tenant for which a pool was created, on which the tenant of a guest has no rights, or with
    `is_sure` false, perhaps none.
    """

    tag: str
    is_sure: bool


def is_own_pool(guest: Guest, pool: str, cluster: ClusterState) -> bool:
    """Return whether a pool has the name of the guest's tenant, or contains its guests (pure)."""
    if guest.tenant_tag is None or pool == guest.tenant:
        return True
    return any(row.pool == pool and guest.tenant_tag in row.tags for row in cluster.guests)


def require_own_pool(guest: Guest, owner: PoolOwner | None) -> None:
    """Raise PermissionDenied for a guest in the pool of another tenant, whose logins would control
    it (pure).
    """
    if owner is None:
        return
    name = owner.tag.removeprefix(guest.tenant_prefix)
    reason = f"and tenant {guest.tenant} has no rights on it"
    step = (
        f"Set pool to the pool of tenant {guest.tenant}; for a pool of both tenants, set it as the"
    )
    step += f" pool of tenant {guest.tenant} in pve.fleet.tenant"
    if not owner.is_sure:
        reason = f"and this login cannot read whether tenant {guest.tenant} has rights on it"
        step += ", or use a login with Sys.Audit on /access"
    raise PermissionDenied(
        f"{guest.label} was refused: pool {guest.pool} was created for tenant {name}, {reason}",
        step,
        "foreign pool",
        details={"pool": guest.pool, "tenant": name},
    )


def require_pool(pool: str | None, pools: Collection[str] | None) -> None:
    """Raise ConfigurationError for a pool that does not exist.

    `pools` are the pools that the caller may see, None if the listing shows the wanted pool.
    """
    if not pool or pools is None or pool in pools:
        return
    names = ", ".join(sorted(pools))
    raise ConfigurationError(
        f"Pool '{pool}' could not be used: pools are "
        f"{names or 'none that this token may see'}{did_you_mean(pool, pools)}",
        "Name one of them, or create the pool first: playbook pve.fleet.tenant creates"
        " a tenant with its pool, module pve.fleet.pool creates a pool alone",
        "unknown pool",
    )


def require_template_wanted(desired: Guest, actual: Actual, plan: Plan) -> None:
    """Raise Conflict if a task without state=template would change this template."""
    if desired.state == "template" or not plan.changed:
        return
    raise Conflict(
        f"{actual.label} was not changed: it is a template",
        "Set state=template to change it, or choose another name or vmid",
        "template",
    )


def require_unprotected(desired: DesiredGuest, actual: Actual, taken: Collection[str]) -> None:
    """Raise Conflict if a change removes or detaches disks of a protected guest."""
    is_protected = actual.live.get("protection") == "1"
    is_lifted = desired.hardware.scalars.get("protection") == "0"
    if not is_protected or is_lifted or not taken:
        return
    raise Conflict(
        f"{', '.join(sorted(taken))} of {actual.label} was not changed: the {actual.kind.noun} is "
        "protected, so that its drives cannot be taken away",
        "Set protection=false in the same task to lift the protection",
        "protected",
    )


def require_one_tenant(desired: Guest, actual: Actual, after: Mapping[str, str]) -> None:
    """Raise Conflict if a guest would have the tags of several tenants after a change."""
    prefix = desired.tenant_prefix
    before = tenants_of(parse_tags(actual.target.get("tags")), prefix)
    tenants_after = tenants_of(parse_tags(after.get("tags")), prefix)
    added = set(tenants_after) - set(before)
    if len(tenants_after) < 2 or not added:
        return
    raise Conflict(
        f"{actual.label} was not changed: it would have the tags of several tenants: "
        f"{', '.join(tenants_after)}",
        "Remove the tag of the tenant that it leaves first",
        "several tenants",
    )


def raise_for_version(
    label: str, refused: Mapping[str, str], causes: Iterable[str], version: str
) -> NoReturn:
    """Raise NotSupported for options that the server's version of PVE does not accept."""
    raise NotSupported(
        f"{label} could not be planned: the server is PVE {version}, which does not take "
        f"{', '.join(causes)}",
        "Leave that out for this server, or use a server whose version takes it",
        ", ".join(sorted(refused)),
        parameters=refused,
        details={"version": version},
    )


def require_creation(desired: Guest, cluster: ClusterState) -> None:
    """Raise NotFound for a guest that does not exist if the task must not create it."""
    if desired.create:
        return
    raise NotFound(
        f"{desired.label} was not created: create is false, and there is no such "
        f"{desired.kind.noun}{remark_on_similar(desired, cluster)}",
        "Correct name, vmid or tenant, or leave create out",
        "create",
    )


def remark_on_similar(desired: Guest, cluster: ClusterState) -> str:
    """Return the addition to a message about an unknown name: the most similar name of the tenant,
    and the guest of this name that is not the tenant's.
    """
    if not desired.name:
        return ""
    own: list[str] = []
    others: list[str] = []
    for row in cluster.guests:
        if owns(desired.tenant_tag, row.tags, desired.tenant_prefix):
            own.append(row.own_name)
        elif row.own_name == desired.name:
            others.append(f"{row.vmid} on node {row.node}")
    remark = did_you_mean(desired.name, filter(None, own))
    if others:
        remark += f"; guest {first_of(others)} has that name, but belongs to another tenant or none"
    return remark


def require_name_free(desired: Guest, others: Iterable[VmRow], verb: str = "created") -> None:
    """Raise Conflict if one of these guests of the other kind has the name: both kinds share the
    names of a tenant.
    """
    for row in others:
        if row.name != desired.name or not desired.name:
            continue
        if is_of_others(desired.tenant_tag, row.tags, desired.tenant_prefix):
            continue
        other = desired.kind.other.noun
        raise Conflict(
            f"{desired.label} was not {verb}: a {other} has that name: {row.vmid} on node "
            f"{row.node}",
            f"Choose another name, or remove that {other} first",
            "name taken",
        )
