"""What cannot be undone is done to the VM of the plan alone: it is looked at right before, and its
number, name, tenant, creation and disks are compared. So it is, without the disks, before what
disturbs a guest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fast_time import fast_time
from tests.faults.faults import Write
from tests.faults.scenarios import (
    BLANK,
    LIMITS,
    NAME,
    TENANT,
    VMID,
    Scenario,
    container,
    machine,
    of_container,
    snapshot,
    snapshot_of_container,
    vm,
)
from tests.faults.table import baseline, open_table
from tests.modules.estate_lab import Lab

PATH = f"/vms/{VMID}"
REMOVED_DISK = [{"name": "scsi1", "state": "absent"}]

RULES = [{"type": "in", "action": "ACCEPT", "macro": "SSH"}, {"type": "out", "action": "DROP"}]
MEMBERS = [{"cidr": "10.0.0.1"}, {"cidr": "10.0.0.2"}]


def _firewall(name: str, **options: Any) -> Scenario:
    chosen = {"scope": "guest", "name": NAME, "tenant": TENANT, **options}
    return Scenario(name, "firewall", chosen, machine())


# A task, and the path of its request that cannot be undone.
FINAL: dict[str, tuple[Scenario, str]] = {
    "removal": (vm("removal", machine(), state="absent"), f"/qemu/{VMID}"),
    "removal of a running VM": (
        vm("removal of a running VM", machine(True), state="absent", force=True),
        f"/qemu/{VMID}",
    ),
    "template": (vm("template", machine(), state="template"), "/template"),
    "template after a change": (
        vm("template after a change", machine(), state="template", cores=3),
        "/template",
    ),
    "disk": (vm("disk", machine(protection="1"), disks=REMOVED_DISK, protection=False), "/config"),
    "rollback": (
        snapshot("rollback", "one", running=True, snapshot="one", state="rolled_back"),
        "/rollback",
    ),
    "rollback over a newer one": (
        snapshot(
            "rollback over a newer one",
            "one",
            "two",
            snapshot="one",
            state="rolled_back",
            force=True,
        ),
        "/rollback",
    ),
    "snapshot": (snapshot("snapshot", "one", snapshot="one", state="absent"), "/snapshot/one"),
    "snapshots": (
        snapshot("snapshots", "one", "two", pattern="*", state="absent"),
        "/snapshot/two",
    ),
    "growth": (vm("growth", machine(), disks=[{"name": "scsi0", "size": "5G"}]), "/resize"),
}
# The same of requests that interrupt a guest, move it, or give others rights on it.
DISTURBING: dict[str, tuple[Scenario, str]] = {
    "stop": (vm("stop", machine(True), state="stopped", shutdown_timeout=0), "/status/stop"),
    "forced shutdown": (
        vm("forced shutdown", machine(True), state="stopped", force=True),
        "/status/shutdown",
    ),
    "shutdown": (vm("shutdown", machine(True), state="stopped"), "/status/shutdown"),
    "reboot": (vm("reboot", machine(True), state="restarted"), "/status/reboot"),
    "reboot after a change": (
        vm("reboot after a change", machine(True), cpu="host", reboot="always"),
        "/status/reboot",
    ),
    "restart by force": (
        vm("restart by force", machine(True), state="restarted", shutdown_timeout=0),
        "/status/stop",
    ),
    "reset": (vm("reset", machine(True), state="reset"), "/status/reset"),
    "pause": (vm("pause", machine(True), state="paused"), "/status/suspend"),
    "hibernation": (vm("hibernation", machine(True), state="hibernated"), "/status/suspend"),
    "migration": (vm("migration", machine(), node="pve1", migrate=True), "/migrate"),
    "live migration": (vm("live migration", machine(True), node="pve1", migrate=True), "/migrate"),
    "move of a disk": (
        vm("move of a disk", machine(), disks=[{"name": "scsi1", "storage": "local-lvm"}]),
        "/move_disk",
    ),
    "pool": (vm("pool", machine(), pool="acme"), "/pools"),
    "rules of a firewall": (_firewall("rules of a firewall", rules=RULES), "/firewall/rules"),
    "options of a firewall": (
        _firewall("options of a firewall", rules=RULES, options={"enable": True}),
        "/firewall/options",
    ),
    "IP set of a firewall": (
        _firewall("IP set of a firewall", ip_sets=[{"name": "own", "members": MEMBERS}]),
        "/firewall/ipset/own",
    ),
    "stop in a list": (
        Scenario(
            "stop in a list",
            "vms",
            {"vms": [{"name": NAME, "state": "stopped"}], "tenant": TENANT, **LIMITS},
            machine(True),
        ),
        "/status/shutdown",
    ),
}
MOUNT = f"ceph:vm-{VMID}-disk-1,mp=/data,size=1G"
# The same of containers: first the tasks that cannot be undone.
FINAL_CT: dict[str, tuple[Scenario, str]] = {
    "removal of a container": (
        of_container("removal of a container", container(), state="absent"),
        f"/lxc/{VMID}",
    ),
    "container template": (
        of_container("container template", container(), state="template"),
        "/template",
    ),
    "mount point": (
        of_container(
            "mount point", container(mp0=MOUNT), mounts=[{"name": "mp0", "state": "absent"}]
        ),
        "/config",
    ),
    "growth of a container": (
        of_container("growth of a container", container(), rootfs={"size": "5G"}),
        "/resize",
    ),
    "rollback of a container": (
        snapshot_of_container(
            "rollback of a container", "one", running=True, snapshot="one", state="rolled_back"
        ),
        "/rollback",
    ),
}
DISTURBING_CT: dict[str, tuple[Scenario, str]] = {
    "container shutdown": (
        of_container("container shutdown", container(True), state="stopped"),
        "/status/shutdown",
    ),
    "container reboot": (
        of_container("container reboot", container(True), state="restarted"),
        "/status/reboot",
    ),
    "container migration": (
        of_container("container migration", container(True), node="pve1", migrate=True),
        "/migrate",
    ),
    "move of a volume": (
        of_container("move of a volume", container(), rootfs={"storage": "local-lvm"}),
        "/move_volume",
    ),
    "pool of a container": (of_container("pool", container(), pool="acme"), "/pools"),
}
OF_CONTAINERS = {**FINAL_CT, **DISTURBING_CT}
TASKS = {**FINAL, **DISTURBING, **OF_CONTAINERS}


def _another(**config: Any) -> list[list[Any]]:
    """Someone destroys the VM and makes one of the same number, name and tenant."""
    entry = {**BLANK, "config": {**BLANK["config"], **config}}
    return [["DELETE", PATH, None], ["POST", PATH, entry]]


def _another_container(**config: Any) -> list[list[Any]]:
    """Someone destroys the container and makes one of the same VMID, name, tenant and volumes."""
    mac = "BC:24:11:00:00:09"
    nic: dict[str, Any] = {"net0": f"name=eth0,bridge=vmbr0,hwaddr={mac},type=veth"}
    path = f"/containers/{VMID}"
    entry = container(mp0=MOUNT, **nic, **config)[VMID]
    return [["DELETE", path, None], ["POST", path, entry]]


def _config(kind: str = "/vms", **config: Any) -> list[list[Any]]:
    return [["PUT", f"{kind}/{VMID}", {"config": config}]]


# What happens to the VM, and what of it the message says.
EVENTS: dict[str, tuple[list[list[Any]], str]] = {
    "replaced": (_another(), "is now another one"),
    "renamed": (_config(name="renamed"), "renamed"),
    "given away": (_config(tags="tenant_globex"), "foreign tenant"),
    "another disk": (
        _config(scsi5="ceph:vm-20199-disk-0,size=1G"),
        "its disks have changed: scsi5",
    ),
    "exchanged disk": (
        _config(scsi0="ceph:vm-20199-disk-0,size=2G"),
        "its disks have changed: scsi0",
    ),
}
# A container has neither a uuid nor a time of creation (pve-container: LXC/Config.pm).
CONTAINER_EVENTS: dict[str, tuple[list[list[Any]], str]] = {
    "replaced": (_another_container(), "is now another one"),
    "renamed": (_config("/containers", hostname="renamed"), "renamed"),
    "given away": (_config("/containers", tags="tenant_globex"), "foreign tenant"),
    "another volume": (
        _config("/containers", mp5="ceph:vm-20199-disk-0,mp=/other,size=1G"),
        "its disks have changed: mp5",
    ),
}
# One snapshot is removed by the first write: the look before it is the one that the plan is made
# from, and what happens before that look is part of the plan.
PLANNED_FROM_IT = {("snapshot", event) for event in ("replaced", "another disk", "exchanged disk")}
CASES = [
    (name, event) for name in FINAL for event in EVENTS if (name, event) not in PLANNED_FROM_IT
]
CASES += [(name, event) for name in DISTURBING for event in ("replaced", "renamed", "given away")]
CASES += [(name, event) for name in FINAL_CT for event in CONTAINER_EVENTS]
CASES += [
    (name, event) for name in DISTURBING_CT for event in ("replaced", "renamed", "given away")
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Lab]:
    with open_table() as lab:
        yield lab


def final_write(lab: Lab, name: str) -> Write:
    """Return the last write of a task's run that cannot be undone."""
    scenario, path = TASKS[name]
    writes = baseline(lab, scenario).writes
    return [write for write in writes if write.path.endswith(path)][-1]


@pytest.mark.parametrize(("name", "event"), CASES)
def test_what_is_not_the_vm_of_the_plan_any_more_is_not_destroyed(
    cluster: Lab, name: str, event: str
) -> None:
    events = CONTAINER_EVENTS if name in OF_CONTAINERS else EVENTS
    steer, answer = events[event]
    scenario, _path = TASKS[name]
    write = final_write(cluster, name)
    assert write.look is not None, "the VM was not read right before"
    look, nth = write.look
    cluster.simulator.reset()
    scenario.prepare(cluster)
    cluster.simulator.fault(method="GET", path=f"^{look}$", nth=nth, steer=steer)
    cluster.simulator.reset_log()
    with fast_time():
        result = cluster.run(scenario.module, **scenario.options)
    assert result.get("failed"), result
    error = result["error"]
    assert error["reason"] in ("replaced", "foreign tenant", "another name"), result
    assert answer in f"{result['msg']} {error['reason']}"
    sent = [(row["method"], row["path"]) for row in cluster.simulator.writes()]
    assert (write.method, write.path) not in sent[write.number :]


@pytest.mark.parametrize("name", TASKS)
def test_the_look_comes_right_before_the_write(cluster: Lab, name: str) -> None:
    write = final_write(cluster, name)
    log = [row for row in cluster.simulator.log() if "/tasks/" not in row["path"]]
    at = max(
        place
        for place, row in enumerate(log)
        if (row["method"], row["path"]) == (write.method, write.path)
    )
    before = log[at - 1]
    assert before["method"] == "GET"
    kind = "lxc" if name in OF_CONTAINERS else "qemu"
    assert before["path"].endswith((f"/{kind}/{VMID}/config", f"/{kind}/{VMID}/pending")), before


RENAMED: list[tuple[str, dict[str, Any]]] = [
    ("template", {"name": "other", "state": "template"}),
    ("disk", {"name": "other", "disks": REMOVED_DISK, "protection": False}),
    (
        "disks that the run adds and moves",
        {
            "name": "other",
            "disks": [
                {"name": "scsi1", "storage": "local-lvm"},
                {"name": "scsi2", "size": 1, "storage": "ceph"},
            ],
            "state": "template",
        },
    ),
    (
        "a uuid",
        {
            "options": {"smbios1": {"uuid": "11111111-2222-4333-8444-555555555555"}},
            "disks": REMOVED_DISK,
            "protection": False,
            "name": "other",
        },
    ),
    (
        "disks that the run moves, adds and grows",
        {
            "name": "other",
            "disks": [
                {"name": "scsi1", "storage": "local-lvm", "size": "4G"},
                {"name": "scsi2", "size": 1, "storage": "ceph"},
                {"name": "scsi0", "size": "6G"},
            ],
        },
    ),
    (
        "a growth after a migration",
        {
            "name": "other",
            "node": "pve3",
            "migrate": True,
            "disks": [{"name": "scsi0", "size": "5G"}],
        },
    ),
    ("a migration", {"name": "other", "node": "pve3", "state": "template"}),
]


@pytest.mark.parametrize(("what", "options"), RENAMED, ids=[what for what, _options in RENAMED])
def test_what_the_run_itself_changes_does_not_stop_it(
    cluster: Lab, what: str, options: dict[str, Any]
) -> None:
    cluster.simulator.reset()
    there = machine(protection="1") if "protection" in options else machine()
    vm(what, there).prepare(cluster)
    with fast_time():
        result = cluster.run("vm", vmid=VMID, tenant=TENANT, **options)
    assert not result.get("failed"), result
    assert result["vm"]["name"] == "other" != NAME


# The container of the task has a VMID and no tenant: only its MAC addresses are left to compare.
LATER_LOOKS: dict[str, dict[str, Any]] = {
    "a look after the first write": {"cores": 2, "node": "pve1", "migrate": True},
    "a look before a shutdown": {"state": "stopped"},
}


@pytest.mark.parametrize("what", LATER_LOOKS)
def test_container_of_another_tenant_with_the_vmid_is_not_changed(cluster: Lab, what: str) -> None:
    options: dict[str, Any] = {"vmid": VMID, "shutdown_timeout": 60, **LATER_LOOKS[what]}
    cluster.simulator.reset()
    of_container(what, container(running="state" in options)).prepare(cluster)
    look = f"^/nodes/pve./lxc/{VMID}/pending$"
    foreign = _another_container(tags="tenant_globex")
    cluster.simulator.fault(method="GET", path=look, nth=2, steer=foreign)
    cluster.simulator.reset_log()
    with fast_time():
        result = cluster.run("container", **options)
    assert result["error"]["reason"] == "replaced", result
    changes = [row for row in cluster.simulator.writes() if row["path"].endswith("/config")]
    assert len(changes) == (1 if "cores" in options else 0)
    config = cluster.client.get("nodes", "pve2", "lxc", VMID, "config")
    assert (config["tags"], config["cores"]) == ("tenant_globex", 1)
