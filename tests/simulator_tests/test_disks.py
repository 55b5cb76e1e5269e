"""Resize, move, snapshots, templates, clones and migration."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.simulator.process import Simulator
from tests.simulator_tests.client import Client

# -- resize ----------------------------------------------------------------------------------------


def test_growing_a_disk(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    pve.ok("PUT", f"{path}/resize", disk="scsi0", size="+1G")
    assert pve.config(path)["scsi0"].endswith("size=2G")
    pve.ok("PUT", f"{path}/resize", disk="scsi0", size="5G")
    pve.ok("PUT", f"{path}/resize", disk="scsi0", size="+0")
    assert pve.config(path)["scsi0"].endswith("size=5G")
    assert (
        pve.do("PUT", f"{path}/resize", disk="scsi0", size="1G")
        == "shrinking disks is not supported"
    )


@pytest.mark.parametrize("size", ["-1G", "+1g", "+1GB", "big"])
def test_sizes_that_are_none(pve: Client, size: str) -> None:
    answer = pve.call(
        "PUT", f"{pve.create(100, scsi0='local-lvm:1')}/resize", {"disk": "scsi0", "size": size}
    )
    assert answer.errors == {"size": "value does not match the regex pattern"}


def test_disks_that_are_not_resized(pve: Client) -> None:
    path = pve.create(
        100, ide2="local:iso/debian-13-netinst.iso,media=cdrom", ide3="none,media=cdrom"
    )
    assert (
        pve.do("PUT", f"{path}/resize", disk="scsi9", size="+1G") == "disk 'scsi9' does not exist"
    )
    assert pve.do("PUT", f"{path}/resize", disk="ide2", size="+1G") == "you can't resize a cdrom"
    assert (
        pve.do("PUT", f"{path}/resize", disk="ide3", size="+1G")
        == "unable to parse volume ID 'none'"
    )


def test_moving_a_disk_to_another_storage(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    pve.ok("POST", f"{path}/move_disk", disk="scsi0", storage="ceph")
    config = pve.config(path)
    assert config["scsi0"].startswith("ceph:vm-100-disk-0")
    assert config["unused0"] == "local-lvm:vm-100-disk-0"
    pve.ok("POST", f"{path}/move_disk", disk="scsi0", storage="local-lvm", delete=1)
    assert "ceph:vm-100-disk-0" not in pve.volumes("ceph")


def test_the_state_of_a_tpm(pve: Client) -> None:
    path = pve.create(100, tpmstate0="local-lvm:1,version=v2.0")
    volume = pve.config(path)["tpmstate0"].partition(",")[0]
    answer = pve.call("PUT", f"{path}/config", {"tpmstate0": f"{volume},version=v1.2"})
    assert answer.reason == "cannot change TPM state version after creation"
    pve.ok("POST", f"{path}/status/start")
    said = pve.do("POST", f"{path}/move_disk", disk="tpmstate0", storage="ceph")
    assert said == "storage migration failed: cannot move TPM state while VM is running"
    pve.ok("POST", f"{path}/status/stop")
    pve.ok("POST", f"{path}/move_disk", disk="tpmstate0", storage="ceph")


# -- snapshots -------------------------------------------------------------------------------------


def names(pve: Client, path: str) -> dict[str, str | None]:
    """Each snapshot's parent."""
    return {item["name"]: item.get("parent") for item in pve.get(f"{path}/snapshot")}


def test_snapshots_are_a_tree(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1", cores=1)
    pve.ok("POST", f"{path}/snapshot", snapname="s1", description="first")
    pve.put(f"{path}/config", cores=2)
    pve.ok("POST", f"{path}/snapshot", snapname="s2")
    assert names(pve, path) == {"s1": None, "s2": "s1", "current": "s2"}
    pve.ok("POST", f"{path}/snapshot/s1/rollback")
    assert pve.config(path)["cores"] == 1
    pve.ok("POST", f"{path}/snapshot", snapname="s3")
    assert names(pve, path) == {"s1": None, "s2": "s1", "s3": "s1", "current": "s3"}
    pve.ok("DELETE", f"{path}/snapshot/s1")
    assert names(pve, path) == {"s2": None, "s3": None, "current": "s3"}
    last = pve.get(f"{path}/snapshot")[-1]
    assert (last["name"], last["description"], last["running"]) == ("current", "You are here!", 0)
    assert pve.config(path, snapshot="s2")["cores"] == 2


@pytest.mark.parametrize("name", ["a", "1st", "with space", "x" * 41, "ä1"])
def test_names_that_snapshots_do_not_have(pve: Client, name: str) -> None:
    answer = pve.call("POST", f"{pve.create(100)}/snapshot", {"snapname": name})
    assert answer.status == 400
    assert list(answer.errors) == ["snapname"]


@pytest.mark.parametrize("name", ["current", "pending"])
def test_reserved_names(pve: Client, name: str) -> None:
    assert pve.call("POST", f"{pve.create(100)}/snapshot", {"snapname": name}).status == 500


def test_names_that_are_taken_or_missing_fail_in_the_task(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    assert pve.do("POST", f"{path}/snapshot", snapname="s1") == "snapshot name 's1' already used"
    assert pve.do("DELETE", f"{path}/snapshot/s2") == "snapshot 's2' does not exist"
    assert pve.do("POST", f"{path}/snapshot/s2/rollback") == "snapshot 's2' does not exist"


def test_rollback_without_memory_leaves_the_machine_stopped(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/snapshot", snapname="disk")
    pve.ok("POST", f"{path}/snapshot/disk/rollback")
    assert pve.state(path) == "stopped"


def test_the_lock_is_held_for_a_while_after_a_rollback_of_a_running_machine(
    pve: Client, sim: Simulator
) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    sim.steer("settings", {"cleanup_s": 120})
    pve.ok("POST", f"{path}/snapshot/s1/rollback")
    pve.put(f"{path}/config", description="not held: the machine did not run")
    sim.steer("settings", {"cleanup_s": 1.5})
    pve.ok("POST", f"{path}/status/start")
    started = time.monotonic()
    pve.ok("POST", f"{path}/snapshot/s1/rollback")
    pve.put(f"{path}/config", description="later")
    assert time.monotonic() - started >= 1.5
    sim.steer("settings", {"cleanup_s": 120})
    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/snapshot/s1/rollback")
    refused = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"
    assert pve.do("POST", f"{path}/status/start") == refused


def test_rollback_with_memory_leaves_it_running(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/snapshot", snapname="ram", vmstate=1)
    assert pve.get(f"{path}/snapshot")[0]["vmstate"] == 1
    assert any("state-ram" in name for name in pve.volumes("local-lvm"))
    pve.ok("POST", f"{path}/status/stop")
    pve.ok("POST", f"{path}/snapshot/ram/rollback")
    assert pve.state(path) == "running"
    pve.ok("DELETE", f"{path}/snapshot/ram")
    assert not any("state-ram" in name for name in pve.volumes("local-lvm"))


def test_memory_of_a_stopped_machine_is_ignored(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/snapshot", snapname="s1", vmstate=1)
    assert not pve.get(f"{path}/snapshot")[0].get("vmstate")


def test_rollback_brings_back_the_size_of_the_disk(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    pve.ok("PUT", f"{path}/resize", disk="scsi0", size="+1G")
    pve.ok("POST", f"{path}/snapshot/s1/rollback")
    assert pve.config(path)["scsi0"].endswith("size=1G")


def test_raw_images_in_directories_have_no_snapshots(lab: Client) -> None:
    path = lab.create(200, scsi0="images:1,format=raw")
    assert lab.do("POST", f"{path}/snapshot", snapname="s1") == "snapshot feature is not available"
    path = lab.create(201, scsi0="images:1,format=qcow2")
    assert lab.do("POST", f"{path}/snapshot", snapname="s1") == "OK"


def test_the_description_of_a_snapshot_can_be_changed(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    assert pve.put(f"{path}/snapshot/s1/config", description="second thoughts") is None
    assert pve.get(f"{path}/snapshot")[0]["description"] == "second thoughts"


# -- templates and clones --------------------------------------------------------------------------


def test_a_linked_clone_rests_on_the_template(pve: Client) -> None:
    pve.ok("POST", "/nodes/pve1/qemu/9000/clone", newid=100, name="web")
    config = pve.config("/nodes/pve1/qemu/100")
    assert config["scsi0"].startswith("ceph:base-9000-disk-0/vm-100-disk-0,")
    assert config["ide2"].startswith("ceph:vm-100-cloudinit")
    result = pve.do("DELETE", "/nodes/pve1/qemu/9000")
    assert result == "base volume 'ceph:base-9000-disk-0' is still in use by linked cloned"
    pve.ok("DELETE", "/nodes/pve1/qemu/100")
    pve.ok("DELETE", "/nodes/pve1/qemu/9000")


def test_a_full_clone_stands_alone(pve: Client) -> None:
    pve.ok(
        "POST",
        "/nodes/pve1/qemu/9000/clone",
        newid=100,
        name="web",
        full=1,
        storage="local-lvm",
        pool="acme",
    )
    template, config = pve.config("/nodes/pve1/qemu/9000"), pve.config("/nodes/pve1/qemu/100")
    assert config["scsi0"].startswith("local-lvm:vm-100-disk-0,")
    assert "template" not in config
    assert config["net0"] != template["net0"]
    assert config["tags"] == template["tags"]
    assert [item["vmid"] for item in pve.get("/pools", poolid="acme")[0]["members"]] == [100]
    pve.ok("DELETE", "/nodes/pve1/qemu/9000")


def test_what_a_clone_keeps(pve: Client) -> None:
    path = pve.create(
        100, name="web", scsi0="ceph:1", scsi1="ceph:1", tags="a;b", onboot=1, description="hello"
    )
    pve.put(f"{path}/config", delete="scsi1")
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    pve.ok("POST", f"{path}/clone", newid=101)
    before, after = pve.config(path), pve.config("/nodes/pve1/qemu/101")
    assert after["name"] == "Copy-of-VM-web"
    assert (after["tags"], after["onboot"], after["description"]) == ("a;b", 1, "hello")
    assert (after["vmgenid"] != before["vmgenid"], after["smbios1"] != before["smbios1"]) == (
        True,
        True,
    )
    assert "unused0" not in after
    assert names(pve, "/nodes/pve1/qemu/101") == {"current": None}


def test_clones_that_are_refused(pve: Client) -> None:
    answer = pve.call("POST", "/nodes/pve1/qemu/9000/clone", {"newid": 100, "storage": "ceph"})
    assert answer.reason == "parameter 'storage' not allowed for linked clones"
    path = pve.create(101, scsi0="local-lvm:1")
    answer = pve.call("POST", f"{path}/clone", {"newid": 100, "full": 0})
    assert (
        answer.reason
        == "Linked clone feature is not supported for 'local-lvm:vm-101-disk-0' (scsi0)"
    )
    answer = pve.call("POST", f"{path}/clone", {"newid": 100, "target": "pve2"})
    assert answer.reason == "can't clone VM to node 'pve2' (VM uses local storage)"
    answer = pve.call("POST", "/nodes/pve1/qemu/999/clone", {"newid": 100})
    assert answer.reason == "unable to find configuration file for VM 999 on node 'pve1'"


def test_a_template_is_for_ever(pve: Client) -> None:
    path = pve.create(100, scsi0="ceph:1")
    pve.ok("POST", f"{path}/template")
    assert pve.config(path)["template"] == 1
    assert pve.config(path)["scsi0"].startswith("ceph:base-100-disk-0")
    assert (
        pve.call("POST", f"{path}/template", {}).reason
        == "you can't convert a template to a template"
    )
    assert pve.do("POST", f"{path}/status/start") == "you can't start a vm if it's a template"
    path = pve.create(101, scsi0="ceph:1")
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    answer = pve.call("POST", f"{path}/template", {})
    assert answer.reason == "unable to create template, because VM contains snapshots"


def test_a_linked_clone_of_files_carries_its_base_in_the_name(lab: Client) -> None:
    path = lab.create(310, scsi0="images:1,format=qcow2")
    lab.ok("POST", f"{path}/template")
    lab.ok("POST", f"{path}/clone", newid=320)
    disk = lab.config("/nodes/pve1/qemu/320")["scsi0"]
    assert disk.startswith("images:310/base-310-disk-0.qcow2/320/vm-320-disk-0.qcow2")


def test_clones_race_for_one_id(pve: Client, sim: Simulator) -> None:
    def attempt(_number: int) -> str:
        client = Client(sim)
        answer = client.call("POST", "/nodes/pve1/qemu/9000/clone", {"newid": 100})
        return client.wait(answer.data) if answer.status == 200 else answer.reason

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(attempt, range(4)))
    assert results.count("OK") == 1
    for text in set(results) - {"OK"}:
        assert "already exists" in text or "File exists" in text


def test_a_clone_to_another_node(pve: Client) -> None:
    pve.ok("POST", "/nodes/pve1/qemu/9000/clone", newid=100, target="pve2", full=1, storage="ceph")
    assert pve.config("/nodes/pve2/qemu/100")["scsi0"].startswith("ceph:vm-100-disk-0")


# -- migration -------------------------------------------------------------------------------------


@pytest.mark.parametrize("running", [False, True])
def test_migrating_on_shared_storage(pve: Client, running: bool) -> None:
    path = pve.create(100, scsi0="ceph:1", net0="virtio,bridge=vmbr0")
    if running:
        pve.ok("POST", f"{path}/status/start")
        answer = pve.call("POST", f"{path}/migrate", {"target": "pve2"})
        assert (answer.status, answer.reason) == (500, "can't migrate running VM without --online")
    pve.ok("POST", f"{path}/migrate", target="pve2", online=int(running))
    assert pve.state("/nodes/pve2/qemu/100") == ("running" if running else "stopped")
    assert pve.call("GET", f"{path}/config").status == 500


def test_migrating_local_disks(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    conditions = pve.get(f"{path}/migrate", target="pve2")
    assert [item["volid"] for item in conditions["local_disks"]] == ["local-lvm:vm-100-disk-0"]
    pve.ok("POST", f"{path}/migrate", target="pve2")
    assert "local-lvm:vm-100-disk-0" in pve.volumes("local-lvm", "pve2")
    assert "local-lvm:vm-100-disk-0" not in pve.volumes("local-lvm", "pve1")


def test_what_keeps_a_machine_where_it_is(lab: Client) -> None:
    path = lab.create(300, scsi0="images:1,format=qcow2", ide2="local:iso/test.iso,media=cdrom")

    def refusal(**params: int) -> str:
        upid = lab.post(f"{path}/migrate", target="pve2", **params)
        assert lab.wait(upid) == "migration aborted"
        return next(
            line for line in lab.task_log(upid) if "can't migrate local disk" in line
        ).partition(": ")[2]

    assert refusal() == "can't migrate local disk 'local:iso/test.iso': local cdrom image"
    lab.put(f"{path}/config", ide2="none,media=cdrom")
    lab.ok("POST", f"{path}/snapshot", snapname="s1")
    lab.ok("DELETE", f"{path}/snapshot/s1")
    lab.ok("POST", f"{path}/status/start")
    disk = "can't migrate local disk 'images:300/vm-300-disk-0.qcow2': "
    assert (
        refusal(online=1)
        == disk + "can't live migrate attached local disks without with-local-disks option"
    )
    lab.ok("POST", f"{path}/snapshot", snapname="s1")
    expected = disk + "online storage migration not possible if non-replicated snapshot exists"
    assert refusal(online=1, **{"with-local-disks": 1}) == expected
    lab.ok("DELETE", f"{path}/snapshot/s1")
    lab.ok("POST", f"{path}/migrate", target="pve2", online=1, **{"with-local-disks": 1})
    assert lab.state("/nodes/pve2/qemu/300") == "running"


def test_local_disks_can_go_to_another_storage(pve: Client) -> None:
    path = pve.create(100, scsi0="local:1,format=qcow2")
    pve.ok("POST", f"{path}/migrate", target="pve2", targetstorage="local-lvm")
    assert pve.config("/nodes/pve2/qemu/100")["scsi0"] == "local-lvm:vm-100-disk-0,size=1G"
    assert pve.volumes("local-lvm", "pve2") == {"local-lvm:vm-100-disk-0"}


def test_a_machine_does_not_migrate_to_where_it_is(pve: Client) -> None:
    path = pve.create(100)
    answer = pve.call("POST", f"{path}/migrate", {"target": "pve1"})
    assert answer.errors == {"target": "target is local node."}
