"""Creating machines and changing their configuration."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.simulator.process import Simulator
from tests.simulator_tests.client import Client


def test_what_pve_makes_up_at_creation(pve: Client) -> None:
    path = pve.create(100, name="web", scsi0="local-lvm:4", net0="virtio,bridge=vmbr0")
    config = pve.config(path)
    assert config["scsi0"] == "local-lvm:vm-100-disk-0,size=4G"
    assert re.fullmatch(
        r"virtio=BC:24:11:[0-9A-F]{2}:[0-9A-F]{2}:[0-9A-F]{2},bridge=vmbr0", config["net0"]
    )
    assert re.fullmatch(r"[0-9a-f-]{36}", config["vmgenid"])
    assert config["smbios1"].startswith("uuid=")
    assert config["meta"].startswith("creation-qemu=")
    assert re.fullmatch(r"[0-9a-f]{40}", config["digest"])


def test_types_of_the_configuration(pve: Client) -> None:
    path = pve.create(
        100,
        memory=512,
        cores=2,
        onboot=1,
        cpulimit="1.5",
        agent=1,
        boot="order=net0",
        net0="virtio",
    )
    config = pve.config(path)
    assert config["memory"] == "512"
    assert (config["cores"], config["onboot"]) == (2, 1)
    assert (config["cpulimit"], config["agent"], config["boot"]) == ("1.5", "1", "order=net0")


@pytest.mark.parametrize(("asked", "size"), [("4", "4G"), ("1.5", "1536M"), ("4,size=9G", "4G")])
def test_disk_sizes_at_creation(pve: Client, asked: str, size: str) -> None:
    assert pve.config(pve.create(100, scsi0=f"local-lvm:{asked}"))["scsi0"].endswith(f"size={size}")


def test_a_disk_of_no_size_is_a_disk(lab: Client) -> None:
    assert lab.config(lab.create(100, scsi0="images:0"))["scsi0"].startswith(
        "images:100/vm-100-disk-0.raw"
    )


def test_a_taken_id_is_refused_at_once_from_every_node(pve: Client) -> None:
    pve.create(100, node="pve2")
    answer = pve.call("POST", "/nodes/pve1/qemu", {"vmid": 100})
    assert (answer.status, answer.reason) == (
        500,
        "unable to create VM 100 - VM 100 already exists on node 'pve2'",
    )


def test_of_four_clients_that_ask_for_an_id_one_gets_it(pve: Client, sim: Simulator) -> None:
    def attempt(_number: int) -> bool:
        client = Client(sim)
        answer = client.call("POST", "/nodes/pve1/qemu", {"vmid": 100, "scsi0": "local-lvm:1"})
        return answer.status == 200 and client.wait(answer.data) == "OK"

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(attempt, range(4))).count(True) == 1


def test_an_unknown_pool_is_a_missing_right(pve: Client) -> None:
    answer = pve.call("POST", "/nodes/pve1/qemu", {"vmid": 100, "pool": "x"})
    assert (answer.status, answer.reason) == (
        403,
        "Permission check failed (pool 'x' does not exist)",
    )


def test_put_answers_null_and_post_a_task(pve: Client) -> None:
    path = pve.create(100)
    assert pve.put(f"{path}/config", cores=2) is None
    assert pve.do("POST", f"{path}/config", cores=3) == "OK"
    assert pve.config(path)["cores"] == 3


def test_an_empty_update_is_refused(pve: Client) -> None:
    path = pve.create(100)
    assert pve.call("PUT", f"{path}/config", {}).reason == "no options specified"


def test_a_digest_guards_against_others(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    digest = pve.config(path)["digest"]
    pve.put(f"{path}/config", cores=2, digest=digest)
    answer = pve.call("PUT", f"{path}/config", {"cores": 3, "digest": digest})
    assert (answer.status, answer.reason) == (500, "checksum mismatch (file change by other user?)")
    result = pve.do("PUT", f"{path}/resize", disk="scsi0", size="+1G", digest=digest)
    assert result == "checksum mismatch (file change by other user?)"


@pytest.mark.parametrize("prefix", ["02", "02:AA:BB:", "BC:24:11:0"])
def test_a_prefix_of_mac_addresses_may_end_within_an_octet(pve: Client, prefix: str) -> None:
    """Sources: pve-cluster, DataCenterConfig.pm, pve_verify_mac_prefix; Tools.pm,
    random_ether_addr.
    """
    pve.put("/cluster/options", mac_prefix=prefix)
    path = pve.create(100, net0="virtio,bridge=vmbr0")
    address = pve.config(path)["net0"].partition("=")[2].partition(",")[0]
    assert re.fullmatch(f"{prefix}[0-9A-F:]+", address)
    assert re.fullmatch("[0-9A-F]{2}(:[0-9A-F]{2}){5}", address)
    assert pve.call("PUT", "/cluster/options", {"mac_prefix": "BC:24:11:00"}).status == 400


@pytest.mark.parametrize(
    ("vga", "params", "password"),
    [
        (None, {}, True),
        ("serial0", {}, False),
        ("serial0", {"websocket": 1}, True),
        ("type=serial0", {"generate-password": 1}, True),
    ],
)
def test_the_password_of_a_console(
    pve: Client, vga: str | None, params: dict[str, int], password: bool
) -> None:
    """Source: qemu-server 9.2, API2/Qemu.pm, vncproxy."""
    path = pve.create(100, serial0="socket", **({"vga": vga} if vga else {}))
    answer = pve.post(f"{path}/vncproxy", **params)
    assert ("password" in answer) is password
    assert answer["ticket"].startswith(f"{answer['password']}:PVEVNC:" if password else "PVEVNC:")


def test_deleting_options(pve: Client) -> None:
    path = pve.create(100, onboot=1)
    pve.put(f"{path}/config", delete="onboot,description")
    assert "onboot" not in pve.config(path)
    assert pve.call("PUT", f"{path}/config", {"delete": "nope"}).errors == {
        "delete": "unknown option 'nope'"
    }
    assert pve.call("PUT", f"{path}/config", {"delete": "cores", "cores": 2}).status == 400


def test_what_only_root_may_set(pve: Client) -> None:
    path = pve.create(100)
    answer = pve.call("PUT", f"{path}/config", {"cores": 2, "skiplock": 1})
    assert answer.errors == {"skiplock": "Only root may use this option."}
    answer = pve.call("PUT", f"{path}/config", {"args": "-foo"})
    assert (answer.status, answer.reason) == (500, "only root can set 'args' config")


def test_a_machine_without_a_name(pve: Client) -> None:
    assert pve.get(f"{pve.create(100)}/status/current")["name"] == "VM 100"


@pytest.mark.parametrize("tags", ["b;A;b", "b,a", "A b", "a;b;a"])
def test_tags_are_lower_case_sorted_and_unique(pve: Client, tags: str) -> None:
    assert pve.config(pve.create(100, tags=tags))["tags"] == "a;b"


def test_the_tag_style_changes_that(pve: Client) -> None:
    pve.put("/cluster/options", **{"tag-style": "case-sensitive=1,ordering=config"})
    assert pve.config(pve.create(100, tags="b;A;b"))["tags"].split(";")[:2] == ["b", "A"]


def test_characters_that_tags_do_not_have(pve: Client) -> None:
    answer = pve.call("POST", "/nodes/pve1/qemu", {"vmid": 100, "tags": "a:b"})
    assert "invalid characters in tag" in answer.errors["tags"]


def test_an_update_without_mac_makes_a_new_one(pve: Client) -> None:
    path = pve.create(100, net0="virtio,bridge=vmbr0")
    before = pve.config(path)["net0"]
    pve.put(f"{path}/config", net0="virtio,bridge=vmbr1")
    after = pve.config(path)["net0"]
    assert before.split(",")[0] != after.split(",")[0]


def test_a_detached_disk_is_unused_and_deleting_that_destroys_it(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1", scsi1="local-lvm:1")
    pve.put(f"{path}/config", delete="scsi1")
    assert pve.config(path)["unused0"] == "local-lvm:vm-100-disk-1"
    pve.put(f"{path}/config", delete="unused0")
    assert "local-lvm:vm-100-disk-1" not in pve.volumes("local-lvm")


def test_a_new_disk_in_a_used_slot_keeps_the_old_one(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    pve.put(f"{path}/config", scsi0="local-lvm:2")
    config = pve.config(path)
    assert config["scsi0"] == "local-lvm:vm-100-disk-1,size=2G"
    assert config["unused0"] == "local-lvm:vm-100-disk-0"


# -- a running machine -----------------------------------------------------------------------------


def test_changes_of_a_running_machine_wait_for_its_stop(pve: Client) -> None:
    path = pve.create(100, cores=1, scsi0="local-lvm:1")
    pve.ok("POST", f"{path}/status/start")
    pve.put(f"{path}/config", cores=4, description="at once")
    assert pve.pending(path) == {"cores": {"key": "cores", "value": 1, "pending": 4}}
    assert pve.config(path)["cores"] == 4
    assert pve.config(path, current=1)["cores"] == 1
    pve.ok("POST", f"{path}/status/stop")
    assert pve.pending(path) == {}
    assert pve.config(path, current=1)["cores"] == 4


@pytest.mark.parametrize("change", [{"cores": 1}, {"revert": "cores"}])
def test_a_pending_change_can_be_taken_back(pve: Client, change: dict[str, object]) -> None:
    path = pve.create(100, cores=1)
    pve.ok("POST", f"{path}/status/start")
    pve.put(f"{path}/config", cores=4)
    pve.put(f"{path}/config", **change)
    assert pve.pending(path) == {}


def test_a_pending_deletion_is_marked(pve: Client) -> None:
    path = pve.create(100, cores=2)
    pve.ok("POST", f"{path}/status/start")
    pve.put(f"{path}/config", delete="cores")
    assert pve.pending(path)["cores"]["delete"] == 1


def test_the_boot_disk_is_not_unplugged_and_yet_pending(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1", scsihw="virtio-scsi-single", boot="order=scsi0")
    pve.ok("POST", f"{path}/status/start")
    answer = pve.call("PUT", f"{path}/config", {"delete": "scsi0"})
    assert answer.status == 400
    assert answer.errors == {"scsi0": "hotplug problem - can't unplug bootdisk 'scsi0'\n"}
    assert pve.pending(path)["scsi0"]["delete"] == 1


def test_a_guest_that_does_not_let_go(pve: Client, sim: Simulator) -> None:
    path = pve.create(100, net0="virtio,bridge=vmbr0", net1="virtio,bridge=vmbr1")
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"busy": ["net1"]})
    answer = pve.call("PUT", f"{path}/config", {"delete": "net1"})
    assert answer.status == 400
    assert "error on hot-unplugging device 'net1' - still busy in guest?" in answer.errors["net1"]


BUSY = "hotplug problem - error on hot-unplugging device '{}' - still busy in guest?\n"


@pytest.mark.parametrize(
    ("options", "delete", "device"),
    [
        ({"net0": "virtio,bridge=vmbr0"}, "net0", "net0"),
        ({"virtio1": "local-lvm:1"}, "virtio1", "virtio1"),
        ({"scsi1": "local-lvm:1", "scsihw": "virtio-scsi-single"}, "scsi1", "virtioscsi1"),
        ({"scsi1": "local-lvm:1", "scsihw": "virtio-scsi-pci"}, "scsi1", "scsihw0"),
    ],
)
def test_a_guest_without_a_system_lets_go_of_nothing(
    pve: Client, sim: Simulator, options: dict[str, str], delete: str, device: str
) -> None:
    """Source: qemu-server, QemuServer.pm, vm_deviceunplug and qemu_deletescsihw.

    Seen on PVE 9.2.11.
    """
    path = pve.create(100, **options, boot="order=ide2", ide2="none,media=cdrom")
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"system": False})
    answer = pve.call("PUT", f"{path}/config", {"delete": delete})
    assert (answer.status, answer.errors) == (400, {delete: BUSY.format(device)})
    assert pve.pending(path)[delete]["delete"] == 1
    assert delete in pve.config(path, current=1)
    assert "unused0" not in pve.config(path)
    pve.ok("POST", f"{path}/status/stop")
    assert delete not in pve.config(path)
    assert ("unused0" in pve.config(path)) is (delete != "net0")


def test_a_shared_controller_stays_and_its_disk_goes(pve: Client, sim: Simulator) -> None:
    path = pve.create(
        100, scsi0="local-lvm:1", scsi1="local-lvm:1", scsihw="virtio-scsi-pci", boot="order=scsi0"
    )
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/guests", {"system": False})
    pve.put(f"{path}/config", delete="scsi1")
    assert "unused0" in pve.config(path)


def test_a_disk_that_qemu_has_let_go_of_is_not_copied(pve: Client, sim: Simulator) -> None:
    path = pve.create(
        100,
        scsi1="local-lvm:1",
        scsihw="virtio-scsi-single",
        boot="order=ide2",
        ide2="none,media=cdrom",
    )
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"system": False})
    pve.call("PUT", f"{path}/config", {"delete": "scsi1"})
    cause = "no block node found for drive 'drive-scsi1'"
    before = pve.volumes("local-lvm")
    assert pve.do("POST", f"{path}/clone", newid=101) == f"clone failed: {cause}"
    assert (
        pve.do("POST", f"{path}/move_disk", disk="scsi1", storage="ceph")
        == f"storage migration failed: {cause}"
    )
    assert pve.volumes("local-lvm") == before
    assert pve.volumes("ceph") == {volid for volid in pve.volumes("ceph") if "vm-100-" not in volid}
    assert 101 not in {vm["vmid"] for vm in pve.get("/nodes/pve1/qemu")}
    # The second request finds no device any more, and the disk is detached.
    pve.put(f"{path}/config", delete="scsi1")
    assert pve.config(path)["unused0"] == "local-lvm:vm-100-disk-0"


def test_a_guest_without_a_system_hears_nothing(pve: Client, sim: Simulator) -> None:
    path = pve.create(100, agent="1")
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"system": False})
    assert pve.call("POST", f"{path}/agent/ping").reason == "QEMU guest agent is not running"
    assert (
        pve.do("POST", f"{path}/status/shutdown", timeout=1)
        == "VM quit/powerdown failed - got timeout"
    )
    sim.steer("/vms/100", {"system": True})
    assert pve.do("POST", f"{path}/status/shutdown", timeout=5) == "OK"


# -- what is seen of a machine in the making -------------------------------------------------------


def test_a_clone_in_the_making_has_no_name(pve: Client, sim: Simulator) -> None:
    """Source: qemu-server, API2/Qemu.pm, clone_vm: a temporary file, then the whole configuration
    after each disk.
    """
    path = pve.create(
        100, name="source", tags="b;a", description="from", scsi0="local-lvm:1", scsi1="local-lvm:1"
    )
    sim.steer("settings", {"task_ms": "qmclone=600"})
    upid = pve.post(
        f"{path}/clone", newid=101, name="fresh", description="mine", pool="acme", full=1
    )
    clone = "/nodes/pve1/qemu/101"
    config = pve.config(clone)
    assert {key: value for key, value in config.items() if key != "digest"} == {
        "description": " qmclone temporary file",
        "lock": "clone",
    }
    (listed,) = (vm for vm in pve.get("/nodes/pve1/qemu") if vm["vmid"] == 101)
    assert (listed["name"], listed["lock"], "tags" in listed) == ("VM 101", "clone", False)
    pve.until(lambda: "scsi0" in pve.config(clone))
    config = pve.config(clone)
    assert (config["name"], config["description"], config["tags"]) == ("fresh", "mine", "a;b")
    assert config["lock"] == "clone"
    assert "scsi1" not in config
    assert 101 not in [
        member.get("vmid") for member in pve.get("/pools", poolid="acme")[0]["members"]
    ]
    assert pve.wait(upid) == "OK"
    assert "lock" not in pve.config(clone)
    assert 101 in [member.get("vmid") for member in pve.get("/pools", poolid="acme")[0]["members"]]


def test_a_machine_in_the_making_has_a_lock_only(pve: Client, sim: Simulator) -> None:
    """Source: qemu-server, API2/Qemu.pm, create_vm, create_and_lock_config."""
    sim.steer("settings", {"task_ms": "qmcreate=600"})
    upid = pve.post(
        "/nodes/pve1/qemu", vmid=100, name="fresh", tags="a", description="mine", pool="acme"
    )
    config = pve.config("/nodes/pve1/qemu/100")
    assert {key: value for key, value in config.items() if key != "digest"} == {"lock": "create"}
    assert pve.wait(upid) == "OK"
    config = pve.config("/nodes/pve1/qemu/100")
    assert (config["name"], config["tags"], config["description"]) == ("fresh", "a", "mine")
    assert "lock" not in config


@pytest.mark.parametrize("kind", ["qmclone", "qmcreate", "qmmove"])
def test_a_copy_that_fails_leaves_no_volume(pve: Client, sim: Simulator, kind: str) -> None:
    path = pve.create(100, scsi0="local-lvm:1")
    before = pve.volumes("local-lvm") | pve.volumes("ceph")
    sim.fault(task=kind, fail="No space left on device")
    if kind == "qmclone":
        status = pve.do("POST", f"{path}/clone", newid=101, full=1, storage="ceph")
    elif kind == "qmmove":
        status = pve.do("POST", f"{path}/move_disk", disk="scsi0", storage="ceph")
    else:
        source = "ceph:0,import-from=local:import/debian-13-genericcloud-amd64.qcow2"
        status = pve.do("POST", "/nodes/pve1/qemu", vmid=101, scsi0=source)
    prefix = {"qmclone": "clone failed: ", "qmmove": "storage migration failed: ", "qmcreate": ""}
    assert status == f"{prefix[kind]}No space left on device"
    assert pve.volumes("local-lvm") | pve.volumes("ceph") == before
    assert 101 not in {vm["vmid"] for vm in pve.get("/nodes/pve1/qemu")}


def test_disks_and_networks_are_plugged_into_a_running_machine(pve: Client) -> None:
    path = pve.create(100, scsi0="local-lvm:1", scsihw="virtio-scsi-pci")
    pve.ok("POST", f"{path}/status/start")
    pve.put(f"{path}/config", scsi1="local-lvm:1", net0="virtio,bridge=vmbr0")
    assert pve.pending(path) == {}
    pve.put(f"{path}/config", delete="scsi1,net0")
    assert pve.pending(path) == {}


def test_a_missing_bridge_is_noticed_at_start(pve: Client) -> None:
    path = pve.create(100, net0="virtio,bridge=vmbr9")
    assert "vmbr9" in pve.do("POST", f"{path}/status/start")


# -- cloud-init ------------------------------------------------------------------------------------

KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC0cOqEBxGZ0mZvVL6a2cNnX2QZ5HHyZ4f0eS0b0uZbQ"
    " someone@example"
)


def test_ssh_keys_are_encoded_twice(pve: Client) -> None:
    from urllib.parse import quote

    path = pve.create(100, ide2="local-lvm:cloudinit")
    pve.put(f"{path}/config", sshkeys=quote(KEY, safe=""))
    assert pve.config(path)["sshkeys"] == quote(KEY, safe="")
    assert (
        "invalid urlencoded string"
        in pve.call("PUT", f"{path}/config", {"sshkeys": KEY}).errors["sshkeys"]
    )
    answer = pve.call("PUT", f"{path}/config", {"sshkeys": "nokey"})
    assert (answer.status, answer.reason) == (500, "SSH public key validation error")


@pytest.mark.parametrize("value", ["dhcp", "ip=10.0.0.1", "gw=10.0.0.1", "ip=10.0.0.1/24,gw=x"])
def test_addresses_that_are_refused(pve: Client, value: str) -> None:
    path = pve.create(100)
    assert pve.call("PUT", f"{path}/config", {"ipconfig0": value}).status == 400


@pytest.mark.parametrize(
    "value", ["ip=dhcp", "ip=10.0.0.2/24,gw=10.0.0.1", "ip6=auto", "ip=10.0.0.2/24,ip6=dhcp"]
)
def test_addresses_that_are_taken(pve: Client, value: str) -> None:
    path = pve.create(100)
    pve.put(f"{path}/config", ipconfig0=value)
    assert pve.config(path)["ipconfig0"] == value


def test_a_password_is_never_shown(pve: Client) -> None:
    path = pve.create(100, cipassword="secret-of-mine")
    assert pve.config(path)["cipassword"] == "**********"
    assert "secret-of-mine" not in str(pve.sim.log())


def test_there_is_one_cloud_init_drive(pve: Client) -> None:
    path = pve.create(100, ide2="local-lvm:cloudinit")
    answer = pve.call("PUT", f"{path}/config", {"ide0": "local-lvm:cloudinit"})
    assert answer.reason == "ide0 - cloud-init drive is already attached at 'ide2'"


def test_cloud_init_of_a_running_machine_waits_for_its_image(pve: Client) -> None:
    path = pve.create(100, ide2="local-lvm:cloudinit", ciuser="one")
    pve.ok("POST", f"{path}/status/start")
    pve.put(f"{path}/config", ciuser="two")
    assert pve.config(path, current=1)["ciuser"] == "two"
    waiting = {item["key"]: item.get("pending") for item in pve.get(f"{path}/cloudinit")}
    assert waiting["ciuser"] == "two"
    pve.put(f"{path}/cloudinit")
    waiting = {item["key"]: item.get("pending") for item in pve.get(f"{path}/cloudinit")}
    assert waiting["ciuser"] is None


# -- what PVE adds by itself -----------------------------------------------------------------------


def test_the_machine_of_a_windows_guest_is_pinned(pve: Client) -> None:
    """Machine.pm, check_and_pin_machine_string: at creation, and with a change of ostype alone."""
    version = ".".join(
        pve.config(pve.create(100))["meta"].partition("creation-qemu=")[2].split(".")[:2]
    )
    assert pve.config(pve.create(101, ostype="win11"))["machine"] == f"pc-i440fx-{version}"
    assert (
        pve.config(pve.create(102, ostype="w2k8", machine="q35"))["machine"] == f"pc-q35-{version}"
    )
    path = pve.create(103, ostype="l26", machine="q35")
    assert pve.config(path)["machine"] == "q35"
    pve.put(f"{path}/config", ostype="win10")
    assert pve.config(path)["machine"] == f"pc-q35-{version}"
    pve.put(f"{path}/config", machine="q35")
    assert pve.config(path)["machine"] == "q35"
    path = pve.create(104, ostype="l26")
    pve.put(f"{path}/config", ostype="win10", machine="pc")
    assert pve.config(path)["machine"] == "pc"


@pytest.mark.parametrize(
    ("now", "wanted", "stored"), [(1024, 1600, 2048), (4096, 1600, 1536), (2048, 2048, 2048)]
)
def test_memory_is_plugged_in_dimms(pve: Client, now: int, wanted: int, stored: int) -> None:
    """Memory.pm, qemu_memory_hotplug: up to at least, or down to at most what is wanted."""
    path = pve.create(100, memory=now, numa=1, hotplug="memory")
    pve.ok("POST", f"{path}/status/start")
    pve.put(f"{path}/config", memory=wanted)
    assert pve.config(path)["memory"] == str(stored)
