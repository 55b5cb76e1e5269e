# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module sdn_info: the objects of SDN, pending changes, leases and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.core.result import Result
from .forms import view_of
from .model import IPAMS
from .plan import ROOT
from .read import online_nodes, read_sdn, read_status, with_servers

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_LEASE = ("vnet", "subnet", "ip", "mac", "hostname", "vmid", "gateway")


def no_options() -> dict[str, Any]:
    """Return no options, because module sdn_info has only the options of the connection."""
    return {}


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the running SDN. Nothing is written, with or without check mode."""
    reading = with_servers(client, read_sdn(client, subnets=True))
    leases = []
    for ipam in sorted(reading.running[IPAMS]):
        if reading.running[IPAMS][ipam].get("type") != "pve":
            continue
        for row in client.get(*ROOT, IPAMS, ipam, "status") or ():
            leases.append({"ipam": ipam, **{key: row.get(key) for key in _LEASE}})
    values = {
        "sdn": view_of(reading.running),
        "pending": list(reading.pending),
        "leases": leases,
        "nodes": {node: read_status(client, node) for node in online_nodes(client)},
    }
    return Result(False, values)
