"""Parts that measure backups: 100 guests backed up, 20 restored, and 20,000 archives listed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.bench.figures import Figure, Measured
from tests.bench.parts import (
    CLUSTER,
    NODES,
    SLOTS,
    Bench,
    ask,
    in_no_time,
    row_of_plays,
    server_seconds,
    tasks_cluster,
)
from tests.bench.workloads.fleets import FEW, FLEET, MANY
from tests.simulator.process import Simulator

_NODES = tuple(f"pve{number}" for number in range(1, NODES + 1))
_STORAGES = tuple(f"nas{number}" for number in range(1, 6))
_ARCHIVES, _GUESTS, _FIRST = 20_000, 100, 10_000
_NAS = _STORAGES[0]
_GIB = 1 << 30
_SAVED = {"storage": _NAS, "tags": ["saved"], "parallel": NODES}
_BACKUP = {"name": "Ours", "pve.fleet.backup": _SAVED}
_LIST = {"name": "Ours", "pve.fleet.backup_info": {"max_age": "26h", "newest": True}}


def backup100(bench: Bench) -> Measured:
    """100 guests on five nodes backed up by one task."""
    plays = []
    with _cluster() as simulator:
        with in_no_time(simulator):
            bench.ours.play(simulator, [_guests(MANY, _NODES)]).expect(1)
        for _turn in range(bench.few):
            before = [server_seconds(simulator, [node]) for node in _NODES]
            plays.append(bench.ours.play(simulator, [_BACKUP]).expect(1))
            after = [server_seconds(simulator, [node]) for node in _NODES]
            bound = max(end - start for start, end in zip(before, after, strict=True))
    row = row_of_plays(f"{MANY} guests backed up, one task", bench.ours, plays, units=MANY)
    measured = Measured([row])
    measured.keys["backup100_over_bound"] = row.seconds.scaled(1 / bound)
    measured.notes.append(
        "Proxmox VE runs one backup at a time on a node, so the bound is the time of the tasks of"
        f" the slowest node, {bound:g} s."
    )
    return measured


def restore20(bench: Bench) -> Measured:
    """20 VMs restored as new ones on one node by one task."""
    plays = []
    with _cluster() as simulator:
        with in_no_time(simulator):
            bench.ours.play(simulator, [_guests(FEW, _NODES[:1]), _BACKUP]).expect(2)
        archives = sorted(_archives(simulator))
        vms = [
            {"name": f"again-{number:03}", "source": archive, "node": "pve1"}
            for number, archive in enumerate(archives)
        ]
        task = {"name": "Ours", FLEET: {"vms": vms}}
        gone = {"name": "Ours", FLEET: {"vms": vms, "remove": True}}
        for _turn in range(bench.few):
            before = server_seconds(simulator)
            plays.append(bench.ours.play(simulator, [task]).expect(1))
            bound = (server_seconds(simulator) - before) / SLOTS
            with in_no_time(simulator):
                bench.ours.play(simulator, [gone]).expect(1)
    row = row_of_plays(f"{FEW} VMs restored, one task", bench.ours, plays, units=FEW)
    measured = Measured([row])
    measured.keys["restore20_over_bound"] = row.seconds.scaled(1 / bound)
    measured.notes.append(
        f"All VMs are restored from archives, on one node with {SLOTS} slots; the bound is the time"
        f" of the tasks divided by the slots, {bound:g} s."
    )
    return measured


def backup_info20000(bench: Bench) -> Measured:
    """List guests without a recent backup among 100, from 20,000 archives on 5 shared storages."""
    with _cluster(_ARCHIVES) as simulator:
        with in_no_time(simulator):
            bench.ours.play(simulator, [_guests(_GUESTS, _NODES, vmid=_FIRST)]).expect(1)
        plays = [bench.ours.play(simulator, [_LIST]).expect(0) for _turn in range(bench.runs)]
    row = row_of_plays(f"{_ARCHIVES:,} archives on 5 storages listed", bench.ours, plays)
    measured = Measured([row])
    measured.keys["backup_info20000_seconds"] = row.seconds
    requests = tuple(float(play.requests) for play in plays)
    measured.keys["backup_info20000_requests"] = Figure(requests)
    return measured


def _guests(number: int, nodes: tuple[str, ...], vmid: int | None = None) -> dict[str, Any]:
    """Return the task that creates small VMs, with the VMIDs from `vmid` on if it is given."""
    vms: list[dict[str, Any]] = []
    for index in range(number):
        own = {} if vmid is None else {"vmid": vmid + index}
        vms.append({"name": f"saved-{index:03}", "node": nodes[index % len(nodes)], **own})
    desired = {"memory": "512M", "disks": [{"size": 1, "storage": "ceph"}], "tags": ["saved"]}
    return {"name": "Ours", FLEET: {**desired, "vms": vms}}


@contextmanager
def _cluster(archives: int = 0) -> Iterator[Simulator]:
    """Serve the cluster of the tasks with 5 shared storages that contain this many archives."""
    content = yaml.safe_load(CLUSTER.read_text(encoding="utf-8"))
    content["storages"][0]["content"].remove("backup")
    for name in _STORAGES:
        storage = {"storage": name, "type": "nfs", "server": "10.99.0.6", "export": f"/{name}"}
        content["storages"].append({**storage, "content": ["backup"], "size": "900TiB"})
    content["volumes"] += [_archive(index) for index in range(archives)]
    with tempfile.TemporaryDirectory(prefix="pve-fleet-backups-") as place:
        file = Path(place) / "cluster.yml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        with tasks_cluster(file) as simulator:
            yield simulator


def _archive(index: int) -> dict[str, Any]:
    storage = _STORAGES[index % len(_STORAGES)]
    vmid = _FIRST + index // len(_STORAGES) % _GUESTS
    moment = time.gmtime(1_760_000_000 + index // (_GUESTS * len(_STORAGES)) * 86_400 + index % 500)
    stamp = time.strftime("%Y_%m_%d-%H_%M_%S", moment)
    return {"volid": f"{storage}:backup/vzdump-qemu-{vmid}-{stamp}.vma.zst", "size": _GIB}


def _archives(simulator: Simulator) -> list[str]:
    """Return the archives on the first storage."""
    rows = ask(simulator, f"nodes/pve1/storage/{_NAS}/content", content="backup")
    return [str(row["volid"]) for row in rows]
