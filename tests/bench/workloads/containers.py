"""Parts that measure containers: a loop, 20 created, and a fleet of both kinds."""

from __future__ import annotations

from typing import Any

from tests.bench.figures import Measured, ratio
from tests.bench.parts import (
    NODES,
    SLOTS,
    Bench,
    in_no_time,
    made_up_cluster,
    row_of_plays,
    server_seconds,
    tasks_cluster,
    ways,
)
from tests.bench.workloads.fleets import ALL, FEW, FLEET, desired_made_up_vms
from tests.simulator.process import Simulator

PEERS = "community.proxmox.proxmox"
CT = "pve.fleet.container"
TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
# The first VMID of the containers in a made-up cluster; the VMIDs of its VMs begin at 10000.
_FIRST = 50000


def ours_container(name: str, node: str = "pve1") -> dict[str, Any]:
    """Return the options of our module for a small container."""
    return {
        "name": name,
        "node": node,
        "source": TEMPLATE,
        "cores": 2,
        "memory": "1G",
        "swap": "512M",
        "rootfs": {"storage": "ceph", "size": "8G"},
        "nics": [{"name": "net0", "interface": "eth0", "bridge": "vmbr0"}],
        "tags": ["web"],
    }


def peers_container(name: str, node: str = "pve1") -> dict[str, Any]:
    """Return the options of the peer's module for the same container.

    With `update` the peer writes each time and reports a change.
    """
    return {
        "hostname": name,
        "node": node,
        "ostemplate": TEMPLATE,
        "cores": 2,
        "memory": 1024,
        "swap": 512,
        "disk": "ceph:8",
        "netif": {"net0": "name=eth0,bridge=vmbr0"},
        "tags": ["web"],
        "update": False,
    }


def container_loop(bench: Bench) -> Measured:
    """Nothing to change, in a loop over containers."""
    names = [f"web-{number:02}" for number in range(FEW)]
    ours = {"name": "Ours", CT: ours_container("{{ item }}"), "loop": names}
    peers = {"name": "Peer's", PEERS: peers_container("{{ item }}"), "loop": names}
    found: dict[Any, Any] = {bench.ours: [], bench.peer: []}
    with tasks_cluster() as simulator:
        with in_no_time(simulator):
            bench.ours.play(simulator, [ours]).expect(FEW)
        for _turn in range(bench.runs):
            for side, plays in found.items():
                plays.append(side.play(simulator, ways(side, ours, [peers])).expect(0))
    what = f"no change, a loop of {FEW} containers"
    measured = Measured()
    measured.rows = [row_of_plays(what, side, plays, units=FEW) for side, plays in found.items()]
    measured.keys["container_loop_ratio"] = ratio(*(row.seconds for row in measured.rows[::-1]))
    measured.notes.append(
        "The peer checks whether a container of that name exists (`update: false`); with"
        " `update: true` it writes all options each time. Ours compares every option."
    )
    return measured


def container_create(bench: Bench) -> Measured:
    """20 containers created on one node: by a loop of the peer, by one task of pve.fleet."""
    names = [f"new-{number:02}" for number in range(FEW)]
    whole = ours_container("")
    del whole["name"]
    containers = [{**whole, "name": name} for name in names]
    ours = {"name": "Ours", FLEET: {"containers": containers}}
    peers = {"name": "Peer's", PEERS: peers_container("{{ item }}"), "loop": names}
    found: dict[Any, Any] = {bench.ours: [], bench.peer: []}
    with tasks_cluster() as simulator:
        for _turn in range(bench.runs):
            for side, plays in found.items():
                simulator.reset()
                changes = 1 if side.is_ours else FEW
                plays.append(side.play(simulator, ways(side, ours, [peers])).expect(changes))
        bound = server_seconds(simulator) / SLOTS
    what = f"create {FEW} containers"
    measured = Measured()
    measured.rows = [
        row_of_plays(f"{what}, one task", bench.ours, found[bench.ours], units=FEW),
        row_of_plays(f"{what}, a loop", bench.peer, found[bench.peer], units=FEW),
    ]
    measured.keys["container_create_ratio"] = ratio(*(row.seconds for row in measured.rows[::-1]))
    measured.notes.append(
        f"All are on one node with {SLOTS} slots; the bound is the time of the tasks divided by the"
        f" slots: {bound:g} s."
    )
    return measured


def mixed1000(bench: Bench) -> Measured:
    """1,000 unchanged guests, half of each kind, compared with 1,000 unchanged VMs."""
    half = ALL // 2
    only_vms: dict[str, Any] = {"vms": desired_made_up_vms(ALL)}
    both: dict[str, Any] = {
        "vms": desired_made_up_vms(half),
        "containers": [made_up_container(number) for number in range(half)],
    }
    of_vms, of_both = [], []
    with made_up_cluster(ALL) as vms, made_up_cluster(half) as mixed:
        add_containers(mixed, half)
        for _turn in range(bench.runs):
            of_vms.append(_unchanged(bench, vms, only_vms))
            of_both.append(_unchanged(bench, mixed, both))
    rows = [
        row_of_plays(f"{ALL:,} VMs unchanged, one task", bench.ours, of_vms, units=ALL),
        row_of_plays(
            f"{half} VMs and {half} containers unchanged, one task", bench.ours, of_both, units=ALL
        ),
    ]
    measured = Measured(rows)
    measured.keys["mixed1000_over_vms"] = ratio(rows[1].seconds, rows[0].seconds)
    return measured


def _unchanged(bench: Bench, simulator: Simulator, lists: dict[str, Any]) -> Any:
    """Return the play of a task with these lists, which changes nothing."""
    options = {name: f"{{{{ {name} }}}}" for name in lists}
    task = {"name": "Ours", FLEET: options}
    return bench.ours.play(simulator, [task], variables=lists).expect(0)


def made_up_container(number: int) -> dict[str, Any]:
    """Return options that describe a container of `add_containers` exactly as it is."""
    return {
        "name": f"ct-{number:05d}",
        "node": f"pve{1 + number % NODES}",
        "cores": 1 + number % 4,
        "memory": 512 * (1 + number % 4),
        "swap": 512,
        "ostype": "debian",
        "arch": "amd64",
        "onboot": True,
        "unprivileged": True,
        "tags": [f"tenant_t{1 + number % 5}", "web"],
        "rootfs": {"storage": "ceph", "size": "8G"},
        "nics": [
            {
                "name": "net0",
                "interface": "eth0",
                "bridge": "vmbr0",
                "vlan": 101 + number % 5,
                "ip": "dhcp",
            }
        ],
    }


def add_containers(simulator: Simulator, count: int) -> None:
    """Put containers into a made-up cluster, one in ten stopped."""
    for number in range(count):
        desired = made_up_container(number)
        nic = desired["nics"][0]
        vmid = _FIRST + number
        mac = f"BC:24:12:00:{number // 256:02X}:{number % 256:02X}"
        net = f"name=eth0,bridge=vmbr0,hwaddr={mac},ip=dhcp,tag={nic['vlan']},type=veth"
        config = {
            "hostname": desired["name"],
            **{key: desired[key] for key in ("cores", "memory", "swap", "ostype", "arch")},
            "onboot": 1,
            "unprivileged": 1,
            "tags": ";".join(desired["tags"]),
            "rootfs": f"ceph:vm-{vmid}-disk-0,size=8G",
            "net0": net,
        }
        body = {"node": desired["node"], "running": number % 10 > 0, "config": config}
        simulator.ask("POST", f"/containers/{vmid}", body)
