"""Rules about machines that are met less often, as qemu-server has them."""

from __future__ import annotations

import pytest

from tests.simulator.process import Simulator
from tests.simulator_tests.client import Client, login_as_root

OWNER = "ops@pve!auto=00000000-0000-4000-8000-0000000000f2"


@pytest.fixture
def root(sim: Simulator) -> Client:
    """root@pam with a ticket, who may do what no token may."""
    return login_as_root(sim)


def refused(client: Client, verb: str, path: str, **params: object) -> str:
    """The reason of a refusal with status 500."""
    answer = client.call(verb, path, params)
    assert answer.status == 500, answer.body
    return str(answer.reason)


# -- configuration ---------------------------------------------------------------------------------


def test_an_undefined_value_is_not_written(pve: Client) -> None:
    path = pve.create(100, name="web")
    answer = pve.call("PUT", f"{path}/config", json={"name": None})
    assert (answer.status, answer.reason) == (
        500,
        "unable to parse value of 'name' - got undefined value",
    )
    assert pve.config(path)["name"] == "web"


def test_values_are_what_a_file_with_one_line_for_each_can_hold(pve: Client) -> None:
    path = pve.create(100, description="notes \n\n", ciuser="deb")
    assert pve.config(path)["description"] == "notes"
    pve.put(f"{path}/config", ciuser="  bob ", description="a\n b\n")
    assert (pve.config(path)["ciuser"], pve.config(path)["description"]) == ("bob", "a\n b")
    text = "unable to parse value of 'ciuser' - property contains a line feed"
    assert refused(pve, "PUT", f"{path}/config", ciuser="a\nb") == text
    assert pve.config(path)["ciuser"] == "bob"


def test_a_windows_gets_a_certain_machine_version(lab: Client) -> None:
    assert lab.config(lab.create(100, ostype="win11", machine="q35"))["machine"] == "pc-q35-7.2"
    path = lab.create(101)
    assert "machine" not in lab.config(path)
    lab.put(f"{path}/config", ostype="w2k8")
    assert lab.config(path)["machine"] == "pc-i440fx-7.2"
    assert (
        lab.config(lab.create(102, ostype="win11", machine="pc-q35-6.0"))["machine"] == "pc-q35-6.0"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"machine": "pc,viommu=intel"}, "to use Intel vIOMMU please set the machine type to q35"),
        ({"machine": "q35,aw-bits=39"}, "cannot set aw-bits if no vIOMMU is configured"),
        ({"vga": "serial0,clipboard=vnc"}, "vga type serial0 is not compatible with VNC clipboard"),
    ],
)
def test_hardware_that_does_not_go_together(
    pve: Client, options: dict[str, str], text: str
) -> None:
    path = pve.create(100)
    assert refused(pve, "PUT", f"{path}/config", **options) == text
    assert (
        pve.do("POST", "/nodes/pve1/qemu", vmid=101, **options)
        == f"unable to create VM 101 - {text}"
    )


@pytest.mark.parametrize(
    ("name", "drive"),
    [
        ("scsi0", "local-lvm:1,mbps=1,mbps_rd=1"),
        ("scsi0", "local-lvm:1,iops_max=9,iops_max_length=4,mbps_max=3"),
        ("virtio0", "none,media=cdrom"),
        ("ide0", "none,media=cdrom,snapshot=1"),
    ],
)
def test_drives_that_do_not_go_together(pve: Client, name: str, drive: str) -> None:
    answer = pve.call("POST", "/nodes/pve1/qemu", {"vmid": 100, name: drive})
    assert answer.errors == {name: "unable to parse drive options"}


def test_a_path_on_a_storage_is_a_volume(lab: Client) -> None:
    path = lab.create(100)
    lab.put(f"{path}/config", ide2="/var/lib/vz/template/iso/test.iso")
    assert lab.config(path)["ide2"] == "local:iso/test.iso,media=cdrom,size=1M"
    answer = lab.call(
        "PUT", f"{path}/config", {"ide3": "/var/lib/vz/template/iso/test.iso,media=disk"}
    )
    assert answer.errors == {"ide3": "unexpected media type (iso != images)"}
    answer = lab.call("PUT", f"{path}/config", {"ide3": "/home/test.iso,media=cdrom"})
    assert answer.errors == {"ide3": "unable to associate path '/home/test.iso' to any storage"}


def test_a_firmware_disk_that_is_imported_says_what_it_is(lab: Client) -> None:
    answer = lab.call(
        "POST",
        "/nodes/pve1/qemu",
        {"vmid": 100, "efidisk0": "images:0,import-from=local:import/disk.qcow2"},
    )
    assert answer.errors == {"efidisk0": "need to specify 'efitype' when using 'import-from'"}


def test_devices_of_the_host_are_for_root(sim: Simulator, root: Client) -> None:
    pve = Client(sim)
    path = pve.create(100, serial0="socket")
    text = "only root can {} 'serial0' config for real devices"
    assert refused(pve, "PUT", f"{path}/config", serial0="/dev/ttyS0") == text.format("modify")
    assert refused(pve, "POST", "/nodes/pve1/qemu", vmid=101, serial0="/dev/ttyS0") == text.format(
        "set"
    )
    root.put(f"{path}/config", serial0="/dev/ttyS0")
    assert refused(pve, "PUT", f"{path}/config", delete="serial0") == text.format("delete")
    text = "only root can set 'usb0' config for real devices"
    assert refused(pve, "PUT", f"{path}/config", usb0="host=1234:5678") == text


def test_the_boot_order_follows_the_live_one(pve: Client) -> None:
    path = pve.create(
        100, scsi0="local-lvm:1", scsi1="local-lvm:1", net0="virtio", boot="order=scsi0;scsi1"
    )
    pve.ok("POST", f"{path}/status/start")
    pve.put(f"{path}/config", boot="order=net0")
    pve.put(f"{path}/config", ide3="none,media=cdrom")
    assert pve.pending(path)["boot"]["pending"] == "order=scsi0;scsi1;ide3"
    answer = pve.call("PUT", f"{path}/config", {"delete": "scsi1"})
    assert answer.errors == {"scsi1": "hotplug problem - can't unplug bootdisk 'scsi1'\n"}


def test_password_in_a_snapshot_is_returned(pve: Client) -> None:
    path = pve.create(100, cipassword="$5$abcdefgh$x")
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    assert pve.config(path, snapshot="s1")["cipassword"] == "**********"
    assert pve.get(f"{path}/snapshot/s1/config")["cipassword"] == "$5$abcdefgh$x"


def test_what_is_not_restored(pve: Client) -> None:
    missing = "local:backup/vzdump-qemu-100-2026_01_01-00_00_00.vma.zst"
    call = {"vmid": 100, "archive": missing}
    assert refused(pve, "POST", "/nodes/pve1/qemu", **call) == f"volume '{missing}' does not exist"
    call = {"vmid": 100, "archive": "local:iso/debian-13-netinst.iso"}
    text = (
        "unable to use volume local:iso/debian-13-netinst.iso - content type needs to be 'backup'"
    )
    assert refused(pve, "POST", "/nodes/pve1/qemu", **call) == text
    answer = pve.call("POST", "/nodes/pve1/qemu", {**call, "scsi0": "local-lvm:1"})
    assert answer.errors == {"scsi0": "option conflicts with option 'archive'"}


# -- power -----------------------------------------------------------------------------------------


def test_a_start_during_a_backup_resumes(sim: Simulator, pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"lock": "backup"})
    pve.ok("POST", f"{path}/status/start")
    assert (
        pve.do("POST", f"{path}/status/suspend", todisk=1) == "cannot suspend to disk during backup"
    )


def test_root_may_pass_over_a_lock(sim: Simulator, pve: Client, root: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"lock": "migrate"})
    for action in ("reset", "suspend", "resume", "stop"):
        assert pve.do("POST", f"{path}/status/{action}") == "VM is locked (migrate)"
        root.ok("POST", f"{path}/status/{action}", skiplock=1)
        if action == "suspend":
            assert pve.get(f"{path}/status/current")["qmpstatus"] == "paused"
    assert pve.state(path) == "stopped"


def test_a_shutdown_without_patience_fails(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    assert (
        pve.do("POST", f"{path}/status/shutdown", timeout=0)
        == "VM quit/powerdown failed - got timeout"
    )
    pve.ok("POST", f"{path}/status/shutdown", timeout=0, forceStop=1)
    assert pve.state(path) == "stopped"


def test_allowed_monitor_commands(pve: Client) -> None:
    path = pve.create(100)
    assert pve.post(f"{path}/monitor", command="info status") == "ERROR: VM 100 not running\n"
    assert (
        refused(pve, "POST", f"{path}/monitor", command="device_add x")
        == "root-only command 'device_add'"
    )
    assert "limiting to root user" in refused(pve, "POST", f"{path}/monitor", command="nonsense")
    missing = "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist"
    assert refused(pve, "POST", "/nodes/pve1/qemu/999/monitor", command="info x") == missing
    assert refused(pve, "PUT", "/nodes/pve1/qemu/999/sendkey", key="ret") == missing


def test_memory_is_saved_where_files_are_preferred(lab: Client) -> None:
    path = lab.create(100, memory=16, scsi0="images:1,format=qcow2", scsi1="shared:1,format=qcow2")
    lab.ok("POST", f"{path}/status/start")
    lab.ok("POST", f"{path}/snapshot", snapname="ram", vmstate=1)
    assert lab.get(f"{path}/snapshot/ram/config")["vmstate"].startswith("shared:")


# -- agent -----------------------------------------------------------------------------------------


def test_an_agent_that_is_switched_off_does_not_run(pve: Client) -> None:
    path = pve.create(100, agent="0")
    assert refused(pve, "POST", f"{path}/agent/ping") == "VM 100 is not running"
    pve.ok("POST", f"{path}/status/start")
    assert refused(pve, "POST", f"{path}/agent/ping") == "QEMU guest agent is not running"


def test_files_in_the_guest(pve: Client) -> None:
    path = pve.create(100, agent="1")
    pve.ok("POST", f"{path}/status/start")
    pve.post(f"{path}/agent/file-write", file="/x", content="hello")
    assert pve.get(f"{path}/agent/file-read", file="/x") == {"content": "hello", "bytes-read": 5}
    assert pve.get(f"{path}/agent/file-read", file="/x", count=2) == {
        "content": "he",
        "bytes-read": 2,
        "truncated": 1,
    }


# -- cloud-init ------------------------------------------------------------------------------------


def test_the_user_data(pve: Client) -> None:
    path = pve.create(100, name="web.example.org", ipconfig0="ip=dhcp", net0="virtio")
    text = pve.get(f"{path}/cloudinit/dump", type="user")
    assert (
        text == "#cloud-config\nhostname: web\nmanage_etc_hosts: true\nfqdn:"
        " web.example.org\nchpasswd:\n  expire: False\nusers:\n  - default\npackage_upgrade:"
        " true\n"
    )
    pve.put(f"{path}/config", name="web", ciuser="root", ciupgrade=0, sshkeys="")
    assert (
        pve.get(f"{path}/cloudinit/dump", type="user")
        == "#cloud-config\nhostname: web\nmanage_etc_hosts: true\nfqdn: web\nuser:"
        " root\ndisable_root: False\nchpasswd:\n  expire: False\n"
    )


def test_the_network_data(lab: Client) -> None:
    address = "ip=10.0.0.5/22,gw=10.0.0.1,ip6=fd00::5/64,gw6=fd00::1"
    path = lab.create(100, net0="virtio=BC:24:11:00:00:01", net1="virtio", ipconfig0=address)
    assert (
        lab.get(f"{path}/cloudinit/dump", type="network")
        == "version: 1\nconfig:\n    - type: physical\n      name: eth0\n      mac_address:"
        " 'bc:24:11:00:00:01'\n      subnets:\n      - type: static\n        address:"
        " '10.0.0.5'\n        netmask: '255.255.252.0'\n        gateway: '10.0.0.1'\n      -"
        " type: static6\n        address: 'fd00::5/64'\n        gateway: 'fd00::1'\n    - type:"
        " nameserver\n      address:\n      - '10.99.0.1'\n      search:\n      - 'lab.test'\n"
    )
    lab.put(f"{path}/config", citype="configdrive2", nameserver="1.1.1.1", searchdomain="ex.org")
    assert (
        lab.get(f"{path}/cloudinit/dump", type="network")
        == "auto lo\niface lo inet loopback\n\n        dns_nameservers 1.1.1.1\n        dns_search"
        " ex.org\nauto eth0\niface eth0 inet static\n        address 10.0.0.5\n        netmask"
        " 255.255.252.0\n        gateway 10.0.0.1\niface eth0 inet6 static\n        address"
        " fd00::5\n        netmask 64\n        gateway fd00::1\n"
    )
    assert '"uuid": "' in lab.get(f"{path}/cloudinit/dump", type="meta")


def test_a_custom_file_that_is_missing_stops_a_start(lab: Client) -> None:
    path = lab.create(100, ide2="images:cloudinit", memory=16)
    lab.put(f"{path}/config", cicustom="user=local:snippets/none.yml")
    assert (
        lab.do("POST", f"{path}/status/start") == "volume 'local:snippets/none.yml' does not exist"
    )
    lab.put(f"{path}/config", cicustom="user=local:iso/test.iso")
    assert (
        lab.do("POST", f"{path}/status/start")
        == "local:iso/test.iso is not in the snippets directory"
    )


# -- clones ----------------------------------------------------------------------------------------


def test_an_id_that_another_node_has_fails_within_the_clone(pve: Client) -> None:
    path = pve.create(100, scsi0="ceph:1")
    pve.create(101, node="pve2")
    text = (
        "close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/101.conf' failed: File exists"
    )
    assert pve.do("POST", f"{path}/clone", newid=101) == text


# -- rights to volumes -----------------------------------------------------------------------------


def test_rights_to_volumes(sim: Simulator, pve: Client) -> None:
    owner = Client(sim, OWNER)
    pve.create(100, scsi0="local-lvm:1", pool="acme")
    pve.create(101, scsi0="local-lvm:1", scsi1="local-lvm:1")
    pve.put("/nodes/pve1/qemu/101/config", delete="scsi1")
    path = "/nodes/pve1/qemu/100/config"
    answer = owner.call("PUT", path, {"scsi5": "local-lvm:vm-101-disk-1"})
    assert (answer.status, answer.reason) == (
        403,
        "Permission check failed (/storage/local-lvm, Datastore.Audit)",
    )
    answer = owner.call("PUT", path, {"ide2": "local:iso/debian-13-netinst.iso,media=cdrom"})
    text = "Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Audit)"
    assert (answer.status, answer.reason) == (403, text)
    assert (
        pve.call("PUT", path, {"unused3": "local:iso/debian-13-netinst.iso"}).reason
        == "unable to use volume local:iso/debian-13-netinst.iso - content type needs to be"
        " 'images'"
    )
    pve.put("/access/acl", path="/storage", users="ops@pve", roles="PVEAuditor")
    assert owner.volumes("local-lvm") == {"local-lvm:vm-100-disk-0"}
    assert owner.volumes("local") == {
        "local:iso/debian-13-netinst.iso",
        "local:import/debian-13-genericcloud-amd64.qcow2",
        "local:vztmpl/debian-13-standard_13.0-1_amd64.tar.zst",
        "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
    }
