# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module container, end to end: created, changed, started, moved, converted and removed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab

DEBIAN = "debian-13-standard"
FILE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
SMALL: dict[str, Any] = {"source": DEBIAN, "default_storage": "ceph", "memory": "1G"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def made(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return a container after a run that check mode has foreseen and a second run confirms."""
    lab.simulator.reset_log()
    foreseen = do(lab, "container", check=True, **options)
    assert lab.simulator.writes() == []
    result = do(lab, "container", **options)
    assert result["changed"]
    assert foreseen["changed"]
    assert foreseen["diff"]["after"].keys() == result["diff"]["after"].keys()
    again = do(lab, "container", **options)
    assert not again["changed"], again["plan"]
    return dict(result["container"])


def config(lab: Lab, container: dict[str, Any]) -> dict[str, Any]:
    return dict(lab.client.get("nodes", container["node"], "lxc", container["vmid"], "config"))


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the failure of a task that must have written nothing."""
    lab.simulator.reset_log()
    result = lab.run("container", **options)
    assert result.get("failed"), result
    assert lab.simulator.writes() == []
    return result


def test_container_is_created_from_the_newest_template(lab: Lab) -> None:
    nics = [{"bridge": "vmbr0", "ip": "dhcp"}]
    container = made(
        lab, name="ct1", tenant="acme", cores=2, nics=nics, rootfs={"size": "8G"}, **SMALL
    )
    found = config(lab, container)
    assert found["hostname"] == "ct1"
    assert (found["cores"], found["memory"], found["unprivileged"]) == (2, 1024, 1)
    assert found["tags"] == "tenant_acme"
    assert "size=8G" in found["rootfs"]
    assert "description" not in found
    assert container["status"] == "stopped"


def test_version_of_a_template_can_be_pinned(lab: Lab) -> None:
    do(lab, "container", name="ct1", **{**SMALL, "source": "debian-13-standard_13.0-1_amd64"})
    (create,) = [row for row in lab.simulator.writes() if row["path"].endswith("/lxc")]
    assert "debian-13-standard_13.0-1_amd64.tar.zst" in create["params"]["ostemplate"]


def test_power_states(lab: Lab) -> None:
    container = made(lab, name="ct1", state="started", **SMALL)
    assert container["status"] == "running"
    restarted = do(lab, "container", name="ct1", state="restarted")
    assert restarted["changed"]
    assert made(lab, name="ct1", state="stopped")["status"] == "stopped"


def test_unchanged_run_takes_three_requests(lab: Lab) -> None:
    made(lab, name="ct1", **SMALL)
    lab.simulator.reset_log()
    assert not do(lab, "container", name="ct1", memory="1G", cores=None)["changed"]
    assert len(lab.simulator.log()) <= 3


def test_container_is_removed(lab: Lab) -> None:
    container = made(lab, name="ct1", state="started", **SMALL)
    gone = do(lab, "container", name="ct1", state="absent")
    assert gone["changed"]
    assert gone["container"] is None
    assert not do(lab, "container", name="ct1", state="absent")["changed"]
    assert container["vmid"] not in {row["vmid"] for row in lab.client.get("nodes", "pve1", "lxc")}


def test_container_becomes_a_template_and_is_cloned(lab: Lab) -> None:
    template = made(lab, name="base", state="template", **SMALL)
    assert config(lab, template)["template"] == 1
    linked = made(lab, name="copy", source="base", cores=1)
    assert config(lab, linked)["hostname"] == "copy"
    assert linked["cloned_from"] == template["vmid"]
    full = made(lab, name="copy2", source=str(template["vmid"]), full=True, state="started")
    assert full["status"] == "running"
    stays = refused(lab, name="base", state="absent")
    assert "linked clones" in stays["msg"]


def test_running_container_is_cloned_from_a_snapshot_only(lab: Lab) -> None:
    made(lab, name="live", state="started", **SMALL)
    assert "it runs" in refused(lab, name="copy", source="live")["msg"]
    unknown = refused(lab, name="copy", source="live", snapshot="s1")
    assert "its snapshots are none" in unknown["msg"]


def test_changes_of_a_running_container(lab: Lab) -> None:
    container = made(lab, name="ct1", state="started", **SMALL)
    live = do(lab, "container", name="ct1", memory="2G", cores=3)
    assert live["pending"] == []
    waits = do(lab, "container", name="ct1", features={"nesting": True})
    assert waits["pending"] == ["features"]
    rebooted = do(lab, "container", name="ct1", features={"nesting": True}, reboot="if_needed")
    assert rebooted["changed"]
    assert rebooted["pending"] == []
    assert config(lab, container)["features"] == "nesting=1"
    lab.simulator.reset_log()
    do(lab, "container", name="ct1", memory="3G", reboot="if_needed")
    assert not [row for row in lab.simulator.writes() if "/status/" in row["path"]]
    do(lab, "container", name="ct1", memory="4G", reboot="always")
    assert [row for row in lab.simulator.writes() if row["path"].endswith("/status/reboot")]


def test_volumes_grow_move_and_go(lab: Lab) -> None:
    mounts = [{"path": "/data", "size": "2G", "storage": "ceph"}]
    container = made(lab, name="ct1", mounts=mounts, **SMALL)
    made(lab, name="ct1", rootfs={"size": "9G"}, mounts=[{"path": "/data", "size": "3G"}])
    assert "size=3G" in config(lab, container)["mp0"]
    made(lab, name="ct1", mounts=[{"path": "/data", "storage": "local-lvm"}])
    assert config(lab, container)["mp0"].startswith("local-lvm:")
    assert "cannot shrink" in refused(lab, name="ct1", rootfs={"size": "1G"})["msg"]
    made(lab, name="ct1", mounts=[{"name": "mp0", "state": "absent"}])
    found = config(lab, container)
    assert "mp0" not in found
    assert "unused0" not in found


# How storages allocate the volume of a container. On ZFS it is a file system and reserves nothing
# (pve-container: LXC.pm, alloc_disk; pve-storage: ZFSPoolPlugin.pm, zfs_create_subvol).
ALLOCATIONS: list[tuple[dict[str, Any], str]] = [
    ({"type": "zfspool", "pool": "rpool/a"}, "thin"),
    ({"type": "dir", "path": "/mnt/c", "preallocation": "full"}, "thick"),
    ({"type": "lvm", "vgname": "vg1"}, "thick"),
]


@pytest.mark.parametrize(("definition", "allocates"), ALLOCATIONS, ids=str)
def test_storage_class_gets_the_allocation_it_asks_for_or_an_error(
    lab: Lab, definition: dict[str, Any], allocates: str
) -> None:
    lab.client.write("POST", "storage", data={"storage": "odd", "content": "rootdir", **definition})
    other = {"thin": "thick", "thick": "thin"}[allocates]
    task: dict[str, Any] = {**SMALL, "name": "ct1"}
    wrong = {"fast": {"storage": "odd", "type": other}}
    right = {"fast": {"storage": "odd", "type": allocates}}
    root = {"size": "4G", "storage_class": "fast"}
    mount = {"path": "/srv/data", "size": "1G", "storage_class": "fast"}
    for check in (True, False):
        failure = refused(lab, **task, storage_classes=wrong, rootfs=root, check=check)
        assert failure["error"]["category"] == "NotSupported"
        assert "rootfs of container 'ct1'" in failure["msg"]
        assert f"allocates disks {allocates}" in failure["msg"]
    made(lab, **task, storage_classes=right, rootfs=root)
    failure = refused(lab, name="ct1", storage_classes=wrong, mounts=[mount])
    assert "mp0 of container 'ct1'" in failure["msg"]
    container = made(lab, name="ct1", storage_classes=right, mounts=[mount])
    assert config(lab, container)["mp0"].startswith("odd:")


def test_mount_point_moves_and_grows_in_one_task(lab: Lab) -> None:
    mounts = [{"path": "/data", "size": "2G", "storage": "ceph"}]
    container = made(lab, name="ct1", mounts=mounts, **SMALL)
    made(lab, name="ct1", mounts=[{"name": "mp0", "storage": "local-lvm", "size": "3G"}])
    found = config(lab, container)["mp0"]
    assert found.startswith("local-lvm:")
    assert "size=3G" in found


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("nth", "moment"), [(1, "after"), (2, "before"), (2, "after")])
def test_volume_of_a_removed_mount_point_is_destroyed(lab: Lab, nth: int, moment: str) -> None:
    """PVE unmounts it by one request and destroys it by another one (pve-container:
    LXC/Config.pm, vmconfig_apply_pending).
    """
    mounts = [{"path": "/data", "size": "2G", "storage": "ceph"}]
    container = do(lab, "container", name="ct1", mounts=mounts, **SMALL)["container"]
    lab.simulator.fault(method="PUT", path="/config$", nth=nth, drop=moment)
    do(lab, "container", name="ct1", mounts=[{"name": "mp0", "state": "absent"}])
    assert not {"mp0", "unused0"} & config(lab, container).keys()


def test_unused_volume_of_an_earlier_mount_point_is_kept(lab: Lab) -> None:
    mounts = [
        {"path": "/old", "size": "1G", "storage": "ceph"},
        {"path": "/data", "size": "2G", "storage": "ceph"},
    ]
    container = do(lab, "container", name="ct1", mounts=mounts, **SMALL)["container"]
    made(lab, name="ct1", mounts=[{"name": "mp0", "state": "detached"}])
    made(lab, name="ct1", mounts=[{"name": "mp1", "state": "absent"}])
    found = config(lab, container)
    assert "unused0" in found
    assert not {"mp0", "mp1", "unused1"} & found.keys()


def test_failed_conversion_has_the_cause_of_its_task(lab: Lab) -> None:
    """The answer to a conversion is null, and its task runs (pve-container: API2/LXC.pm,
    template).
    """
    do(lab, "container", name="ct1", **SMALL)
    lab.simulator.fault(task="vztemplate", fail="lvconvert failed")
    result = lab.run("container", name="ct1", state="template")
    assert result["error"]["category"] == "TaskFailed"
    assert "lvconvert failed" in result["msg"]


def test_conversion_whose_task_is_not_listed_is_awaited(lab: Lab) -> None:
    """A node forgets its tasks when it starts again."""
    container = do(lab, "container", name="ct1", **SMALL)["container"]
    lab.simulator.fault(method="GET", path="/tasks$", steer=[["DELETE", "/tasks", None]])
    do(lab, "container", name="ct1", state="template")
    assert config(lab, container)["template"] == 1


def test_container_is_migrated(lab: Lab) -> None:
    container = made(lab, name="ct1", node="pve1", state="started", **SMALL)
    moved = made(lab, name="ct1", node="pve2", state="started")
    assert (moved["node"], moved["status"]) == ("pve2", "running")
    assert container["vmid"] == moved["vmid"]
    stays = refused(lab, name="ct1", node="pve3", migrate=False)
    assert "migrate is false" in stays["msg"]


def test_quota_counts_both_kinds(lab: Lab) -> None:
    do(lab, "vm", name="vm1", tenant="acme", cores=2, memory="1G")
    limits = {"quota": {"cores": 3}, "tenant": "acme"}
    over = refused(lab, name="ct1", cores=2, **limits, **SMALL)
    assert over["error"]["category"] == "QuotaExceeded" or "quota" in over["msg"]
    made(lab, name="ct1", cores=1, **limits, **SMALL)


def test_refusals(lab: Lab) -> None:
    vm = do(lab, "vm", name="web", tenant="acme", memory="1G")["vm"]
    container = made(lab, name="ct1", tenant="acme", **SMALL)
    number = refused(lab, vmid=vm["vmid"], name="ct2", **SMALL)
    assert f"a VM has the number {vm['vmid']}" in number["msg"]
    absent = refused(lab, vmid=vm["vmid"], state="absent")
    assert f"a VM has the number {vm['vmid']}" in absent["msg"]
    taken = refused(lab, name="web", tenant="acme", **SMALL)
    assert "a VM has that name" in taken["msg"]
    other = lab.run("vm", vmid=container["vmid"], name="vm2", memory="1G")
    assert "a container has the number" in other["msg"]
    of_vm = refused(lab, name="ct3", source="debian-13")
    assert "it is a VM" in of_vm["msg"]
    assert "it is a VM" in refused(lab, name="ct3", source="9000")["msg"]
    assert "no template or container" in refused(lab, name="ct3", source="nothing")["msg"]
    assert "names no source" in refused(lab, name="ct3")["msg"]
    assert "privileged" in refused(lab, name="ct1", tenant="acme", unprivileged=False)["msg"]
    bind = [{"path": "/data", "volume": "/srv/data"}]
    assert "root@pam" in refused(lab, name="ct1", tenant="acme", mounts=bind)["msg"]
    fuse = refused(lab, name="ct1", tenant="acme", features={"fuse": True})
    assert "root@pam" in fuse["msg"]
    local = refused(lab, name="ct4", **{**SMALL, "default_storage": "local"})
    assert "rootdir" in local["msg"]
    foreign = refused(lab, name="ct5", source=str(container["vmid"]), tenant="globex")
    assert "another tenant" in foreign["msg"]


def test_storage_without_rootdir_is_refused_with_those_that_have_it(lab: Lab) -> None:
    failure = refused(lab, name="ct1", source=DEBIAN, rootfs={"size": "8G", "storage": "local"})
    assert "storage local does not take rootdir" in failure["msg"]
    assert "Name a storage that takes rootdir: ceph, local-lvm" in failure["msg"]
    made(lab, name="ct1", **SMALL)
    mount = {"path": "/data", "size": "1G", "storage": "local"}
    assert "rootdir" in refused(lab, name="ct1", mounts=[mount])["msg"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"rootfs": "ceph:8"},
            "is not a dictionary. Write 'rootfs: {size: VALUE, storage: VALUE}'",
        ),
        ({"nics": {"bridge": "vmbr0"}}, "Write 'nics: [{name: VALUE, interface: VALUE}]'"),
    ],
    ids=str,
)
def test_wrong_form_is_said_once_with_the_right_one(
    lab: Lab, options: dict[str, Any], text: str
) -> None:
    failure = refused(lab, name="ct1", source=DEBIAN, **options)
    assert text in failure["msg"]
    assert "; " not in failure["msg"]


def test_tags_of_a_container_in_a_pool(lab: Lab) -> None:
    container = do(lab, "container", name="ct1", pool="acme", tags=["web"], **SMALL)["container"]
    assert container["pool"] == "acme"
    assert container["tags"] == ["web"]


def test_backup_is_restored(lab: Lab) -> None:
    container = made(
        lab, name="ct1", node="pve1", cores=2, tags=["web"], description="Proxy", **SMALL
    )
    lab.client.task(
        "POST", "nodes", "pve1", "vzdump", data={"vmid": container["vmid"], "storage": "local"}
    )
    volumes = lab.client.get("nodes", "pve1", "storage", "local", "content", content="backup")
    (archive,) = [row["volid"] for row in volumes]
    restored = made(
        lab, name="ct2", source=archive, memory="2G", default_storage="ceph", node="pve1"
    )
    found = config(lab, restored)
    assert (found["hostname"], found["cores"], found["memory"]) == ("ct2", 2, 2048)
    assert found["description"].startswith("Proxy\n<!-- pve.fleet: origin=")
    assert found["rootfs"].startswith("ceph:")


OCI = "local:vztmpl/nginx_1.29.tar"


def test_oci_image(lab: Lab) -> None:
    lab.simulator.ask("PUT", "/volumes/pve1", {"volid": OCI, "new": True, "size": 60000000})
    container = made(lab, name="web", source=OCI, default_storage="ceph")
    assert container["node"] == "pve1"
    assert config(lab, container)["entrypoint"] == "/bin/sh"
    # PVE replaces these by those of the image (pve-container: LXC/Create.pm, restore_oci_archive).
    own: dict[str, Any] = {
        "entrypoint": "/bin/own",
        "environment": {"A": "1"},
        "cmode": "shell",
        "nics": [{"bridge": "vmbr0"}, {"bridge": "vmbr0", "host_managed": False}],
    }
    found = config(lab, made(lab, name="web3", source=OCI, default_storage="ceph", **own))
    assert (found["entrypoint"], found["cmode"]) == ("/bin/own", "shell")
    assert "host-managed=1" in found["net0"]
    assert "host-managed=0" in found["net1"]
    assert "A=1" in found["env"].split("\0")
    missing = refused(lab, name="web2", source="local:vztmpl/none.tar.zst")
    assert "there is no such volume" in missing["msg"]


def test_oci_image_is_refused_by_an_old_version(old: Lab) -> None:
    old.simulator.ask("PUT", "/volumes/pve1", {"volid": OCI, "new": True, "size": 60000000})
    result = refused(old, name="web", source=OCI, default_storage="ceph")
    assert "OCI image" in result["msg"]


LOST = [
    ({"cores": 3}, "POST", r"/nodes/pve1/lxc$"),
    ({"cores": 3}, "PUT", r"/config$"),
    ({"state": "started"}, "POST", r"/status/start$"),
]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("options", "method", "path"), LOST, ids=lambda value: str(value)[:30])
def test_lost_answer_makes_no_second_container(
    lab: Lab, options: dict[str, Any], method: str, path: str, moment: str
) -> None:
    lab.simulator.fault(method=method, path=path, drop=moment)
    wanted = {"name": "ct1", "tenant": "acme", "node": "pve1", **SMALL, **options}
    container = do(lab, "container", **wanted)["container"]
    assert [row["vmid"] for row in lab.client.get("nodes", "pve1", "lxc")] == [container["vmid"]]
    lab.simulator.clear_faults()
    assert not do(lab, "container", **wanted)["changed"]
