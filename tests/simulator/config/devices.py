"""The PCI and USB devices of nodes, and the comparison of mappings with them.

Source: pve-common, SysFSTools.pm; pve-manager, API2/Hardware/PCI.pm and USB.pm; pve-guest-common,
Mapping/PCI.pm and USB.pm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.api import Ctx, api
from ..core.state import NodeInfo
from ..schema.formats import split_list

_HIDDEN_CLASSES = "05;06;0b"
_SHORT = ("id", "vendor", "device", "class", "iommugroup", "mdev")
_USB = {"class": 0, "devnum": 1, "level": 1, "port": 0, "speed": "480"}


def add_devices(
    info: NodeInfo, pci: Iterable[Mapping[str, Any]], usb: Iterable[Mapping[str, Any]]
) -> None:
    """Give a node the devices of its entry in the cluster file."""
    rows = [{"class": "0x030000", "iommugroup": -1, **row} for row in pci]
    info.pci = sorted(rows, key=lambda row: str(row["id"]))
    info.usb = [{**_USB, **row} for row in usb]


@api("GET /nodes/{node}/hardware/pci")
def list_pci(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The PCI devices of a node without hidden classes (SysFSTools.pm, lspci)."""
    classes = split_list(p.get("pci-class-blacklist", _HIDDEN_CLASSES))
    hidden = tuple(f"0x{one}" for one in classes)
    rows = [row for row in ctx.cluster.nodes[p["node"]].pci if not row["class"].startswith(hidden)]
    if p.get("verbose", 1):
        return rows
    return [{key: row[key] for key in _SHORT if key in row} for row in rows]


@api("GET /nodes/{node}/hardware/usb")
def list_usb(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The USB devices of a node (SysFSTools.pm, scan_usb)."""
    return ctx.cluster.nodes[p["node"]].usb


def pci_fault(name: str, one: Mapping[str, str], mdev: bool, info: NodeInfo) -> str:
    """The text with which assert_valid of Mapping/PCI.pm dies, or an empty text."""
    devices = {str(row["id"]): row for row in info.pci}
    for place, path in enumerate(one["path"].split(";")):
        address = path if "." in path else f"{path}.0"
        if address not in devices:
            return f"pci device '{address}' not found"
        expected = _expected(devices[address])
        configured = {**one, "mdev": str(int(mdev))}
        for key in ("id", "iommugroup", "mdev", "subsystem-id"):
            if key == "iommugroup" and place:
                continue
            fault = _difference(key, expected.get(key), configured.get(key), name, address)
            if fault:
                return fault
    return ""


def _expected(row: Mapping[str, Any]) -> dict[str, str]:
    values = {
        "id": f"{row['vendor']}:{row['device']}".replace("0x", ""),
        "mdev": str(int(row.get("mdev", 0))),
    }
    if row["iommugroup"] >= 0:
        values["iommugroup"] = str(row["iommugroup"])
    if "subsystem_vendor" in row and "subsystem_device" in row:
        both = f"{row['subsystem_vendor']}:{row['subsystem_device']}"
        values["subsystem-id"] = both.replace("0x", "")
    return values


def _difference(key: str, expected: str | None, given: str | None, name: str, address: str) -> str:
    if expected == given:
        return ""
    if given is None:
        return f"missing expected property '{key}' for device '{address}'"
    if expected is None:
        return f"unexpected property '{key}' configured for device '{address}'"
    return f"'{key}' does not match for '{name}' ({expected} != {given})"


def usb_fault(name: str, one: Mapping[str, str], info: NodeInfo) -> str:
    """The text with which assert_valid of Mapping/USB.pm dies, or an empty text."""
    ids = [f"{row['vendid']}:{row['prodid']}" for row in info.usb]
    if "path" not in one:
        return "" if one["id"] in ids else f"usb device '{one['id']}' not found"
    found = [
        real
        for row, real in zip(info.usb, ids, strict=True)
        if row.get("usbpath") and f"{row['busnum']}-{row['usbpath']}" == one["path"]
    ]
    if not found:
        return f"usb device '{one['path']}' not found"
    if found[-1] == one["id"]:
        return ""
    return f"'id' does not match for '{name}' ({found[-1]} != {one['id']})"
