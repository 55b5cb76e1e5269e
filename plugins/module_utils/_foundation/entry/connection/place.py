# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the guest of a connection, and refuses a guest that differs from the inventory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...._guests.kinds.kind import Kind
from ...cluster.tenant import PREFIX, owns, parse_tags, tenant_tag
from ...core.errors import (
    ConfigurationError,
    Conflict,
    NetworkError,
    NodeUnhealthy,
    NotFound,
    UnknownVm,
    ValidationFailed,
)

if TYPE_CHECKING:
    from ...api.client import Client


@dataclass(frozen=True)
class ConnectionGuest:
    """The guest of a connection, described by options and inventory.

    `vmid` is None if only the name is known. `name` is empty if only the VMID is known. `node` is
    its node in the inventory, or an empty text.
    """

    kind: Kind
    vmid: int | None
    name: str
    node: str
    tenant: str = ""
    prefix: str = PREFIX

    @property
    def label(self) -> str:
        """The guest in messages."""
        vmid_text = "" if self.vmid is None else f" {self.vmid}"
        name = f" '{self.name}'" if self.name else ""
        return f"{self.kind.noun}{vmid_text}{name}"

    @property
    def attempted(self) -> str:
        """The beginning of the message of a failure."""
        return f"Could not connect to {self.label}"


@dataclass(frozen=True)
class GuestPlace:
    """The guest, and its present node."""

    kind: Kind
    vmid: int
    name: str
    node: str

    def path(self, *below: str | int) -> tuple[str | int, ...]:
        """Return the segments of a path of the guest."""
        return self.kind.path(self.node, self.vmid, *below)


def find_place(client: Client, wanted: ConnectionGuest) -> GuestPlace:
    """Return the place of the guest.

    One request if it is on its node in the inventory, otherwise two or three. Its configuration is
    read, because the listing may show another guest under its VMID for ten seconds. Raises
    FleetError if there is no such guest, if it has another name, or if it belongs to another
    tenant.
    """
    _require_tenant(wanted, client.connection.require_tenant)
    if wanted.vmid is not None and wanted.node:
        try:
            return _checked(client, wanted, wanted.vmid, wanted.node)
        except (NotFound, ConfigurationError, NetworkError, NodeUnhealthy):
            pass  # it was moved or removed, or its node is down: the listing shows which
    rows = client.get("cluster", "resources", type="vm", attempted=wanted.attempted)
    row = _chosen(rows, wanted)
    return _checked(client, wanted, int(row["vmid"]), str(row["node"]))


def _require_tenant(wanted: ConnectionGuest, is_required: bool) -> None:
    if is_required and not wanted.tenant:
        raise ValidationFailed(
            f"{wanted.attempted}: the connection has no tenant, and require_tenant is set",
            "Set ansible_pve_tenant to the tenant of the guest",
            "require_tenant",
        )


def _chosen(rows: Iterable[Mapping[str, Any]], wanted: ConnectionGuest) -> Mapping[str, Any]:
    """Return the row of the guest in the listing (pure)."""
    if wanted.vmid is not None:
        found = [row for row in rows if row.get("vmid") == wanted.vmid]
    else:
        found = [row for row in rows if _is_named(row, wanted)]
    if len(found) > 1:
        vmids = ", ".join(sorted(str(row["vmid"]) for row in found))
        raise Conflict(
            f"{wanted.attempted}: several guests have the name: {vmids}",
            "Set ansible_pve_vmid",
            "ambiguous name",
        )
    if not found:
        raise UnknownVm(
            f"{wanted.attempted}: the cluster has no such guest, or the user may not see it",
            "Check the VMID, and refresh the inventory",
            "unknown guest",
        )
    row = found[0]
    if row.get("type") != wanted.kind.type:
        raise Conflict(
            f"{wanted.attempted}: {row.get('vmid')} is a guest of another kind",
            "Use pve.fleet.agent for VMs and pve.fleet.pct for containers",
            "another kind",
        )
    return row


def _is_named(row: Mapping[str, Any], wanted: ConnectionGuest) -> bool:
    if row.get("name") != wanted.name or row.get("type") != wanted.kind.type:
        return False
    return owns(_owner(wanted), parse_tags(row.get("tags")), wanted.prefix)


def _checked(client: Client, wanted: ConnectionGuest, vmid: int, node: str) -> GuestPlace:
    """Return the place of the guest after a check of its configuration."""
    path = wanted.kind.path(node, vmid, "config")
    config = client.get(*path, attempted=wanted.attempted)
    name = wanted.kind.name_in(config)
    _require_same(wanted, vmid, name, parse_tags(config.get("tags")))
    return GuestPlace(wanted.kind, vmid, name, node)


def _require_same(wanted: ConnectionGuest, vmid: int, name: str, tags: Iterable[str]) -> None:
    """Raise Conflict if the guest has another name or another tenant (pure)."""
    if wanted.name and name != wanted.name:
        raise Conflict(
            f"{wanted.attempted}: {wanted.kind.noun} {vmid} has the name '{name}' now",
            "Refresh the inventory",
            "another guest",
        )
    if not owns(_owner(wanted), tags, wanted.prefix):
        raise Conflict(
            f"{wanted.attempted}: it does not belong to tenant {wanted.tenant}",
            "Check ansible_pve_tenant and the tags of the guest",
            "another tenant",
        )


def _owner(wanted: ConnectionGuest) -> str | None:
    return tenant_tag(wanted.tenant, wanted.prefix) if wanted.tenant else None
