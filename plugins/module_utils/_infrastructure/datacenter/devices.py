# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparison of a mapping with the devices of its nodes before the first write.

Proxmox VE itself compares them when a guest starts, and refuses the start (pve-guest-common:
PVE/Mapping/PCI.pm and USB.pm, assert_valid; qemu-server: QemuServer/PCI.pm, parse_hostpci).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.find.names import NODE, require_known
from ..._foundation.core.errors import ConfigurationError, PermissionDenied
from ..._foundation.core.parallel import side_by_side
from ..._foundation.resource.table import DesiredResource, ResourceChange

Device = Mapping[str, str]
"""The properties of a device by the options of an entry; missing properties are left out."""

_MAX_LISTED = 8
# Without the parameter, Proxmox VE hides bridges and processors, which a mapping can contain.
_QUERIES = {"pci": {"pci-class-blacklist": ""}, "usb": {}}
_NEEDED = {"pci": "Sys.Audit or Sys.Modify", "usb": "Sys.Modify"}


def precheck_devices(
    client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise ConfigurationError for new entries whose nodes or devices do not exist, and return
    warnings about nodes whose devices cannot be read, and about devices that differ from `mdev`.

    One request for the nodes, and one for each node that is online, except for directories.
    """
    kind = desired.keys["type"]
    present, after = change.before, {**change.before, **change.sets}
    new = after.get("map", frozenset()) - present.get("map", frozenset())
    compared = after.get("map", frozenset()) if "mdev" in change.sets else new
    if not compared:
        return ()
    nodes = client.get("nodes", attempted="Could not list the nodes") or []
    states = {str(row["node"]): row.get("status") for row in nodes}
    require_known("map", NODE, {dict(entry)["node"] for entry in new}, states)
    if kind not in _QUERIES:
        return ()
    named = sorted({dict(entry)["node"] for entry in compared})
    online = [node for node in named if states.get(node) == "online"]
    answers = side_by_side(partial(_read_rows, client, kind), online)
    rows = dict(zip(online, answers, strict=True))
    read = read_pci_device if kind == "pci" else read_usb_device
    devices = {
        node: None if found is None else [read(row) for row in found]
        for node, found in rows.items()
    }
    require_devices(kind, _sorted(new), devices)
    warnings = list(_warnings(kind, named, rows))
    if kind == "pci":
        warnings += mdev_differences(_sorted(compared), bool(after.get("mdev")), rows)
    return tuple(warnings)


def _sorted(entries: Iterable[tuple[tuple[str, str], ...]]) -> list[dict[str, str]]:
    return [dict(entry) for entry in sorted(entries)]


def _read_rows(client: Api, kind: str, node: str) -> list[Mapping[str, Any]] | None:
    """Return the devices of a node, or None if the login may not read them. Raises FleetError."""
    attempted = f"Could not list the devices of node {node}"
    try:
        rows = client.get(
            "nodes", node, "hardware", kind, params=_QUERIES[kind], attempted=attempted
        )
    except PermissionDenied:
        return None
    return list(rows or ())


def mdev_differences(
    entries: Iterable[Mapping[str, str]],
    mdev: bool,
    rows: Mapping[str, Sequence[Mapping[str, Any]] | None],
) -> Iterator[str]:
    """Yield a warning for each PCI device that differs from `mdev` of its mapping (pure).

    A device offers mediated devices once its driver is loaded, so a difference is not refused
    (pve-common: SysFSTools.pm, lspci).
    """
    word = "is not" if mdev else "is"
    for entry in entries:
        offers = {str(row["id"]): bool(row.get("mdev")) for row in rows.get(entry["node"]) or ()}
        for address in _addresses(entry):
            if offers.get(address, mdev) != mdev:
                yield (
                    f"PCI device {address} of node {entry['node']} {word} capable of mediated"
                    f" devices, and mdev is {str(mdev).lower()}: Proxmox VE refuses to start a VM"
                    " with this mapping there until both agree"
                )


def _addresses(entry: Mapping[str, str]) -> list[str]:
    """Return the addresses of an entry; a path without a function means function 0 (pure)."""
    return [path if "." in path else f"{path}.0" for path in entry["path"].split(";")]


def _warnings(kind: str, named: Iterable[str], rows: Mapping[str, Any]) -> Iterator[str]:
    for node in named:
        if node not in rows:
            yield f"The devices of node {node} were not compared: the node is not online"
        elif rows[node] is None:
            yield (
                f"The devices of node {node} were not compared: this login may not read them"
                f" ({_NEEDED[kind]} on /)"
            )


def read_pci_device(row: Mapping[str, Any]) -> Device:
    """Return a row of the listing as a device (pure); PVE/SysFSTools.pm returns -1 for no group."""
    found = {"path": str(row["id"]), "id": _pair(row, "vendor", "device")}
    group = row.get("iommugroup", -1)
    if group >= 0:
        found["iommugroup"] = str(group)
    if row.get("subsystem_vendor") and row.get("subsystem_device"):
        found["subsystem_id"] = _pair(row, "subsystem_vendor", "subsystem_device")
    return found


def read_usb_device(row: Mapping[str, Any]) -> Device:
    """Return a row of the listing as a device (pure); a root hub has no path."""
    found = {"id": _pair(row, "vendid", "prodid")}
    if row.get("usbpath") and row.get("busnum"):
        found["path"] = f"{row['busnum']}-{row['usbpath']}"
    return found


def _pair(row: Mapping[str, Any], vendor: str, device: str) -> str:
    return f"{row.get(vendor, '')}:{row.get(device, '')}".replace("0x", "")


def require_devices(
    kind: str, entries: Iterable[Mapping[str, str]], devices: Mapping[str, Sequence[Device] | None]
) -> None:
    """Raise ConfigurationError for entries without a device (pure)."""
    faults: list[str] = []
    candidates: list[str] = []
    for entry in entries:
        known = devices.get(entry["node"])
        found = list(_FAULTS[kind](entry, known)) if known is not None else []
        if found:
            faults += found
            candidates.append(f"node {entry['node']} has {_listed(entry, known or ())}")
    if not faults:
        return
    next_step = f"Correct map: {'; '.join(dict.fromkeys(candidates))}"
    raise ConfigurationError(f"map was refused: {'; '.join(faults)}", next_step, "missing device")


def pci_faults(entry: Mapping[str, str], devices: Iterable[Device]) -> Iterator[str]:
    """Yield the differences between an entry and the PCI devices of its node (pure).

    The IOMMU group belongs to the first path.
    """
    by_path = {device["path"]: device for device in devices}
    for place, address in enumerate(_addresses(entry)):
        label = f"PCI device {address} of node {entry['node']}"
        if address not in by_path:
            yield f"node {entry['node']} has no PCI device {address}"
            continue
        compared = ("id", "subsystem_id") if place else ("id", "iommugroup", "subsystem_id")
        for option in compared:
            yield from _difference(option, entry, by_path[address], label)


def usb_faults(entry: Mapping[str, str], devices: Iterable[Device]) -> Iterator[str]:
    """Yield the differences between an entry and the USB devices of its node (pure)."""
    option = "path" if "path" in entry else "id"
    wanted = entry[option]
    found = [device for device in devices if device.get(option) == wanted]
    if not found:
        yield f"node {entry['node']} has no USB device {wanted}"
        return
    yield from _difference("id", entry, found[-1], f"USB device {wanted} of node {entry['node']}")


_FAULTS: Mapping[str, Callable[[Mapping[str, str], Iterable[Device]], Iterator[str]]] = {
    "pci": pci_faults,
    "usb": usb_faults,
}


def _difference(option: str, entry: Mapping[str, str], device: Device, label: str) -> Iterator[str]:
    wanted, real = entry.get(option), device.get(option)
    if wanted == real:
        return
    if wanted is None:
        yield f"{label} has {option} {real}, and the entry has none"
    elif real is None:
        yield f"{label} has no {option}, and the entry has {wanted}"
    else:
        yield f"{label} has {option} {real}, not {wanted}"


def _listed(entry: Mapping[str, str], devices: Sequence[Device]) -> str:
    """Return the devices of a node for a message: the devices with the same ID, or else all."""
    alike = [device for device in devices if device["id"] == entry["id"]] or list(devices)
    texts = [" ".join(f"{key}={value}" for key, value in device.items()) for device in alike]
    text = ", ".join(texts[:_MAX_LISTED]) or "none"
    if len(texts) > _MAX_LISTED:
        return f"{text} and {len(texts) - _MAX_LISTED} more"
    return text
