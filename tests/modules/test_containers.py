# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers share pools, numbers, storages and rights with VMs, and no module takes one for a VM.

What Proxmox VE answers of them is checked in tests/simulator_tests/test_containers.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import as_foreseen, do, refused
from tests.modules.estate_lab import Lab, first_number
from tests.modules.tenant_lab import RIGHTS, made, state_of

NEW: dict[str, Any] = {"name": "initech", **RIGHTS}
NEW_CT: dict[str, Any] = {"source": "debian-13-standard", "default_storage": "ceph"}
GONE: dict[str, Any] = {"name": "initech", "state": "absent", "confirm": "initech"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def make(lab: Lab, vmid: int, *, pool: str | None = None, tags: str = "", **config: Any) -> None:
    """Create a running container on pve1 with a volume on ceph."""
    config = {"hostname": f"ct{vmid}", "rootfs": f"ceph:vm-{vmid}-disk-0,size=1G", **config}
    if tags:
        config["tags"] = tags
    body = {"node": "pve1", "running": True, "pool": pool, "config": config}
    lab.simulator.ask("POST", f"/containers/{vmid}", body)


def drop(lab: Lab, vmid: int) -> None:
    lab.simulator.ask("DELETE", f"/containers/{vmid}", None)


# -- pools -------------------------------------------------------------------------------------


def test_container_is_a_member_of_a_pool(lab: Lab) -> None:
    make(lab, 110)
    made_of = as_foreseen(lab, "pool", name="acme", vms=[110], storages=["ceph"])
    assert made_of["pool"]["vms"] == [110]
    (pool,) = do(lab, "pool_info", name="acme")["pools"]
    assert pool["vms"] == [110]
    stops = refused(lab, "pool", name="acme", state="absent")
    assert "110" in stops["msg"]
    moved = refused(lab, "pool", name="globex", vms=[110])
    assert "already in another pool" in moved["msg"]
    as_foreseen(lab, "pool", name="globex", vms=[110], allow_move=True)
    as_foreseen(lab, "pool", name="globex", vms=[], exact=True)
    unknown = refused(lab, "pool", name="acme", vms=[111])
    assert "there is no VM or container 111" in unknown["msg"]


def test_pool_is_deleted_after_its_containers_were_taken_out(lab: Lab) -> None:
    make(lab, 110, pool="acme")
    do(lab, "pool", name="acme", state="absent", force=True)
    assert "acme" not in {row["poolid"] for row in lab.client.get("pools")}
    assert [row["vmid"] for row in lab.client.get("nodes", "pve1", "lxc")] == [110]


# -- numbers and listings ----------------------------------------------------------------------


def test_number_of_a_container_is_not_chosen(lab: Lab) -> None:
    wanted = first_number("web")
    make(lab, wanted)
    vm = do(lab, "vm", name="web", memory="1G")["vm"]
    assert vm["vmid"] != wanted
    do(lab, "vm", vmid=vm["vmid"], state="absent")
    lowest: dict[str, Any] = {"vmid_range": [10000, 10002], "memory": "1G"}
    make(lab, 10000)
    made_of = do(lab, "vms", vms=[{"name": "a"}, {"name": "b"}], **lowest)
    assert {row["vmid"] for row in made_of["vms"]} == {10001, 10002}
    full = lab.run("vm", name="c", **lowest)
    assert full["error"]["category"] == "QuotaExceeded"


@pytest.mark.parametrize("options", [{"memory": "1G"}, {"source": "debian-13"}], ids=str)
def test_number_that_a_container_takes_at_the_same_time(lab: Lab, options: dict[str, Any]) -> None:
    wanted = first_number("web")
    taken = [["POST", f"/containers/{wanted}", {"node": "pve1"}]]
    lab.simulator.fault(method="POST", path="/nodes/[^/]+/qemu(/9000/clone)?$", steer=taken)
    vm = do(lab, "vm", name="web", **options)["vm"]
    assert vm["vmid"] != wanted
    assert [row["vmid"] for row in lab.client.get("nodes", "pve1", "lxc")] == [wanted]


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("vm", {"name": "web", "memory": "1G"}),
        ("vm", {"name": "web", "source": "debian-13"}),
        ("clone", {"name": "web", "source": "debian-13"}),
    ],
    ids=str,
)
def test_number_of_a_container_that_is_given_is_refused(
    lab: Lab, module: str, options: dict[str, Any]
) -> None:
    make(lab, 500)
    result = refused(lab, module, vmid=500, **options)
    assert result["error"]["category"] == "Conflict"
    assert "a container has the number 500" in result["msg"]
    listed = [{"name": "web", "vmid": 500, "memory": "1G"}]
    for check in (True, False):
        (row,) = lab.run("vms", check=check, vms=listed)["vms"]
        assert "a container has the number 500" in row["msg"]


def test_container_is_not_changed_or_removed_as_a_vm(lab: Lab) -> None:
    make(lab, 500)
    before = lab.client.get("nodes", "pve1", "lxc", 500, "config")
    lab.simulator.reset_log()
    for options in ({"cores": 2}, {"state": "started"}, {"state": "stopped"}):
        assert lab.run("vm", vmid=500, **options)["failed"]
    for check in (True, False):
        gone = lab.run("vm", check=check, vmid=500, state="absent")
        assert "VM 500 was not removed: a container has the number 500" in gone["msg"]
        (row,) = lab.run("vms", check=check, vms=[{"vmid": 500, "state": "absent"}])["vms"]
        assert "a container has the number 500" in row["msg"]
    lab.run("vms", vms=[{"name": "ct500", "vmid": 500}], remove=True)
    assert lab.simulator.writes() == []
    assert lab.client.get("nodes", "pve1", "lxc", 500, "config") == before


def test_name_of_a_container_is_not_free_for_a_vm(lab: Lab) -> None:
    """Both kinds share the names of a tenant, in both directions; other tenants have their own."""
    make(lab, 500, tags="tenant_acme")
    for module, more in (("vm", {}), ("clone", {"source": "debian-13"})):
        result = refused(lab, module, name="ct500", tenant="acme", **more)
        assert result["error"]["reason"] == "name taken"
        assert "a container has that name: 500 on node pve1" in result["msg"]
    assert "name taken" in str(refused(lab, "vm", name="ct500", memory="1G"))
    vm = do(lab, "vm", name="ct500", tenant="globex", memory="1G")["vm"]
    assert vm["vmid"] != 500
    assert not do(lab, "vm", name="ct500", tenant="globex", memory="1G")["changed"]
    do(lab, "vm", name="web", tenant="acme", memory="1G")
    renamed = refused(lab, "vm", name="ct500", vmid=first_number("web", "acme"), tenant="acme")
    assert "was not renamed" in renamed["msg"]


def test_containers_are_not_listed_as_vms(lab: Lab) -> None:
    make(lab, 500, pool="acme", tags="tenant_acme")
    do(lab, "vm", name="web", tenant="acme", pool="acme", memory="1G")
    assert [row["name"] for row in do(lab, "vm_info", tenant="acme")["vms"]] == ["web"]
    info = do(lab, "cluster_info")
    assert info["cluster"]["containers"] == 1
    (acme,) = [row for row in do(lab, "tenant_info")["tenants"] if row["name"] == "acme"]
    assert acme["usage"]["vms"] == 2  # a quota is one over both kinds
    assert acme["containers"] == [500]
    pruned = do(lab, "vms", tenant="acme", pool="acme", vms=[{"name": "web"}], prune=True)
    assert not pruned["changed"]


# -- tenants -----------------------------------------------------------------------------------


def test_stray_containers_stop_the_removal_of_a_tenant(lab: Lab) -> None:
    before = state_of(lab)
    made(lab, "initech")
    make(lab, 500, pool="initech")
    make(lab, 501, tags="tenant_initech")
    make(lab, 502, pool="acme", tags="tenant_acme")
    result = refused(lab, "tenant", **GONE)
    assert result["error"]["reason"] == "strays"
    assert "container 'ct500' (500) is in the pool without a tenant" in result["msg"]
    assert "container 'ct501' (501) has the tag, but is in no pool" in result["msg"]
    assert "502" not in result["msg"]
    for vmid in (500, 501, 502):
        drop(lab, vmid)
    do(lab, "tenant", **GONE)
    assert state_of(lab) == before


def test_containers_of_a_tenant_are_removed_with_it(lab: Lab) -> None:
    before = state_of(lab)
    made(lab, "initech")
    make(lab, 500, pool="initech", tags="tenant_initech")
    do(lab, "vm", name="web", tenant="initech", pool="initech", memory="1G")
    foreseen = do(lab, "tenant", check=True, **GONE)
    unconfirmed = lab.run("tenant", name="initech", state="absent")
    assert "container 'ct500' (500)" in unconfirmed["msg"]
    result = do(lab, "tenant", **GONE)
    assert foreseen["vms"] == result["vms"]
    assert {(row["kind"], row["name"]) for row in result["vms"]} == {
        ("vm", "web"),
        ("container", "ct500"),
    }
    assert foreseen["plan"] == result["plan"]
    assert state_of(lab) == before
    assert not do(lab, "tenant", **GONE)["changed"]


def test_protected_container_keeps_the_tenant(lab: Lab) -> None:
    made(lab, "initech")
    make(lab, 500, pool="initech", tags="tenant_initech", protection="1")
    result = refused(lab, "tenant", **GONE)
    assert "protected" in result["msg"]
    do(lab, "tenant", **GONE, protection=False)
    assert not lab.client.get("nodes", "pve1", "lxc")


@pytest.mark.parametrize("word", ["keep", "remove"])
def test_strays_decides_about_stray_containers(lab: Lab, word: str) -> None:
    made(lab, "initech")
    make(lab, 500)
    make(lab, 501, pool="initech", tags="tenant_acme")
    before = state_of(lab)
    lab.client.write("PUT", "pools", data={"poolid": "initech", "vms": "500"})
    result = do(lab, "tenant", **GONE, strays=word)
    assert "Kept: container 'ct501' (501) has the tags tenant_acme" in result["warnings"]
    assert "initech" not in {row["poolid"] for row in lab.client.get("pools")}
    there = {row["vmid"] for row in lab.client.get("nodes", "pve1", "lxc")}
    assert there == ({500, 501} if word == "keep" else {501})
    if word == "keep":
        line = "Kept: container 'ct500' (500) is in the pool without a tenant"
        assert line in result["warnings"]
        assert state_of(lab)["container 500"] == before["container 500"]


@pytest.mark.usefixtures("fast")
def test_container_that_is_still_made_stops_the_removal(lab: Lab) -> None:
    """A clone has the tags of its source: until it is finished, only its notes name the tenant."""
    made(lab, "initech")
    do(lab, "container", name="base", state="template", **NEW_CT)
    path = "/lxc/[0-9]+/config$"
    lab.simulator.fault(method="PUT", path=path, status=500, message="no", times=50)
    stopped = lab.run("container", name="half", tenant="initech", source="base")
    assert stopped["failed"], stopped
    lab.simulator.clear_faults()
    result = refused(lab, "tenant", **GONE)
    assert "unfinished" in result["msg"], result
    do(lab, "tenant", **GONE, strays="remove")


def test_rights_of_a_tenant_hold_for_a_container_in_its_pool_only(lab: Lab) -> None:
    login = made(lab, "initech")
    make(lab, 500, pool="initech")
    make(lab, 501, pool="acme")
    rows = do(lab, "cluster_info", **login)["cluster"]
    assert rows["containers"] == 1
    result = lab.run("vm", **login, vmid=501, tenant="initech", pool="initech", name="mine")
    assert result["failed"]
    assert "501" in result["msg"]


def test_audit_reports_containers_in_wrong_pools(lab: Lab) -> None:
    for user, name in (("root@pam", "fleet"), ("ops@pve", "auto")):
        lab.client.write("PUT", "access", "users", user, "token", name, data={"expire": 4102444800})
    made(lab, "initech", expire="2099-01-01")
    made(lab, "hooli", expire="2099-01-01")
    make(lab, 500, pool="initech", tags="tenant_initech")
    tenants = {"initech": {"access": RIGHTS}, "hooli": {"access": RIGHTS}}
    assert do(lab, "audit_info", tenants=tenants)["findings"] == []
    make(lab, 501)
    make(lab, 502, pool="initech")
    make(lab, 503, pool="hooli", tags="tenant_initech")
    make(lab, 504, tags="tenant_hooli;tenant_initech")
    make(lab, 505, tags="tenant_umbrella")
    do(lab, "vm", name="a", vmid=600, tenant="hooli", pool="hooli", memory="1G", node="pve1")
    lab.simulator.steer("/vms/600", {"config": {"scsi3": "ceph:vm-500-disk-0,size=1G"}})
    result = do(lab, "audit_info", tenants=tenants)
    assert {(row["kind"], row["subject"]) for row in result["findings"]} == {
        ("no_tenant", "501"),
        ("no_tenant", "502"),
        ("foreign_pool", "502"),
        ("outside_pool", "503"),
        ("foreign_pool", "503"),
        ("several_tenants", "504"),
        ("unknown_tenant", "505"),
        ("foreign_volume", "600"),
    }
    assert (
        "foreign_pool: Container ct502 (502) is in pool initech of another tenant"
        in (result["report"])
    )
    assert result["vms"] == 3
