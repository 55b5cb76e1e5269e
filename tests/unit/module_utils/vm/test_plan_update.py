"""The plan for a VM that exists: what is set, what is left alone, in which order, and what waits
for a stop.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    NotSupported,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.quantities import GIB
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Plan
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.removal import (
    plan_absent,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.update import (
    VM_PLANNER,
    plan_change,
    plan_update,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.config.change import (
    with_images,
)
from tests.unit.module_utils.vm.vm_cases import actual, desired_vm


def written(plan: Plan) -> dict[str, Any]:
    """Return what the plan writes into the configuration."""
    data: dict[str, Any] = {}
    for step in plan.steps:
        if step.action == "config":
            data.update({key: value for key, value in step.data.items() if key != "digest"})
    return data


SAME: list[dict[str, Any]] = [
    {},
    {"cores": 2},
    {"memory": "2G"},
    {"memory": 2048},
    {"memory": "2048M"},
    {"tags": ["BLUE"]},
    {"tags": ["blue"], "tenant": "acme"},
    {"tenant": "ACME"},
    {"sockets": 1},
    {"onboot": False},
    {"numa": False},
    {"bios": "bios"},
    {"ostype": "linux"},
    {"agent": True},
    {"agent": "1"},
    {"agent": "enabled=1"},
    {"hotplug": "usb,disk,network"},
    {"hotplug": "1"},
    {"boot": ["scsi0", "net0"]},
    {"cpulimit": 0.0},
    {"description": "front end\n"},
    {"nics": [{"bridge": "vmbr0"}]},
    {"nics": [{"network": "lan", "mac": "bc:24:11:00:00:01", "model": "virtio"}]},
    {"nics": [{"vlan": 0, "firewall": True, "link_down": False}]},
    {"nics": [{"ip": "10.0.0.5/24", "gateway": "10.0.0.1"}]},
    {"disks": [{"name": "scsi0", "size": "20480M"}]},
    {"disks": [{"size": 20, "storage": "ceph", "discard": True}]},
    {"disks": [{"name": "scsi0", "ssd": False, "backup": True}]},
    {"disks": [{"name": "scsi7", "state": "absent"}]},
    {"nics": [{"name": "net3", "state": "absent"}]},
    {"cloud_init": {"user": "ops", "ssh_keys": ["ssh-ed25519 AAAA ops\n"]}},
    {"cloud_init": {"upgrade": True}},
    {"options": {"kvm": True, "tablet": 1, "hookscript": None}},
    {"options": {"smbios1": {"uuid": "11111111-2222-3333-4444-555555555555"}}},
    {"options": {"shares": 1000}},
    {"serial_console": False},
    {"nics": [{}], "nics_exact": True},
    {"nics_exact": True, "disks_exact": True},
    {"cloud_init": {"nameservers": []}},
    {"description": "\nfront end\n\n"},
    {"disks": [{"name": "scsi0"}, {"name": "scsi1"}], "disks_exact": True},
]


@pytest.mark.parametrize("options", SAME, ids=str)
def test_equal_is_equal_and_nothing_is_written(options: dict[str, Any]) -> None:
    plan = plan_update(desired_vm(**options), actual(), shared={"ceph"})
    assert plan.steps == ()
    assert plan.before == plan.after == {}


# Other forms of the same that PVE stores as they were given (qemu-server: QemuServer.pm, formats
# address-list and urlencoded).
@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"options": {"nameserver": "10.0.0.1,fd00::1"}}, {"nameserver": "10.0.0.1,fd00::1"}),
        (
            {"cloud_init": {"nameservers": ["10.0.0.1", "fd00::1"]}},
            {"nameserver": "10.0.0.1,fd00::1"},
        ),
        (
            {"cloud_init": {"ssh_keys": ["ssh-ed25519 AAAA ops"]}},
            {"sshkeys": "%23%20of%20ops%0Assh-ed25519%20AAAA%20ops%0A"},
        ),
    ],
    ids=str,
)
def test_other_forms_of_the_same_are_not_written(
    options: dict[str, Any], found: dict[str, Any]
) -> None:
    assert plan_update(desired_vm(**options), actual(**found)).steps == ()


DIFFERENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"cores": 4}, {"cores": "4"}),
    ({"memory": "4G"}, {"memory": "4096"}),
    ({"tags": ["green"]}, {"tags": "blue;green;tenant_acme"}),
    ({"tags": ["green"], "tags_exact": True}, {"tags": "green;tenant_acme"}),
    ({"tags": [], "tags_exact": True}, {"tags": "tenant_acme"}),
    ({"description": ""}, {"delete": "description"}),
    ({"description": "new"}, {"description": "new"}),
    ({"agent": False}, {"agent": "0"}),
    ({"nics": [{"bridge": "vmbr1"}]}, {"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr1,firewall=1"}),
    (
        {"nics": [{"vlan": 100}]},
        {"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,tag=100"},
    ),
    ({"nics": [{"model": "e1000"}]}, {"net0": "e1000=BC:24:11:00:00:01,bridge=vmbr0,firewall=1"}),
    (
        {"nics": [{"options": {"firewall": None}}]},
        {"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0"},
    ),
    ({"nics": [{"ip": "dhcp"}]}, {"ipconfig0": "ip=dhcp"}),
    ({"nics": [{"ip6": "auto"}]}, {"ipconfig0": "gw=10.0.0.1,ip=10.0.0.5/24,ip6=auto"}),
    ({"nics": [{"name": "net1", "network": "dmz"}]}, {"net1": "virtio,bridge=vmbr1"}),
    ({"nics": [{"name": "net0", "state": "absent"}]}, {"delete": "ipconfig0,net0"}),
    (
        {"disks": [{"name": "scsi0", "ssd": True}]},
        {"scsi0": "ceph:vm-100-disk-0,discard=on,size=20G,ssd=1"},
    ),
    (
        {"disks": [{"name": "scsi0", "discard": False}]},
        {"scsi0": "ceph:vm-100-disk-0,discard=ignore,size=20G"},
    ),
    ({"disks": [{"name": "scsi2", "size": "1.5"}]}, {"scsi2": "local-lvm:1.5"}),
    (
        {"disks": [{"name": "scsi2", "size": 4, "storage": "ceph", "ssd": True}]},
        {"scsi2": "ceph:4,ssd=1"},
    ),
    ({"disks": [{"name": "scsi1", "state": "detached"}]}, {"delete": "scsi1"}),
    ({"disks": [{"name": "scsi1", "state": "absent"}]}, {"delete": "scsi1", "force": 1}),
    (
        {"disks": [{"name": "ide0", "iso": "local:iso/x.iso"}]},
        {"ide0": "local:iso/x.iso,media=cdrom"},
    ),
    (
        {"cloud_init": {"ssh_keys": ["ssh-rsa B", "ssh-rsa C"]}},
        {"sshkeys": "ssh-rsa%20B%0Assh-rsa%20C"},
    ),
    ({"cloud_init": {"ssh_keys": []}}, {"delete": "sshkeys"}),
    ({"cloud_init": {"password": "secret"}}, {"cipassword": "secret"}),
    (
        {"cloud_init": {"nameservers": ["10.0.0.1", "10.0.0.2"]}},
        {"nameserver": "10.0.0.1 10.0.0.2"},
    ),
    ({"options": {"watchdog": "i6300esb,action=reset"}}, {"watchdog": "i6300esb,action=reset"}),
    ({"options": {"kvm": False}}, {"kvm": "0"}),
    ({"options": {"agent": {"fstrim_cloned_disks": True}}}, {"agent": "1,fstrim_cloned_disks=1"}),
    ({"options": {"ciuser": None}}, {"delete": "ciuser"}),
    ({"boot": ["network", "disk"]}, {"boot": "order=net0;scsi0;scsi1"}),
    ({"serial_console": True}, {"serial0": "socket"}),
    ({"bios": "uefi"}, {"bios": "ovmf", "efidisk0": "ceph:1,efitype=4m,pre-enrolled-keys=1"}),
    ({"nics": [], "nics_exact": True}, {"delete": "ipconfig0,net0"}),
    ({"disks_exact": True, "disks": [{"name": "scsi0"}]}, {"delete": "scsi1"}),
]


@pytest.mark.parametrize(("options", "expected"), DIFFERENT, ids=str)
def test_only_what_differs_is_written(options: dict[str, Any], expected: dict[str, Any]) -> None:
    plan = plan_update(desired_vm(**options), actual(), shared={"ceph"})
    assert {key: str(value) for key, value in written(plan).items()} == {
        k: str(v) for k, v in expected.items()
    }
    assert plan.before != plan.after


def test_an_update_carries_the_digest_of_what_was_read() -> None:
    plan = plan_update(desired_vm(cores=4), actual())
    assert plan.steps[0].data["digest"] == "d1"


def test_a_disk_moves_before_it_grows_and_after_the_options_on_a_stopped_vm() -> None:
    disks = [{"name": "scsi0", "size": "30G", "storage": "local-lvm", "ssd": True}]
    plan = plan_update(desired_vm(disks=disks), actual(), shared={"ceph"})
    assert [step.action for step in plan.steps] == ["config", "move_disk", "resize"]
    assert plan.steps[1].data == {"disk": "scsi0", "storage": "local-lvm", "delete": 1}
    assert plan.steps[2].data == {"disk": "scsi0", "size": "30G"}
    assert plan.after["scsi0"] == {
        "storage": "local-lvm",
        "size": "30G",
        "discard": "on",
        "ssd": True,
    }


def test_a_disk_of_a_running_vm_grows_before_its_options_change() -> None:
    disks = [{"name": "scsi0", "size": "30G", "cache": "writeback"}]
    plan = plan_update(desired_vm(disks=disks, cores=4), actual(status="running"))
    assert [step.action for step in plan.steps] == ["resize", "config"]
    assert plan.steps[0].reread  # the options are planned again, with the new size
    assert plan.pending == ("cores", "scsi0")


@pytest.mark.parametrize("others", [{}, {"cores": 4}])
def test_a_disk_of_a_running_vm_moves_before_it_grows(others: dict[str, int]) -> None:
    disks = [{"name": "scsi0", "size": "30G", "storage": "local-lvm"}]
    plan = plan_update(desired_vm(disks=disks, **others), actual(status="running"), shared={"ceph"})
    assert [step.action for step in plan.steps] == [
        "move_disk",
        "resize",
        *(["config"] if others else []),
    ]
    assert [step.reread for step in plan.steps] == (
        [False, True, False] if others else [False, False]
    )


@pytest.mark.parametrize("status", ["stopped", "running"])
def test_a_disk_grows_on_the_node_that_its_vm_moves_to(status: str) -> None:
    plan = plan_update(
        desired_vm(node="pve2", disks=[{"name": "scsi0", "size": "30G"}]), actual(status=status)
    )
    assert [step.action for step in plan.steps] == ["migrate", "resize"]
    assert plan.steps[1].path[1] == "pve2"
    assert "node pve2" in plan.steps[1].summary


def test_a_disk_never_shrinks() -> None:
    with pytest.raises(ValidationFailed) as failure:
        plan_update(desired_vm(disks=[{"name": "scsi0", "size": "10G"}]), actual())
    assert "20G" in failure.value.message
    assert "it has 20 GiB and cannot shrink to 10 GiB" in failure.value.message


@pytest.mark.parametrize(
    ("disk", "holds"),
    [
        ({"name": "scsi0", "iso": "local:iso/x.iso"}, "a disk"),
        ({"name": "scsi0", "iso": "none"}, "a disk"),
        ({"name": "ide2", "iso": "local:iso/x.iso"}, "the cloud-init drive"),
        ({"name": "ide2", "size": "1G"}, "the cloud-init drive"),
        ({"name": "ide0", "size": "1G"}, "a CD drive"),
        ({"name": "ide0", "storage": "ceph"}, "a CD drive"),
    ],
    ids=str,
)
def test_no_drive_takes_the_place_of_another_kind(disk: dict[str, Any], holds: str) -> None:
    there = actual(ide0="local:iso/y.iso,media=cdrom,size=4M")
    with pytest.raises(ValidationFailed, match=f"it is {holds}") as failure:
        plan_update(desired_vm(disks=[disk]), there)
    assert "state=absent" in failure.value.next_step
    assert plan_update(desired_vm(disks=[{**disk, "state": "absent"}]), there).changed


def test_a_new_disk_needs_a_size() -> None:
    with pytest.raises(ValidationFailed, match="no size"):
        plan_update(desired_vm(disks=[{"name": "scsi5", "storage": "ceph"}]), actual())


PENDING: list[tuple[dict[str, Any], list[str]]] = [
    ({"cores": 4}, ["cores"]),
    ({"memory": "4G"}, ["memory"]),
    ({"tags": ["x"], "description": "y", "onboot": True, "protection": True}, []),
    ({"cpulimit": 1.5, "cpuunits": 200}, []),
    ({"nics": [{"vlan": 5}]}, []),
    ({"nics": [{"name": "net1"}]}, []),
    ({"disks": [{"name": "scsi2", "size": 1}]}, []),
    ({"disks": [{"name": "sata0", "size": 1}]}, ["sata0"]),
    ({"disks": [{"name": "scsi0", "cache": "writeback"}]}, ["scsi0"]),
    ({"disks": [{"name": "scsi0", "backup": False}]}, []),
    ({"disks": [{"name": "scsi0", "size": 30}]}, []),
    ({"bios": "uefi", "machine": "q35"}, ["bios", "efidisk0", "machine"]),
    ({"cloud_init": {"user": "root"}}, []),
]


@pytest.mark.parametrize(("options", "keys"), PENDING, ids=str)
def test_what_waits_for_a_stop_is_foreseen(options: dict[str, Any], keys: list[str]) -> None:
    assert list(plan_update(desired_vm(**options), actual(status="running")).pending) == keys
    assert plan_update(desired_vm(**options), actual()).pending == ()


def test_what_waited_before_still_waits() -> None:
    plan = plan_update(desired_vm(), actual(status="running", target={"cores": "4"}))
    assert plan.pending == ("cores",)
    assert plan.steps == ()


@pytest.mark.parametrize(
    ("policy", "options", "reboots"),
    [
        ("never", {"cores": 4}, False),
        ("if_needed", {"cores": 4}, True),
        ("if_needed", {"tags": ["x"]}, False),
        ("if_needed", {}, False),
        ("always", {}, True),
    ],
)
def test_reboot_policy(policy: str, options: dict[str, Any], reboots: bool) -> None:
    plan = plan_update(desired_vm(reboot=policy, **options), actual(status="running"))
    assert [step.action for step in plan.steps if step.action == "reboot"] == ["reboot"] * reboots
    if reboots:
        assert plan.pending == ()
    assert not any(
        step.action == "reboot"
        for step in plan_update(desired_vm(reboot=policy, **options), actual()).steps
    )


@pytest.mark.parametrize(
    ("state", "status", "options", "actions"),
    [
        ("started", "stopped", {}, ["start"]),
        ("started", "running", {}, []),
        ("started", "stopped", {"cores": 4}, ["config", "start"]),
        ("stopped", "running", {}, ["shutdown"]),
        ("stopped", "running", {"cores": 4}, ["shutdown", "config"]),
        ("stopped", "running", {"shutdown_timeout": 0}, ["stop"]),
        ("stopped", "stopped", {}, []),
        ("present", "running", {}, []),
        ("present", "running", {"cloud_init": {"user": "x"}}, ["config", "cloudinit", "config"]),
        ("started", "stopped", {"node": "pve2"}, ["migrate", "start"]),
        ("started", "running", {"node": "pve2"}, ["migrate"]),
        ("present", "stopped", {"pool": "acme"}, ["pool"]),
    ],
)
def test_steps_in_the_order_pve_needs(
    state: str, status: str, options: dict[str, Any], actions: list[str]
) -> None:
    plan = plan_update(desired_vm(state=state, **options), actual(status=status), shared={"ceph"})
    assert [step.action for step in plan.steps] == actions


def test_a_forced_shutdown_says_so() -> None:
    plan = plan_update(
        desired_vm(state="stopped", force=True, shutdown_timeout=5), actual(status="running")
    )
    assert plan.steps[0].data == {"timeout": 5, "forceStop": 1}


def test_a_start_behind_a_migration_goes_to_the_new_node() -> None:
    plan = plan_update(desired_vm(state="started", node="pve2"), actual(), shared={"ceph"})
    assert plan.steps[-1].path[1] == "pve2"
    assert (plan.before["node"], plan.after["node"]) == ("pve1", "pve2")


def test_local_disks_go_along_with_a_live_migration() -> None:
    plan = plan_update(desired_vm(node="pve2"), actual(status="running"), shared={"ceph"})
    assert plan.steps[0].data == {"target": "pve2", "online": 1, "with-local-disks": 1}
    assert plan_update(desired_vm(node="pve2"), actual(), shared={"ceph"}).steps[0].data == {
        "target": "pve2"
    }


def test_a_move_that_is_not_allowed_is_refused() -> None:
    with pytest.raises(Conflict, match="migrate"):
        plan_update(desired_vm(node="pve2", migrate=False), actual())


def test_an_iso_on_a_local_storage_holds_the_vm() -> None:
    with pytest.raises(NotSupported, match="ide0"):
        plan_update(
            desired_vm(node="pve2"),
            actual(ide0="local:iso/x.iso,media=cdrom,size=1M"),
            shared={"ceph"},
        )


def test_no_secret_is_shown() -> None:
    plan = plan_update(
        desired_vm(cloud_init={"password": "hunter2", "update_password": "always"}), actual()
    )
    assert "hunter2" not in repr(plan)
    assert "hunter2" not in str(plan.before) + str(plan.after) + str(plan.summaries)


def test_a_password_is_written_once_unless_always() -> None:
    there = actual(cipassword="**********")
    assert plan_update(desired_vm(cloud_init={"password": "x"}), there).steps == ()
    assert plan_update(
        desired_vm(cloud_init={"password": "x", "update_password": "always"}), there
    ).changed


def test_removal_stops_first_and_takes_the_disks() -> None:
    plan = plan_absent(desired_vm(state="absent"), actual(status="running"))
    assert [step.action for step in plan.steps] == ["stop", "destroy"]
    assert plan.steps[1].data == {"purge": 1, "destroy-unreferenced-disks": 1}
    graceful = plan_absent(desired_vm(state="absent", graceful=True), actual(status="running"))
    assert [step.action for step in graceful.steps] == ["shutdown", "destroy"]


def test_protection_is_respected_unless_the_task_lifts_it() -> None:
    with pytest.raises(Conflict, match="protect"):
        plan_absent(desired_vm(state="absent"), actual(protection="1"))
    plan = plan_absent(desired_vm(state="absent", protection=False), actual(protection="1"))
    assert [step.action for step in plan.steps] == ["config", "destroy"]


def test_a_change_is_complete_and_stays_as_it_is() -> None:
    """It is computed once: its plan reads it, and a second plan from it is the same."""
    disks = [{"name": "scsi3", "import_from": "local:import/a.qcow2", "size": "5G"}]
    desired = desired_vm(disks=disks, state="template", cores=4)
    change = VM_PLANNER.changes(desired, actual().target)
    change = with_images(change, desired, actual().target, {"scsi3": 2 * GIB})
    assert change.side_effects["template"] == "1"
    assert change.drives.grown_later == {"scsi3": 5 * GIB}
    before = repr(change)
    first = plan_change(desired, actual(), change)
    assert plan_change(desired, actual(), change) == first
    assert repr(change) == before
    with pytest.raises(FrozenInstanceError):
        change.secret = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("status", "options", "settled"),
    [
        ("running", {"state": "started"}, True),
        ("running", {"state": "restarted"}, True),
        ("stopped", {"cores": 2}, True),
        ("stopped", {"state": "started"}, False),
        ("running", {"state": "stopped"}, False),
        ("running", {"state": "hibernated"}, False),
        ("stopped", {"state": "template"}, False),
        ("running", {"cores": 3}, False),
        ("stopped", {"node": "pve2"}, False),
        ("stopped", {"pool": "web"}, False),
    ],
)
def test_a_vm_that_keeps_all_of_it_cannot_be_refused(
    status: str, options: dict[str, Any], settled: bool
) -> None:
    intent = VM_PLANNER.intent_of(desired_vm(**options), actual(status=status))
    assert intent.is_settled == settled
