"""The state of the cluster: every VM and container with its configuration, snapshots and disks,
every pool and volume.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.modules.estate_lab import Lab

# Options that PVE generates for each VM or changes itself.
VOLATILE = ("digest", "meta", "vmgenid", "smbios1", "snaptime", "runningcpu")
_MAC = re.compile(r"(?:[0-9A-F]{2}:){5}[0-9A-F]{2}")
_DRIVE = re.compile(r"^(?:(?:scsi|virtio|sata|ide|efidisk|tpmstate|unused|mp)\d+|vmstate|rootfs)$")
_RUN = re.compile(r" run=\w+")
_MADE = re.compile(r"(?<=made )[\dTZ:+.-]+")  # in the notes of a copy of a drill
_BACKUP_TIME = re.compile(r"(?<=\d-)\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d(?=\.)")


@dataclass(frozen=True)
class VmState:
    """One VM or container as PVE has it; `config` without generated options, volumes by their
    storage.
    """

    vmid: int
    name: str
    node: str
    running: bool
    config: dict[str, Any]
    pending: tuple[str, ...]
    snapshots: Mapping[str, Mapping[str, Any]]
    identity: str  # the uuid in smbios1: it differs for another VM with that VMID

    @property
    def tags(self) -> set[str]:
        """The tags of the VM."""
        return set(str(self.config.get("tags", "")).split(";"))

    def volumes(self) -> set[str]:
        """The volumes that the configuration names."""
        named: set[str] = set()
        for config in (self.config, *self.snapshots.values()):
            named |= {
                str(value).partition(",")[0] for key, value in config.items() if _DRIVE.match(key)
            }
        return {_own(volume) for volume in named if ":" in volume}

    def comparable(self) -> dict[str, Any]:
        """The VM without its VMID and without values that differ from run to run."""
        config = {}
        for key, value in self.config.items():
            text = _RUN.sub("", _MAC.sub("MAC", str(value)))
            text = _MADE.sub("TIME", _BACKUP_TIME.sub("TIME", text))
            config[key] = re.sub(rf"\b{self.vmid}\b", "VMID", text)
        return {
            "name": self.name,
            "running": self.running,
            "config": config,
            "pending": self.pending,
            "snapshots": sorted(self.snapshots),
        }


@dataclass(frozen=True)
class World:
    """All of it at one moment."""

    vms: dict[int, VmState]
    volumes: Mapping[tuple[str, str], int]  # (node, empty on a shared storage; volume): bytes
    pools: Mapping[str, Any]
    access: Mapping[str, Any]

    def named(self, name: str, tenant: str | None) -> list[VmState]:
        """The VMs of that name that are a tenant's."""
        tag = f"tenant_{tenant}"
        return [
            one
            for one in self.vms.values()
            if one.name == name and (tenant is None or tag in one.tags)
        ]

    def leaked(self) -> set[str]:
        """Volumes with the VMID of a VM that no VM names, and volumes of VMs that are gone."""
        used: set[str] = set()
        for vm in self.vms.values():
            used |= vm.volumes()
        return {
            volume
            for _node, volume in self.volumes
            if re.search(r"(?:vm|base)-\d+-", volume) and _own(volume) not in used
        }


def _own(volume: str) -> str:
    """The volume without the name of its base, if it is a linked clone."""
    storage, _colon, path = volume.partition(":")
    return f"{storage}:{path.rpartition('/')[2]}"


def read_world(lab: Lab) -> World:
    """Return the cluster, read past the API: faults and late listings do not affect it."""
    asked = lab.simulator.ask
    rows = [*asked("GET", "/vms"), *asked("GET", "/containers")]
    vms = {int(row["vmid"]): _vm(row) for row in rows}
    volumes = {(one["node"], one["volid"]): one["size"] for one in asked("GET", "/volumes")}
    pools = {
        name: {
            "comment": pool["comment"],
            "vms": sorted(int(vmid) for vmid in pool["vms"]),
            "storages": sorted(pool["storage"]),
        }
        for name, pool in asked("GET", "/pools").items()
    }
    return World(vms, volumes, pools, _access(lab))


def _access(lab: Lab) -> dict[str, Any]:
    """Return groups, roles, users with their tokens, grants, and the options of the cluster; no
    secret is among them.
    """
    client = lab.client
    users = client.get("access", "users", params={"full": 1})
    roles = client.get("access", "roles")
    return {
        "groups": _sorted(client.get("access", "groups")),
        "roles": _sorted(role for role in roles if not role.get("special")),
        "users": _sorted(users),
        "grants": _sorted(client.get("access", "acl")),
        "options": client.get("cluster", "options"),
        "networks": _networks(lab),
    }


def _networks(lab: Lab) -> dict[str, Any]:
    """Return zones and VNets with their pending changes, and the subnets."""
    base, vnets = ("cluster", "sdn"), lab.client.get("cluster", "sdn", "vnets")
    found = {
        kind: _sorted(lab.client.get(*base, kind, params={"pending": 1}))
        for kind in ("zones", "vnets", "controllers")
    }
    for row in vnets:
        found[row["vnet"]] = _sorted(lab.client.get(*base, "vnets", row["vnet"], "subnets"))
    return found


def _sorted(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows sorted by content, independent of the order of the answer."""
    return sorted((dict(row) for row in rows), key=lambda row: json.dumps(row, sort_keys=True))


def _vm(row: Mapping[str, Any]) -> VmState:
    config = row["config"]
    snapshots = {
        name: {key: value for key, value in kept.items() if key not in VOLATILE}
        for name, kept in row["snapshots"].items()
    }
    return VmState(
        vmid=int(row["vmid"]),
        name=str(config.get("name") or config.get("hostname") or ""),
        node=row["node"],
        running=row["running"],
        config={key: value for key, value in config.items() if key not in VOLATILE},
        pending=tuple(sorted({*row["pending"], *row["delete"]})),
        snapshots=snapshots,
        identity=str(config.get("smbios1", "")),
    )
