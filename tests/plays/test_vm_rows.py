"""Every promise about a VM, through a real ansible-playbook: made, found the same in a second run,
or refused.

A playbook runs many cases, because a start of ansible-playbook costs more than a case. The numbers
are those of the list of features: 10 create ... 32 apply policy.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.simulator.process import Simulator

pytestmark = pytest.mark.slow

MAPPINGS: list[dict[str, Any]] = [
    {
        "type": "pci",
        "name": "gpu1",
        "map": [
            {
                "node": "pve1",
                "path": "0000:01:00.0",
                "id": "10de:2204",
                "iommugroup": 1,
                "subsystem_id": "10de:1467",
            }
        ],
    },
    {"type": "usb", "name": "dongle1", "map": [{"node": "pve1", "id": "0529:0001"}]},
]
CLUSTER = Path(__file__).resolve().parents[1] / "simulator" / "clusters" / "demo.yml"
ENVIRONMENT = {
    "PROXMOX_TOKEN_ID": "root@pam!fleet",
    "PROXMOX_TOKEN_SECRET": "00000000-0000-4000-8000-0000000000f1",
}
ISO, IMAGE = "local:iso/debian-13-netinst.iso", "local:import/debian-13-genericcloud-amd64.qcow2"
KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9kL2cSGZ9Y7wqGm5y7qGmM4bqXy9t6v4kq3Yx0JmPz"
    " ops@example.com"
)


@dataclass(frozen=True)
class Case:
    """Options of pve.fleet.vm, what must be true of the result (`r`), and the category of a
    refusal.
    """

    row: str
    options: dict[str, Any]
    that: list[str] = field(default_factory=list)
    refused: str = ""
    acts: bool = False  # happens in every run


def at(
    row: str, options: dict[str, Any], *that: str, refused: str = "", acts: bool = False
) -> Case:
    return Case(row, options, list(that), refused, acts)


DEBIAN = {"source": "debian-13", "node": "pve1"}
CASES = [
    at("10 by VMID", {"name": "r10a", "source": "9000"}, "r.vm.cloned_from == 9000"),
    at("10 by name", {"name": "r10b", "source": "debian-13"}, "r.vm.cloned_from == 9000"),
    at(
        "10 ISO",
        {"name": "r10c", "source": ISO, "disks": [{"size": 4}]},
        f"r.vm.config.ide2.volume == '{ISO}'",
    ),
    at(
        "10 image name",
        {"name": "r10d", "source": "debian-13-genericcloud-amd64", "node": "pve1"},
        "r.vm.config.scsi0.size == '3G'",
    ),
    at(
        "10 blank",
        {"name": "r10e", "disks": [{"size": 1}]},
        "r.vm.config.cores == 2",
        "r.vm.vmid >= 10000",
    ),
    at("10 unknown", {"name": "r10f", "source": "no-such"}, refused="NotFound"),
    at(
        "11 import",
        {"name": "r11", "source": IMAGE, "disks": [{"size": "8G", "storage": "ceph"}]},
        "r.vm.config.scsi0 == {'storage': 'ceph', 'size': '8G'}",
    ),
    at(
        "11 too small",
        {"name": "r11b", "source": IMAGE, "disks": [{"size": "1G"}]},
        refused="ConfigurationError",
    ),
    at(
        "11 no content import",
        {"name": "r11c", "source": "ceph:import/debian.qcow2", "disks": [{"size": "8G"}]},
        refused="NotSupported",
    ),
    at("12 make", {"name": "r12", **DEBIAN, "tags": ["mine"]}),
    at(
        "12 update",
        {"name": "r12", "cores": 4, "description": "new"},
        "r.vm.config.cores == 4",
        "'mine' in r.vm.tags",
    ),
    at("13 make", {"name": "r13", **DEBIAN, "protection": True, "state": "started"}),
    at("13 protected", {"name": "r13", "state": "absent"}, refused="Conflict"),
    at("13 released", {"name": "r13", "state": "absent", "protection": False}, "r.vm is none"),
    at("14 started", {"name": "r14", **DEBIAN, "state": "started"}, "r.vm.status == 'running'"),
    at(
        "14 paused",
        {"name": "r14", "state": "paused"},
        "r.vm.status == 'paused'",
        "r.vm.power_state == 'suspended'",
    ),
    at("14 resumed", {"name": "r14", "state": "resumed"}, "r.vm.status == 'running'"),
    at("14 hibernated", {"name": "r14", "state": "hibernated"}, "r.vm.status == 'hibernated'"),
    at("14 started again", {"name": "r14", "state": "started"}, "r.vm.status == 'running'"),
    at("14 reset", {"name": "r14", "state": "reset"}, acts=True),
    at("14 restarted", {"name": "r14", "state": "restarted"}, acts=True),
    at(
        "14 stopped",
        {"name": "r14", "state": "stopped", "shutdown_timeout": 30},
        "r.vm.status == 'stopped'",
    ),
    at("15 template", {"name": "r15", **DEBIAN, "state": "template"}, "r.vm.template"),
    at("15 runs not", {"name": "r15", "state": "started"}, refused="Conflict"),
    at(
        "16 cpu",
        {
            "name": "r16",
            **DEBIAN,
            "cores": 2,
            "sockets": 2,
            "cpu": "host",
            "numa": True,
            "cpulimit": 1.5,
            "cpuunits": 200,
        },
        "r.vm.config.cpu.cputype == 'host'",
        "r.vm.config.sockets == 2",
    ),
    at("16 too many", {"name": "r16", "cores": 1025}, refused="ValidationFailed"),
    at(
        "16 more than the node has",
        {"name": "r16c", **DEBIAN, "cores": 17, "state": "started"},
        refused="ConfigurationError",
    ),
    at(
        "16 many sockets",
        {"name": "r16d", **DEBIAN, "cores": 1, "sockets": 6},
        "r.vm.config.sockets == 6",
        "r.warnings | select('search', '6 sockets') | length == 1",
    ),
    at(
        "17 memory",
        {"name": "r17", **DEBIAN, "memory": "3Gi", "balloon": "1G"},
        "r.vm.config.memory == 3072",
    ),
    at("17 same in MiB", {"name": "r17", "memory": 3072}, "not r.changed"),
    at("17 unit", {"name": "r17", "memory": "3Q"}, refused="ValidationFailed"),
    at("17 floor", {"name": "r17", "memory": "32M"}, refused="ValidationFailed"),
    at(
        "18 disks",
        {
            "name": "r18",
            **DEBIAN,
            "disks": [
                {
                    "name": "scsi0",
                    "size": "10G",
                    "cache": "writeback",
                    "ssd": True,
                    "discard": True,
                    "iothread": True,
                },
                {"name": "virtio0", "size": 2, "storage": "local-lvm", "backup": False},
            ],
        },
        "r.vm.config.scsi0.size == '10G'",
        "r.vm.config.virtio0.backup == false",
    ),
    at(
        "18 grow and move",
        {"name": "r18", "disks": [{"name": "virtio0", "size": "3G", "storage": "ceph"}]},
        "r.vm.config.virtio0.size == '3G'",
        "r.vm.config.virtio0.storage == 'ceph'",
    ),
    at(
        "18 shrink",
        {"name": "r18", "disks": [{"name": "virtio0", "size": "2G"}]},
        refused="ValidationFailed",
    ),
    at(
        "18 detach",
        {"name": "r18", "disks": [{"name": "virtio0", "state": "detached"}]},
        "'virtio0' not in r.vm.config",
        "'unused0' in r.vm.config",
    ),
    at(
        "19 storage class",
        {
            "name": "r19",
            "node": "pve1",
            "storage_classes": {"fast": {"storage": "ceph", "ssd": True}},
            "disks": [{"size": 1, "storage_class": "fast"}],
        },
        "r.vm.config.scsi0.storage == 'ceph'",
        "r.vm.config.scsi0.ssd",
    ),
    at(
        "20 nics",
        {
            "name": "r20",
            **DEBIAN,
            "nics": [
                {"bridge": "vmbr0", "vlan": 100, "firewall": True, "rate": 10},
                {
                    "bridge": "vmbr1",
                    "model": "e1000",
                    "link_down": True,
                    "mac": "BC:24:11:AA:BB:CC",
                },
            ],
        },
        "r.vm.config.net0.tag == 100",
        "r.vm.macs.net1 == 'BC:24:11:AA:BB:CC'",
    ),
    at(
        "20 MAC stays",
        {"name": "r20", "nics": [{"vlan": 200}, {"vlan": 5}]},
        "r.vm.macs.net1 == 'BC:24:11:AA:BB:CC'",
    ),
    at("20 VLAN", {"name": "r20", "nics": [{"vlan": 4095}]}, refused="ValidationFailed"),
    at(
        "21 networks",
        {
            "name": "r21",
            **DEBIAN,
            "nics": [{"network": "lan"}, {"network": "dmz"}, {"network": "mgmt"}],
        },
        "r.vm.config.net1.bridge == 'vmbr1'",
        "r.vm.config.net2.bridge == 'vmbr2'",
    ),
    at(
        "22 bridge",
        {"name": "r22", **DEBIAN, "nics": [{"bridge": "vmbr9"}]},
        refused="ConfigurationError",
    ),
    at(
        "23 cloud-init",
        {
            "name": "r23",
            **DEBIAN,
            "nics": [{"ip": "10.1.2.3/24", "gateway": "10.1.2.1", "ip6": "auto"}],
            "cloud_init": {
                "user": "ops",
                "ssh_keys": [KEY],
                "upgrade": False,
                "nameservers": ["10.1.2.1"],
                "search_domain": "example.com",
                "password": "secret-enough",
            },
        },
        "r.vm.config.ipconfig0.ip == '10.1.2.3/24'",
        "r.vm.config.sshkeys | length == 1",
        "'secret-enough' not in (r | string)",
    ),
    at(
        "24 firmware",
        {
            "name": "r24",
            "node": "pve1",
            "bios": "uefi",
            "machine": "q35",
            "disks": [{"size": 1}, {"name": "tpmstate0"}],
        },
        "r.vm.config.bios == 'ovmf'",
        "r.vm.config.efidisk0['pre-enrolled-keys']",
        "'tpmstate0' in r.vm.config",
    ),
    at(
        "25 os",
        {"name": "r25", "disks": [{"size": 1}], "ostype": "windows"},
        "r.vm.config.ostype == 'win11'",
    ),
    at(
        "26 boot",
        {"name": "r26", **DEBIAN, "boot": ["network", "disk"]},
        "r.vm.config.boot == ['net0', 'scsi0']",
    ),
    at(
        "27 options",
        {
            "name": "r27",
            **DEBIAN,
            "agent": True,
            "onboot": True,
            "startup": "order=2,up=30",
            "hotplug": "network,disk",
            "description": "two\nlines",
            "tags": ["a", "B"],
            "pool": "acme",
            "serial_console": True,
            "vga": "serial0",
        },
        "r.vm.config.startup.order == 2",
        "'b' in r.vm.tags",
        "r.vm.pool == 'acme'",
        "r.vm.description == 'two\\nlines'",
    ),
    at(
        "27 devices",
        {
            "name": "r27b",
            **DEBIAN,
            "machine": "q35",
            "options": {
                "hostpci0": {"mapping": "gpu1", "pcie": True},
                "usb0": {"mapping": "dongle1"},
                "rng0": "/dev/urandom",
            },
        },
        "r.vm.config.hostpci0.mapping == 'gpu1'",
        "r.vm.config.usb0.mapping == 'dongle1'",
        "r.vm.config.rng0.source == '/dev/urandom'",
    ),
    at(
        "28 any other",
        {
            "name": "r28",
            **DEBIAN,
            "options": {
                "watchdog": {"model": "ib700", "action": "reset"},
                "rng0": "source=/dev/urandom",
                "tablet": False,
            },
        },
        "r.vm.config.watchdog.action == 'reset'",
        "not r.vm.config.tablet",
    ),
    at(
        "28 taken away",
        {"name": "r28", "options": {"watchdog": None}},
        "'watchdog' not in r.vm.config",
    ),
    at(
        "28 refused",
        {"name": "r28", "options": {"watchdog": "model=toaster"}},
        refused="ValidationFailed",
    ),
    at(
        "29 class",
        {
            "name": "r29",
            **DEBIAN,
            "class": "web",
            "memory": "1G",
            "classes": {"web": {"cores": 3, "memory": "2G", "tags": ["web"]}},
        },
        "r.vm.config.cores == 3",
        "r.vm.config.memory == 1024",
    ),
    at("29 unknown", {"name": "r29", "class": "nosuch"}, refused="ConfigurationError"),
    at(
        "30 describe",
        {
            "name": "r30",
            **DEBIAN,
            "state": "started",
            "addresses": True,
            "nics": [{"ip": "10.7.7.7/24"}],
        },
        "r.vm.address == '10.7.7.7'",
        "r.vm.address_source == 'agent'",
        "'vmid=' in r.vm.console_url",
        "[r.vm.status, r.vm.power_state] == ['running', 'on']",
    ),
    at(
        "30 no agent",
        {
            "name": "r30b",
            **DEBIAN,
            "agent": False,
            "state": "started",
            "addresses": True,
            "nics": [{"ip": "10.7.7.8/24"}],
        },
        "r.vm.address == '10.7.7.8'",
        "r.vm.address_source == 'cloud-init'",
    ),
    at(
        "31 wait",
        {"name": "r30", "wait_for": "address", "address_subnets": ["10.7.7.0/24"]},
        "r.vm.address == '10.7.7.7'",
    ),
    at(
        "31 in vain",
        {
            "name": "r30",
            "wait_for": "address",
            "address_subnets": ["192.0.2.0/24"],
            "wait_timeout": 1,
        },
        refused="TaskTimeout",
    ),
    at(
        "32 pending",
        {"name": "r30", "cores": 6, "description": "d"},
        "r.pending == ['cores']",
        "r.applied == ['description']",
        "r.needs_reboot",
    ),
    at(
        "32 reboot",
        {"name": "r30", "cores": 6, "reboot": "if_needed"},
        "r.pending == []",
        "r.vm.status == 'running'",
        "not r.needs_reboot",
    ),
    at(
        "32 reboot always",
        {"name": "r30", "cores": 5, "reboot": "always"},
        "r.applied == ['cores']",
        "r.vm.uptime < 30",
        acts=True,
    ),
    at(
        "32 reboot never",
        {"name": "r30", "cores": 4, "reboot": "never"},
        "r.vm.pending == ['cores']",
    ),
]


def tasks_of(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a case: run, judge, and run again."""
    name, run = f"Row {case.row}", {"pve.fleet.vm": case.options}
    if case.refused:
        yield {"name": name, **run, "register": "r", "ignore_errors": True}
        that = ["r is failed", f"r.error.category == '{case.refused}'", "r.msg | length > 20"]
        yield {"name": f"{name} is refused", "ansible.builtin.assert": {"that": that}}
        return
    yield {"name": name, **run, "register": "r"}
    if case.that:
        yield {"name": f"{name} is so", "ansible.builtin.assert": {"that": case.that}}
    yield {"name": f"{name} again", **run, "register": "again"}
    that = ["again is changed" if case.acts else "again is not changed"]
    yield {"name": f"{name} is left alone", "ansible.builtin.assert": {"that": that}}


def play(cases: list[Case], where: Path) -> str:
    """Return what ansible-playbook says of these cases, run against a cluster of their own."""
    # A case that does not hold is rescued, so that the others still run; the recap counts it.
    tasks = [
        {
            "name": case.row,
            "block": list(tasks_of(case)),
            "rescue": [
                {
                    "name": "Report",
                    "ansible.builtin.debug": {"msg": f"row {case.row} does not hold"},
                }
            ],
        }
        for case in cases
    ]
    mappings = [{"name": "Map a device", "pve.fleet.mapping": one} for one in MAPPINGS]
    plays = [
        {"name": "Rows", "hosts": "localhost", "gather_facts": False, "tasks": [*mappings, *tasks]}
    ]
    (where / "rows.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    with Simulator(
        "--cluster", str(CLUSTER), "--task-ms", "default=10", "--lag-s", "0"
    ) as simulator:
        environment = {
            **os.environ,
            **ENVIRONMENT,
            "PROXMOX_HOST": simulator.url,
            "PROXMOX_CA_PATH": str(simulator.ca),
        }
        command = ["ansible-playbook", "rows.yml"]
        done = subprocess.run(
            command, cwd=where, env=environment, capture_output=True, text=True, check=False
        )
    return done.stdout + done.stderr


@pytest.mark.parametrize(("first", "last"), [(10, 14), (15, 18), (19, 26), (27, 32)])
def test_every_row_holds_and_is_left_alone(tmp_path: Path, first: int, last: int) -> None:
    said = play([case for case in CASES if first <= int(case.row.split()[0]) <= last], tmp_path)
    assert "failed=0" in said, said[-4000:]
    assert "rescued=0" in said, _broken(said)
    assert "Traceback" not in said


def _broken(text: str) -> str:
    """Return the part of the output about cases that do not hold."""
    lines = [
        line
        for line in text.splitlines()
        if line.startswith(("fatal:", "TASK [Row")) or "assertion" in line
    ]
    keep = [
        line
        for number, line in enumerate(lines)
        if line.startswith("fatal:")
        or any(one.startswith("fatal:") for one in lines[number + 1 : number + 2])
    ]
    return "\n".join(keep)[:6000]


def test_every_row_has_a_case() -> None:
    assert {case.row.split()[0] for case in CASES} == {str(row) for row in range(10, 33)}
