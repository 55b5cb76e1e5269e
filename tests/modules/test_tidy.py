# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module tidy: what it lists, what it removes, and what it leaves alone."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live import creation as making
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate.tidy import run as tidy
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made

MARKER = "<!-- pve.fleet: origin=9000 run=gone tenant=tenant_acme -->"
DONE = "<!-- pve.fleet: origin=9000 -->"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no task works on is found to be abandoned soon."""
    monkeypatch.setattr(making, "QUIET", 0.2)


def there(lab: Lab, vmid: int, *tags: str, running: bool = False, **config: Any) -> None:
    """Put a VM there as an interrupted run or task left it."""
    disk = {"scsi0": f"ceph:vm-{vmid}-disk-0,size=1G"}
    memory = {"vmstate": config.pop("vmstate", None)}
    entry = {"node": "pve2", "name": f"vm-{vmid}", "tags": list(tags), "running": running}
    lab.simulator.ask("POST", f"/vms/{vmid}", {**entry, "config": {**disk, **config}})
    lab.simulator.steer(f"/vms/{vmid}", {"config": memory})


def numbers(lab: Lab) -> set[int]:
    return {int(row["vmid"]) for row in lab.simulator.ask("GET", "/vms")}


def found(result: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """Return kind and remedy of each VM."""
    assert not result.get("failed"), result
    return {row["vmid"]: (row["kind"], row["remedy"]) for row in result["unfinished"]}


def test_abandoned_vms_of_the_tenant_are_removed(quiet: Lab) -> None:
    there(quiet, 20100, description=MARKER)
    there(quiet, 20101, "tenant_acme", description=f"its notes\n{MARKER}")
    there(quiet, 20102, "tenant_acme", description=DONE)
    there(quiet, 20103, "tenant_acme")
    there(quiet, 20104, description=MARKER.replace("acme", "globex"))
    there(quiet, 20105, "tenant_globex", description=MARKER.replace("acme", "globex"))
    there(quiet, 20106, "tenant_acme", running=True, description=MARKER)
    before = numbers(quiet)
    quiet.simulator.reset_log()
    foreseen = quiet.run("tidy", check=True, tenant="acme")
    assert quiet.simulator.writes() == []
    assert numbers(quiet) == before
    tidied = quiet.run("tidy", tenant="acme")
    expected = dict.fromkeys((20100, 20101), ("creation", "remove"))
    assert found(foreseen) == found(tidied) == {**expected, 20106: ("creation", "by_hand")}
    assert foreseen["diff"] == tidied["diff"]
    assert foreseen["plan"] == tidied["plan"] == tidied["done"]
    assert foreseen["changed"]
    assert tidied["changed"]
    assert before - numbers(quiet) == {20100, 20101}
    again = quiet.run("tidy", tenant="acme")
    assert not again["changed"]
    assert found(again) == {20106: ("creation", "by_hand")}


def test_abandoned_containers_of_the_tenant_are_removed(quiet: Lab) -> None:
    for vmid, tags, more in (
        (20100, "", {"description": MARKER}),
        (20101, "tenant_acme", {"description": DONE}),
        (20102, "", {"description": MARKER.replace("acme", "globex")}),
        (20103, "tenant_acme", {"lock": "snapshot"}),
    ):
        config = {"hostname": f"ct-{vmid}", "rootfs": f"ceph:vm-{vmid}-disk-0,size=1G", **more}
        config |= {"tags": tags} if tags else {}
        quiet.simulator.ask("POST", f"/containers/{vmid}", {"node": "pve2", "config": config})
    there(quiet, 20104, description=MARKER)
    quiet.simulator.reset_log()
    foreseen = quiet.run("tidy", check=True, tenant="acme")
    assert quiet.simulator.writes() == []
    tidied = quiet.run("tidy", tenant="acme")
    assert foreseen["plan"] == tidied["plan"] == tidied["done"]
    assert found(foreseen) == found(tidied)
    assert found(tidied) == {
        20100: ("creation", "remove"),
        20103: ("snapshot", "by_hand"),
        20104: ("creation", "remove"),
    }
    assert {row["vmid"]: row["guest"] for row in tidied["unfinished"]} == {
        20100: "container",
        20103: "container",
        20104: "vm",
    }
    (locked,) = [row for row in tidied["unfinished"] if row["vmid"] == 20103]
    assert "pct unlock 20103" in locked["next_step"]
    left = {row["vmid"] for row in quiet.client.get("nodes", "pve2", "lxc")}
    assert left == {20101, 20102, 20103}


def test_unfinished_clone_of_a_template_that_another_tenant_shares(quiet: Lab) -> None:
    """It has the tags of its source until the run that made it replaces them."""
    golden: dict[str, Any] = {"name": "golden", "tenant": "globex", "source": "debian-13"}
    quiet.vm(**golden, full=True, state="template")
    quiet.simulator.fault(method="PUT", path="/qemu/[0-9]+/config$", status=500, message="no")
    quiet.simulator.fault(method="POST", path="/qemu/[0-9]+/config$", status=500, message="no")
    wanted: dict[str, Any] = {"name": "app1", "tenant": "acme", "source": "golden"}
    assert quiet.run("vm", **wanted, shared_sources=["golden"])["failed"]
    (row,) = [
        row
        for row in quiet.client.get("cluster", "resources", type="vm")
        if row.get("tags") == "tenant_globex" and not row.get("template")
    ]
    assert found(quiet.run("tidy", tenant="globex")) == {}
    assert found(quiet.run("tidy", tenant="acme")) == {row["vmid"]: ("creation", "remove")}
    assert row["vmid"] not in numbers(quiet)


def test_volumes_that_no_configuration_names(quiet: Lab) -> None:
    """Nothing can mark a volume as ours (pve-storage: notes are for backups only). Those with the
    number of an abandoned VM go with it, and those of a VM that stays are left alone.
    """
    for vmid, notes in ((20100, MARKER), (20101, DONE)):
        disk = f"ceph:vm-{vmid}-disk-7,size=1G"
        there(quiet, vmid, "tenant_acme", description=notes, scsi7=disk)
        quiet.simulator.steer(f"/vms/{vmid}", {"config": {"scsi7": None}})
    assert found(quiet.run("tidy", tenant="acme")) == {20100: ("creation", "remove")}
    left = {one["volid"] for one in quiet.simulator.ask("GET", "/volumes")}
    assert not [volume for volume in left if "-20100-" in volume]
    assert {"ceph:vm-20101-disk-0", "ceph:vm-20101-disk-7"} <= left


@pytest.mark.parametrize(
    ("config", "kind", "command"),
    [
        ({"lock": "migrate"}, "migration", "qm unlock 20100"),
        ({"lock": "snapshot"}, "snapshot", "qm unlock 20100"),
        ({"lock": "snapshot-delete"}, "snapshot", "qm unlock 20100"),
        ({"lock": "rollback"}, "rollback", "qm unlock 20100"),
        ({"lock": "suspending"}, "hibernation", "qm unlock 20100"),
        ({"lock": "clone", "description": MARKER}, "creation", "qm unlock 20100"),
        ({"vmstate": "ceph:vm-20100-state-x"}, "vmstate", "--delete vmstate"),
        ({"template": "1"}, "conversion", "state=template"),
        ({"description": "<!-- pve.fleet: drive=stale -->"}, "cloud_init", "cloud-init options"),
    ],
)
def test_what_is_listed_only(
    quiet: Lab, config: dict[str, Any], kind: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tidy, "_PATIENCE", 0.5)
    there(quiet, 20100, "tenant_acme", **config)
    quiet.simulator.reset_log()
    result = quiet.run("tidy", tenant="acme")
    assert found(result) == {20100: (kind, "by_hand")}
    assert command in result["unfinished"][0]["next_step"]
    assert not result["changed"]
    assert quiet.simulator.writes() == []
    assert found(quiet.run("tidy", tenant="globex")) == {}


@pytest.mark.parametrize("lock", ["backup", "suspended"])
def test_locks_that_were_chosen_are_not_listed(quiet: Lab, lock: str) -> None:
    there(quiet, 20100, "tenant_acme", lock=lock, vmstate="ceph:vm-20100-state-x")
    assert found(quiet.run("tidy", tenant="acme")) == {}


def test_a_vm_that_is_being_made_is_not_removed(quiet: Lab) -> None:
    """The clone ends while it is waited for, and the VM is taken over by a run in between."""
    there(quiet, 20100, description=MARKER)
    path = "/nodes/pve2/qemu/20100/pending$"
    completed = [["PUT", "/vms/20100", {"config": {"description": DONE, "tags": "tenant_acme"}}]]
    quiet.simulator.fault(method="GET", path=path, nth=3, steer=completed)
    assert found(quiet.run("tidy", tenant="acme")) == {}
    assert 20100 in numbers(quiet)


def test_tasks_of_a_vm_that_moves_are_those_of_its_new_node(
    quiet: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task works on it on the node to which it moves while it is waited for."""
    monkeypatch.setattr(tidy, "_PATIENCE", 0.5)
    there(quiet, 20100, description=MARKER)
    quiet.simulator.steer("/vms/20100", {"node": "pve3"})
    quiet.simulator.steer("/settings", {"task_ms": "qmstart=3600000"})
    upid = quiet.client.write("POST", "nodes", "pve3", "qemu", 20100, "status", "start")
    quiet.simulator.steer("/vms/20100", {"node": "pve2"})
    back = [["PUT", "/vms/20100", {"node": "pve3"}]]
    path = "/nodes/pve2/qemu/20100/pending$"
    quiet.simulator.fault(method="GET", path=path, nth=3, steer=back)
    result = quiet.run("tidy", tenant="acme")
    assert found(result) == {20100: ("creation", "wait")}
    (row,) = result["unfinished"]
    assert row["node"] == "pve3"
    assert upid in row["detail"]
    assert 20100 in numbers(quiet)


def test_a_removal_whose_answer_is_lost_is_followed_to_its_end(quiet: Lab) -> None:
    """The task that works on it then is that of the removal."""
    there(quiet, 20100, description=MARKER)
    quiet.simulator.steer("/settings", {"task_ms": "qmdestroy=3000"})
    quiet.simulator.fault(method="DELETE", path="/qemu/20100$", drop="after")
    result = quiet.run("tidy", tenant="acme")
    assert found(result) == {20100: ("creation", "remove")}
    assert 20100 not in numbers(quiet)


def test_a_vm_that_a_run_takes_over_right_before_is_left_alone(quiet: Lab) -> None:
    there(quiet, 20100, description=MARKER)
    there(quiet, 20101, description=MARKER)
    count = [0]
    quiet.simulator.reset_log()
    assert quiet.run("tidy", check=True, tenant="acme")["changed"]
    path = "/nodes/pve2/qemu/20100/pending"
    count[0] = sum(1 for row in quiet.simulator.log() if row["path"] == path)
    taken = [["PUT", "/vms/20100", {"config": {"description": MARKER.replace("gone", "mine")}}]]
    quiet.simulator.fault(method="GET", path=f"{path}$", nth=count[0] + 1, steer=taken)
    result = quiet.run("tidy", tenant="acme")
    assert result["error"]["reason"] == "no longer abandoned"
    assert 20100 in numbers(quiet)
    assert 20101 not in numbers(quiet)


def left(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return what module preflight_info finds."""
    result = lab.run("preflight_info", **options)
    assert not result.get("failed"), result
    return result


def test_preflight_lists_what_tidy_finds(quiet: Lab) -> None:
    there(quiet, 20100, description=MARKER)
    there(quiet, 20101, "tenant_acme", lock="rollback")
    there(quiet, 20102, "tenant_acme", description=DONE)
    there(quiet, 20103, "tenant_globex", lock="snapshot")
    quiet.simulator.reset_log()
    result = left(quiet, tenant="acme")
    assert quiet.simulator.writes() == []
    assert result["unfinished"] == quiet.run("tidy", check=True, tenant="acme")["unfinished"]
    assert found(result) == {20100: ("creation", "remove"), 20101: ("rollback", "by_hand")}
    rows = [row for row in result["checks"] if row["check"] == "unfinished"]
    assert [(row["subject"], row["status"], row["required"]) for row in rows] == [
        ("vm-20100 (20100)", "fail", False),
        ("vm-20101 (20101)", "fail", False),
    ]
    assert rows[0]["detail"] == "creation: it has the creation marker, and no task works on it"
    assert "qm unlock 20101" in rows[1]["next_step"]
    lines = [line for line in result["table"] if line.startswith("warn  unfinished")]
    assert len(lines) == 2
    assert "let module tidy remove it" in lines[0]
    assert result["passed"]


def test_preflight_says_when_nothing_is_unfinished(quiet: Lab) -> None:
    there(quiet, 20100, "tenant_acme", description=DONE)
    there(quiet, 20101, "tenant_globex", description=MARKER.replace("acme", "globex"))
    quiet.simulator.reset_log()
    result = left(quiet, tenant="acme")
    # the three requests of any run, and the configuration of the tenant's VM
    reads = [row["path"] for row in quiet.simulator.log()]
    assert len([path for path in reads if "/qemu/" not in path]) == 3
    assert [path for path in reads if "/20100/" in path] == ["/nodes/pve2/qemu/20100/pending"]
    assert not [path for path in reads if "/20101/" in path]
    (row,) = [row for row in result["checks"] if row["check"] == "unfinished"]
    assert (row["subject"], row["status"], row["detail"]) == ("tenant acme", "pass", "nothing")
    assert result["unfinished"] == []


def test_preflight_without_a_tenant_does_not_look(quiet: Lab) -> None:
    there(quiet, 20100, description=MARKER)
    quiet.simulator.reset_log()
    result = left(quiet)
    assert not [row for row in result["checks"] if row["check"] == "unfinished"]
    assert result["unfinished"] == []
    assert len(quiet.simulator.log()) == 3


def test_preflight_when_a_vm_cannot_be_read(quiet: Lab) -> None:
    """Whether something is unfinished is not known then, and nothing says that there is not."""
    there(quiet, 20100, "tenant_acme")
    quiet.simulator.fault(
        method="GET", path="/nodes/pve2/qemu/20100/pending", status=500, message="boom", times=None
    )
    result = left(quiet, tenant="acme")
    (row,) = [row for row in result["checks"] if row["check"] == "unfinished"]
    assert (row["status"], row["detail"]) == ("unknown", "boom")
    assert result["unfinished"] == []


def _fail_a_restore(lab: Lab, login: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Restore a guest to a new name, and stop the task by hand; return the failure."""
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=600000"})

    def stop() -> None:
        path = ("cluster", "tasks")
        until = time.monotonic() + 30
        while time.monotonic() < until:
            rows = [row for row in lab.client.get(*path) if row["type"] == "qmrestore"]
            running = [row for row in rows if not row.get("endtime")]
            if running:
                lab.client.write("DELETE", "nodes", running[0]["node"], "tasks", running[0]["upid"])
                return
            time.sleep(0.05)

    stopper = threading.Thread(target=stop)
    stopper.start()
    result = lab.run("restore", **options, **login)
    stopper.join()
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=20"})
    assert result.get("failed"), result
    return result


def test_the_empty_vm_of_a_tenants_failed_restore_is_removed(
    unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PVE puts a VM into its pool at the end of its restore, and a restore that fails leaves it empty
    (qemu-server: QemuServer.pm, restore_vma_archive; API2/Qemu.pm, create_vm).
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lab = unused
    own: dict[str, Any] = {"tenant": "initech"}
    operations = ["read", "operate", "provision", "backup"]
    login = made(lab, "initech", storages=["ceph", "local"], operations=operations)
    do(lab, "clone", name="web1", pool="initech", source="debian-13", **own, **login)
    do(lab, "backup", name="web1", storage="local", **own)
    restore = {"name": "web1", "new_name": "copy", **own}
    failure = _fail_a_restore(lab, login, **restore)
    (empty,) = (
        row
        for row in lab.simulator.ask("GET", "/vms")
        if "scsi0" not in row["config"] and int(row["vmid"]) not in (9000, 9001)
    )
    vmid = int(empty["vmid"])
    assert f"if VM {vmid} on node" in failure["msg"]
    assert "an administrator removes it with module tidy" in failure["msg"]
    do(lab, "restore", **restore, **login)
    assert found(do(lab, "tidy", **own, **login)) == {}
    foreseen = do(lab, "tidy", check=True, **own)
    assert found(foreseen) == {vmid: ("restore", "remove")}
    assert vmid in numbers(lab)
    tidied = do(lab, "tidy", **own)
    assert tidied["done"] == foreseen["plan"] == tidied["plan"]
    assert vmid not in numbers(lab)
    again = do(lab, "tidy", **own)
    assert not again["changed"]
    assert found(again) == {}


def test_the_empty_vm_of_another_login_is_left_alone(
    unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lab = unused
    made(lab, "initech")
    do(lab, "vm", name="web1", tenant="initech", disks=[{"size": 1}])
    do(lab, "backup", name="web1", storage="local", tenant="initech")
    archive = lab.client.get("nodes", "pve1", "storage", "local", "content", content="backup")[0][
        "volid"
    ]
    _fail = {"vmid": 777, "archive": archive}
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=600000"})
    upid = lab.client.write("POST", "nodes", "pve1", "qemu", data=_fail)
    lab.client.write("DELETE", "nodes", "pve1", "tasks", upid)
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=20"})
    assert found(do(lab, "tidy", tenant="initech")) == {}
    assert 777 in numbers(lab)
