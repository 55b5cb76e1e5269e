# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module failover: the guests of one simulated site come up at another one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import strides
from tests.modules.access_lab import do, refused
from tests.modules.backup_lab import add_nas, container, share_archives
from tests.modules.estate_lab import Lab
from tests.modules.test_drill import back_up, vmids

DISK: dict[str, Any] = {"disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
WEB: dict[str, Any] = {"tenant": "acme", "pool": "acme", "memory": 256, **DISK}
MARK = "[pve.fleet: tenant=tenant_acme]"


@pytest.fixture
def vienna(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


def prepare(munich: Lab) -> None:
    """Give the other site the pool of the tenant, and the same storage for backups."""
    munich.simulator.clear_faults()
    munich.simulator.reset()
    add_nas(munich)
    munich.client.write("PUT", "pools", data={"poolid": "acme", "comment": MARK})


@pytest.fixture
def munich(munich: Lab) -> Lab:
    """The other site."""
    prepare(munich)
    return munich


@pytest.fixture
def web(vienna: Lab, munich: Lab) -> dict[str, Any]:
    """A VM at the first site with a start order, and a container; both have archives at both."""
    return guests_of_vienna(vienna, munich)


def guests_of_vienna(vienna: Lab, munich: Lab) -> dict[str, Any]:
    """Make these guests and return the VM."""
    nics = [{"bridge": "vmbr0", "vlan": 20, "ip": "10.1.0.7/24", "gateway": "10.1.0.1"}]
    servers = ["10.1.0.53", "9.9.9.9"]
    cloud: dict[str, Any] = {
        "cloud_init": {"user": "ops", "storage": "ceph", "nameservers": servers}
    }
    made: dict[str, Any] = do(
        vienna,
        "vm",
        name="web",
        state="started",
        nics=nics,
        agent=True,
        startup="order=2",
        **cloud,
        **WEB,
    )["vm"]
    net = "name=eth0,bridge=vmbr0,ip=10.1.0.8/24,gw=10.1.0.1"
    box = container(
        vienna,
        hostname="box",
        tags="tenant_acme",
        net0=net,
        startup="order=1",
        nameserver="10.1.0.53",
    )
    back_up(vienna, made)
    back_up(vienna, box)
    share_archives(vienna.simulator, munich.simulator)
    return made


def options(vienna: Lab, munich: Lab, **more: Any) -> dict[str, Any]:
    """Return the options of a failover from Vienna to Munich."""
    sites = [{"name": "vienna", **vienna.connection}, {"name": "munich", **munich.connection}]
    connection: dict[str, Any] = {"sites": sites, "site": "munich", "from_site": "vienna"}
    connection |= dict.fromkeys(munich.connection)
    return {**connection, "storages": ["nas"], "settle": 0, **more}


def config(lab: Lab, row: dict[str, Any]) -> dict[str, Any]:
    path = ("nodes", row["node"], row["type"], row["new_vmid"], "config")
    found: dict[str, Any] = lab.client.get(*path)
    return found


def stop(lab: Lab, vm: dict[str, Any]) -> None:
    lab.vm(vmid=vm["vmid"], state="stopped", force=True)


def test_guests_come_up_mapped_and_in_start_order(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    stop(vienna, web)
    given = options(
        vienna, munich, storage_map={"ceph": "local-lvm"}, addresses={"10.1.0.0/24": "10.2.0.0/24"}
    )
    munich.simulator.reset_log()
    vienna.simulator.reset_log()
    foreseen = munich.run("failover", check=True, **given)
    assert not foreseen.get("failed"), foreseen
    assert munich.simulator.writes() == []
    made = munich.run("failover", **given)
    assert not made.get("failed"), made
    assert vienna.simulator.writes() == []
    assert made["plan"] == made["done"] == foreseen["plan"]
    box, vm = made["guests"]
    # the guest of the next start order is restored after the first one has started
    paths = [row["path"] for row in munich.simulator.writes()]
    started = next(i for i, one in enumerate(paths) if one.endswith(f"{box['vmid']}/status/start"))
    assert paths.index(f"/nodes/{vm['node']}/qemu") > started
    assert (box["name"], box["outcome"], box["proof"]) == ("box", "up", "started")
    assert (vm["name"], vm["outcome"], vm["proof"]) == ("web", "up", "agent")
    assert vm["new_vmid"] == web["vmid"]
    restored = config(munich, vm)
    source = vienna.config(web)
    assert restored["scsi0"].startswith("local-lvm:")
    assert restored["net0"] == source["net0"]
    assert restored["ipconfig0"] == "gw=10.2.0.1,ip=10.2.0.7/24"
    assert f"Failover from {vm['volume']}." in restored["description"]
    assert restored["nameserver"] == "10.2.0.53 9.9.9.9"
    assert "10.2.0.8/24" in config(munich, box)["net0"]
    assert config(munich, box)["nameserver"] == "10.2.0.53"
    members = munich.client.get("pools", "acme")["members"]
    assert {row["vmid"] for row in members} >= {vm["new_vmid"], box["new_vmid"]}
    munich.simulator.reset_log()
    again = munich.run("failover", **given)
    assert not again["changed"], again
    assert [row["outcome"] for row in again["guests"]] == ["unchanged", "unchanged"]
    assert munich.simulator.writes() == []
    # Beside the listing, archives and bridges: two requests for each guest.
    assert len(munich.simulator.log()) <= 16


def test_the_mac_address_of_a_container_is_part_of_the_plan(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    """A restored container gets another MAC address, which the failover replaces by its own
    (pve-container: LXC/Create.pm, restore_configuration).
    """
    stop(vienna, web)
    given = options(vienna, munich)
    foreseen = munich.run("failover", check=True, **given)
    made = munich.run("failover", **given)
    assert made["plan"] == made["done"] == foreseen["plan"]
    assert any(step.startswith("Set net0 on container 'box'") for step in made["done"])


def dead(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options with a first site that does not answer."""
    vienna = {**given["sites"][0], "host": "https://127.0.0.1:9", "retries": 1}
    return {**given, "sites": [vienna, *given["sites"][1:]]}


def test_a_disk_that_backups_leave_out_does_not_stop_a_failover(vienna: Lab, munich: Lab) -> None:
    """The storage of the disk is not here: PVE drops the disk (qemu-server: QemuServer.pm,
    restore_update_config_line).
    """
    data = {"storage": "fast", "type": "dir", "path": "/mnt/fast", "content": "images,rootdir"}
    vienna.client.write("POST", "storage", data=data)
    scratch = {"name": "scsi1", "size": 2, "storage": "fast", "backup": False}
    web = do(vienna, "vm", name="web", **{**WEB, "disks": [*DISK["disks"], scratch]})["vm"]
    box = container(vienna, hostname="box", tags="tenant_acme", mp0="ceph:2,mp=/data")
    for guest in (web, box):
        back_up(vienna, guest)
    share_archives(vienna.simulator, munich.simulator)
    maps = {"storage_map": {"ceph": "local-lvm", "fast": "local-lvm"}}
    for more in (maps, {"storage": "ceph"}, {}):
        given = options(vienna, munich, node="pve1", **more)
        foreseen = munich.run("failover", check=True, **given)
        assert not foreseen.get("failed"), foreseen
    made = munich.run("failover", **given)
    assert not made.get("failed"), made
    assert foreseen["plan"] == made["done"]
    assert [row["left_out"] for row in made["guests"]] == [["mp0"], ["scsi1"]]
    assert foreseen["warnings"] == made["warnings"]
    assert len(made["warnings"]) == 2
    assert "without the data of mp0" in made["report"][0]
    found = [config(munich, row) for row in made["guests"]]
    assert "mp=/data" in found[0]["mp0"]
    assert "scsi1" not in found[1]


def test_every_problem_is_named_at_once(vienna: Lab, munich: Lab, web: dict[str, Any]) -> None:
    munich.client.write("PUT", "pools", data={"poolid": "acme", "comment": ""})
    munich.client.write("DELETE", "storage", "ceph")
    given = options(
        vienna,
        munich,
        networks={"vmbr0": "vmbr77"},
        addresses={"10.9.0.0/24": "10.2.0.0/24"},
        vms=["web", "box", "gone"],
    )
    found = refused(munich, "failover", **given)
    problems = found["error"]["problems"]
    text = " | ".join(problems)
    assert f"VM 'web' ({web['vmid']}) is running as guest {web['vmid']}" in text
    assert "of site vienna" in text
    assert "guest gone is named, and no archive of it was found" in text
    assert "tenant acme has no pool here" in text
    assert "storage ceph for its disks is not here" in text
    assert "bridge or VNet vmbr77 is not here" in text
    assert "'10.1.0.7/24' of net0 is in no network of addresses" in text
    assert "container 'box'" in text
    lines = found["report"]
    assert sum(line.startswith("! acme/web ") for line in lines) == 1
    assert all(any(one[-25:] in line for line in lines) for one in problems)
    assert "other problems" in found["msg"]


def test_room_and_quota_count_for_all_guests_together(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    stop(vienna, web)
    found = refused(
        munich, "failover", **options(vienna, munich, quotas={"acme": {"vms": 1, "memory": "300M"}})
    )
    (problem,) = found["error"]["problems"]
    assert "exceeds the quota of tenant acme" in problem
    assert "VM 'web'" in problem


def test_a_site_that_does_not_answer_must_be_called_lost(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    given = dead(options(vienna, munich))
    found = refused(munich, "failover", **given)
    assert "site vienna cannot be asked" in found["msg"]
    alone = {key: value for key, value in given.items() if key != "from_site"}
    assert "set from_site, or lost" in refused(munich, "failover", **alone)["msg"]
    made = munich.run("failover", lost=True, vms=["web"], **given)
    assert [row["outcome"] for row in made["guests"]] == ["up"], made
    # the first site is back: its guest runs, and nothing here is touched
    found = refused(munich, "failover", lost=True, **options(vienna, munich))
    assert "is running as guest" in found["msg"]


def test_a_guest_that_exists_is_never_overwritten(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    stop(vienna, web)
    munich.vm(name="other", vmid=web["vmid"], memory="128M")
    do(munich, "vm", name="web", vmid=4711, **WEB)
    found = refused(munich, "failover", **options(vienna, munich, exclude=["box"]))
    text = " | ".join(found["error"]["problems"])
    assert "VM 'other'" in text
    assert "(4711)" in text
    assert text.count("it is not overwritten") == 2


@pytest.mark.parametrize("task", ["qmrestore", "qmstart"])
def test_the_next_run_completes_a_failed_guest(
    vienna: Lab, munich: Lab, web: dict[str, Any], task: str, alone: None
) -> None:
    stop(vienna, web)
    given = options(vienna, munich)
    munich.simulator.fault(task=task, fail="no space left on device")
    made = munich.run("failover", **given)
    assert made["failed"]
    assert [row["outcome"] for row in made["guests"]] == ["up", "failed"]
    assert "no space left on device" in made["msg"]
    munich.simulator.clear_faults()
    made = munich.run("failover", **given)
    assert [row["outcome"] for row in made["guests"]] == ["unchanged", "up"], made
    assert config(munich, made["guests"][1])["name"] == "web"


@pytest.mark.parametrize("stride", strides(4))
def test_a_run_that_fails_at_any_write_is_completed(
    vienna: Lab, munich: Lab, web: dict[str, Any], stride: int, alone: None
) -> None:
    """Later writes with the same method fail as well, as if the run was interrupted there."""
    stop(vienna, web)
    given = options(vienna, munich, addresses={"10.1.0.0/24": "10.2.0.0/24"})
    munich.simulator.reset_log()
    munich.run("failover", **given)
    methods = [row["method"] for row in munich.simulator.writes()]
    points = [(one, 1 + methods[:n].count(one)) for n, one in enumerate(methods)]
    assert len(points) > 6
    for method, nth in points[::stride]:
        prepare(munich)
        share_archives(vienna.simulator, munich.simulator)
        munich.simulator.reset_log()
        munich.simulator.fault(method=method, path="/", nth=nth, times=None, status=403)
        assert munich.run("failover", **given)["failed"], (method, nth)
        munich.simulator.clear_faults()
        made = munich.run("failover", **given)
        assert not made.get("failed"), (method, nth, made)
        restored = restores(munich)
        assert sorted(restored) == sorted(row["vmid"] for row in made["guests"]), "restored twice"
        for row in made["guests"]:
            assert "10.2.0." in str(config(munich, row))
            assert " run=" not in config(munich, row)["description"]


def restores(lab: Lab) -> list[int]:
    """Return the VMIDs of the restores that PVE has accepted."""
    found: list[int] = []
    for row in lab.simulator.writes():
        if row["path"].endswith(("/qemu", "/lxc")) and row["status"] == 200:
            found.append(int(row["params"]["vmid"]))
    return found


def test_the_next_run_replaces_an_empty_vm_that_an_interrupted_restore_left(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    stop(vienna, web)
    given = options(vienna, munich, vms=["web"], keep_macs=False)
    (row,) = munich.run("failover", check=True, **given)["guests"]
    munich.simulator.fault(task="qmrestore", fail="interrupted by signal")
    munich.simulator.fault(method="DELETE", path=rf"/qemu/{web['vmid']}", status=500, times=None)
    munich.client.write(
        "POST", "nodes", row["node"], "qemu", data={"vmid": web["vmid"], "archive": row["volume"]}
    )
    munich.simulator.clear_faults()
    until = 100
    while munich.client.get("nodes", row["node"], "tasks", source="active"):
        until -= 1
        assert until
    assert web["vmid"] in vmids(munich)
    foreseen = munich.run("failover", check=True, **given)
    assert not foreseen.get("failed"), foreseen
    assert f"Remove empty VM {web['vmid']}" in foreseen["plan"][0]
    made = munich.run("failover", **given)
    assert [one["outcome"] for one in made["guests"]] == ["up"], made
    assert made["done"] == foreseen["plan"]


def test_a_rehearsal_is_isolated_and_leaves_nothing(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    before = vmids(munich)
    given = options(vienna, munich, rehearsal=True)
    foreseen = munich.run("failover", check=True, **given)
    made = munich.run("failover", run=foreseen["run"], **given)
    assert not made.get("failed"), made
    assert [row["outcome"] for row in made["guests"]] == ["up", "up"]
    for row in made["guests"]:
        assert 900000 <= row["new_vmid"] <= 909999
        assert row["new_name"].startswith(f"drill-{row['vmid']}-")
        copy = config(munich, row)
        assert copy["tags"] == "fleet-drill;fleet-drill-of-acme"
        assert "link_down=1" in copy["net0"]
    do(munich, "drill", run=made["run"], state="absent")
    assert vmids(munich) == before
    assert vienna.status(web) == "running"


def test_the_way_back(vienna: Lab, munich: Lab, web: dict[str, Any]) -> None:
    stop(vienna, web)
    given = options(vienna, munich, vms=["web"])
    assert munich.run("failover", **given)["changed"]
    there = {"vmid": web["vmid"], "node": munich.client.get("cluster", "resources", type="vm")}
    there["node"] = next(row["node"] for row in there["node"] if row["vmid"] == web["vmid"])
    back = {**given, "site": "vienna", "from_site": "munich"}
    archive = back_up(munich, there)
    share_archives(munich.simulator, vienna.simulator)
    found = refused(vienna, "failover", **back)
    text = " | ".join(found["error"]["problems"])
    assert f"VM 'web' ({web['vmid']}) is running as guest {web['vmid']}" in text
    assert "of site munich" in text
    assert "no failover has restored it; it is not overwritten" in text
    munich.vm(vmid=web["vmid"], state="stopped", force=True)
    vienna.vm(vmid=web["vmid"], name="web", state="absent", force=True)
    made = vienna.run("failover", **{**back, "pools": {"acme": "acme"}})
    assert [(row["outcome"], row["volume"]) for row in made["guests"]] == [("up", archive)], made
    # the guest that stayed at the other site does not start with old data
    vienna.vm(vmid=web["vmid"], state="stopped", force=True)
    found = refused(munich, "failover", **given)
    assert f"{archive} is newer" in found["msg"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("rehearsal", [False, True])
def test_a_failover_without_an_archive_fails(
    vienna: Lab, munich: Lab, *, check: bool, rehearsal: bool
) -> None:
    """A storage without archives must not look like a site whose guests are all up."""
    back_up(vienna, do(vienna, "vm", name="old", **WEB)["vm"])
    (row,) = [one for one in vienna.simulator.ask("GET", "/volumes") if "backup/" in one["volid"]]
    past = {**row, "ctime": row["ctime"] - 3600, "new": True}
    munich.simulator.steer("/volumes/pve1", past)
    given = options(vienna, munich, rehearsal=rehearsal, lost=True)
    result = munich.run("failover", check=check, **given | {"storages": ["local"]})
    assert result["failed"], result
    assert "no archive of a guest is visible on local" in result["msg"]
    assert "storages and max_age" in result["msg"]
    result = munich.run("failover", check=check, **given, max_age="30m")
    assert result["failed"], result
    assert "its newest archive is from" in result["msg"]


@pytest.mark.usefixtures("fast", "web")
@pytest.mark.parametrize("exclude", ["names", "numbers"])
def test_a_failover_whose_guests_are_all_excluded_warns(
    vienna: Lab, munich: Lab, exclude: str
) -> None:
    rows = vienna.client.get("cluster", "resources", type="vm")
    key = "name" if exclude == "names" else "vmid"
    left_out = [str(row[key]) for row in rows if row["name"] in ("web", "box")]
    result = munich.run("failover", **options(vienna, munich, exclude=left_out, lost=True))
    assert not result.get("failed"), result
    assert result["guests"] == []
    assert [text for text in result["warnings"] if text.startswith("No guest comes up")]
    # The guests are lines without a sign: the user left them out, and nothing failed.
    if exclude == "names":
        assert {one["name"] for one in result["left_out"]} >= {"web", "box"}
        assert "  web is left out: it is excluded" in result["report"]
    assert result["report"][-1] == "Done: nothing to do"
    assert "skipped" not in result


def test_a_restored_guest_is_not_of_an_older_image_of_itself(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    """The marker of a restored guest has the VMID in its archive, which is not a template."""
    stop(vienna, web)
    assert not munich.run("failover", **options(vienna, munich, vms=["web"])).get("failed")
    templates = munich.client.get("cluster", "resources", type="vm")
    source = next(row["name"] for row in templates if row["template"] and row["type"] == "qemu")
    estate: dict[str, Any] = {"vms": [{"name": "web", "tenant": "acme", "source": source}]}
    (row,) = do(munich, "vms", **estate)["vms"]
    assert row["older_image"] is None, row


@pytest.mark.usefixtures("web")
def test_a_restore_that_outlasts_its_time_limit_is_a_change(vienna: Lab, munich: Lab) -> None:
    """The restore runs on after the task has failed, and its guest appears later."""
    for vm in vienna.client.get("cluster", "resources", type="vm"):
        if vm.get("status") == "running":
            stop(vienna, vm)
    munich.simulator.steer("/settings", {"task_ms": "qmrestore=600000,vzrestore=600000"})
    try:
        result = munich.run("failover", **options(vienna, munich, task_timeout=1))
    finally:
        munich.simulator.steer("/settings", {"task_ms": "qmrestore=0,vzrestore=0"})
    assert result["failed"]
    assert "the task still runs" in result["msg"]
    assert result["changed"]


def test_a_container_of_an_architecture_that_the_site_lacks_is_refused(
    vienna: Lab, munich: Lab, web: dict[str, Any]
) -> None:
    """The programs of a container run on the CPU of its node, without emulation."""
    stop(vienna, web)
    box = container(vienna, node="pve3", hostname="arm", tags="tenant_acme", arch="arm64")
    back_up(vienna, box)
    share_archives(vienna.simulator, munich.simulator)
    given = options(vienna, munich, vms=["arm"])
    munich.simulator.reset_log()
    for check in (True, False):
        result = munich.run("failover", check=check, **given)
        assert "its architecture is x86_64, and the guest needs aarch64" in result["msg"], result
    assert munich.simulator.writes() == []
    munich.simulator.steer("/nodes/pve3", {"arch": "aarch64"})
    assert not munich.run("failover", **given).get("failed")
    (row,) = [one for one in munich.simulator.ask("GET", "/containers") if one["running"]]
    assert row["node"] == "pve3"


def test_a_vm_with_a_device_of_its_node_is_refused(vienna: Lab, munich: Lab) -> None:
    """A mapping of one site says nothing about the devices of another one."""
    entry = {"id": "key", "map": ["node=pve1,id=0951:1666"]}
    vienna.client.write("POST", "cluster", "mapping", "usb", data=entry)
    made = do(vienna, "vm", name="usb", node="pve1", options={"usb0": "mapping=key"}, **WEB)["vm"]
    back_up(vienna, made)
    share_archives(vienna.simulator, munich.simulator)
    munich.simulator.reset_log()
    result = munich.run("failover", **options(vienna, munich))
    assert "its option usb0 uses a device, a file or a program of its node" in result["msg"]
    assert munich.simulator.writes() == []
