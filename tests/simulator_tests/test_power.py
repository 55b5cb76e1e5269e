"""Locks, power, tasks, agent, destroying."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.simulator.process import CLUSTERS, Simulator
from tests.simulator_tests.client import Client

NO_FILE = "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist"
NO_MACHINE = "unable to find configuration file for VM 999 on node 'pve1'"


def test_starting_and_stopping(pve: Client) -> None:
    path = pve.create(100)
    assert pve.state(path) == "stopped"
    pve.ok("POST", f"{path}/status/start")
    status = pve.get(f"{path}/status/current")
    assert (status["status"], status["qmpstatus"]) == ("running", "running")
    assert status["pid"] > 0
    pve.ok("POST", f"{path}/status/stop")
    assert pve.state(path) == "stopped"


def test_starting_twice_fails_in_the_task(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    assert pve.do("POST", f"{path}/status/start") == "VM 100 already running"


@pytest.mark.parametrize("verb", ["stop", "shutdown"])
def test_stopping_what_is_stopped_is_fine(pve: Client, verb: str) -> None:
    pve.ok("POST", f"{pve.create(100)}/status/{verb}")


@pytest.mark.parametrize("verb", ["reboot", "reset", "suspend", "resume"])
def test_what_a_stopped_machine_refuses(pve: Client, verb: str) -> None:
    answer = pve.call("POST", f"{pve.create(100)}/status/{verb}", {})
    assert (answer.status, answer.reason) == (500, "VM 100 not running")


@pytest.mark.parametrize(
    ("verb", "path", "text"),
    [
        ("POST", "/status/start", NO_FILE),
        ("POST", "/status/stop", NO_MACHINE),
        ("POST", "/status/shutdown", NO_MACHINE),
        ("PUT", "/resize", NO_FILE),
        ("DELETE", "/snapshot/s1", NO_FILE),
        ("POST", "/snapshot/s1/rollback", NO_FILE),
    ],
)
def test_a_missing_machine_fails_in_the_task(pve: Client, verb: str, path: str, text: str) -> None:
    params = {"disk": "scsi0", "size": "1G"} if path == "/resize" else {}
    assert pve.do(verb, f"/nodes/pve1/qemu/999{path}", **params) == text


def test_a_locked_machine(pve: Client, sim: Simulator) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    sim.steer("/vms/100", {"lock": "backup"})
    assert pve.get(f"{path}/status/current")["lock"] == "backup"
    for verb, tail, params in (
        ("PUT", "/config", {"cores": 2}),
        ("POST", "/config", {"cores": 2}),
        ("POST", "/clone", {"newid": 101}),
        ("POST", "/template", {}),
        ("POST", "/migrate", {"target": "pve2"}),
    ):
        answer = pve.call(verb, path + tail, params)
        assert (answer.status, answer.reason) == (500, "VM is locked (backup)"), tail
    assert pve.do("POST", f"{path}/status/start") == "VM is locked (backup)"
    assert pve.do("POST", f"{path}/snapshot", snapname="s1") == "VM is locked (backup)"
    assert pve.do("PUT", f"{path}/resize", disk="scsi0", size="+1G") == "VM is locked (backup)"
    assert pve.do("DELETE", path) == "VM is locked (backup)"
    pve.ok("POST", f"{path}/status/stop")
    pve.ok("POST", f"{path}/status/shutdown")
    sim.steer("/vms/100", {"lock": None})
    pve.ok("POST", f"{path}/status/start")


def test_a_guest_that_ignores_the_power_button(pve: Client, sim: Simulator) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/guests", {"acpi": False})
    result = pve.do("POST", f"{path}/status/shutdown", timeout=1)
    assert result == "VM quit/powerdown failed - got timeout"
    assert pve.state(path) == "running"
    pve.ok("POST", f"{path}/status/shutdown", timeout=1, forceStop=1)
    assert pve.state(path) == "stopped"


def test_a_guest_that_hears_the_power_button(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/status/shutdown")
    assert pve.state(path) == "stopped"


def test_suspend_and_resume(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/status/suspend")
    assert pve.get(f"{path}/status/current")["qmpstatus"] == "paused"
    pve.ok("POST", f"{path}/status/resume")
    assert pve.get(f"{path}/status/current")["qmpstatus"] == "running"


def test_where_a_paused_machine_is_listed_as_paused(pve: Client) -> None:
    """The cluster's list has QEMU's state (pve-manager, pvestatd.pm, update_qemu_status); the
    node's has whether there is a process (qemu-server, QemuServer.pm, vmstatus).
    """
    path = pve.create(100)
    node = path.rpartition("/")[0]

    def row(listing: str, **params: Any) -> dict[str, Any]:
        rows: list[dict[str, Any]] = pve.get(listing, **params)
        return next(one for one in rows if one.get("vmid") == 100)

    def check(process: str, machine: str) -> None:
        pve.until(lambda: row("/cluster/resources")["status"] == machine)
        assert row(node)["status"] == process
        for full in (row(node, full=1), pve.get(f"{path}/status/current")):
            assert (full["status"], full["qmpstatus"]) == (process, machine)

    check("stopped", "stopped")
    pve.ok("POST", f"{path}/status/start")
    check("running", "running")
    pve.ok("POST", f"{path}/status/suspend")
    check("running", "paused")
    assert row("/cluster/resources")["mem"] > 0  # it has a process
    pve.ok("POST", f"{path}/status/resume")
    check("running", "running")


DEVICES = [
    (
        "pci",
        "hostpci0",
        "mapping=there",
        "path=0000:01:00.0,id=10de:1eb8",
        "PCI device mapping not found for 'there'",
    ),
    ("usb", "usb0", "mapping=there", "id=1d6b:0002", "USB device mapping not found for 'there'"),
    ("dir", "virtiofs0", "dirid=there", "path=/var/lib/vz", "No directory mapping for node pve1."),
]


@pytest.mark.parametrize(("kind", "option", "value", "device", "text"), DEVICES)
def test_a_start_needs_the_mapped_device_of_the_node(
    pve: Client, kind: str, option: str, value: str, device: str, text: str
) -> None:
    """Source: qemu-server, QemuServer/PCI.pm, USB.pm and Virtiofs.pm."""
    pve.post(f"/cluster/mapping/{kind}", id="there", map=f"node=pve2,{device}")
    path = pve.create(100, **{option: value})
    assert text in pve.do("POST", f"{path}/status/start")
    assert pve.state(path) == "stopped"
    pve.put(f"/cluster/mapping/{kind}/there", map=f"node=pve1,{device}")
    pve.ok("POST", f"{path}/status/start")


@pytest.mark.parametrize(
    ("mtu", "text"),
    [
        (500, "netdev net0: MTU '500' is smaller than the IP minimum MTU '576'"),
        (9000, "netdev net0: MTU '9000' is bigger than the bridge MTU '1500'"),
        (1500, ""),
        (1, ""),
    ],
)
def test_a_start_needs_an_mtu_of_the_bridge(pve: Client, mtu: int, text: str) -> None:
    """Source: qemu-server, QemuServer.pm, print_netdevice_full."""
    path = pve.create(100, net0=f"virtio,bridge=vmbr0,mtu={mtu}")
    if text:
        assert pve.do("POST", f"{path}/status/start") == text
    else:
        pve.ok("POST", f"{path}/status/start")


# -- destroying ------------------------------------------------------------------------------------


def test_destroying_takes_the_disks(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1", scsi1="ceph:1", ide2="ceph:cloudinit")
    pve.put(f"{path}/config", delete="scsi1")
    pve.ok("DELETE", path)
    assert not [name for name in pve.volumes("local-lvm") | pve.volumes("ceph") if "-100-" in name]
    assert pve.create(100) == path


def test_what_is_not_destroyed(pve: Client) -> None:
    path = pve.create(100, protection=1)
    assert pve.call("DELETE", path).reason == "can't remove VM 100 - protection mode enabled"
    pve.put(f"{path}/config", delete="protection")
    pve.ok("POST", f"{path}/status/start")
    assert pve.call("DELETE", path).reason == "VM 100 is running - destroy failed"
    pve.ok("POST", f"{path}/status/stop")
    pve.post("/cluster/ha/resources", sid="vm:100", state="ignored")
    reason = "unable to remove VM 100 - used in HA resources and purge parameter not set."
    assert pve.call("DELETE", path).reason == reason
    pve.ok("DELETE", path, purge=1)
    assert pve.get("/cluster/ha/resources") == []


def test_the_ha_manager_acts_in_its_next_round(pve: Client, sim: Simulator) -> None:
    path = pve.create(100)
    pve.post("/cluster/ha/resources", sid="vm:100", state="stopped")
    sim.steer("/settings", {"task_ms": {"ha": 500}})
    for verb, kind, state in (("start", "hastart", "running"), ("stop", "hastop", "stopped")):
        upid = pve.post(f"{path}/status/{verb}")
        assert f":{kind}:100:" in upid
        assert pve.wait(upid) == "OK"
        assert pve.state(path) != state
        assert pve.get("/cluster/ha/resources/vm:100")["state"] == "started"
        pve.until(lambda wanted=state: pve.state(path) == wanted)  # type: ignore[misc]
    assert pve.get("/cluster/ha/resources/vm:100")["state"] == "stopped"
    refused = pve.call("POST", f"{path}/status/stop", {"overrule-shutdown": 1})
    assert (refused.status, refused.errors) == (
        400,
        {"overrule-shutdown": "Not applicable for HA resources."},
    )


def test_unreferenced_volumes_survive_unless_asked(pve: Client) -> None:
    for extra, left in (({}, True), ({"destroy-unreferenced-disks": 1}, False)):
        path = pve.create(100, scsi0="local-lvm:1")
        pve.post(
            "/nodes/pve1/storage/local-lvm/content", vmid=100, filename="vm-100-disk-7", size="1G"
        )
        pve.ok("DELETE", path, **extra)
        assert ("local-lvm:vm-100-disk-7" in pve.volumes("local-lvm")) is left
        if left:
            pve.ok("DELETE", "/nodes/pve1/storage/local-lvm/content/local-lvm:vm-100-disk-7")


def test_destroying_leaves_the_pool(pve: Client) -> None:
    path = pve.create(100, pool="acme")
    pve.ok("DELETE", path)
    assert pve.get("/pools", poolid="acme")[0]["members"] == []


# -- tasks -----------------------------------------------------------------------------------------


def test_a_task_from_start_to_end(pve: Client) -> None:
    upid = pve.post("/nodes/pve1/qemu", vmid=100)
    assert re.fullmatch(
        r"UPID:pve1:[0-9A-F]{8}:[0-9A-F]{8}:[0-9A-F]{8}:qmcreate:100:root@pam!fleet:", upid
    )
    assert pve.wait(upid) == "OK"
    status = pve.status_of(upid)
    assert (status["type"], status["id"], status["user"], status["tokenid"]) == (
        "qmcreate",
        "100",
        "root@pam",
        "fleet",
    )
    assert pve.task_log(upid)[-1] == "TASK OK"
    assert upid in {item["upid"] for item in pve.get("/nodes/pve1/tasks")}
    assert upid in {item["upid"] for item in pve.get("/cluster/tasks")}


def test_a_failed_task_says_so_in_its_last_line(pve: Client) -> None:
    upid = pve.post("/nodes/pve1/qemu/999/status/start")
    result = pve.wait(upid)
    assert pve.task_log(upid)[-1] == f"TASK ERROR: {result}"
    assert [item["upid"] for item in pve.get("/nodes/pve1/tasks", errors=1)] == [upid]


def test_the_node_of_a_task_is_in_its_name(pve: Client) -> None:
    upid = "UPID:pve1:00001234:00005678:69000000:qmstart:100:root@pam:"
    assert pve.call("GET", f"/nodes/pve1/tasks/{upid}/status").errors == {"upid": "no such task"}
    upid = pve.post("/nodes/pve2/qemu", vmid=100)
    answer = pve.call("GET", f"/nodes/pve1/tasks/{upid}/status")
    assert (answer.status, answer.errors) == (400, {"upid": "no such task"})


def test_a_running_task_has_no_exit_status(pve: Client, sim: Simulator) -> None:
    sim.steer("/settings", {"task_ms": {"qmstart": 400}})
    upid = pve.post(f"{pve.create(100)}/status/start")
    status = pve.status_of(upid)
    assert status["status"] == "running"
    assert "exitstatus" not in status
    assert pve.state("/nodes/pve1/qemu/100") == "stopped"
    assert pve.wait(upid) == "OK"
    assert pve.state("/nodes/pve1/qemu/100") == "running"


def test_a_task_can_be_stopped(pve: Client, sim: Simulator) -> None:
    sim.steer("/settings", {"task_ms": {"qmstart": 20000}})
    upid = pve.post(f"{pve.create(100)}/status/start")
    assert pve.delete(f"/nodes/pve1/tasks/{upid}") is None
    assert pve.wait(upid) == "received interrupt"
    assert pve.state("/nodes/pve1/qemu/100") == "stopped"


def test_two_writers_wait_for_the_lock(pve: Client, sim: Simulator) -> None:
    path = pve.create(100)
    sim.steer("/settings", {"task_ms": {"qmstart": 500}})
    started = time.monotonic()
    upid = pve.post(f"{path}/status/start")
    pve.put(f"{path}/config", description="later")
    assert time.monotonic() - started >= 0.5
    assert pve.wait(upid) == "OK"


def test_task_slots_of_a_node() -> None:
    args = (
        "--cluster",
        CLUSTERS / "demo.yml",
        "--task-ms",
        "default=300",
        "--task-slots",
        "1",
        "--lag-s",
        "0",
    )
    with Simulator(*args) as sim:
        pve = Client(sim)
        started = time.monotonic()
        upids = [pve.post("/nodes/pve1/qemu", vmid=vmid) for vmid in (100, 101, 102)]
        assert [pve.wait(upid) for upid in upids] == ["OK"] * 3
        assert time.monotonic() - started > 0.85


# -- the guest agent -------------------------------------------------------------------------------


def test_errors_of_the_agent(pve: Client, sim: Simulator) -> None:
    path = pve.create(100)
    call = f"{path}/agent/network-get-interfaces"
    assert pve.call("GET", call).reason == "No QEMU guest agent configured"
    pve.put(f"{path}/config", agent=1)
    assert pve.call("GET", call).reason == "VM 100 is not running"
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"agent": "silent"})
    assert pve.call("GET", call).reason == "QEMU guest agent is not running"
    sim.steer("/vms/100", {"agent": "running"})
    assert pve.get(call)["result"][0]["name"] == "lo"


def test_addresses_come_from_cloud_init_or_dhcp(pve: Client) -> None:
    path = pve.create(
        100,
        agent=1,
        net0="virtio,bridge=vmbr0",
        net1="virtio,bridge=vmbr1",
        ide2="ceph:cloudinit",
        ipconfig0="ip=10.7.0.5/24,gw=10.7.0.1",
        ipconfig1="ip=dhcp",
    )
    pve.ok("POST", f"{path}/status/start")
    found = pve.get(f"{path}/agent/network-get-interfaces")["result"]
    config = pve.config(path)
    by_mac = {item["hardware-address"]: item for item in found}
    first = by_mac[config["net0"].split(",")[0].split("=")[1].lower()]
    second = by_mac[config["net1"].split(",")[0].split("=")[1].lower()]
    assert ("10.7.0.5", 24) in {
        (item["ip-address"], item["prefix"]) for item in first["ip-addresses"]
    }
    addresses = [item for item in second["ip-addresses"] if item["ip-address-type"] == "ipv4"]
    assert len(addresses) == 1
    again = pve.get(f"{path}/agent/network-get-interfaces")["result"]
    assert again == found


def test_a_command_in_the_guest(pve: Client) -> None:
    path = pve.create(100, agent=1)
    pve.ok("POST", f"{path}/status/start")
    pid = pve.post(f"{path}/agent/exec", command="true")["pid"]
    status = pve.get(f"{path}/agent/exec-status", pid=pid)
    assert status["exited"] == 1


def test_freezing_the_file_systems(pve: Client) -> None:
    path = pve.create(100, agent=1)
    pve.ok("POST", f"{path}/status/start")
    for command, status in (("freeze", "frozen"), ("thaw", "thawed")):
        assert pve.post(f"{path}/agent/fsfreeze-{command}")["result"] == 1
        assert pve.post(f"{path}/agent/fsfreeze-status")["result"] == status


# -- what was seen on PVE 9.2.11 -------------------------------------------------------------------


def test_keys_without_the_certificates_of_2023_are_a_warning(pve: Client, sim: Simulator) -> None:
    """Source: qemu-server, QemuServer.pm, check_efi_vars, and OVMF.pm, create_efidisk."""
    path = pve.create(100, bios="ovmf", efidisk0="local-lvm:1,efitype=4m,pre-enrolled-keys=1")
    disk = pve.config(path)["efidisk0"]
    assert "ms-cert=2023k" in disk
    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/status/stop")
    sim.steer("/vms/100", {"config": {"efidisk0": disk.replace("ms-cert=2023k", "ms-cert=2011")}})
    upid = pve.post(f"{path}/status/start")
    assert pve.wait(upid) == "WARNINGS: 1"
    assert pve.task_log(upid)[:2] == [
        "WARN: EFI disk without 'ms-cert=2023k' option, suggesting that not all UEFI 2023",
        "certificates from Microsoft are enrolled yet.",
    ]
    assert pve.state(path) == "running"


def test_the_saved_memory_names_machine_and_mtu(pve: Client) -> None:
    """Source: qemu-server, QemuServer/Network.pm, get_nets_host_mtu, and QemuServer/Machine.pm."""
    path = pve.create(
        100,
        net0="virtio,bridge=vmbr0",
        net1="e1000,bridge=vmbr0",
        net2="virtio,bridge=vmbr0,mtu=1400",
    )
    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/status/suspend", todisk=1)
    config = pve.config(path)
    assert config["runningmachine"] == "pc-i440fx-10.1+pve0"
    assert config["running-nets-host-mtu"] == "net0=1500,net2=1400"
