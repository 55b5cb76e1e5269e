"""Settings of a machine that must fit together: display, machine type, drives, TPM state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..errors import ParamError, PveError
from ..schema.units import parse_props, print_props
from ..volumes.volumes import CONTENT_DIRS, is_path_based

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.api import Ctx
    from ..core.state import Cluster
    from ..schema.definition import Schema
    from ..volumes.drives import Drive

# Machine versions of QEMU that Proxmox VE has revised, and the newest revision.
_REVISIONS = {"4.1": 2, "9.2": 1, "10.0": 1, "11.0": 2}
_WITH_CLIPBOARD = re.compile("std|cirrus|vmware|virtio|qxl")
# Options that a limit of a drive needs, and options that exclude each other.
_NEEDS = (
    ("mbps_max", "mbps"),
    ("mbps_rd_max", "mbps_rd"),
    ("mbps_wr_max", "mbps_wr"),
    ("bps_max_length", "mbps_max"),
    ("bps_rd_max_length", "mbps_rd_max"),
    ("bps_wr_max_length", "mbps_wr_max"),
    ("iops_max_length", "iops_max"),
    ("iops_rd_max_length", "iops_rd_max"),
    ("iops_wr_max_length", "iops_wr_max"),
)
_EXCLUDE = (("mbps_rd", "mbps"), ("mbps_wr", "mbps"), ("iops_rd", "iops"), ("iops_wr", "iops"))


def is_windows(conf: Mapping[str, Any]) -> bool:
    """Whether the guest is said to be a Windows."""
    return str(conf.get("ostype", "")).startswith("w")


def clamp_cpuunits(text: str) -> str:
    """The CPU weight, limited to the range of control groups of version 2 (pve-common: CGroup.pm,
    clamp_cpu_shares), which every supported release boots with.
    """
    return str(min(10000, int(text)))


def check_vga(schema: Schema, text: str | None) -> None:
    """Refuse the VNC clipboard on a display that cannot have it."""
    vga = _parsed(schema, "vga", text)
    kind = vga.get("type")
    if vga.get("clipboard") == "vnc" and kind and not _WITH_CLIPBOARD.match(kind):
        raise PveError(f"vga type {kind} is not compatible with VNC clipboard")


def _parsed(schema: Schema, name: str, text: str | None) -> dict[str, str]:
    keys = schema.vm_options[name].get("format")
    return parse_props(keys, text) if text and text.strip() and isinstance(keys, dict) else {}


def check_machine(schema: Schema, text: str | None) -> None:
    """Refuse an IOMMU that the machine type cannot have."""
    machine = _parsed(schema, "machine", text)
    width, iommu = machine.get("aw-bits"), machine.get("viommu")
    if iommu == "intel":
        if "q35" not in machine.get("type", ""):
            raise PveError("to use Intel vIOMMU please set the machine type to q35")
        if width and float(width) not in (39, 48):
            raise PveError("Intel vIOMMU supports only 39 or 48 bits as address width")
    if width and not iommu:
        raise PveError("cannot set aw-bits if no vIOMMU is configured")


def pinned_machine(cluster: Cluster, text: str | None, ostype: str | None) -> str:
    """The machine setting: for a Windows guest a general type becomes a certain version.

    Empty for none at all.
    """
    schema = cluster.schema
    machine = _parsed(schema, "machine", text)
    kind = machine.get("type", "")
    if kind in ("", "pc", "q35", "virt") and is_windows({"ostype": ostype or ""}):
        version = ".".join(cluster.qemu.split(".")[:2])
        if version in _REVISIONS:
            version += f"+pve{_REVISIONS[version]}"
        machine["type"] = {"q35": "pc-q35", "virt": "virt"}.get(kind, "pc-i440fx") + f"-{version}"
    check_machine(schema, text)
    return print_props(schema.vm_options["machine"]["format"], machine)


def check_tpm(schema: Schema, old: str, new: str) -> None:
    """Refuse another version for a TPM state that exists."""
    before, after = (_parsed(schema, "tpmstate0", text) for text in (old, new))
    if before.get("file") == after.get("file") and before.get("version", "v1.2") != after.get(
        "version", "v1.2"
    ):
        raise PveError("cannot change TPM state version after creation")


def check_drive(name: str, drive: Drive) -> None:
    """Refuse a drive whose parts do not go together."""
    fault = any(drive.get(option) and not drive.get(needed) for option, needed in _NEEDS)
    fault = fault or any(drive.get(one) and drive.get(other) for one, other in _EXCLUDE)
    if drive.get("media") == "cdrom":
        fault = (
            fault
            or bool(drive.get("format"))
            or drive.get("snapshot") == "1"
            or name.startswith("virtio")
        )
    if fault:
        raise ParamError({name: "unable to parse drive options"})


def check_import(name: str, drive: Drive) -> None:
    """Refuse an imported firmware or TPM disk without its type."""
    needed = {"efidisk0": ("efitype", "pre-enrolled-keys"), "tpmstate0": ("version",)}.get(name, ())
    for key in needed:
        if key not in drive:
            raise ParamError({name: f"need to specify '{key}' when using 'import-from'"})


def volume_of_path(ctx: Ctx, path: str) -> tuple[str, str] | None:
    """(content type, volume ID) of a file under the directory of a storage."""
    for storage in ctx.cluster.storages.values():
        root = storage.config.get("path")
        if not root or not is_path_based(storage) or not path.startswith(f"{root}/"):
            continue
        below = path[len(root) + 1 :]
        image = re.fullmatch(r"images/(\d+/[^/\s]+)", below)
        if image:
            held = next(
                (volumes for volumes in storage.volumes.values() if image[1] in volumes), None
            )
            if held is not None:
                return "images", f"{storage.name}:{image[1]}"
            continue
        for content, place in CONTENT_DIRS.items():
            if below.startswith(f"{place}/") and "/" not in below[len(place) + 1 :]:
                return content, f"{storage.name}:{content}/{below[len(place) + 1 :]}"
    return None
