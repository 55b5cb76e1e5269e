"""Module vm against the simulator: made, found the same, changed, removed.

Check mode foresees every step.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.marker import Marker
from tests.modules.estate_lab import Lab

KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9kL2cSGZ9Y7wqGm5y7qGmM4bqXy9t6v4kq3Yx0JmPz"
    " ops@example.com"
)

NEW: dict[str, dict[str, Any]] = {
    "clone-by-name": {
        "source": "debian-13",
        "tenant": "acme",
        "pool": "acme",
        "cores": 4,
        "memory": "4G",
        "disks": [{"name": "scsi0", "size": "20G", "ssd": True, "discard": True}],
        "nics": [{"network": "lan", "vlan": 120, "ip": "10.20.0.11/24", "gateway": "10.20.0.1"}],
        "cloud_init": {
            "user": "ops",
            "ssh_keys": [KEY],
            "password": "hunter2222",
            "nameservers": ["10.20.0.1"],
        },
        "tags": ["web"],
        "description": "front end\nsecond line",
        "state": "started",
    },
    "clone-by-vmid-elsewhere": {"source": "9000", "node": "pve3", "tenant": "globex"},
    "clone-full": {
        "source": 9000,
        "full": True,
        "disks": [{"name": "scsi0", "storage": "local-lvm"}],
        "node": "pve1",
    },
    "iso": {
        "source": "local:iso/{iso}",
        "bios": "uefi",
        "machine": "q35",
        "disks": [{"size": 8, "storage": "local-lvm"}],
        "nics": [{"bridge": "vmbr1"}],
        "state": "started",
    },
    "image": {
        "source": "local:import/{image}",
        "disks": [{"size": "12G", "storage": "ceph"}],
        "cloud_init": {"user": "ops"},
        "nics": [{"ip": "dhcp", "ip6": "auto"}],
        "state": "started",
    },
    "blank": {
        "disks": [{"size": 4}, {"size": "2G", "bus": "virtio", "storage": "ceph"}],
        "nics": [{}, {"network": "dmz", "firewall": True}],
        "options": {"watchdog": "i6300esb,action=reset", "tablet": False},
        "agent": True,
        "onboot": True,
    },
}


def options_of(lab: Lab, case: str) -> dict[str, Any]:
    """Return the options of a case, with images that every node has."""
    options = dict(NEW[case])
    if ":" in str(options.get("source")):
        nodes = [row["node"] for row in lab.client.get("nodes")]
        there = [
            {
                (row["content"], row["volid"])
                for row in lab.client.get("nodes", node, "storage", "local", "content")
            }
            for node in nodes
        ]
        found = {
            content: volid.rpartition("/")[2] for content, volid in sorted(set.intersection(*there))
        }
        options["source"] = options["source"].format(
            iso=found.get("iso"), image=found.get("import")
        )
    return options


@pytest.mark.parametrize("case", NEW)
def test_made_as_foreseen_and_then_left_alone(lab: Lab, name: str, case: str) -> None:
    options = {"name": name, **options_of(lab, case)}
    lab.simulator.reset_log()
    foreseen = lab.vm(check=True, **options)
    assert lab.simulator.writes() == []
    assert foreseen["changed"]
    made = lab.vm(**options)
    assert made["changed"]
    assert made["diff"] == foreseen["diff"]
    assert made["plan"] == foreseen["plan"]
    assert made["done"] == made["plan"]
    assert made["warnings"] == []

    after = made["diff"]["after"]
    shown = {
        **made["vm"]["config"],
        "vmid": made["vm"]["vmid"],
        "node": made["vm"]["node"],
        "status": made["vm"]["status"],
    }
    if made["vm"]["pool"]:
        shown["pool"] = made["vm"]["pool"]
    assert comparable(shown) == comparable(after)
    assert lab.status(made["vm"]) == ("running" if options.get("state") == "started" else "stopped")

    lab.simulator.reset_log()
    again = lab.vm(**options)
    assert not again["changed"]
    assert again["plan"] == []
    assert again["diff"] == {"before": {}, "after": {}}
    assert lab.simulator.writes() == []
    assert again["vm"]["vmid"] == made["vm"]["vmid"]


def comparable(shown: dict[str, Any]) -> dict[str, Any]:
    """Return what is shown of a VM without what only PVE can know.

    That is MAC addresses, and the certificates that the firmware of the node has (OVMF.pm,
    create_efidisk).
    """
    result: dict[str, Any] = {}
    for key, value in shown.items():
        if isinstance(value, dict):
            value = {
                part: content
                for part, content in value.items()
                if part not in ("macaddr", "ms-cert")
            }
        result[key] = "(secret)" if key == "cipassword" else value
    return result


CHANGES: list[dict[str, Any]] = [
    {"cores": 2, "memory": "2G", "cpu": "host"},
    {"tags": ["blue"], "description": "changed", "onboot": True},
    {"nics": [{"bridge": "vmbr1", "vlan": 7}]},
    {"nics": [{"name": "net1", "network": "mgmt"}]},
    {"disks": [{"name": "scsi0", "size": "9G"}]},
    {"disks": [{"name": "scsi3", "size": "3G", "storage": "local-lvm"}]},
    {"disks": [{"name": "scsi0", "storage": "local-lvm", "cache": "writeback", "size": "10G"}]},
    {"cloud_init": {"user": "root", "ssh_keys": [KEY], "search_domain": "example.com"}},
    {"options": {"shares": 500, "watchdog": {"model": "ib700"}}},
    {"node": "pve2"},
    {"pool": "globex"},
    {"state": "started"},
    {"state": "stopped"},
]


@pytest.mark.parametrize("power", ["stopped", "started"])
@pytest.mark.parametrize("change", CHANGES, ids="+".join)
def test_changed_as_foreseen_and_nothing_else(
    lab: Lab, name: str, change: dict[str, Any], power: str
) -> None:
    base = lab.vm(
        name=name, source="debian-13", node="pve1", tenant="acme", tags=["keep"], state=power
    )["vm"]
    before = lab.config(base)
    options = {"name": name, "tenant": "acme", **change}

    lab.simulator.reset_log()
    foreseen = lab.vm(check=True, **options)
    assert lab.simulator.writes() == []
    made = lab.vm(**options)
    assert made["diff"] == foreseen["diff"]
    assert made["plan"] == foreseen["plan"]
    assert made["pending"] == foreseen["pending"]

    after = lab.config(made["vm"])
    touched = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert touched - {"digest"} <= set(made["diff"]["after"]) | set(made["diff"]["before"])
    assert made["vm"]["macs"]["net0"] == base["macs"]["net0"]
    assert "keep" in made["vm"]["tags"]

    lab.simulator.reset_log()
    again = lab.vm(**options)
    assert not again["changed"], again["plan"]
    assert lab.simulator.writes() == []


def test_removed_once(lab: Lab, name: str) -> None:
    vm = lab.vm(name=name, source="debian-13", state="started")["vm"]
    lab.simulator.reset_log()
    foreseen = lab.vm(check=True, name=name, state="absent")
    assert lab.simulator.writes() == []
    gone = lab.vm(name=name, state="absent")
    assert gone["changed"]
    assert gone["diff"] == foreseen["diff"]
    assert gone["vm"] is None
    rows = lab.client.get("cluster", "resources", type="vm")
    assert vm["vmid"] not in {row["vmid"] for row in rows}
    lab.simulator.reset_log()
    assert not lab.vm(name=name, state="absent")["changed"]
    assert lab.simulator.writes() == []


def test_reboot_if_needed_applies_what_waits(lab: Lab, name: str) -> None:
    vm = lab.vm(name=name, source="debian-13", state="started", agent=True)["vm"]
    waiting = lab.vm(name=name, cores=4)
    assert waiting["pending"] == ["cores"]
    assert any("next stop" in text for text in waiting["warnings"])
    done = lab.vm(name=name, cores=4, reboot="if_needed")
    assert done["changed"]
    assert done["pending"] == []
    assert (
        lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "config", current=1)["cores"] == 4
    )
    assert not lab.vm(name=name, cores=4, reboot="if_needed")["changed"]


def test_a_vm_is_found_by_its_number_and_renamed(lab: Lab, name: str) -> None:
    vm = lab.vm(name=name, source="debian-13")["vm"]
    renamed = lab.vm(vmid=vm["vmid"], name=f"{name[:20]}-new")
    assert renamed["vm"]["vmid"] == vm["vmid"]
    assert renamed["diff"]["before"] == {"name": name}
    assert renamed["diff"]["after"] == {"name": f"{name[:20]}-new"}
    assert renamed["diff"]["before_header"] == f"VM '{name[:20]}-new' ({vm['vmid']})"


def test_a_number_with_another_name_is_not_removed(lab: Lab, name: str) -> None:
    vm = lab.vm(name=name, source="debian-13")["vm"]
    assert (
        lab.refused(vmid=vm["vmid"], name="other", state="absent")["error"]["reason"]
        == "name differs"
    )
    assert lab.vm(vmid=vm["vmid"], name=name, state="absent")["changed"]


def test_a_pool_changes_together_with_the_power(lab: Lab, name: str) -> None:
    lab.vm(name=name, source="debian-13", pool="acme", state="started")
    made = lab.vm(name=name, pool="globex", state="stopped")
    assert made["done"] == made["plan"]
    assert lab.run("vm_info", name=name)["vms"][0]["pool"] == "globex"
    assert not lab.vm(name=name, pool="globex", state="stopped")["changed"]


def test_an_unfinished_clone_gets_its_own_password(lab: Lab, name: str) -> None:
    lab.vm(
        name=f"{name[:20]}-t",
        source="debian-13",
        cloud_init={"password": "of-the-template"},
        state="template",
    )
    marker = Marker(origin=9000, run="gone", tenant="tenant_acme").render()
    source = lab.run("vm_info", name=f"{name[:20]}-t")["vms"][0]
    data = {"newid": 30002, "name": name, "full": 0, "description": marker}
    lab.client.task("POST", "nodes", source["node"], "qemu", source["vmid"], "clone", data=data)
    done = lab.vm(name=name, tenant="acme", cloud_init={"password": "of-the-clone"})
    assert "cipassword" in done["diff"]["after"]
    assert not lab.vm(name=name, tenant="acme", cloud_init={"password": "of-the-clone"})["changed"]


def test_requests_stay_within_their_budget(quiet: Lab) -> None:
    quiet.simulator.reset_log()
    vm = quiet.vm(name="web1", source="debian-13", cores=4, tenant="acme", state="started")["vm"]
    requests = [
        f"{row['method']} {row['path']}"
        for row in quiet.simulator.log()
        if "/tasks/" not in row["path"]
    ]
    # The listing may show the VM under another name: each node is asked once before a VM is made.
    names = [request for request in requests if re.fullmatch("GET /nodes/[^/]+/qemu", request)]
    assert len(names) == len(set(names))
    # The source is read again right before its clone, and the notes of the chosen node once.
    assert len(requests) - len(names) <= 11, requests
    for options, most in (
        ({"vmid": vm["vmid"], "cores": 4}, 2),
        ({"name": "web1", "tenant": "acme", "cores": 4}, 2),
        ({"vmid": vm["vmid"], "cores": 4, "state": "started"}, 3),
    ):
        quiet.simulator.reset_log()
        assert not quiet.vm(**options)["changed"]
        assert len(quiet.simulator.log()) <= most


@pytest.mark.parametrize("full", [None, True])
def test_one_task_clones_configures_grows_moves_starts_and_waits(
    lab: Lab, name: str, full: bool | None
) -> None:
    """A template with local disks is cloned where it is, and its clone moves to its node."""
    short = name[:25]
    lab.vm(
        name=f"{short}-t",
        node="pve1",
        disks=[{"size": 1, "storage": "local-lvm"}],
        state="template",
        agent=True,
        nics=[{}],
    )
    options: dict[str, Any] = {
        "name": short,
        "source": f"{short}-t",
        "node": "pve2",
        "tenant": "acme",
        "cores": 3,
        "disks": [{"name": "scsi0", "size": "3G"}],
        "nics": [{"network": "dmz", "ip": "10.4.4.4/24"}],
        "cloud_init": {"user": "ops"},
        "state": "started",
        "wait_for": "address",
    }
    if full is not None:
        options["full"] = full
    foreseen = lab.vm(check=True, **options)
    made = lab.vm(**options)
    assert made["plan"] == foreseen["plan"] == made["done"]
    assert [step.split()[0] for step in made["plan"]] == [
        "Clone",
        "Set",
        "Migrate",
        "Grow",
        "Start",
        "Remove",
    ]
    assert made["diff"] == foreseen["diff"]
    assert (made["vm"]["node"], made["vm"]["status"], made["vm"]["address"]) == (
        "pve2",
        "running",
        "10.4.4.4",
    )
    assert not lab.vm(**options)["changed"]
