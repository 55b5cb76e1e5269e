"""The life of containers, by rules of pve-container that the recordings show only in part."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.core.api import HANDLERS
from tests.simulator.schema.definition import Schema
from tests.simulator.web import handlers
from tests.simulator_tests.client import Client

TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
LXC = "/nodes/pve1/lxc"
MODIFIED = "detected modified configuration - file changed by other user? Try again."


@pytest.fixture
def node(lab: Client) -> Client:
    """A cluster of directories with a container template."""
    lab.sim.ask("PUT", "/volumes/pve1", {"volid": TEMPLATE, "new": True, "size": 1 << 20})
    return lab


def make(pve: Client, vmid: int = 200, **options: Any) -> str:
    settings = {"ostemplate": TEMPLATE, "rootfs": "local:1", "vmid": vmid, **options}
    pve.ok("POST", LXC, **settings)
    return f"{LXC}/{vmid}"


def test_a_new_container_has_the_defaults_and_the_system_of_its_template(node: Client) -> None:
    """API2/LXC.pm, create_vm: hostname, memory and swap; LXC/Setup.pm: system and architecture."""
    config = node.config(make(node))
    assert (config["hostname"], config["memory"], config["swap"]) == ("CT200", 512, 512)
    assert (config["ostype"], config["arch"], config["unprivileged"]) == ("debian", "amd64", 1)
    assert config["rootfs"] == "local:200/vm-200-disk-0.raw,size=1G"
    (volume,) = node.get("/nodes/pve1/storage/local/content", content="rootdir", vmid=200)
    assert (volume["content"], volume["size"]) == ("rootdir", 1 << 30)


def test_what_fails_leaves_neither_container_nor_volume(node: Client) -> None:
    """API2/LXC.pm, create_vm: destroy_disks and destroy_config after an error of the worker."""
    upid = node.post(LXC, ostemplate="local:vztmpl/gone.tar.zst", rootfs="local:1", vmid=201)
    assert node.wait(upid).startswith("unable to create CT 201 - volume")
    assert node.get(LXC) == []
    assert node.get("/nodes/pve1/storage/local/content", content="rootdir") == []


def test_a_mount_point_without_a_root_file_system_is_refused(node: Client) -> None:
    answer = node.call(
        "POST", LXC, {"ostemplate": TEMPLATE, "vmid": 202, "mp0": "local:1,mp=/data"}
    )
    assert answer.reason == "mount points configured, but 'rootfs' not set - aborting"


def test_pending_changes_take_effect_when_it_stops(node: Client) -> None:
    """LXC/Config.pm, LXC_FASTPLUG_OPTIONS; lxc-pve-poststop-hook applies the rest."""
    path = make(node, mp0="local:1,mp=/data", nameserver="10.0.0.1")
    node.ok("POST", f"{path}/status/start")
    node.put(f"{path}/config", hostname="fast", nameserver="10.0.0.2", memory=256)
    node.put(f"{path}/config", delete="mp0")
    running = node.get(f"{path}/config", current=1)
    assert (running["hostname"], running["memory"]) == ("fast", 256)
    assert (running["nameserver"], "mp0" in running) == ("10.0.0.1", True)
    rows = {row["key"]: row for row in node.get(f"{path}/pending")}
    assert (rows["nameserver"]["pending"], rows["mp0"]["delete"]) == ("10.0.0.2", 1)
    node.ok("POST", f"{path}/status/stop")
    stopped = node.get(f"{path}/config", current=1)
    assert (stopped["nameserver"], "mp0" in stopped) == ("10.0.0.2", False)
    assert stopped["unused0"] == "local:200/vm-200-disk-1.raw"


def test_a_digest_guards_changes(node: Client) -> None:
    path = make(node)
    digest = node.config(path)["digest"]
    node.put(f"{path}/config", cores=2, digest=digest)
    assert node.call("PUT", f"{path}/config", {"cores": 3, "digest": digest}).reason == MODIFIED


def test_a_locked_source_while_it_is_cloned(node: Client) -> None:
    """API2/LXC.pm, clone_vm: `disk` on the source, `create` on the clone, until the task ends."""
    path = make(node)
    node.sim.steer("/settings", {"task_ms": {"vzclone": 60_000}})
    upid = node.post(f"{path}/clone", newid=210)
    assert node.config(path)["lock"] == "disk"
    assert node.config(f"{LXC}/210")["lock"] == "create"
    assert node.call("PUT", f"{path}/config", {"cores": 1}).reason == "CT is locked (disk)"
    node.sim.steer("/settings", {"task_ms": {"vzclone": 0}})
    assert node.wait(upid) == "OK"
    assert "lock" not in node.config(path)
    assert "lock" not in node.config(f"{LXC}/210")


def test_a_container_moves_with_a_restart_and_its_local_volumes(node: Client) -> None:
    """LXC/Migrate.pm: volumes are copied to the same storage of the target."""
    path = make(node)
    node.ok("POST", f"{path}/status/start")
    refused = node.call("POST", f"{path}/migrate", {"target": "pve2"})
    assert refused.reason == ("can't migrate running container without --online or --restart")
    online = node.post(f"{path}/migrate", target="pve2", online=1)
    assert node.wait(online) == "migration aborted"
    assert "lxc live migration is currently not implemented" in node.task_log(online)[0]
    node.ok("POST", f"{path}/migrate", target="pve2", restart=1)
    assert node.get("/nodes/pve2/lxc/200/status/current")["status"] == "running"
    assert node.get("/nodes/pve1/storage/local/content", content="rootdir", vmid=200) == []
    assert len(node.get("/nodes/pve2/storage/local/content", content="rootdir", vmid=200)) == 1


def test_a_failed_migration_starts_the_container_on_its_node(node: Client) -> None:
    """LXC/Migrate.pm, final_cleanup: the lock is removed, and what ran is started again."""
    path = make(node)
    node.ok("POST", f"{path}/status/start")
    node.sim.fault(task="vzmigrate", fail="no route to host")
    upid = node.post(f"{path}/migrate", target="pve2", restart=1)
    assert node.wait(upid) == "migration aborted"
    assert any("start container on source node" in line for line in node.task_log(upid))
    assert node.get(f"{path}/status/current")["status"] == "running"
    assert "lock" not in node.config(path)


def test_a_tunnel_takes_a_number_until_it_is_over(node: Client) -> None:
    """API2/LXC.pm, mtunnel and mtunnelwebsocket."""
    path = make(node)
    taken = node.call("POST", f"{path}/mtunnel", {})
    assert "CT 200 already exists on node 'pve1'" in str(taken.errors)
    node.sim.steer("/settings", {"task_ms": {"vzmtunnel": 60000}})
    tunnel = node.call("POST", f"{LXC}/300/mtunnel", {}).data
    assert node.config(f"{LXC}/300")["lock"] == "create"
    socket = {"socket": tunnel["socket"], "ticket": tunnel["ticket"]}
    found = node.call("GET", f"{LXC}/300/mtunnelwebsocket", socket)
    assert found.data == {"socket": "/run/pve/ct-300.mtunnel"}
    wrong = node.call("GET", f"{LXC}/300/mtunnelwebsocket", {**socket, "ticket": "x"})
    assert (wrong.status, wrong.reason) == (401, "permission denied - invalid PVETUNNEL ticket")
    node.sim.steer("/settings", {"task_ms": {"vzmtunnel": 0}})
    assert node.wait(tunnel["upid"]) == "Exiting mtunnel"
    assert node.call("GET", f"{LXC}/300/config").status == 500


def test_every_call_of_containers_is_simulated() -> None:
    handlers.load()
    schema = Schema("9.2")
    calls = {key for key in schema.methods if "/lxc" in key[1]}
    assert len({path for _verb, path in calls}) == 43
    assert calls <= HANDLERS.keys()


def test_a_volume_that_moves_stays_as_unused(node: Client) -> None:
    """API2/LXC.pm, move_volume: without `delete` the source is kept."""
    path = make(node)
    node.ok("POST", f"{path}/move_volume", volume="rootfs", storage="images")
    config = node.config(path)
    assert config["rootfs"].startswith("images:200/")
    assert config["unused0"] == "local:200/vm-200-disk-0.raw"
    node.ok("POST", f"{path}/move_volume", volume="rootfs", storage="local", delete=1)
    assert [key for key in node.config(path) if key.startswith("unused")] == ["unused0"]


def test_a_template_is_cloned_in_full_on_a_directory(node: Client) -> None:
    """pve-storage, Plugin.pm: a linked clone would be qcow2, which no container has."""
    path = make(node)
    assert node.post(f"{path}/template") is None
    assert node.config(path)["rootfs"] == "local:200/base-200-disk-0.raw,size=1G"
    linked = node.call("POST", f"{path}/clone", {"newid": 211})
    assert linked.reason.startswith("Linked clone feature for")
    assert "lock" not in node.config(path)
    node.ok("POST", f"{path}/clone", newid=211, full=1)


def test_a_backup_is_restored_with_new_options(node: Client) -> None:
    """API2/LXC.pm, create_vm with `restore`: volumes by their sizes in the archive."""
    path = make(node, mp0="local:2,mp=/data,backup=1", hostname="first", memory=128)
    node.ok("POST", "/nodes/pve1/vzdump", vmid=200, storage="local")
    (backup,) = node.get("/nodes/pve1/storage/local/content", content="backup", vmid=200)
    taken = node.call("POST", LXC, {"vmid": 200, "ostemplate": backup["volid"], "restore": 1})
    assert taken.reason == "CT 200 already exists on node 'pve1'"
    node.ok("POST", LXC, vmid=220, ostemplate=backup["volid"], restore=1, memory=256)
    restored = node.config(f"{LXC}/220")
    assert (restored["hostname"], restored["memory"]) == ("first", 256)
    assert restored["mp0"] == "local:220/vm-220-disk-1.raw,mp=/data,backup=1,size=2G"
    node.put(f"{path}/config", hostname="changed")
    node.ok("POST", LXC, vmid=200, ostemplate=backup["volid"], restore=1, force=1)
    assert node.config(path)["hostname"] == "first"


def test_a_restore_creates_all_volumes_of_the_archived_configuration(node: Client) -> None:
    """VZDump/LXC.pm, prepare and assemble: the archive has the data of mounts with backup=1 only,
    and the whole configuration. LXC/Create.pm, recover_config_from_tar, and API2/LXC.pm, create_vm:
    a restore creates each volume by its size in the configuration.
    """
    make(node, mp0="local:2,mp=/data", mp1="local:1,mp=/kept,backup=1")
    upid = node.post("/nodes/pve1/vzdump", vmid=200, storage="local")
    node.wait(upid)
    log = " ".join(line["t"] for line in node.get(f"/nodes/pve1/tasks/{upid}/log", limit=100))
    assert "including mount point mp1 ('/kept') in backup" in log
    assert "excluding volume mount point mp0 ('/data') from backup (disabled)" in log
    (backup,) = node.get("/nodes/pve1/storage/local/content", content="backup", vmid=200)
    node.ok("POST", LXC, vmid=220, ostemplate=backup["volid"], restore=1)
    restored = node.config(f"{LXC}/220")
    assert restored["mp0"] == "local:220/vm-220-disk-1.raw,mp=/data,size=2G"
    assert restored["mp1"].endswith("mp=/kept,backup=1,size=1G")


@pytest.mark.parametrize(
    ("mount", "refusal"),
    [
        ("/srv,mp=/srv", "restoring 'mp0' to bind mount is only possible for root"),
        ("local:200/vm-200-disk-1.raw,mp=/srv", "unable to detect disk size - please specify mp0"),
    ],
)
def test_a_mount_that_a_restore_cannot_create(node: Client, mount: str, refusal: str) -> None:
    """API2/LXC.pm, create_vm; the container that would be overwritten is unchanged."""
    path = make(node)
    node.sim.steer("/containers/200", {"config": {"mp0": mount}})
    node.ok("POST", "/nodes/pve1/vzdump", vmid=200, storage="local")
    (backup,) = node.get("/nodes/pve1/storage/local/content", content="backup", vmid=200)
    before = node.config(path)
    upid = node.post(LXC, vmid=200, ostemplate=backup["volid"], restore=1, force=1)
    assert refusal in node.wait(upid)
    assert node.config(path) == before


def test_a_user_needs_the_right_of_each_option(node: Client) -> None:
    """LXC.pm, check_ct_modify_config_perm."""
    path = make(node)
    node.post("/access/roles", roleid="Cpu", privs="VM.Config.CPU")
    node.put("/access/acl", path="/vms/200", roles="Cpu", users="bob@pve")
    bob = Client(node.sim, "bob@pve!t1=00000000-0000-4000-8000-000000000003")
    bob.put(f"{path}/config", cores=2)
    refused = bob.call("PUT", f"{path}/config", {"memory": 64})
    assert refused.reason == "Permission check failed (/vms/200, VM.Config.Memory)"


def test_addresses_of_a_running_container(node: Client) -> None:
    """LXC.pm, get_interfaces: null unless it runs."""
    path = make(node, net0="name=eth0,bridge=vmbr0,ip=10.9.0.5/24")
    assert node.get(f"{path}/interfaces") is None
    node.ok("POST", f"{path}/status/start")
    rows = {row["name"]: row for row in node.get(f"{path}/interfaces")}
    assert rows["lo"]["inet"] == "127.0.0.1/8"
    assert rows["eth0"]["inet"] == "10.9.0.5/24"
    assert rows["eth0"]["hwaddr"] == rows["eth0"]["hwaddr"].lower()


def test_a_failed_restore_leaves_the_container_or_its_place_in_a_pool(node: Client) -> None:
    """API2/LXC.pm, create_vm: destroy_config_on_error is false until the volumes are made, and the
    membership in a pool is not part of the configuration.
    """
    node.call("POST", "/pools", {"poolid": "p1"})
    path = make(node, pool="p1", hostname="first")
    before = node.config(path)
    again = {"vmid": 200, "restore": 1, "force": 1}
    gone = "local:backup/vzdump-lxc-200-2026_01_01-00_00_00.tar.zst"
    assert "does not exist" in node.wait(node.post(LXC, ostemplate=gone, **again))
    assert node.config(path) == before
    node.ok("POST", "/nodes/pve1/vzdump", vmid=200, storage="local")
    (backup,) = node.get("/nodes/pve1/storage/local/content", content="backup")
    node.sim.ask("POST", "/faults", {"task": "vzrestore", "fail": "no space"})
    assert "no space" in node.wait(node.post(LXC, ostemplate=backup["volid"], **again))
    assert node.get(LXC) == []
    node.ok("POST", LXC, ostemplate=backup["volid"], vmid=200, restore=1)
    (member,) = node.get("/pools/p1")["members"]
    assert member["vmid"] == 200


def test_a_mount_of_a_missing_volume(node: Client) -> None:
    """A container that is off takes the option; a running one must mount the volume, and a new one
    too (LXC/Config.pm, apply_pending_mountpoint; LXC.pm, mountpoint_hotplug and mount_all).
    """
    path = make(node)
    gone = "local:200/vm-200-disk-7.raw,mp=/gone"
    node.put(f"{path}/config", mp7=gone)
    assert "does not exist" in node.wait(node.post(f"{path}/status/start"))
    node.put(f"{path}/config", delete="mp7")
    node.ok("POST", f"{path}/status/start")
    answer = node.call("PUT", f"{path}/config", {"mp7": gone})
    assert "unable to hotplug mp7" in answer.errors["mp7"]
    upid = node.post(LXC, ostemplate=TEMPLATE, rootfs="local:1", vmid=203, mp0=gone)
    assert "does not exist" in node.wait(upid)


def test_a_volume_is_not_moved_to_a_storage_of_other_nodes(node: Client) -> None:
    """Storage.pm, vdisk_alloc: activate_storage calls storage_check_enabled."""
    path = make(node)
    node.put("/storage/images", nodes="pve9")
    upid = node.post(f"{path}/move_volume", volume="rootfs", storage="images")
    assert node.wait(upid) == "storage 'images' is not available on node 'pve1'"
    assert "lock" not in node.config(path)


@pytest.mark.parametrize("kind", ["lvmthin", "zfspool"])
def test_a_container_goes_although_its_volume_has_vanished(pve: Client, kind: str) -> None:
    """Both storages free a missing volume without an error (LvmThinPlugin.pm, free_image;
    ZFSPoolPlugin.pm, zfs_delete_zvol).
    """
    options = {"vgname": "pve", "thinpool": "data"} if kind == "lvmthin" else {"pool": "x"}
    pve.post("/storage", storage="thin", type=kind, content="rootdir,images", **options)
    root = "thin:vm-210-disk-0" if kind == "lvmthin" else "thin:subvol-210-disk-0"
    config = {"hostname": "ct", "rootfs": f"{root},size=1G", "mp0": f"{root[:-1]}9,mp=/x,size=1G"}
    pve.sim.ask("POST", "/containers/210", {"node": "pve1", "config": config})
    node_path = "/nodes/pve1/storage/thin/content"
    for volid in pve.volumes("thin"):
        pve.delete(f"{node_path}/{volid}")
    pve.ok("DELETE", "/nodes/pve1/lxc/210")


def test_a_volume_moves_to_another_container(node: Client) -> None:
    """API2/LXC.pm, move_volume: the volume is renamed, and the mount keeps its options."""
    source, target = make(node, mp0="local:1,mp=/data,ro=1"), make(node, vmid=201)
    body: dict[str, Any] = {"target-vmid": 201, "target-volume": "mp3"}
    for volume, other, reason in (
        ("rootfs", "mp3", "Cannot move to/from 'rootfs'"),
        ("unused0", "mp3", "Moving an unused volume to a used one is not possible"),
        ("mp1", "mp3", "volume 'mp1' for container '200' does not exist"),
    ):
        answer = node.call(
            "POST", f"{source}/move_volume", {**body, "volume": volume, "target-volume": other}
        )
        assert answer.reason == reason
    node.ok("POST", f"{source}/status/start")
    running = node.call("POST", f"{source}/move_volume", {**body, "volume": "mp0"})
    assert running.reason == (
        "Cannot move in-use volume while the source CT is running - detach or shutdown first"
    )
    node.ok("POST", f"{source}/status/stop")
    digest = node.config(target)["digest"]
    node.put(f"{target}/config", cores=2)
    stale = node.call(
        "POST", f"{source}/move_volume", {**body, "volume": "mp0", "target-digest": digest}
    )
    assert stale.reason == f"Container 201: {MODIFIED}"
    node.ok("POST", f"{source}/move_volume", volume="mp0", **body)
    assert "mp0" not in node.config(source)
    assert node.config(target)["mp3"] == "local:201/vm-201-disk-1.raw,mp=/data,ro=1,size=1G"
    taken = make(node, vmid=202, mp3="local:1,mp=/x")
    answer = node.call("POST", f"{taken}/move_volume", {**body, "volume": "mp3"})
    assert answer.reason == "Target volume key 'mp3' is already in use for container '201'"
    node.ok("POST", f"{target}/move_volume", **{**body, "volume": "mp3", "target-volume": "mp4"})
    assert node.config(target)["mp4"].endswith("mp=/data,ro=1,size=1G")


def test_a_path_of_the_node_stays_with_its_container(node: Client) -> None:
    source = make(node)
    make(node, vmid=201)
    node.sim.steer("/containers/200", {"config": {"mp0": "/srv,mp=/data"}})
    answer = node.call("POST", f"{source}/move_volume", {"volume": "mp0", "target-vmid": 201})
    assert answer.reason == "Cannot move a bindmount or device mount to another container"
