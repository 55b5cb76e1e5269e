# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module backup_info against the simulator: archives, their guests, and guests without one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, limited, refused, requests
from tests.modules.backup_lab import add_archive, add_nas, add_pbs, container
from tests.modules.estate_lab import Lab
from tests.modules.snapshot_lab import machine
from tests.modules.tenant_lab import made

DAY = 86400


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


def info(lab: Lab, **options: Any) -> dict[str, Any]:
    return do(lab, "backup_info", **options)


def volumes(result: dict[str, Any]) -> list[str]:
    return [row["volume"] for row in result["archives"]]


def vmids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["vmid"] for row in rows]


def test_archives_have_their_guest_and_age(lab: Lab) -> None:
    web = machine(lab, name="web", tags="tenant_acme;web")
    box = container(lab, hostname="box")
    old = add_archive(lab, web, 2 * DAY, notes="before the upgrade", protected=True)
    new = add_archive(lab, web, 3600)
    other = add_archive(lab, box, 60, kind="lxc", storage="local")
    result = info(lab)
    assert volumes(result) == [other, new, old]
    row = result["archives"][2]
    assert {key: row[key] for key in ("vmid", "type", "name", "tenant", "storage", "node")} == {
        "vmid": web["vmid"],
        "type": "qemu",
        "name": "web",
        "tenant": "acme",
        "storage": "nas",
        "node": None,
    }
    assert (row["notes"], row["protected"], row["encrypted"]) == ("before the upgrade", True, False)
    assert 2 * DAY <= row["age"] < 2 * DAY + 120
    assert row["size"] == 1 << 30
    assert (result["archives"][0]["type"], result["archives"][0]["node"]) == ("lxc", box["node"])
    assert result["complete"]
    without = vmids(result["without_backup"])
    assert web["vmid"] not in without
    assert box["vmid"] not in without
    assert {9000, 9001} <= set(without)


def test_requests_do_not_depend_on_the_number_of_archives(lab: Lab) -> None:
    guests = [machine(lab) for _number in range(3)]
    for guest in guests:
        for age in range(5):
            add_archive(lab, guest, age * DAY)
    lab.simulator.reset_log()
    result = info(lab)
    content = [text for text in requests(lab) if text.endswith("/content")]
    assert len(content) == 4  # nas once, local on each of three nodes
    assert len(requests(lab)) == len(content) + len(result["guests"]) + 2
    assert lab.simulator.writes() == []


def test_an_old_archive_is_not_enough(lab: Lab) -> None:
    old, fresh = machine(lab), machine(lab)
    add_archive(lab, old, 3 * DAY)
    add_archive(lab, fresh, 3600)
    names = [old["name"], fresh["name"]]
    assert info(lab, vms=names)["without_backup"] == []
    (row,) = info(lab, vms=names, max_age="26h")["without_backup"]
    assert (row["vmid"], row["archives"], row["backed_up"]) == (old["vmid"], 1, False)


def test_only_the_newest_of_each_guest(lab: Lab) -> None:
    guest = machine(lab)
    add_archive(lab, guest, DAY)
    newest = add_archive(lab, guest, 60)
    result = info(lab, vmid=guest["vmid"], newest=True)
    assert volumes(result) == [newest]
    (row,) = result["guests"]
    assert (row["archives"], row["newest"], row["size"]) == (2, newest, 2 << 30)


def test_a_tenant_and_tags_and_a_pool_choose(lab: Lab) -> None:
    web = machine(lab, tags="tenant_acme;web", pool="acme")
    db = machine(lab, tags="tenant_acme;db")
    other = machine(lab, tags="tenant_globex;web", pool="acme")
    for guest in (web, db, other):
        add_archive(lab, guest, 60)
    assert vmids(info(lab, tenant="acme")["guests"]) == [web["vmid"], db["vmid"]]
    assert vmids(info(lab, tenant="acme", tags=["web"])["archives"]) == [web["vmid"]]
    assert set(vmids(info(lab, pool="acme")["archives"])) == {web["vmid"], other["vmid"]}
    assert vmids(info(lab, tenant="acme", pool="acme")["archives"]) == [web["vmid"]]
    result = refused(lab, "backup_info", tenant="acme", vmid=other["vmid"])
    assert result["error"]["reason"] == "foreign tenant"
    assert other["name"] not in result["msg"]
    assert refused(lab, "backup_info", pool="no")["error"]["reason"] == "unknown pool"


def test_archives_of_an_earlier_guest_are_not_those_of_a_tenant(lab: Lab) -> None:
    first = machine(lab, tags="tenant_globex")
    kept = add_archive(lab, first, 3600)
    lab.client.task("DELETE", "nodes", first["node"], "qemu", first["vmid"])
    data = {"vmid": first["vmid"], "name": "second", "tags": "tenant_acme", "memory": 256}
    lab.client.task("POST", "nodes", "pve1", "qemu", data=data)
    own = info(lab, tenant="acme")
    assert own["archives"] == []
    assert vmids(own["without_backup"]) == [first["vmid"]]
    row = info(lab, detect_reuse=True)["archives"][0]
    assert (row["volume"], row["name"], row["tenant"]) == (kept, None, None)


def test_archives_of_a_removed_guest(lab: Lab) -> None:
    guest = machine(lab)
    kept = add_archive(lab, guest, 3600)
    lab.client.task("DELETE", "nodes", guest["node"], "qemu", guest["vmid"])
    result = info(lab, vmid=guest["vmid"])
    assert volumes(result) == [kept]
    assert result["guests"] == []
    assert "no VM of that name" in refused(lab, "backup_info", name="never")["msg"]


def test_a_backup_server_has_verification_and_encryption(lab: Lab) -> None:
    add_pbs(lab)
    guest = machine(lab)
    add_archive(
        lab,
        guest,
        60,
        storage="pbs",
        encrypted="ab:cd",
        verification={"state": "failed", "upid": "UPID:x"},
    )
    (row,) = info(lab, vmid=guest["vmid"], storages=["pbs"])["archives"]
    assert (row["verification"], row["encrypted"]) == ("failed", True)


def test_a_storage_that_cannot_be_read_is_missing(lab: Lab) -> None:
    guest = machine(lab)
    add_archive(lab, guest, 60)
    lab.simulator.fault(method="GET", path="/storage/nas/content$", status=500, message="down")
    result = info(lab, vmid=guest["vmid"], retries=1)
    assert not result["complete"]
    (row,) = result["missing"]
    assert (row["storage"], row["node"]) == ("nas", None)
    assert result["warnings"] == [row["reason"]]


def test_unknown_storages_and_ages_are_refused(lab: Lab) -> None:
    result = refused(lab, "backup_info", storages=["ceph"])
    assert result["error"]["reason"] == "no storage for backups"
    assert "local, nas" in result["msg"]
    assert "26h" not in refused(lab, "backup_info", max_age="yesterday")["msg"]


def test_hidden_archives_are_reported(lab: Lab) -> None:
    guest = machine(lab)
    add_archive(lab, guest, 60)
    login = limited(lab, "reader", {"/": "PVEAuditor"})
    result = info(lab, vmid=guest["vmid"], **login)
    assert result["archives"] == []
    assert not result["complete"]
    assert "Datastore.AllocateSpace on /storage/nas" in result["warnings"][-1]


def test_a_tenant_reads_with_its_own_token(lab: Lab) -> None:
    login = made(lab, "seer", storages=["ceph", "nas"], operations=["read", "backup"])
    own = machine(lab, tags="tenant_seer", pool="seer")
    other = machine(lab, tags="tenant_globex", pool="globex")
    mine = add_archive(lab, own, 60)
    add_archive(lab, other, 60)
    for options in ({}, {"tenant": "seer"}):
        result = info(lab, storages=["nas"], **options, **login)
        assert volumes(result) == [mine]
        assert result["complete"]
