"""Other people's clients drive the simulator.

Each gets an environment of its own below .venvs, but for proxmoxer.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from proxmoxer import ProxmoxAPI, ResourceException

from tests.simulator.process import ROOT, TOKEN_ID, TOKEN_SECRET, Simulator
from tests.simulator_tests.client import Client

PACKAGES = {
    "exporter": ["prometheus-pve-exporter==3.10.2"],
    "ansible": ["ansible==12.3.0", "proxmoxer==2.3.0", "requests==2.34.2"],
}
NODE_PACKAGE = "proxmox-api@1.1.1"


def environment(name: str) -> Path:
    """The Python of the witness's environment, made when it is not there yet."""
    place = ROOT / ".venvs" / f"witness-{name}"
    stamp, wanted = place / ".installed", "\n".join(PACKAGES[name])
    python = place / "bin" / "python"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        pip = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *PACKAGES[name],
        ]
        result = subprocess.run(pip, capture_output=True, text=True, check=False)
        if result.returncode:
            pytest.skip(
                f"{PACKAGES[name][0]} cannot be installed here:"
                f" {result.stderr.strip().splitlines()[-1]}"
            )
        stamp.write_text(wanted, encoding="utf-8")
    return python


def plain(sim: Simulator, **more: str) -> dict[str, str]:
    """The surroundings of a client: no proxy, and the simulator's CA is trusted."""
    names = [name for name in os.environ if name.lower().endswith("_proxy")]
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {
        **kept,
        "REQUESTS_CA_BUNDLE": sim.ca,
        "SSL_CERT_FILE": sim.ca,
        "NODE_EXTRA_CA_CERTS": sim.ca,
        **more,
    }


# -- proxmoxer -------------------------------------------------------------------------------------


def proxmoxer(sim: Simulator, **auth: Any) -> ProxmoxAPI:
    """A connection with a token, or with what is given."""
    auth = auth or {"user": "root@pam", "token_name": "fleet", "token_value": TOKEN_SECRET}
    return ProxmoxAPI(sim.host, port=sim.port, verify_ssl=sim.ca, **auth)


@pytest.mark.parametrize("auth", [{}, {"user": "root@pam", "password": "fleetpw123"}])
def test_proxmoxer(sim: Simulator, auth: dict[str, Any]) -> None:
    api = proxmoxer(sim, **auth)
    client = Client(sim)
    assert api.version.get()["release"] == "9.2"
    node = api.nodes("pve1")
    assert client.wait(node.qemu(9000).clone.post(newid=100, name="web", pool="acme")) == "OK"
    node.qemu(100).config.put(ciuser="admin", ipconfig0="ip=10.1.0.4/24")
    assert client.wait(node.qemu(100).status.start.post()) == "OK"
    interfaces = node.qemu(100).agent("network-get-interfaces").get()["result"]
    addresses = {
        item["ip-address"] for entry in interfaces for item in entry.get("ip-addresses", [])
    }
    assert "10.1.0.4" in addresses
    assert client.wait(node.qemu(100).snapshot.post(snapname="s1", vmstate=1)) == "OK"
    with pytest.raises(ResourceException, match="VM 100 is running"):
        node.qemu(100).delete()
    assert client.wait(node.qemu(100).status.stop.post()) == "OK"
    assert client.wait(node.qemu(100).delete(purge=1)) == "OK"
    assert {item["vmid"] for item in api.cluster.resources.get(type="vm")} == {9000, 9001}


# -- prometheus-pve-exporter -----------------------------------------------------------------------

METRICS = (
    "pve_up",
    "pve_node_info",
    "pve_cluster_info",
    "pve_version_info",
    "pve_guest_info",
    "pve_storage_info",
    "pve_cpu_usage_ratio",
    "pve_memory_size_bytes",
    "pve_disk_size_bytes",
    "pve_uptime_seconds",
    "pve_onboot_status",
    "pve_ha_state",
    "pve_lock_state",
    "pve_storage_shared",
    "pve_subscription_info",
)


def scrape(port: int, target: str, **params: int) -> str:
    """The metrics; the exporter needs a moment until it listens."""
    extra = "".join(f"&{name}={value}" for name, value in params.items())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + 60
    while True:
        try:
            with opener.open(
                f"http://127.0.0.1:{port}/pve?target={target}{extra}", timeout=300
            ) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_prometheus_pve_exporter(pve: Client, sim: Simulator, tmp_path: Path) -> None:
    python = environment("exporter")
    pve.create(100, name="web", onboot=1, scsi0="ceph:1")
    pve.ok("POST", "/nodes/pve1/qemu/100/status/start")
    pve.post("/cluster/ha/resources", sid="vm:100", state="started")
    settings = {
        "user": "root@pam",
        "token_name": "fleet",
        "token_value": TOKEN_SECRET,
        "verify_ssl": True,
    }
    path = tmp_path / "pve.yml"
    path.write_text(yaml.safe_dump({"default": settings}), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(python.parent / "pve_exporter"), "--config.file", str(path)]
    process = subprocess.Popen(
        [*command, "--web.listen-address", f"127.0.0.1:{port}"],
        env=plain(sim),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        text = scrape(port, f"{sim.host}:{sim.port}", cluster=1, node=1)
    finally:
        process.terminate()
        output, _dummy = process.communicate()
    assert not [name for name in METRICS if f"\n{name}{{" not in f"\n{text}"], text
    assert 'pve_up{id="qemu/100"} 1.0' in text
    assert "Traceback" not in output
    assert [entry for entry in sim.log() if entry["status"] >= 400] == []


# -- proxmox-api (npm) -----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.timeout(600)
def test_proxmox_api_of_npm(sim: Simulator) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        pytest.skip("there is no node or npm here")
    place = ROOT / ".venvs" / "witness-node"
    if not (place / "node_modules" / "proxmox-api").is_dir():
        place.mkdir(parents=True, exist_ok=True)
        command = [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--prefix",
            str(place),
            NODE_PACKAGE,
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            pytest.skip(f"{NODE_PACKAGE} cannot be installed here")
    script = Path(__file__).with_name("witness.js")
    result = subprocess.run(
        [
            node,
            str(script),
            sim.host,
            str(sim.port),
            TOKEN_ID,
            TOKEN_SECRET,
            "root@pam",
            "fleetpw123",
        ],
        env=plain(sim, NODE_PATH=str(place / "node_modules")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "version": "9.2",
        "nodes": ["pve1", "pve2", "pve3"],
        "template": "debian-13",
        "clone": "OK",
        "machines": ["alma-10", "debian-13", "from-node"],
        "config": "from-node",
    }


# -- community.proxmox -----------------------------------------------------------------------------


def playbook(sim: Simulator) -> list[dict[str, Any]]:
    """Create, clone, start, snapshot, list, destroy."""
    host: dict[str, Any] = {
        "api_host": sim.host,
        "api_port": sim.port,
        "api_user": "root@pam",
        "api_token_id": "fleet",
        "api_token_secret": TOKEN_SECRET,
        "validate_certs": True,
    }
    new = {"node": "pve2", "vmid": 120, "name": "made", "cores": 2, "memory": 1024}
    disks = {
        "scsi": {"scsi0": "ceph:4"},
        "net": {"net0": "virtio,bridge=vmbr0"},
        "tags": ["b", "a"],
    }
    copy = {
        "node": "pve1",
        "clone": "debian-13",
        "vmid": 9000,
        "newid": 121,
        "name": "copied",
        "full": True,
    }
    kvm, snap, info = ("community.proxmox.proxmox_" + name for name in ("kvm", "snap", "vm_info"))
    tasks: list[dict[str, Any]] = [
        {kvm: {**new, **disks}, "register": "made"},
        {kvm: {**new, **disks}, "register": "again"},
        {
            kvm: {**copy, "storage": "ceph", "format": "unspecified", "timeout": 60},
            "register": "copied",
        },
        {
            kvm: {
                "node": "pve1",
                "vmid": 121,
                "update": True,
                "ciuser": "admin",
                "ipconfig": {"ipconfig0": "ip=dhcp"},
            }
        },
        {kvm: {"node": "pve1", "vmid": 121, "state": "started"}, "register": "started"},
        {kvm: {"node": "pve1", "vmid": 121, "state": "current"}, "register": "current"},
        {
            snap: {"vmid": 121, "state": "present", "snapname": "s1", "vmstate": False},
            "register": "snapped",
        },
        {info: {"type": "qemu", "config": "current"}, "register": "listed"},
        {
            kvm: {"node": "pve1", "vmid": 121, "state": "stopped", "force": True},
            "register": "stopped",
        },
        {snap: {"vmid": 121, "state": "rollback", "snapname": "s1"}, "register": "rolled"},
        {kvm: {"node": "pve1", "vmid": 121, "state": "absent"}, "register": "gone"},
    ]
    results = (
        "made",
        "again",
        "copied",
        "started",
        "current",
        "snapped",
        "listed",
        "stopped",
        "rolled",
        "gone",
    )
    show = "{{ {" + ", ".join(f"'{name}': {name}" for name in results) + "} | to_json }}"
    tasks.append(
        {"ansible.builtin.copy": {"content": show, "dest": "{{ result_file }}", "mode": "0600"}}
    )
    defaults = {"group/community.proxmox.proxmox": host}
    return [
        {"hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "tasks": tasks}
    ]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_community_proxmox(sim: Simulator, tmp_path: Path) -> None:
    python = environment("ansible")
    (tmp_path / "play.yml").write_text(yaml.safe_dump(playbook(sim)), encoding="utf-8")
    found = tmp_path / "found.json"
    (tmp_path / "ansible.cfg").touch()
    config = str(tmp_path / "ansible.cfg")
    surroundings = plain(sim, ANSIBLE_HOME=str(tmp_path), ANSIBLE_CONFIG=config, LC_ALL="C.UTF-8")
    surroundings.pop("ANSIBLE_COLLECTIONS_PATH", None)
    variables = ["-e", f"result_file={found}", "-e", f"ansible_python_interpreter={python}"]
    result = subprocess.run(
        [
            str(python.parent / "ansible-playbook"),
            "-i",
            "localhost,",
            "-c",
            "local",
            *variables,
            "play.yml",
        ],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    seen = json.loads(found.read_text(encoding="utf-8"))
    changed = {name for name, value in seen.items() if value.get("changed")}
    assert changed == {"made", "copied", "started", "snapped", "stopped", "rolled", "gone"}
    machines = {item["vmid"]: item for item in seen["listed"]["proxmox_vms"]}
    assert set(machines) == {120, 121, 9000, 9001}
    assert machines[121]["status"] == "running"
    assert machines[120]["config"]["tags"] == "a;b"
    assert {item["vmid"] for item in Client(sim).get("/cluster/resources", type="vm")} == {
        120,
        9000,
        9001,
    }
