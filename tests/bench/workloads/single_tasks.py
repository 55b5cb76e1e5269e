"""Parts that measure one task at a time, over a loop or over hosts: no change, create, clone,
snapshot.
"""

from __future__ import annotations

from typing import Any

from tests.bench.figures import Figure, Measured, Row, ratio
from tests.bench.parts import (
    TASK_MS,
    Bench,
    in_no_time,
    row_of_plays,
    server_seconds,
    tasks_cluster,
    ways,
)

KVM, SNAP = "community.proxmox.proxmox_kvm", "community.proxmox.proxmox_snap"
VM_INFO = "community.proxmox.proxmox_vm_info"
IN_A_LOOP = 20
HOSTS, FORKS = 60, 10


def ours_vm(name: str, node: str = "pve1", **more: Any) -> dict[str, Any]:
    """Return the options of our module for a small VM."""
    disk = {"name": "scsi0", "storage": "ceph", "size": "8G"}
    nic = {"name": "net0", "bridge": "vmbr0"}
    return {
        "name": name,
        "node": node,
        "cores": 2,
        "memory": "1G",
        "disks": [disk],
        "nics": [nic],
        "tags": ["web"],
        **more,
    }


def peers_vm(name: str, node: str = "pve1") -> dict[str, Any]:
    """Return the options of the peer's module for the same VM."""
    hardware = {
        "cores": 2,
        "memory": 1024,
        "scsi": {"scsi0": "ceph:8"},
        "net": {"net0": "virtio,bridge=vmbr0"},
    }
    return {"name": name, "node": node, **hardware, "tags": ["web"]}


def noop_loop(bench: Bench) -> Measured:
    """Nothing to change, in a loop."""
    measured = _loop(bench, f"no change, a loop of {IN_A_LOOP}", "noop_loop_ratio")
    measured.notes.append(
        "The peer checks whether a VM of that name exists; ours compares every option. Ours reads"
        " the listing for the first item, and the configuration of its VM for each item."
    )
    return measured


def process_loop(bench: Bench) -> Measured:
    """Nothing to change, in a loop of processes: the cost of a task that is asynchronous or runs
    on another host.
    """
    what = f"no change, a loop of {IN_A_LOOP} processes"
    return _loop(bench, what, "process_loop_ratio", PVE_FLEET_IN_PROCESS="false")


def _loop(bench: Bench, what: str, key: str, **environment: str) -> Measured:
    """Return the time of a loop with nothing to change, with these variables for Ansible."""
    names = [f"web-{number:02}" for number in range(IN_A_LOOP)]
    ours = {"name": "Ours", "pve.fleet.vm": ours_vm("{{ item }}"), "loop": names}
    peers = {"name": "Peer's", KVM: peers_vm("{{ item }}"), "loop": names}
    measured = Measured()
    with tasks_cluster() as simulator:
        with in_no_time(simulator):
            bench.ours.play(simulator, [ours]).expect(IN_A_LOOP)
        found: dict[Any, Any] = {bench.ours: [], bench.peer: []}
        for _turn in range(bench.runs):
            for side, plays in found.items():
                tasks = ways(side, ours, [peers])
                plays.append(side.play(simulator, tasks, environment=environment).expect(0))
    measured.rows += [
        row_of_plays(what, side, plays, units=IN_A_LOOP) for side, plays in found.items()
    ]
    measured.keys[key] = ratio(measured.rows[1].seconds, measured.rows[0].seconds)
    return measured


def noop_forks(bench: Bench) -> Measured:
    """Nothing to change, a host for each VM."""
    hosts = [f"web-{number:02}" for number in range(HOSTS)]
    ours = {"name": "Ours", "pve.fleet.vm": ours_vm("{{ inventory_hostname }}")}
    peers = {"name": "Peer's", KVM: peers_vm("{{ inventory_hostname }}")}
    forks = {"ANSIBLE_FORKS": str(FORKS)}
    measured = Measured()
    with tasks_cluster() as simulator:
        with in_no_time(simulator):
            made = {"name": "Make", "pve.fleet.vm": ours_vm("{{ item }}"), "loop": hosts}
            bench.ours.play(simulator, [made]).expect(HOSTS)
        found: dict[Any, Any] = {bench.ours: [], bench.peer: []}
        for _turn in range(bench.runs):
            for side, plays in found.items():
                tasks = ways(side, ours, [peers])
                played = side.play(simulator, tasks, hosts=hosts, environment=forks)
                plays.append(played.expect(0))
    what = f"no change, {HOSTS} hosts, {FORKS} forks"
    measured.rows += [row_of_plays(what, side, plays, units=HOSTS) for side, plays in found.items()]
    measured.keys["noop_forks_ratio"] = ratio(measured.rows[1].seconds, measured.rows[0].seconds)
    return measured


OPERATIONS = 40


def operations(bench: Bench) -> Measured:
    """Power on, describe, reconfigure and power off, one task for each VM, to see how times vary.

    The memory of a stopped VM is reconfigured, so both sides make one write.
    """
    names = [f"op-{number:02}" for number in range(OPERATIONS)]
    whats: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "reconfigure": (
            {"pve.fleet.vm": {"memory": "2G"}},
            {KVM: {"node": "pve1", "memory": 2048, "update": True}},
        ),
        "power on": (
            {"pve.fleet.vm": {"state": "started"}},
            {KVM: {"node": "pve1", "state": "started"}},
        ),
        "describe": ({"pve.fleet.vm_info": {}}, {VM_INFO: {"node": "pve1"}}),
        "power off": (
            {"pve.fleet.vm": {"state": "stopped"}},
            {KVM: {"node": "pve1", "state": "stopped", "force": True}},
        ),
    }
    measured = Measured()
    for side in (bench.ours, bench.peer):
        with tasks_cluster() as simulator:
            with in_no_time(simulator):
                made = {"name": "Make", "pve.fleet.vm": ours_vm("{{ item }}"), "loop": names}
                bench.ours.play(simulator, [made]).expect(OPERATIONS)
            for what, (ours, peers) in whats.items():
                [(module, options)] = ways(side, ours, [peers])[0].items()
                tasks = [{"name": name, module: {"name": name, **options}} for name in names]
                played = side.play(simulator, tasks)
                played.expect(0 if what == "describe" else OPERATIONS)
                times = tuple(task["ended"] - task["began"] for task in played.tasks)
                each = round(played.requests / OPERATIONS)
                measured.rows.append(Row(what, side.name, Figure(times), each))
    on, off = TASK_MS["qmstart"] / 1000, TASK_MS["default"] / 1000
    measured.notes.append(
        f"Each operation has {OPERATIONS} tasks, one after the other. The times include the"
        f" server's own task: {on:g} s to power on and {off:g} s to power off."
    )
    return measured


def create(bench: Bench) -> Measured:
    """One VM, created."""
    ours = {"name": "Ours", "pve.fleet.vm": ours_vm("new")}
    measured, _server = _one(bench, "create", ours, [{"name": "Peer's", KVM: peers_vm("new")}])
    return measured


def clone_start(bench: Bench) -> Measured:
    """One VM, cloned, configured and started; the peer needs a task for each step."""
    nic = {"name": "net0", "ip": "10.20.0.11/24", "gateway": "10.20.0.1"}
    desired = {
        "name": "new",
        "node": "pve1",
        "source": "debian-13-pve1",
        "full": True,
        "cores": 4,
        "memory": "4G",
    }
    more = {"nics": [nic], "cloud_init": {"user": "ops"}, "tags": ["web"], "state": "started"}
    peers = [
        {
            "clone": "debian-13-pve1",
            "name": "new",
            "node": "pve1",
            "newid": 10000,
            "storage": "ceph",
            "timeout": 60,
        },
        {
            "vmid": 10000,
            "node": "pve1",
            "update": True,
            "cores": 4,
            "memory": 4096,
            "ciuser": "ops",
            "tags": ["web"],
            "ipconfig": {"ipconfig0": "ip=10.20.0.11/24,gw=10.20.0.1"},
        },
        {"vmid": 10000, "node": "pve1", "state": "started"},
    ]
    peers[0]["format"] = "unspecified"
    named = [
        {"name": name, KVM: options}
        for name, options in zip(("Clone", "Configure", "Start"), peers, strict=True)
    ]
    ours = {"name": "Ours", "pve.fleet.vm": {**desired, **more}}
    measured, server = _one(bench, "clone, configure, start", ours, named)
    measured.keys["clone_start_over_server"] = measured.rows[0].seconds.scaled(1 / server)
    measured.notes.append(
        f"The server's tasks take {server:g} s: the sum of the times configured for its tasks."
    )
    return measured


def snapshot(bench: Bench) -> Measured:
    """One snapshot."""
    ours = {"name": "Ours", "pve.fleet.snapshot": {"name": "kept", "snapshot": "before"}}
    peers = {"name": "Peer's", SNAP: {"vmid": "100", "snapname": "before"}}
    measured, _server = _one(bench, "snapshot", ours, [peers])
    return measured


def _one(
    bench: Bench, what: str, ours: dict[str, Any], peers: list[dict[str, Any]]
) -> tuple[Measured, float]:
    """Return the times of our tasks and of the peer's tasks from the same initial state, and the
    seconds that the server's own tasks take for ours.
    """
    measured = Measured()
    found: dict[Any, Any] = {bench.ours: [], bench.peer: []}
    server = 0.0
    with tasks_cluster() as simulator:
        for _turn in range(bench.runs):
            for side, plays in found.items():
                simulator.reset()
                tasks = ways(side, ours, peers)
                plays.append(side.play(simulator, tasks).expect(len(tasks)))
                if side.is_ours:
                    server = server_seconds(simulator)
    measured.rows += [row_of_plays(what, side, plays) for side, plays in found.items()]
    return measured, server
