# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data of an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.cluster.quota import QuotaFigures
from ..._guests.guest.export.settings import InexpressibleSetting, Options
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import VM
from ..tenant.network.export import ExportedNetworks

PRESENT = "present"


@dataclass(frozen=True)
class ExportItem:
    """Data that every guest of an export has; name and tenant are empty if it has none. `type` is
    PVE's word for its kind.
    """

    vmid: int
    name: str
    tenant: str
    type: str = field(default=VM.type, kw_only=True)

    @property
    def is_container(self) -> bool:
        """Whether it is in the list of containers."""
        return self.type != VM.type

    @property
    def is_listed(self) -> bool:
        """Whether the VM is in the list of the estate."""
        return True

    @property
    def item(self) -> dict[str, Any]:
        """The item of the list."""
        return {"vmid": self.vmid, "state": PRESENT}

    @property
    def label(self) -> str:
        """The VM in comments and messages: TENANT/NAME and its VMID."""
        name = self.name or ("container" if self.is_container else "VM")
        if self.tenant:
            name = f"{self.tenant}/{name}"
        return f"{name} ({self.vmid})"


@dataclass(frozen=True)
class ExportedVm(ExportItem):
    """A VM of the export. `options` are the options of its item for module vms.

    `steps` are the steps of the next run that do not depend on the options, such as the end of a
    change that was interrupted. `secrets` are options whose values PVE does not return.
    """

    actual: Actual
    options: Options
    lost: tuple[InexpressibleSetting, ...] = ()
    secrets: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    figures: QuotaFigures = QuotaFigures()

    @property
    def item(self) -> dict[str, Any]:
        """The item of the list."""
        return {**super().item, **self.options}


@dataclass(frozen=True)
class UnreadVm(ExportItem):
    """A VM that could not be read: its data in the listing, and the reason.

    `privilege` and `acl_path` name the privilege that the login lacks; both are empty for other
    reasons. `omitted` is set if the VM is not in the estate.
    """

    node: str
    reason: str
    privilege: str = ""
    acl_path: str = ""
    omitted: bool = False

    @property
    def is_listed(self) -> bool:
        return not self.omitted

    @property
    def item(self) -> dict[str, Any]:
        """The item of the list, without options that would change the VM.

        A VM that is in the list is not pruned.
        """
        item = super().item
        if self.tenant:
            item["tenant"] = self.tenant
        return item


@dataclass(frozen=True)
class UnreadNode:
    """A node whose VMs cannot be read, and why."""

    node: str
    reason: str


@dataclass
class ExportReadings:
    """The VMs of an export as read, and the VMs and nodes that could not be read.

    `networks` has the networks of tenants, by the name of the tenant.
    """

    vms: list[ExportedVm] = field(default_factory=list)
    missing: list[UnreadVm] = field(default_factory=list)
    nodes: list[UnreadNode] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    networks: Mapping[str, ExportedNetworks] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every VM of the export could be read."""
        return not (self.missing or self.nodes)


@dataclass(frozen=True)
class ExportChoices:
    """The form in which VMs are expressed.

    `adopt` is the tenant for VMs without a tenant, or empty. `power` and `nodes` decide whether
    items contain the power state and the node, `quotas` whether the quota of a tenant is set to its
    usage.
    """

    prefix: str
    adopt: str = ""
    power: bool = True
    nodes: bool = False
    quotas: bool = False


@dataclass(frozen=True)
class ExportedEstate:
    """The estate: `variables` of an estate file, and the data for its comments.

    `exported` and `missing` are VMs in the order of the list. `use` is the usage of each tenant.
    """

    variables: Mapping[str, Any]
    exported: tuple[ExportedVm, ...] = ()
    missing: tuple[UnreadVm, ...] = ()
    use: Mapping[str, QuotaFigures] = field(default_factory=dict)
    networks: Mapping[str, ExportedNetworks] = field(default_factory=dict)
