"""Parts about the cluster itself: an unchanged cluster file, and an upload."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import requests

from tests.bench.environment import NotMeasured
from tests.bench.figures import Figure, Measured, Row, ratio
from tests.bench.parts import Bench, in_no_time, row_of_plays, tasks_cluster
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

GIB, MIB = 1 << 30, 1 << 20
FILE = "large.iso"
_LOOK_EVERY = 0.1  # seconds


def file_of_120() -> dict[str, Any]:
    """Return a cluster file with 120 resources of 18 sections."""
    storages = [
        {"name": f"dir{number}", "type": "dir", "path": f"/srv/{number}", "content": ["backup"]}
        for number in range(20)
    ]
    nodes = [f"pve{number}" for number in range(1, 6)]
    return {
        "options": {"registered_tags": ["tenant_acme"], "max_workers": 3},
        "realms": [
            {
                "name": "company",
                "type": "ldap",
                "server1": "ldap.example.com",
                "base_dn": "dc=example,dc=com",
                "user_attr": "uid",
            }
        ],
        "roles": [{"name": f"role{number}", "privileges": ["VM.Audit"]} for number in range(10)],
        "groups": [{"name": f"group{number}", "comment": "A group"} for number in range(15)],
        "users": [
            {"name": f"user{number}@pve", "groups": [f"group{number}"]} for number in range(15)
        ],
        "nodes": [{"node": node, "timezone": "Europe/Vienna"} for node in nodes[:2]],
        "networks": [
            {"node": node, "interfaces": [{"name": "vmbr5", "type": "bridge"}]}
            for node in nodes[:2]
        ],
        "storages": storages,
        "mappings": [
            {"type": "dir", "name": f"map{number}", "map": [{"node": "pve2", "path": "/srv/data"}]}
            for number in range(5)
        ],
        "cpu_models": [
            {"name": f"cpu{number}", "reported_model": "host", "flags": ["+aes"]}
            for number in range(2)
        ],
        "pools": [{"name": f"pool{number}", "comment": "A pool"} for number in range(10)],
        "acls": [
            {"path": f"/pool/pool{number}", "grants": [{"group": "group1", "role": "role1"}]}
            for number in range(10)
        ],
        "metric_servers": [
            {"name": "influx", "type": "influxdb", "server": "10.99.0.51", "server_port": 8086}
        ],
        "notification_endpoints": [
            {"type": "sendmail", "name": f"ops{number}", "mailto": ["ops@example.com"]}
            for number in range(2)
        ],
        "notification_matchers": [
            {"name": "failures", "target": ["ops0"], "match_severity": ["error"]}
        ],
        "ha_resources": [
            {"sid": f"vm:{vmid}", "request_state": "stopped"} for vmid in (9001, 9002)
        ],
        "ha_rules": [
            {
                "name": "apart",
                "type": "resource-affinity",
                "affinity": "negative",
                "resources": ["vm:9001", "vm:9002"],
            }
        ],
        "backup_jobs": [
            {"name": f"job{number}", "schedule": "02:30", "all": True, "storage": f"dir{number}"}
            for number in range(20)
        ],
    }


def cluster120(bench: Bench) -> Measured:
    """An unchanged cluster file of 120 resources."""
    content = file_of_120()
    count = sum(len(one) if isinstance(one, list) else 1 for one in content.values())
    task = {"name": "Ours", "pve.fleet.cluster": content}
    plays = []
    with tasks_cluster() as simulator:
        with in_no_time(simulator):
            bench.ours.play(simulator, [task]).expect(1)
        for _turn in range(bench.runs):
            plays.append(bench.ours.play(simulator, [task]).expect(0))
    row = row_of_plays(f"a cluster file of {count} resources, unchanged", bench.ours, plays)
    measured = Measured([row])
    measured.keys["cluster120_noop_requests"] = Figure(tuple(float(one.requests) for one in plays))
    measured.keys["cluster120_noop_seconds"] = row.seconds
    return measured


def upload1g(bench: Bench) -> Measured:
    """Uploads of 1 GiB, by the module and by curl, each including its task, and one of 1 MiB."""
    ours, curls, small = [], [], []
    with tempfile.TemporaryDirectory(prefix="pve-fleet-upload-") as place:
        large = _sparse(Path(place) / "large.iso", GIB)
        little = _sparse(Path(place) / "little.iso", MIB)
        with tasks_cluster() as simulator:
            for _turn in range(bench.few):
                small.append(bench.ours.play(simulator, _upload(little), watch_memory=True))
                simulator.reset()
                curls.append(_curl(simulator, large))
                simulator.reset()
                ours.append(bench.ours.play(simulator, _upload(large), watch_memory=True).expect(1))
                simulator.reset()
    row = row_of_plays("1 GiB uploaded, one task", bench.ours, ours)
    beside = Row("1 GiB uploaded, curl", "curl", Figure(tuple(curls)), 1)
    measured = Measured([row, beside])
    measured.keys["upload1g_over_curl"] = ratio(row.seconds, beside.seconds)
    little_row = row_of_plays("1 MiB uploaded, one task", bench.ours, small)
    if row.peak_mib is not None and little_row.peak_mib is not None:
        measured.key("upload1g_grown_mib", row.peak_mib.median - little_row.peak_mib.median)
    return measured


def _sparse(file: Path, size: int) -> Path:
    """Create a sparse file of this size, and return its path."""
    with file.open("wb") as stream:
        stream.truncate(size)
    return file


def _upload(file: Path) -> list[dict[str, Any]]:
    volume = {"storage": "local", "node": "pve1", "content": "iso", "src": str(file)}
    return [{"name": "Ours", "pve.fleet.volume": {**volume, "filename": FILE}}]


def _curl(simulator: Simulator, file: Path) -> float:
    """Return the seconds of the same upload by curl, including its task.

    Raises NotMeasured.
    """
    command = [
        *("curl", "--silent", "--show-error", "--fail", "--noproxy", "*"),
        *("--cacert", simulator.ca),
        *("--header", f"Authorization: PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}"),
        *("--form", "content=iso", "--form", f"filename=@{file};filename={FILE}"),
        f"{simulator.url}/api2/json/nodes/pve1/storage/local/upload",
    ]
    began = time.monotonic()
    try:
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        raise NotMeasured(f"curl: {getattr(problem, 'stderr', problem)}") from problem
    _wait(simulator, json.loads(answer)["data"])
    return time.monotonic() - began


def _wait(simulator: Simulator, upid: str) -> None:
    """Wait for the end of a task."""
    url = f"{simulator.url}/api2/json/nodes/pve1/tasks/{upid}/status"
    token = {"Authorization": f"PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}"}
    with requests.Session() as session:
        session.trust_env = False
        session.headers.update(token)
        session.verify = simulator.ca
        while session.get(url, timeout=60).json()["data"]["status"] != "stopped":
            time.sleep(_LOOK_EVERY)
