"""What there is to clone in the tests of module clone, and what is refused of it."""

from __future__ import annotations

from typing import Any

from tests.modules.estate_lab import Lab

# What is cloned: a template on the disks of pve1, a running VM with a snapshot, a VM on files, a
# template of another tenant, a VM of the own one, a template on files.
LOCAL, RUNNING, FILES, THEIRS, MINE, BASE = 9100, 9110, 9120, 9130, 9140, 9150


def make_sources(lab: Lab) -> None:
    """Make them, and a storage that has disks in format raw only."""
    lab.client.write(
        "POST",
        "storage",
        data={"storage": "vg", "type": "lvm", "vgname": "vg", "content": "images"},
    )
    make = lab.client.task
    disks = {
        LOCAL: "local-lvm:2",
        RUNNING: "ceph:2",
        FILES: "local:2",
        THEIRS: "ceph:1",
        MINE: "ceph:1",
        BASE: "local:1",
    }
    tags = {THEIRS: "tenant_globex", MINE: "tenant_acme"}
    for vmid, disk in disks.items():
        data = {
            "vmid": vmid,
            "name": f"source-{vmid}",
            "scsi0": disk,
            "net0": "virtio,bridge=vmbr0",
        }
        make("POST", "nodes", "pve1", "qemu", data={**data, "tags": tags.get(vmid, "any")})
    for vmid in (LOCAL, THEIRS, BASE):
        make("POST", "nodes", "pve1", "qemu", vmid, "template")
    make("POST", "nodes", "pve1", "qemu", RUNNING, "status", "start")
    make(
        "POST",
        "nodes",
        "pve1",
        "qemu",
        RUNNING,
        "snapshot",
        data={"snapname": "before", "vmstate": 1},
    )
    make("PUT", "nodes", "pve1", "qemu", RUNNING, "resize", data={"disk": "scsi0", "size": "5G"})
    lab.client.write(
        "PUT", "nodes", "pve1", "qemu", RUNNING, "config", data={"description": "after"}
    )


CLONE: dict[str, Any] = {"name": "refused"}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({**CLONE, "source": 9000, "full": False, "storage": "ceph"}, "NotSupported", "storage"),
    ({**CLONE, "source": 9000, "full": False, "format": "raw"}, "NotSupported", "format"),
    ({**CLONE, "source": RUNNING, "full": False}, "NotSupported", "not a template"),
    ({**CLONE, "source": FILES, "full": False}, "NotSupported", "not a template"),
    ({**CLONE, "source": BASE, "full": False, "node": "pve2"}, "NotSupported", "cannot leave"),
    ({**CLONE, "source": RUNNING, "snapshot": "nosuch"}, "NotFound", "before"),
    ({**CLONE, "source": 9000, "snapshot": "nosuch"}, "NotFound", "none"),
    ({**CLONE, "source": "nosuch"}, "NotFound", "debian-13 (9000)"),
    ({**CLONE, "source": 7777}, "NotFound", "7777 could not be cloned: no VM of that number"),
    ({**CLONE, "source": "local:iso/x.iso"}, "ValidationFailed", "source"),
    ({"vmid": 9000, "source": 9000}, "ValidationFailed", "9000"),
    ({**CLONE, "source": 9000, "task_timeout": 0}, "ValidationFailed", "task_timeout"),
    ({**CLONE, "source": 9000, "node": "pve9"}, "ConfigurationError", "pve9"),
    ({**CLONE, "source": 9000, "storage": "nosuch"}, "ConfigurationError", "nosuch"),
    ({**CLONE, "source": 9000, "pool": "nosuch"}, "ConfigurationError", "nosuch"),
    ({**CLONE, "source": 9000, "storage": "ceph", "format": "qcow2"}, "NotSupported", "raw only"),
    (
        {**CLONE, "source": 9000, "storage": "vg", "format": "qcow2"},
        "NotSupported",
        "vg (lvm) has disks in format raw",
    ),
    ({**CLONE, "source": LOCAL, "node": "pve2", "migrate": False}, "NotSupported", "migrate=true"),
    ({**CLONE, "source": THEIRS, "tenant": "acme"}, "Conflict", "shared_sources"),
    ({**CLONE, "source": RUNNING, "tenant": "acme"}, "Conflict", "shared_sources"),
    (
        {**CLONE, "source": RUNNING, "snapshot": "before", "tenant": "acme"},
        "Conflict",
        "shared_sources",
    ),
    ({"name": "debian-13", "vmid": 9001, "source": 9000}, "Conflict", "9001"),
    ({"name": f"source-{MINE}", "source": MINE}, "Conflict", "the source itself"),
    ({"name": f"source-{FILES}", "source": 9000}, "Conflict", "nothing in its notes"),
    (
        {**CLONE, "source": 9000, "disks": [{"name": "scsi0", "size": "1G"}]},
        "ValidationFailed",
        "shrink",
    ),
    ({**CLONE, "source": 9000, "nics": [{"bridge": "vmbr77"}]}, "ConfigurationError", "vmbr77"),
    ({**CLONE, "source": 9000, "memory": "12X"}, "ValidationFailed", "12X"),
]
