"""Guests that move between two simulated clusters, and the state that every failure leaves.

Source: qemu-server 9.2.6, src/PVE/API2/Qemu.pm (remote_migrate_vm, mtunnel) and
src/PVE/QemuMigrate.pm; pve-container, src/PVE/API2/LXC.pm and src/PVE/LXC/Migrate.pm;
pve-guest-common, src/PVE/AbstractMigrate.pm, src/PVE/StorageTunnel.pm and src/PVE/Tunnel.pm.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from tests.simulator.process import CLUSTERS, TOKEN_ID, TOKEN_SECRET, Simulator
from tests.simulator_tests.client import Client
from tests.simulator_tests.conftest import QUICK

VM = "/nodes/pve1/qemu/200"
THERE = "/nodes/pve1/qemu/300"
CT = "/nodes/pve1/lxc/200"
CT_THERE = "/nodes/pve1/lxc/300"


@pytest.fixture(scope="module")
def other_server() -> Iterator[Simulator]:
    """The cluster that guests move to."""
    with Simulator("--cluster", CLUSTERS / "demo.yml", *QUICK) as sim:
        yield sim


@pytest.fixture
def away(other_server: Simulator) -> Client:
    """The other cluster as it is at the start."""
    other_server.reset()
    return Client(other_server)


def fingerprint(sim: Simulator) -> str:
    """The fingerprint of the certificate that a server shows."""
    pem = ssl.get_server_certificate((sim.host, sim.port))
    digest = x509.load_pem_x509_certificate(pem.encode()).fingerprint(hashes.SHA256()).hex()
    return ":".join(digest[index : index + 2] for index in range(0, 64, 2)).upper()


def endpoint(sim: Simulator, **parts: str) -> str:
    """The value of `target-endpoint`."""
    known = {
        "apitoken": f"PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}",
        "host": sim.host,
        "port": str(sim.port),
        "fingerprint": fingerprint(sim),
        **parts,
    }
    return ",".join(f"{key}={value}" for key, value in known.items() if value)


def options(away: Client, **changes: Any) -> dict[str, Any]:
    """The parameters of a migration to the VMID 300."""
    known: dict[str, Any] = {
        "target-endpoint": endpoint(away.sim),
        "target-storage": "local-lvm",
        "target-bridge": "vmbr0:vmbr1",
        "target-vmid": 300,
        **changes,
    }
    return {key: value for key, value in known.items() if value is not None}


def vm(pve: Client, **more: Any) -> str:
    """A machine with a disk on Ceph and a NIC."""
    config = {
        "name": "web1",
        "scsi0": "ceph:4",
        "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1",
        "description": "first\nsecond",
        "tags": "tenant_acme",
        "memory": 512,
        **more,
    }
    return pve.create(200, **config)


def container(pve: Client, **more: Any) -> str:
    """A container with a volume on Ceph."""
    template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
    config = {"hostname": "ct1", "rootfs": "ceph:4", "net0": "name=eth0,bridge=vmbr0", **more}
    pve.ok("POST", "/nodes/pve1/lxc", vmid=200, ostemplate=template, **config)
    return CT


def states(pve: Client, away: Client, kind: str = "qemu") -> list[str]:
    """The state of the guest on both sides: power and lock, or `gone`."""
    return [_state(pve, f"/nodes/pve1/{kind}/200"), _state(away, f"/nodes/pve1/{kind}/300")]


def _state(client: Client, path: str) -> str:
    answer = client.call("GET", f"{path}/status/current")
    if answer.status != 200:
        return "gone"
    now = answer.data
    power = now.get("qmpstatus", now["status"])
    return f"{power} {now['lock']}" if now.get("lock") else str(power)


def refusal(pve: Client, path: str, given: dict[str, Any]) -> str:
    """The text of a refused call."""
    answer = pve.call("POST", f"{path}/remote_migrate", given)
    assert answer.status != 200
    return str(answer.errors) if answer.body.get("errors") else answer.message.rstrip("\n")


# -- machines ------------------------------------------------------------------------------------


def test_a_stopped_machine_is_copied_and_stays_locked(pve: Client, away: Client) -> None:
    """QemuMigrate.pm, phase1_remote and phase3_cleanup: `unlock` goes through the tunnel only, so
    the source keeps `lock: migrate`. The generation ID, the MAC and the SMBIOS come along.
    """
    vm(pve)
    before = pve.config(VM)
    pve.ok("POST", f"{VM}/remote_migrate", **options(away))
    assert states(pve, away) == ["stopped migrate", "stopped"]
    after = away.config(THERE)
    assert after["scsi0"] == "local-lvm:vm-300-disk-0,size=4G"
    assert after["net0"] == "virtio=BC:24:11:00:00:01,bridge=vmbr1,firewall=1"
    same = ("name", "description", "tags", "memory", "vmgenid", "smbios1", "meta")
    assert {key: after[key] for key in same} == {key: before[key] for key in same}
    started = pve.do("POST", f"{VM}/status/start")
    assert started == "VM is locked (migrate)"
    assert (
        pve.call("PUT", f"{VM}/config", {"description": "x"}).message == "VM is locked (migrate)\n"
    )
    assert "ceph:vm-200-disk-0" in pve.volumes("ceph")


def test_the_link_between_the_clusters_has_a_rate(pve: Client, away: Client) -> None:
    """A disk of 4 GiB at 50 ms for each GiB."""
    vm(pve)
    pve.sim.steer("/settings", {"task_ms": {"link": 50}})
    began = time.monotonic()
    try:
        pve.ok("POST", f"{VM}/remote_migrate", **options(away))
    finally:
        pve.sim.steer("/settings", {"task_ms": {"link": 0}})
    assert time.monotonic() - began >= 0.2


def test_a_running_machine_moves_with_its_memory(pve: Client, away: Client) -> None:
    """QemuMigrate.pm, phase2: `resume` on the other side before the stop on this one."""
    vm(pve)
    pve.ok("POST", f"{VM}/status/start")
    assert refusal(pve, VM, options(away)) == "can't migrate running VM without --online"
    upid = pve.post(f"{VM}/remote_migrate", **options(away, online=1))
    assert pve.wait(upid) == "OK"
    assert states(pve, away) == ["stopped migrate", "running"]
    log = "\n".join(pve.task_log(upid))
    assert "conntrack state migration not supported or disabled" in log
    assert "mapped: net0 from vmbr0 to vmbr1" in log
    tunnel = next(task for task in away.get("/nodes/pve1/tasks") if task["type"] == "qmtunnel")
    assert (tunnel["id"], away.wait(tunnel["upid"])) == ("300", "OK")
    assert "received command 'config'" in away.task_log(tunnel["upid"])


def test_delete_removes_the_source(pve: Client, away: Client) -> None:
    """QemuMigrate.pm, phase3_cleanup: destroy_vm without a look at the lock."""
    vm(pve)
    pve.ok("POST", f"{VM}/remote_migrate", **options(away, delete=1))
    assert states(pve, away) == ["gone", "stopped"]
    assert "ceph:vm-200-disk-0" not in pve.volumes("ceph")


def test_the_firewall_comes_along(pve: Client, away: Client) -> None:
    """QemuMigrate.pm, phase1_remote: the file is sent as it is."""
    vm(pve)
    pve.post(f"{VM}/firewall/rules", type="in", action="ACCEPT", proto="tcp", dport="22")
    pve.put(f"{VM}/firewall/options", enable=1)
    pve.ok("POST", f"{VM}/remote_migrate", **options(away))
    (rule,) = away.get(f"{THERE}/firewall/rules")
    assert (rule["proto"], rule["dport"]) == ("tcp", "22")
    assert away.get(f"{THERE}/firewall/options")["enable"] == 1


def test_pool_and_pending_changes_stay_behind(pve: Client, away: Client) -> None:
    """Qemu.pm, mtunnel, config: `delete $new_conf->{pending}`; no command sets a pool."""
    vm(pve, pool="acme")
    pve.ok("POST", f"{VM}/status/start")
    pve.put(f"{VM}/config", memory=1024)
    assert "memory" in pve.pending(VM)
    pve.ok("POST", f"{VM}/remote_migrate", **options(away, online=1))
    assert away.config(THERE)["memory"] == "512"
    assert away.get("/pools/acme")["members"] == []


def test_calls_that_are_refused(pve: Client, away: Client) -> None:
    """Qemu.pm, remote_migrate_vm: the checks before the task."""
    vm(pve)
    pve.post("/cluster/ha/resources", sid="vm:200", state="stopped")
    assert "cannot remote-migrate VM that is configured for HA" in refusal(pve, VM, options(away))
    pve.delete("/cluster/ha/resources/vm:200")
    same_storages = options(away, **{"target-storage": "1"})
    text = "remote migration requires explicit storage mapping!"
    assert refusal(pve, VM, same_storages) == text
    twice = options(away, **{"target-bridge": "vmbr0:vmbr1,vmbr0:vmbr2"})
    assert "duplicate mapping for source 'vmbr0'" in refusal(pve, VM, twice)
    mixed = options(away, **{"target-bridge": "1,vmbr0:vmbr1"})
    assert "identity mapping cannot be combined" in refusal(pve, VM, mixed)
    pve.sim.steer("/vms/200", {"lock": "backup"})
    assert refusal(pve, VM, options(away)) == "VM is locked (backup)"
    assert states(pve, away) == ["stopped backup", "gone"]


def test_a_replicated_machine_is_refused(lab_of_zfs: Client, away: Client) -> None:
    """Qemu.pm, remote_migrate_vm: check_for_existing_jobs."""
    client = lab_of_zfs
    client.create(200, scsi0="zfs:1", name="web1")
    client.post("/cluster/replication", id="200-0", target="b", type="local")
    text = refusal(client, "/nodes/a/qemu/200", options(away))
    assert text == "cannot remote-migrate replicated VM"


def test_an_endpoint_that_cannot_be_reached(pve: Client, away: Client) -> None:
    """LWP.pm: a wrong fingerprint, no fingerprint for an unknown authority, no server, a wrong
    token. Nothing has happened on either side.
    """
    vm(pve)
    right = fingerprint(away.sim)
    wrong = options(away, **{"target-endpoint": endpoint(away.sim, fingerprint="AA:" * 31 + "AA")})
    assert refusal(pve, VM, wrong) == f"fingerprint '{right}' not verified, abort!"
    unknown = options(away, **{"target-endpoint": endpoint(away.sim, fingerprint="")})
    assert "not verified, abort!" in refusal(pve, VM, unknown)
    closed = options(away, **{"target-endpoint": endpoint(away.sim, port="1")})
    assert refusal(pve, VM, closed).startswith("500 Can't connect to 127.0.0.1:1 (")
    token = options(
        away, **{"target-endpoint": endpoint(away.sim, apitoken="PVEAPIToken=a@pve!b=c")}
    )
    assert refusal(pve, VM, token).startswith("401 ")
    assert states(pve, away) == ["stopped", "gone"]


def test_rights_on_the_other_side(pve: Client, away: Client) -> None:
    """Qemu.pm, mtunnel: Sys.Incoming on / and VM.Allocate, then Datastore.AllocateSpace; the
    command `config` needs the rights of an update, such as SDN.Use on the bridge.
    """
    vm(pve)
    away.post("/access/users", userid="mover@pve")
    secret = away.post("/access/users/mover@pve/token/move", privsep=0)["value"]
    apitoken = f"PVEAPIToken=mover@pve!move={secret}"
    given = options(away, **{"target-endpoint": endpoint(away.sim, apitoken=apitoken)})
    steps = [
        ("Sys.Audit", "/", "403 Permission check failed"),
        ("Sys.Audit,Sys.Incoming,VM.Allocate", "/", "Datastore.AllocateSpace"),
        ("Sys.Audit,Sys.Incoming,VM.Allocate,Datastore.AllocateSpace", "/", "VM.Config"),
    ]
    for number, (privs, path, text) in enumerate(steps):
        away.post("/access/roles", roleid=f"r{number}", privs=privs)
        away.put("/access/acl", path=path, users="mover@pve", roles=f"r{number}")
        upid = pve.post(f"{VM}/remote_migrate", **given)
        assert pve.wait(upid) == "migration aborted"
        assert text in "\n".join(pve.task_log(upid)), text
        assert states(pve, away) == ["stopped", "gone"]


def test_a_token_without_its_prefix_opens_no_tunnel(pve: Client, away: Client) -> None:
    """LWP.pm, new, completes the header; Tunnel.pm, fork_websocket_tunnel, does not. The worker
    waits for a connection, and then removes its empty guest.
    """
    vm(pve)
    bare = endpoint(away.sim, apitoken=f"{TOKEN_ID}={TOKEN_SECRET}")
    upid = pve.post(f"{VM}/remote_migrate", **options(away, **{"target-endpoint": bare}))
    assert pve.wait(upid) == "migration aborted"
    assert "can't open tunnel - malformed JSON string" in "\n".join(pve.task_log(upid))
    assert states(pve, away) == ["stopped", "stopped create"]
    away.sim.steer("/settings", {"task_ms": {"qmtunnel": 0}})
    away.until(lambda: _state(away, THERE) == "gone")


def test_the_other_side_refuses_before_it_creates(pve: Client, away: Client) -> None:
    """Qemu.pm, mtunnel: storages, bridges, then the VMID."""
    vm(pve)
    cases = [
        ({"target-storage": "ceph:other"}, "storage 'other' does not exist"),
        ({"target-storage": "absent"}, "storage 'absent' does not exist"),
        ({"target-bridge": "vmbr9"}, "bridge 'vmbr9' does not exist"),
    ]
    for changes, text in cases:
        upid = pve.post(f"{VM}/remote_migrate", **options(away, **changes))
        assert pve.wait(upid) == "migration aborted"
        assert text in "\n".join(pve.task_log(upid))
        assert states(pve, away) == ["stopped", "gone"]
    away.create(300, name="other")
    upid = pve.post(f"{VM}/remote_migrate", **options(away))
    assert pve.wait(upid) == "migration aborted"
    assert "unable to create empty VM config - VM 300 already exists" in str(pve.task_log(upid))
    assert _state(away, THERE) == "stopped"


def test_snapshots_and_local_media_do_not_move(pve: Client, away: Client) -> None:
    """QemuMigrate.pm, scan_local_volumes: after the tunnel is open, so both sides are cleaned."""
    vm(pve)
    pve.ok("POST", f"{VM}/snapshot", snapname="before")
    upid = pve.post(f"{VM}/remote_migrate", **options(away))
    assert pve.wait(upid) == "migration aborted"
    text = "can't migrate local disk 'ceph:vm-200-disk-0': remote migration with snapshots not"
    assert text in "\n".join(pve.task_log(upid))
    assert states(pve, away) == ["stopped", "gone"]
    pve.ok("DELETE", f"{VM}/snapshot/before")
    pve.put(f"{VM}/config", ide2="local:iso/debian-13-netinst.iso,media=cdrom")
    storages = options(away, **{"target-storage": "local"})
    upid = pve.post(f"{VM}/remote_migrate", **storages)
    assert pve.wait(upid) == "migration aborted"
    assert "debian-13-netinst.iso': local cdrom image" in "\n".join(pve.task_log(upid))
    assert states(pve, away) == ["stopped", "gone"]


def test_an_image_file_is_not_converted(pve: Client, away: Client) -> None:
    """Storage.pm, volume_import_start: qcow2 is sent as qcow2+size, which LVM does not import."""
    vm(pve, scsi0="local:1,format=qcow2")
    upid = pve.post(f"{VM}/remote_migrate", **options(away))
    assert pve.wait(upid) == "migration aborted"
    text = "no matching import/export format found for storage 'local-lvm'"
    assert text in "\n".join(pve.task_log(upid))
    assert states(pve, away) == ["stopped", "gone"]
    pve.ok("POST", f"{VM}/remote_migrate", **options(away, **{"target-storage": "local"}))
    assert away.config(THERE)["scsi0"] == "local:300/vm-300-disk-0.qcow2,size=1G"


def test_a_command_that_the_other_side_refuses(pve: Client, away: Client) -> None:
    """StorageTunnel.pm, storage_migrate: the cleanup frees the volumes that were imported."""
    vm(pve, scsi1="ceph:1")
    text = "lvcreate 'pve/vm-300-disk-1' error: Volume group has insufficient free space"
    path = "/qemu/300/mtunnel/query-disk-import$"
    away.sim.fault(method="TUNNEL", path=path, nth=2, status=500, message=text)
    upid = pve.post(f"{VM}/remote_migrate", **options(away))
    assert pve.wait(upid) == "migration aborted"
    assert f"failed to handle 'query-disk-import' command - {text}" in _log(pve, upid)
    away.until(lambda: _tunnel_status(away) == "OK")
    assert states(pve, away) == ["stopped", "gone"]
    assert not [volid for volid in away.volumes("local-lvm") if "300" in volid]


@pytest.mark.parametrize(("version", "text"), [(3, "not compatible"), (1, "too old")])
def test_another_version_leaves_an_empty_guest(
    pve: Client, away: Client, version: int, text: str
) -> None:
    """QemuMigrate.pm, prepare: the versions are compared after the other side has taken the VMID,
    and an error in `prepare` is cleaned up on neither side (AbstractMigrate.pm, migrate).
    """
    vm(pve)
    away.sim.steer("/settings", {"tunnel_version": version})
    upid = pve.post(f"{VM}/remote_migrate", **options(away))
    assert pve.wait(upid) == "migration aborted"
    assert text in "\n".join(pve.task_log(upid))
    away.until(lambda: _tunnel_status(away) == "mtunnel exited unexpectedly")
    assert states(pve, away) == ["stopped", "stopped create"]


def _tunnel_status(away: Client) -> str:
    task = next(task for task in away.get("/nodes/pve1/tasks") if "tunnel" in task["type"])
    return str(task.get("status"))


# (command, lost before or after it is carried out, the states afterwards)
OFFLINE = [
    ("version", "before", ["stopped", "stopped create"]),
    ("disk-import", "before", ["stopped", "stopped create"]),
    ("disk-data", "before", ["stopped", "stopped create"]),
    ("query-disk-import", "after", ["stopped", "stopped create"]),
    ("config", "before", ["stopped", "stopped create"]),
    ("config", "after", ["stopped", "stopped migrate"]),
    ("unlock", "before", ["stopped migrate", "stopped migrate"]),
    ("unlock", "after", ["stopped migrate", "stopped"]),
    ("quit", "before", ["stopped migrate", "stopped"]),
]
ONLINE = [
    ("disk", "after", ["running", "stopped create"]),
    ("config", "after", ["running", "stopped migrate"]),
    ("start", "before", ["running", "stopped migrate"]),
    ("start", "after", ["running", "stopped migrate"]),
    ("memory", "before", ["running", "stopped migrate"]),
    ("memory", "after", ["running", "paused migrate"]),
    ("nbdstop", "before", ["stopped migrate", "paused migrate"]),
    ("resume", "before", ["stopped migrate", "paused migrate"]),
    ("resume", "after", ["stopped migrate", "running migrate"]),
    ("unlock", "before", ["stopped migrate", "running migrate"]),
    ("quit", "before", ["stopped migrate", "running"]),
]


@pytest.mark.parametrize(("command", "drop", "after"), OFFLINE)
def test_a_tunnel_that_breaks_under_a_stopped_machine(
    pve: Client, away: Client, command: str, drop: str, after: list[str]
) -> None:
    """The source is unlocked up to the command `config`; from `unlock` on, it stays locked and the
    task ends with problems. The other side is cleaned only through the tunnel.
    """
    vm(pve)
    away.sim.fault(method="TUNNEL", path=f"/qemu/300/mtunnel/{command}$", drop=drop)
    status = pve.do("POST", f"{VM}/remote_migrate", **options(away))
    is_over = after[0] == "stopped migrate"
    assert status == ("migration problems" if is_over else "migration aborted")
    away.until(lambda: _tunnel_status(away) != "running")
    assert states(pve, away) == after


@pytest.mark.parametrize(("command", "drop", "after"), ONLINE)
def test_a_tunnel_that_breaks_under_a_running_machine(
    pve: Client, away: Client, command: str, drop: str, after: list[str]
) -> None:
    """A machine whose memory has arrived is paused until `resume`. If the tunnel breaks right
    before that, the source is stopped nevertheless (QemuMigrate.pm, phase3_cleanup: the error of
    `resume` is only logged), and no machine runs. No break leaves two running machines.
    """
    vm(pve)
    pve.ok("POST", f"{VM}/status/start")
    away.sim.fault(method="TUNNEL", path=f"/qemu/300/mtunnel/{command}$", drop=drop)
    status = pve.do("POST", f"{VM}/remote_migrate", **options(away, online=1))
    aborted = command in ("disk", "config")
    assert status == ("migration aborted" if aborted else "migration problems")
    away.until(lambda: _tunnel_status(away) != "running")
    assert states(pve, away) == after


def test_a_stopped_task_is_cleaned_up_on_both_sides(pve: Client, away: Client) -> None:
    """AbstractMigrate.pm, eval_int: "interrupted by signal" is an error of the phase."""
    vm(pve)
    pve.sim.steer("/settings", {"task_ms": {"qmigrate": 60000}})
    upid = pve.post(f"{VM}/remote_migrate", **options(away))
    pve.until(lambda: _state(pve, VM) == "stopped migrate")
    pve.delete(f"/nodes/pve1/tasks/{upid}")
    assert pve.wait(upid) == "migration aborted"
    assert "interrupted by signal" in "\n".join(pve.task_log(upid))
    assert states(pve, away) == ["stopped", "gone"]


# -- containers ----------------------------------------------------------------------------------


def test_a_container_moves_with_a_restart(pve: Client, away: Client) -> None:
    """LXC/Migrate.pm: shut down here, unlocked and started there; the lock here stays."""
    container(pve)
    pve.ok("POST", f"{CT}/status/start")
    text = "can't migrate running container without --online or --restart"
    assert refusal(pve, CT, options(away)) == text
    live = pve.post(f"{CT}/remote_migrate", **options(away, online=1))
    assert pve.wait(live) == "migration aborted"
    assert "lxc live migration is currently not implemented" in "\n".join(pve.task_log(live))
    pve.ok("POST", f"{CT}/remote_migrate", **options(away, restart=1))
    assert states(pve, away, "lxc") == ["stopped migrate", "running"]
    after = away.config(CT_THERE)
    assert after["rootfs"] == "local-lvm:vm-300-disk-0,size=4G"
    assert "bridge=vmbr1" in after["net0"]
    assert after["unprivileged"] == 1


CONTAINER = [
    ("disk-data", "before", ["running", "stopped create"]),
    ("config", "before", ["running", "stopped create"]),
    ("config", "after", ["running", "stopped migrate"]),
    ("unlock", "before", ["stopped migrate", "stopped migrate"]),
    ("start", "before", ["stopped migrate", "stopped"]),
    ("start", "after", ["stopped migrate", "running"]),
    ("quit", "before", ["stopped migrate", "running"]),
]


@pytest.mark.parametrize(("command", "drop", "after"), CONTAINER)
def test_a_tunnel_that_breaks_under_a_container(
    pve: Client, away: Client, command: str, drop: str, after: list[str]
) -> None:
    """LXC/Migrate.pm, final_cleanup: the container is started again here only before it was handed
    over. A break between `config` and `start` leaves no running container.
    """
    container(pve)
    pve.ok("POST", f"{CT}/status/start")
    away.sim.fault(method="TUNNEL", path=f"/lxc/300/mtunnel/{command}$", drop=drop)
    assert pve.do("POST", f"{CT}/remote_migrate", **options(away, restart=1)) != "OK"
    away.until(lambda: _tunnel_status(away) != "running")
    assert states(pve, away, "lxc") == after


def test_containers_that_do_not_move(pve: Client, away: Client) -> None:
    """LXC/Migrate.pm, phase1, and LXC.pm, remote_migrate_vm."""
    container(pve)
    pve.post("/cluster/ha/resources", sid="ct:200", state="stopped")
    assert "cannot remote-migrate CT that is configured for HA" in refusal(pve, CT, options(away))
    pve.delete("/cluster/ha/resources/ct:200")
    pve.ok("POST", f"{CT}/snapshot", snapname="before")
    upid = pve.post(f"{CT}/remote_migrate", **options(away))
    assert pve.wait(upid) == "migration aborted"
    assert "can't migrate local volume 'ceph:vm-200-disk-0'" in "\n".join(pve.task_log(upid))
    assert states(pve, away, "lxc") == ["stopped", "gone"]
    directory = options(away, **{"target-storage": "local"})
    pve.ok("DELETE", f"{CT}/snapshot/before")
    upid = pve.post(f"{CT}/remote_migrate", **directory)
    assert "storage 'local' does not support CT rootdirs" in _log(pve, upid)


def test_deleted_containers(pve: Client, away: Client) -> None:
    """LXC/Migrate.pm, final_cleanup: destroy_lxc_container without a look at the lock."""
    container(pve)
    pve.ok("POST", f"{CT}/remote_migrate", **options(away, delete=1))
    assert states(pve, away, "lxc") == ["gone", "stopped"]


def _log(client: Client, upid: str) -> str:
    client.wait(upid)
    return "\n".join(client.task_log(upid))


@pytest.fixture(scope="module")
def zfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """Two nodes with a pool of ZFS, which replication needs."""
    file = tmp_path_factory.mktemp("zfs") / "cluster.yml"
    file.write_text(
        "nodes:\n  - {name: a, nodeid: 1, ip: 10.99.0.1, local: true}\n"
        "  - {name: b, nodeid: 2, ip: 10.99.0.2}\n"
        "storages:\n  - {storage: zfs, type: zfspool, pool: tank, content: [images], size: 1TiB}\n"
        "users:\n  - {userid: root@pam, password: fleetpw123}\n"
        f"tokens:\n  - {{id: {TOKEN_ID}, secret: {TOKEN_SECRET}, privsep: false}}\n"
    )
    with Simulator("--cluster", file, *QUICK) as sim:
        yield sim


@pytest.fixture
def lab_of_zfs(zfs_server: Simulator) -> Client:
    """Its token."""
    zfs_server.reset()
    client = Client(zfs_server)
    create = client.create
    client.create = lambda vmid, node="a", **more: create(vmid, node, **more)  # type: ignore[method-assign]
    return client
