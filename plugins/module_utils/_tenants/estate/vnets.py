# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NICs of exported guests that name the networks of their tenants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._foundation.core.parallel import side_by_side
from ..._guests.guest.desired.guest import own_networks, read_isolation
from ..._guests.guest.desired.layers import NOT_STATIC
from ..._guests.guest.export.settings import InexpressibleSetting
from ..._guests.guest.isolation import missing_isolation
from ..tenant.network.export import ExportedNetworks
from .model import ExportedVm

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_GATEWAYS = (("gateway", "ip"), ("gateway6", "ip6"))
_DIFFERS = "a run would change the firewall of the guest"


def with_networks(
    client: Client, vms: list[ExportedVm], networks: Mapping[str, ExportedNetworks], prefix: str
) -> list[ExportedVm]:
    """Return the guests with names of networks; guests that are not isolated keep their bridges.

    About five requests for each guest on a network of its tenant.
    """

    def named(vm: ExportedVm) -> ExportedVm:
        own = networks.get(vm.tenant)
        if own is None:
            return vm
        contents = own_networks(own.options["networks"], own.tag)
        labels = [label_of(nic, contents) for nic in vm.options.get("nics") or ()]
        if not any(labels):
            return vm
        nics = [
            {**nic, "network": label} if label else dict(nic)
            for nic, label in zip(vm.options["nics"], labels, strict=True)
        ]
        isolation = read_isolation({"tenant": vm.tenant, "tenant_prefix": prefix, "nics": nics})
        if isolation is not None and missing_isolation(client, isolation, vm.actual) is not None:
            lost = InexpressibleSetting("isolation", ", ".join(filter(None, labels)), _DIFFERS)
            return replace(vm, lost=(*vm.lost, lost))
        named_nics = [named_nic(nic, contents) for nic in nics]
        return replace(vm, options={**vm.options, "nics": named_nics})

    return side_by_side(named, vms)


def label_of(nic: Mapping[str, Any], contents: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the network that a NIC can name without a change, or an empty text (pure)."""
    for label, content in contents.items():
        if nic.get("bridge") == content["bridge"] and _is_over(nic, content):
            return label
    return ""


def _is_over(nic: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    """Return whether a NIC has the options of a network; its gateways may differ."""
    for key, value in content.items():
        address = dict(_GATEWAYS).get(key)
        if address is not None and nic.get(address) in NOT_STATIC:
            continue
        is_own = key in nic and address is not None
        if nic.get(key) != value and not is_own:
            return False
    return True


def named_nic(nic: Mapping[str, Any], contents: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a NIC without the options that equal the options of its network (pure)."""
    label = nic.get("network")
    if not label:
        return dict(nic)
    rest = {key: value for key, value in nic.items() if contents[label].get(key) != value}
    head = {"name": rest.pop("name")} if "name" in rest else {}
    return {**head, "network": rest.pop("network"), **rest}
