"""Whatever is asked, the simulator answers as an API does, and never with a fault of its own."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.cases import cases
from tests.simulator.process import CLUSTERS, Simulator
from tests.simulator.schema.definition import Method, Schema
from tests.simulator_tests.client import Client
from tests.simulator_tests.conftest import QUICK

WORDS: dict[str, list[Any]] = {
    "node": ["pve1", "pve2", "nope"],
    "vmid": [9000, 9001, 100, 101, 102, 999],
    "newid": [100, 101, 102, 103],
    "storage": ["local", "local-lvm", "ceph", "nope"],
    "targetstorage": ["ceph", "1", "local-lvm"],
    "snapname": ["s1", "s2", "current"],
    "pool": ["acme", "globex", "nope"],
    "poolid": ["acme", "new", "new/sub"],
    "disk": ["scsi0", "ide2", "scsi9", "unused0"],
    "size": ["+1G", "5G", "+0", "1"],
    "target": ["pve2", "pve3"],
    "userid": ["root@pam", "ops@pve", "new@pve"],
    "tokenid": ["fleet", "auto", "new"],
    "groupid": ["g1"],
    "roleid": ["PVEVMUser", "Own"],
    "privs": ["VM.Audit"],
    "roles": ["PVEVMUser", "Own"],
    "iface": ["vmbr0", "vmbr7"],
    "sid": ["vm:9000", "vm:100", "100"],
    "rule": ["r1"],
    "volume": ["ceph:base-9000-disk-0", "local:iso/x.iso"],
    "command": ["ping", "ls"],
    "delete": ["description", "scsi0", "net0,agent"],
    "revert": ["cores"],
    "scsi0": ["ceph:1", "local-lvm:2,ssd=1", "none,media=cdrom", "ceph:vm-100-disk-0"],
    "scsi1": ["local:1,format=qcow2"],
    "ide2": ["ceph:cloudinit", "local:iso/debian-13-netinst.iso,media=cdrom"],
    "net0": ["virtio,bridge=vmbr0", "e1000"],
    "vms": ["100,101"],
    "tags": ["a;b", "x"],
    "content": ["iso", "images"],
    "filename": ["x.iso", "vm-100-disk-3"],
    "url": ["https://example.org/x.iso"],
    "path": ["/vms/100", "/pool/acme", "/"],
    "name": ["web", "Web-1"],
    "users": ["ops@pve"],
    "nodes": ["pve1", "pve2:3"],
    "resources": ["vm:100"],
    "type": ["bridge", "dir", "vm", "node"],
    "agent": ["1"],
    "ipconfig0": ["ip=dhcp"],
    "boot": ["order=scsi0"],
    "cpu": ["host"],
    "memory": ["1024"],
}

# These would lock the client out, or are not answered (an upload without multipart).
TOKEN = "/access/users/{userid}/token/{tokenid}"
LEFT_OUT = {
    ("DELETE", "/access/users/{userid}"),
    ("PUT", "/access/users/{userid}"),
    ("DELETE", TOKEN),
    ("PUT", TOKEN),
    ("POST", "/nodes/{node}/storage/{storage}/upload"),
}


def value_of(draw: random.Random, name: str, prop: dict[str, Any]) -> Any:
    """Something that fits the parameter, more or less."""
    if name in WORDS and draw.random() < 0.9:
        return draw.choice(WORDS[name])
    if prop.get("enum"):
        return draw.choice(prop["enum"])
    kind = prop.get("type")
    if kind == "boolean":
        return draw.choice([0, 1])
    if kind in ("integer", "number"):
        low = int(prop.get("minimum") or 0)
        return draw.randint(low, min(int(prop.get("maximum") or low + 9), low + 9))
    return draw.choice(
        ["x1", "abc", "", "1", "a=b,c=d", "ä ö", "../..", "%00", str(prop.get("default", "z"))]
    )


def request_of(draw: random.Random, method: Method) -> tuple[str, dict[str, Any]]:
    """A path and parameters."""
    path, params = method.path, {}
    for name, prop in method.props.items():
        if "{" + name + "}" in path:
            path = path.replace("{" + name + "}", str(value_of(draw, name, prop)))
        elif name in method.required or draw.random() < min(0.5, 4 / len(method.props)):
            params[name] = value_of(draw, name, prop)
    return path, params


@pytest.mark.parametrize(
    "seed", [1, 2, pytest.param(3, marks=pytest.mark.long), pytest.param(4, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("version", ["9.2", "8.4"])
def test_no_request_meets_a_fault_of_the_simulator(seed: int, version: str) -> None:
    draw = random.Random(f"{seed} {version}")
    schema = Schema(version)
    methods = [method for key, method in sorted(schema.methods.items()) if key not in LEFT_OUT]
    near = [
        method
        for method in methods
        if "/qemu" in method.path or method.path.startswith(("/pools", "/cluster/ha"))
    ]
    found = []
    with Simulator("--cluster", CLUSTERS / "demo.yml", "--pve-version", version, *QUICK) as sim:
        client = Client(sim)
        sim.steer(
            "/settings",
            {"task_ms": {"default": 0, "qmclone": 1, "qmmove": 1, "qmigrate": 1, "qmcreate": 1}},
        )
        for _dummy in range(cases(1500, 500)):
            method = draw.choice(near if draw.random() < 0.75 else methods)
            path, params = request_of(draw, method)
            answer = client.call(method.verb, path, params)
            text = str(answer.body) + answer.reason
            if "simulator fault" in text or "Traceback" in text:
                found.append(f"{method.verb} {path} {params}: {text[:200]}")
        tasks = client.get("/nodes/pve1/tasks", limit=5000) + client.get(
            "/nodes/pve2/tasks", limit=5000
        )
        found += [str(task) for task in tasks if "simulator fault" in str(task.get("status"))]
    assert not found, "\n".join(found)
