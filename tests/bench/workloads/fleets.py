"""Parts that measure a whole fleet in one task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import requests

from tests.bench.environment import NotMeasured
from tests.bench.figures import Figure, Measured, ratio
from tests.bench.parts import (
    NODES,
    SLOTS,
    TASK_MS,
    Bench,
    in_no_time,
    made_up_cluster,
    row_of_plays,
    server_seconds,
    tasks_cluster,
)
from tests.bench.workloads.single_tasks import KVM, ours_vm, peers_vm
from tests.simulator.initial.build import simulation
from tests.simulator.options import Options
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator
from tests.simulator.volumes.drives import parse_net

FEW, MANY, ALL = 20, 100, 1000
FLEET = "pve.fleet.vms"
_MODULE = Path(__file__).resolve().parents[3] / "plugins" / "modules" / "vms.py"


def fleet20(bench: Bench) -> Measured:
    """20 VMs created on one node: by a loop of the peer, by a loop of pve.fleet, by one task of
    pve.fleet.
    """
    _need_the_module()
    names = [f"new-{number:02}" for number in range(FEW)]
    loops = {
        bench.ours: {"name": "Ours", "pve.fleet.vm": ours_vm("{{ item }}"), "loop": names},
        bench.peer: {"name": "Peer's", KVM: peers_vm("{{ item }}"), "loop": names},
    }
    whole = ours_vm("")
    del whole["name"]
    fleet = {"name": "Ours", FLEET: {**whole, "vms": [{"name": name} for name in names]}}
    looped: dict[Any, Any] = {side: [] for side in loops}
    at_once = []
    with tasks_cluster() as simulator:
        for _turn in range(bench.runs):
            simulator.reset()
            at_once.append(bench.ours.play(simulator, [fleet]).expect(1))
            must_be_there(simulator, FEW, running=0)
            bound = server_seconds(simulator) / SLOTS
            for side, task in loops.items():
                simulator.reset()
                looped[side].append(side.play(simulator, [task]).expect(FEW))
    measured = Measured()
    what = f"create {FEW} VMs"
    measured.rows = [
        row_of_plays(f"{what}, one task", bench.ours, at_once, units=FEW),
        *(
            row_of_plays(f"{what}, a loop", side, plays, units=FEW)
            for side, plays in looped.items()
        ),
    ]
    ours, _loop, peers = (row.seconds for row in measured.rows)
    measured.keys["fleet20_vs_peer"] = ratio(peers, ours)
    measured.keys["fleet20_over_bound"] = ours.scaled(1 / bound)
    measured.notes.append(
        f"All are on one node with {SLOTS} slots; the bound is the time of the tasks divided by the"
        f" slots: {bound:g} s."
    )
    return measured


def fleet100(bench: Bench) -> Measured:
    """100 VMs cloned, configured and started over five nodes."""
    _need_the_module()
    nodes = [f"pve{number}" for number in range(1, NODES + 1)]
    vms = [
        {
            "name": f"new-{number:03}",
            "node": node,
            "source": f"debian-13-{node}",
            "nics": [
                {
                    "name": "net0",
                    "ip": f"10.20.{number // 250}.{1 + number % 250}/16",
                    "gateway": "10.20.255.254",
                }
            ],
        }
        for number in range(MANY)
        for node in [nodes[number % NODES]]
    ]
    desired = {
        "full": True,
        "cores": 4,
        "memory": "4G",
        "cloud_init": {"user": "ops"},
        "tags": ["web"],
        "state": "started",
    }
    fleet = {"name": "Ours", FLEET: {**desired, "state": "started", "vms": vms}}
    plays = []
    with tasks_cluster() as simulator:
        for _turn in range(bench.runs):
            simulator.reset()
            plays.append(bench.ours.play(simulator, [fleet]).expect(1))
            must_be_there(simulator, MANY, running=MANY)
            bound = max(server_seconds(simulator, [node]) / SLOTS for node in nodes)
    measured = Measured(
        [
            row_of_plays(
                f"clone, configure, start {MANY} VMs, one task", bench.ours, plays, units=MANY
            )
        ]
    )
    measured.keys["fleet100_over_bound"] = measured.rows[0].seconds.scaled(1 / bound)
    measured.notes.append(
        f"Each of {NODES} nodes has {SLOTS} slots and a template, because a clone's task runs on"
        " the node of its source. The bound is the time of the tasks of the slowest node divided by"
        f" its slots: {bound:g} s."
    )
    return measured


def local_images(bench: Bench) -> Measured:
    """100 VMs cloned over five nodes with local storages: from the image of each node, or from one
    template on one node.
    """
    _need_the_module()
    nodes = [f"pve{number}" for number in range(1, NODES + 1)]
    plays: dict[str, list[Any]] = {"image": [], "single": []}
    with tasks_cluster() as simulator:
        for _turn in range(bench.few):
            for source, found in plays.items():
                simulator.reset()
                with in_no_time(simulator):
                    _make_templates(simulator, nodes)
                vms = [
                    {"name": f"new-{number:03}", "source": source, "node": nodes[number % NODES]}
                    for number in range(MANY)
                ]
                task = {"name": "Ours", FLEET: {"full": True, "task_timeout": 1800, "vms": vms}}
                found.append(bench.ours.play(simulator, [task]).expect(1))
                must_be_there(simulator, MANY + len(nodes) + 1, running=0)  # with the templates
    measured = Measured()
    labels = {"image": "the image of each node", "single": "a template of one node"}
    for source, label in labels.items():
        what = f"clone {MANY} VMs from {label}"
        measured.rows.append(row_of_plays(what, bench.ours, plays[source], units=MANY))
    local, single = (row.seconds for row in measured.rows)
    measured.keys["clones_local_image_ratio"] = ratio(single, local)
    measured.notes.append(
        f"Each of {NODES} nodes has {SLOTS} slots and a thin pool. A clone copies its disk on the"
        f" node of its source ({TASK_MS['qmclone'] / 1000:g} s in a slot). The model counts only"
        f" {TASK_MS['default'] / 1000:g} s for the migration of a clone to its node, and no time"
        " for its disk on the network, which favours the template of one node."
    )
    return measured


def _make_templates(simulator: Simulator, nodes: Sequence[str]) -> None:
    """Make a template on the local storage of each node, and another one on the first node."""
    wanted = [("image", node) for node in nodes] + [("single", nodes[0])]
    token = {"Authorization": f"PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}"}
    with requests.Session() as session:
        session.trust_env = False
        session.headers.update(token)
        for number, (name, node) in enumerate(wanted):
            url = f"{simulator.url}/api2/json/nodes/{node}/qemu"
            config = {"vmid": 9500 + number, "name": name, "scsi0": "local-lvm:3"}
            if name == "image":
                config["tags"] = "version-1"
            for address, data in ((url, config), (f"{url}/{config['vmid']}/template", {})):
                answer = session.post(address, data=data, verify=simulator.ca, timeout=30)
                answer.raise_for_status()


def fleet1000(bench: Bench) -> Measured:
    """1,000 unchanged VMs."""
    _need_the_module()
    vms = desired_made_up_vms(ALL)
    fleet = {"name": "Ours", FLEET: {"vms": "{{ vms }}"}}
    plays = []
    with made_up_cluster(ALL) as simulator:
        for _turn in range(bench.runs):
            plays.append(
                bench.ours.play(
                    simulator, [fleet], variables={"vms": vms}, watch_memory=True
                ).expect(0)
            )
    row = row_of_plays(f"{ALL:,} VMs unchanged, one task", bench.ours, plays, units=ALL)
    measured = Measured([row])
    measured.keys["fleet1000_noop_requests"] = Figure(tuple(float(play.requests) for play in plays))
    measured.keys["fleet1000_noop_seconds"] = row.seconds
    if row.peak_mib is not None and row.cpu is not None:
        measured.keys["fleet1000_peak_mib"] = row.peak_mib
        per_vm = row.cpu.median * 1000 / ALL
        measured.notes.append(
            f"Processor time of the whole command: {row.cpu.median:.1f} s, that is {per_vm:.1f} ms"
            " per VM. Memory counts all processes, and shared pages once."
        )
    return measured


def drift1000(bench: Bench) -> Measured:
    """1,000 VMs compared with their estate, and an unchanged task for comparison."""
    vms = desired_made_up_vms(ALL)
    fleet = {"name": "Ours", FLEET: {"vms": "{{ vms }}"}}
    drift = {"name": "Ours", "pve.fleet.drift_info": {"vms": "{{ vms }}"}}
    unchanged = []
    compared = []
    with made_up_cluster(ALL) as simulator:
        for _turn in range(bench.runs):
            play = bench.ours.play(simulator, [fleet], variables={"vms": vms})
            unchanged.append(play.expect(0))
            play = bench.ours.play(simulator, [drift], variables={"vms": vms})
            compared.append(play.expect(0))
    noop = row_of_plays(f"{ALL:,} VMs unchanged, one task", bench.ours, unchanged, units=ALL)
    what = f"{ALL:,} VMs compared with their estate"
    ours = row_of_plays(what, bench.ours, compared, units=ALL)
    measured = Measured([noop, ours])
    measured.keys["drift1000_over_noop"] = ratio(ours.seconds, noop.seconds)
    # Every comparison but the first one is a second one.
    again = compared[1:] or compared
    measured.key("drift1000_second_requests", *(float(play.requests) for play in again))
    return measured


def export1000(bench: Bench) -> Measured:
    """1,000 VMs as an estate, and an unchanged task for comparison."""
    _need_the_module()
    vms = desired_made_up_vms(ALL)
    fleet = {"name": "Ours", FLEET: {"vms": "{{ vms }}"}}
    export = {"name": "Ours", "pve.fleet.estate_info": {}}
    unchanged = []
    exported = []
    with made_up_cluster(ALL) as simulator:
        for _turn in range(bench.runs):
            play = bench.ours.play(simulator, [fleet], variables={"vms": vms})
            unchanged.append(play.expect(0))
            exported.append(bench.ours.play(simulator, [export]).expect(0))
    measured = Measured(
        [
            row_of_plays(f"{ALL:,} VMs unchanged, one task", bench.ours, unchanged, units=ALL),
            row_of_plays(f"{ALL:,} VMs as an estate", bench.ours, exported, units=ALL),
        ]
    )
    noop, ours = (row.seconds for row in measured.rows)
    measured.keys["export1000_over_noop"] = ratio(ours, noop)
    return measured


def report1000(bench: Bench) -> Measured:
    """A report on 1,000 VMs, written as a page, and an unchanged run for comparison."""
    vms = desired_made_up_vms(ALL)
    fleet = {"name": "Ours", FLEET: {"vms": "{{ vms }}"}}
    gather = {
        "name": "Gather",
        "pve.fleet.report_info": {"estate": {"vms": "{{ vms }}"}, "prices": {"core": "1"}},
        "register": "gathered",
    }
    page = {
        "content": "{{ gathered.report | pve.fleet.report_html }}",
        "dest": "report-{{ turn }}.html",
        "mode": "0600",
    }
    write = {"name": "Write", "ansible.builtin.copy": page}
    runs, reports = [], []
    with made_up_cluster(ALL) as simulator:
        for turn in range(bench.runs):
            variables = {"vms": vms, "turn": turn}
            runs.append(bench.ours.play(simulator, [fleet], variables=variables).expect(0))
            tasks = [gather, write]
            reports.append(bench.ours.play(simulator, tasks, variables=variables).expect(1))
    noop = row_of_plays(f"{ALL:,} VMs unchanged, one task", bench.ours, runs, units=ALL)
    what = f"a report on {ALL:,} VMs beside their estate, gathered and written"
    report = row_of_plays(what, bench.ours, reports, units=ALL)
    measured = Measured([noop, report])
    measured.keys["report1000_over_noop"] = ratio(report.seconds, noop.seconds)
    return measured


def desired_made_up_vms(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return options that describe the simulator's made-up VMs exactly as they are."""
    made = simulation(Options(nodes=NODES, vms=count, seed=seed))
    found = []
    for vm in made.cluster.vms.values():
        if vm.template:
            continue
        config = vm.conf
        net = parse_net(made.schema, config["net0"])
        size = dict(part.split("=", 1) for part in config["scsi0"].split(",")[1:])["size"]
        found.append(
            {
                "name": config["name"],
                "node": vm.node,
                **{key: int(config[key]) for key in ("cores", "memory")},
                **{key: config[key] for key in ("cpu", "ostype", "scsihw")},
                "onboot": True,
                "agent": True,
                "tags": config["tags"].split(";"),
                "disks": [{"name": "scsi0", "size": size, "iothread": True}],
                "nics": [
                    {"name": "net0", "bridge": net["bridge"], "vlan": int(net["tag"]), "ip": "dhcp"}
                ],
            }
        )
    return found


def must_be_there(simulator: Simulator, new: int, running: int) -> None:
    """Raise NotMeasured unless the given numbers of VMs were created and run.

    At the start, no VM of the cluster runs.
    """
    state = simulator.ask("GET", "/state")
    made = state["vms"] - NODES - 1
    if (made, state["running"]) != (new, running):
        raise NotMeasured(
            f"{made} VMs were made and {state['running']} run, instead of {new} and {running}"
        )


def _need_the_module() -> None:
    if not _MODULE.exists():
        raise NotMeasured("there is no module pve.fleet.vms yet")
