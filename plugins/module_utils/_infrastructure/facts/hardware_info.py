# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module hardware_info (pve-manager: PVE/API2/Hardware/PCI.pm and USB.pm)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.each_node import answered, read_each_node, result_of_nodes
from ..._foundation.core import validate
from ..._foundation.core.result import Result
from ..datacenter.devices import read_pci_device, read_usb_device

_CLASSES = "pci_class_blacklist"
_CLASS = re.compile(r"[0-9a-f]{2,6}")


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the PCI or USB devices of one node or of all nodes; nothing is written.

    One request for each node, and one for the list of nodes.
    """
    kind, query = params["type"], read_query(params)
    part = f"{kind.upper()} devices"
    answers = read_each_node(client, params.get("node"), part, "hardware", kind, params=query)
    devices: list[dict[str, Any]] = []
    for node, rows in answered(answers).items():
        devices += [describe(kind, node, row) for row in rows or ()]
    return result_of_nodes(answers, "devices", devices)


def read_query(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the query of the request (pure). Raises ValidationFailed."""
    classes = params.get("pci_class_blacklist")
    if classes is None:
        return {}
    if params["type"] != "pci":
        raise validate.refused(_CLASSES, classes, "is about PCI devices", "Leave it out")
    for one in classes:
        if not _CLASS.fullmatch(one):
            raise validate.refused(_CLASSES, one, "is not a class", "Write it as 05 or 0b")
    return {"pci-class-blacklist": ";".join(classes)}


def describe(kind: str, node: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a device with its entry for option `map` of module mapping (pure)."""
    if kind == "usb":
        return {
            "node": node,
            "vendor_name": row.get("manufacturer"),
            "device_name": row.get("product"),
            "serial": row.get("serial"),
            "speed": row.get("speed"),
            "map": {"node": node, **read_usb_device(row)},
        }
    entry: dict[str, Any] = {"node": node, **read_pci_device(row)}
    if "iommugroup" in entry:
        entry["iommugroup"] = int(entry["iommugroup"])
    return {
        "node": node,
        "class": row.get("class"),
        "vendor_name": row.get("vendor_name"),
        "device_name": row.get("device_name"),
        "mdev": bool(row.get("mdev")),
        "map": entry,
    }
