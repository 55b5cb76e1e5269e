"""How the simulator is started and stopped, and what it makes up."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulator.__main__ import main
from tests.simulator.cluster.status import PRESSURES
from tests.simulator.options import parse
from tests.simulator.process import DEMO, ROOT, Simulator
from tests.simulator_tests.client import Client


def run(*args: str, cwd: Path = ROOT, module: bool = True) -> subprocess.CompletedProcess[str]:
    """Start it in the way that must fail."""
    program = ["-m", "tests.simulator"] if module else [str(ROOT / "tests" / "simulator")]
    return subprocess.run(
        [sys.executable, *program, *args], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without uvloop, whose policy would stay in force in this process."""
    monkeypatch.setitem(sys.modules, "uvloop", None)


BROKEN = {
    "no yaml": "nodes: [",
    "no mapping": "- 1\n",
    "no nodes": "storages: []\n",
    "unknown key": "nodes: [{name: a}]\ncolour: red\n",
    "device without an ID": 'nodes: [{name: a, pci: [{vendor: "0x10de", device: "0x2204"}]}]\n',
    "a node without a name": "nodes: [{ip: 10.0.0.1}]\n",
    "a machine on an unknown node": "nodes: [{name: a}]\nvms: [{vmid: 100, node: b}]\n",
    "a machine twice": "nodes: [{name: a}]\nvms: [{vmid: 100, node: a}, {vmid: 100, node: a}]\n",
    "an unknown kind of storage": "nodes: [{name: a}]\nstorages: [{storage: s, type: floppy}]\n",
    "a key that a machine does not have": (
        "nodes: [{name: a}]\nvms: [{vmid: 100, node: a, runing: true}]\n"
    ),
    "an option that a machine does not have": (
        "nodes: [{name: a}]\nvms: [{vmid: 100, node: a, config: {x: 1}}]\n"
    ),
    "a size that is none": "nodes: [{name: a, memory: much}]\n",
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    "args",
    [
        ["--nope"],
        ["--port", "many"],
        ["--port", "70000"],
        ["--task-ms", "qmclone"],
        ["--task-ms", "qmclone=-1"],
        ["--nodes", "0"],
        ["--vms", "-1"],
        ["--latency-ms", "-5"],
        ["--pve-version", "7.4"],
        ["--host", "0.0.0.0"],
        ["--host", "192.0.2.1"],
        ["--cluster", "/does/not/exist.yml"],
        ["--cluster", str(DEMO), "--nodes", "3"],
        ["surplus"],
    ],
)
def test_a_bad_start_is_one_line_and_status_2(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("simulator: ")
    assert output.err.count("\n") == 1


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("what", sorted(BROKEN))
def test_a_broken_cluster_file_is_one_line_and_status_2(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.yml"
    path.write_text(BROKEN[what], encoding="utf-8")
    assert main(["--cluster", str(path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("simulator: ")
    assert output.err.count("\n") == 1


def test_a_port_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("--port", str(port))
    assert (result.returncode, result.stderr) == (
        2,
        f"simulator: cannot listen on 127.0.0.1:{port}: the port is in use\n",
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("module", [True, False])
def test_what_it_prints_and_how_it_stops(tmp_path: Path, number: int, module: bool) -> None:
    program = ["-m", "tests.simulator"] if module else [str(ROOT / "tests" / "simulator")]
    process = subprocess.Popen(
        [sys.executable, *program, "--control", "--cluster", str(DEMO)],
        cwd=ROOT if module else tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    words = [process.stdout.readline().split() for _dummy in range(3)]
    assert [line[0] for line in words] == ["ready", "ca", "control"]
    assert words[0][1].startswith("https://127.0.0.1:")
    assert "BEGIN CERTIFICATE" in Path(words[1][1]).read_text(encoding="ascii")
    process.send_signal(number)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    assert not Path(words[1][1]).exists()


def test_an_old_client_does_not_keep_it_alive() -> None:
    with Simulator() as sim:
        client = Client(sim)
        client.get("/version")
        os.kill(sim.pid, signal.SIGTERM)
        assert sim.process is not None
        assert sim.process.wait(250) == 0  # an idle connection is kept for 300 s


# -- a cluster that is made up ---------------------------------------------------------------------


def test_a_made_up_cluster_is_the_same_for_the_same_seed() -> None:
    listings = []
    for seed in (1, 1, 2):
        with Simulator("--nodes", "3", "--vms", "200", "--seed", str(seed), "--lag-s", "0") as sim:
            items = Client(sim).get("/cluster/resources", type="vm")
            listings.append(
                sorted(
                    (item["vmid"], item["name"], item["node"], item["status"], item["tags"])
                    for item in items
                )
            )
    assert listings[0] == listings[1]
    assert listings[0] != listings[2]
    names = [item[1] for item in listings[0]]
    assert len(set(names)) == len(names)
    machines = [item for item in listings[0] if "tenant_" in item[4]]
    stopped = sum(1 for item in machines if item[3] == "stopped")
    assert 0.03 * len(machines) < stopped < 0.2 * len(machines)
    assert {
        tag for item in machines for tag in item[4].split(";") if tag.startswith("tenant_")
    } == {f"tenant_t{number}" for number in range(1, 6)}


def test_ten_thousand_machines_start_quickly_in_little_memory() -> None:
    with Simulator("--nodes", "5", "--vms", "10000", "--seed", "1", "--lag-s", "0") as sim:
        used = Path(f"/proc/{sim.pid}/stat")
        if used.exists():  # the time of the processor, which does not depend on the load
            user, system = used.read_text().rpartition(")")[2].split()[11:13]
            assert (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") < 15
        found = Client(sim).get("/cluster/resources", type="vm")
        assert len([item for item in found if not item.get("template")]) == 10000
        status = Path(f"/proc/{sim.pid}/status")
        if status.exists():
            peak = next(
                line for line in status.read_text().splitlines() if line.startswith("VmHWM")
            )
            assert int(peak.split()[1]) < 1024 * 1024


def test_the_demo_is_served_when_nothing_is_said() -> None:
    assert parse(["--port", "0", "--lag-s", "0"]).cluster == DEMO
    assert parse(["--vms", "3"]).cluster is None
    assert parse(["--nodes", "2"]).cluster is None


# -- an older version ------------------------------------------------------------------------------


def check_groups(pve: Client) -> None:
    """Source: pve-ha-manager 4, API2/HA/Groups.pm and API2/HA/Resources.pm."""
    group = {"group": "east", "nodes": "pve1:2,pve2,pve2", "restricted": 1}
    assert pve.call("POST", "/cluster/ha/groups", group).data is None
    answer = pve.call("POST", "/cluster/ha/groups", group)
    assert answer.reason == "create ha group failed: ha group ID 'east' already defined"
    shown = pve.get("/cluster/ha/groups/east")
    digest = shown.pop("digest")
    assert shown == {**group, "type": "group", "nodes": "pve1:2,pve2"}
    pve.put("/cluster/ha/groups/east", digest=digest, comment="c", delete="restricted")
    (shown,) = pve.get("/cluster/ha/groups")
    assert (shown["comment"], "restricted" in shown) == ("c", False)
    refused = {
        "update ha group failed: no such ha group 'west'": ("west", {"comment": "x"}),
        "update ha group failed: unable to delete required option 'nodes'": (
            "east",
            {"delete": "nodes"},
        ),
    }
    for text, (name, change) in refused.items():
        assert pve.call("PUT", f"/cluster/ha/groups/{name}", change).reason == text
    # A new resource is taken with any group, and listed with the error; a change is refused
    # (pve-ha-manager 4.0.7: API2/HA/Resources.pm, create and update; Config.pm).
    pve.post("/cluster/ha/resources", sid="vm:100", group="west", state="stopped")
    (resource,) = pve.get("/cluster/ha/resources")
    assert resource["errors"] == {"group": "group 'west' does not exist"}
    answer = pve.call("PUT", "/cluster/ha/resources/vm:100", {"group": "north"})
    assert answer.reason == "HA group 'north' does not exist"
    pve.put("/cluster/ha/resources/vm:100", group="east")
    answer = pve.call("DELETE", "/cluster/ha/groups/east")
    assert answer.reason == "delete ha group failed: ha group is used by service 'vm:100'"
    pve.delete("/cluster/ha/resources/vm:100")
    pve.delete("/cluster/ha/groups/east")
    assert pve.get("/cluster/ha/groups") == []


def check_passwords_of_consoles(pve: Client) -> None:
    """Only `generate-password` makes a password (qemu-server before commit 282ec11d)."""
    call = "/nodes/pve1/qemu/100/vncproxy"
    plain, made = pve.post(call), pve.post(call, **{"generate-password": 1})
    assert "password" not in plain
    assert plain["ticket"].startswith("PVEVNC:")
    assert made["ticket"].startswith(f"{made['password']}:PVEVNC:")


def check_status(pve: Client, vmid: int, since_9: set[str]) -> None:
    """qemu-server: QemuServer.pm, vmstatus. `pid` and the pressures are figures of a running VM;
    `nics` has its NICs. The schema of 8.4 has neither pressures nor `memhost`.
    """
    path = f"/nodes/pve1/qemu/{vmid}/status"
    stopped = pve.get(f"{path}/current")
    assert not {"pid", "nics", *PRESSURES} & stopped.keys()
    assert ("memhost" in stopped) == bool(since_9)
    pve.ok("POST", f"{path}/start")
    assert "nics" not in pve.get(f"{path}/current")
    pve.ok("POST", f"{path}/stop")
    pve.put(f"/nodes/pve1/qemu/{vmid}/config", net0="virtio,bridge=vmbr0")
    pve.ok("POST", f"{path}/start")
    running = pve.get(f"{path}/current")
    assert {*PRESSURES, "memhost"} & running.keys() == since_9
    assert set(running["nics"]) == {f"tap{vmid}i0"}
    assert running["pid"] > 0


def test_an_older_version_refuses_what_it_does_not_know() -> None:
    with Simulator("--cluster", DEMO, "--pve-version", "8.4", "--lag-s", "0") as sim:
        pve = Client(sim)
        assert pve.get("/version")["release"] == "8.4"
        answer = pve.call("POST", "/nodes/pve1/qemu", {"vmid": 100, "ha-managed": 1})
        assert "property is not defined in schema" in answer.errors["ha-managed"]
        assert pve.call("GET", "/cluster/ha/rules").status == 501
        pve.create(100, scsi0="ceph:1")
        check_groups(pve)
        check_passwords_of_consoles(pve)
        check_status(pve, 100, set())
    with Simulator() as sim:
        pve = Client(sim)
        pve.ok("POST", "/nodes/pve1/qemu", vmid=100, **{"ha-managed": 1})
        assert pve.get("/cluster/ha/resources")[0]["sid"] == "vm:100"
        pve.create(101)
        check_status(pve, 101, {*PRESSURES, "memhost"})


# -- what the documentation shows ------------------------------------------------------------------

DOCUMENT = ROOT / "docs" / "simulator.md"


def test_the_cluster_file_in_the_documentation_works(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    path = tmp_path / "cluster.yml"
    path.write_text(text, encoding="utf-8")
    with Simulator("--cluster", path, "--lag-s", "0") as sim:
        machines = {item["vmid"]: item for item in Client(sim).get("/cluster/resources", type="vm")}
    assert (machines[100]["status"], machines[100]["pool"], machines[100]["lock"]) == (
        "running",
        "acme",
        "backup",
    )
    assert machines[9000]["template"] == 1


def test_every_option_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    options = {
        word.strip("[],")
        for word in run("--help").stdout.split()
        if word.strip("[").startswith("--")
    }
    missing = sorted(option for option in options - {"--help", "--host"} if option not in text)
    assert missing == []
