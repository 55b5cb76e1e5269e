# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tenant that must not have privileged containers, with its own token and without.

Proxmox VE 9 itself lets only callers with Sys.Modify on / create and restore them, and lets others
clone them. Proxmox VE 8 has no such check (pve-container: API2/LXC.pm, create_vm and clone_vm, of
the branches master and stable-bookworm).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.backup_lab import add_nas
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import RIGHTS, made

NEW: dict[str, Any] = {
    "name": "ct1",
    "tenant": "acme",
    "source": "debian-13-standard",
    "default_storage": "ceph",
    "memory": "512M",
}
BANNED: dict[str, Any] = {"allow_privileged": False}
SETTINGS = {"acme": BANNED, "globex": {}}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def owned(lab: Lab, name: str = "initech") -> dict[str, Any]:
    """Return the login of a new tenant, and the options of its containers."""
    login = made(lab, name, storages=["ceph", "local"])
    return {**login, **NEW, "tenant": name, "pool": name}


def test_privileged_container_is_refused_to_the_token_of_a_tenant(lab: Lab) -> None:
    own = owned(lab)
    failure = refused(lab, "container", **own, unprivileged=False, **BANNED)
    assert failure["error"]["category"] == "PermissionDenied"
    assert failure["error"]["reason"] == "privileged"
    assert "tenant initech must not have one (allow_privileged is false)" in failure["msg"]
    do(lab, "container", **own, **BANNED)


def rows_of(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["name"], row["action"]) for row in result["vms"]]


def test_privileged_container_of_a_list_is_refused(lab: Lab) -> None:
    listed = [{**NEW, "unprivileged": False}, {**NEW, "name": "ct2"}]
    task: dict[str, Any] = {"containers": listed, "tenant_settings": SETTINGS}
    for check in (True, False):
        result = lab.run("vms", check=check, **task)
        assert rows_of(result) == [("ct1", "failed"), ("ct2", "created")]
        assert "allow_privileged is false" in result["msg"]
    failure = refused(lab, "vms", containers=listed[:1], defaults=BANNED)
    assert "allow_privileged is false" in failure["msg"]
    other = [{**one, "tenant": "globex"} for one in listed]
    do(lab, "vms", containers=other, tenant_settings=SETTINGS)
    vms = [{"name": "db", "tenant": "acme", "memory": "512M"}]
    do(lab, "vms", vms=vms, tenant_settings=SETTINGS)


def test_clone_of_a_privileged_container_is_refused(lab: Lab) -> None:
    own = owned(lab)
    own_ct: dict[str, Any] = {"tags": "tenant_initech", "pool": "initech", "unprivileged": 0}
    add_container(lab, 700, hostname="golden", template=1, **own_ct)
    task = {**own, "source": "golden", "full": True}
    failure = refused(lab, "container", **task, **BANNED)
    assert "choose a source that is not privileged" in failure["msg"]
    do(lab, "container", **task)


def test_archive_of_a_privileged_container_is_refused(lab: Lab) -> None:
    add_nas(lab)
    add_container(lab, 700, hostname="old", tags="tenant_acme", unprivileged=0)
    lab.client.task("POST", "nodes", "pve1", "vzdump", data={"vmid": 700, "storage": "nas"})
    (row,) = lab.client.get("nodes", "pve1", "storage", "nas", "content", content="backup")
    archive = row["volid"]
    refused(lab, "container", **{**NEW, "source": archive}, **BANNED)
    add_container(lab, 701, hostname="own", tags="tenant_acme")
    failure = refused(
        lab,
        "restore",
        vmid=700,
        archive=archive,
        tenant="acme",
        confirm="old",
        options=BANNED,
        keep="none",
    )
    assert "was not overwritten" in failure["msg"]


def test_existing_container_is_reported_and_can_be_changed(lab: Lab) -> None:
    add_container(lab, 700, hostname="old", tags="tenant_acme", unprivileged=0)
    changed = do(lab, "container", vmid=700, tenant="acme", memory="1G", **BANNED)
    (warning,) = changed["warnings"]
    assert "is privileged, and allow_privileged is false" in warning
    do(lab, "container", vmid=700, tenant="acme", state="absent", **BANNED)


def test_privileged_container_is_not_adopted(lab: Lab) -> None:
    add_container(lab, 700, hostname="old", unprivileged=0)
    add_container(lab, 701, hostname="new")
    failure = refused(lab, "container", vmid=700, tenant="acme", adopt=True, **BANNED)
    assert "was not adopted" in failure["msg"]
    do(lab, "container", vmid=701, tenant="acme", adopt=True, **BANNED)


def test_tenant_and_audit_name_privileged_containers(lab: Lab) -> None:
    made(lab, "initech")
    own: dict[str, Any] = {"tags": "tenant_initech", "pool": "initech"}
    add_container(lab, 700, hostname="old", unprivileged=0, **own)
    add_container(lab, 701, hostname="new", **own)
    add_container(lab, 702, hostname="other", unprivileged=0)
    sentence = "Container old (700) is privileged, which tenant 'initech' must not have"
    assert do(lab, "tenant", name="initech", **RIGHTS, **BANNED)["warnings"].count(sentence) == 1
    assert sentence not in do(lab, "tenant", name="initech", **RIGHTS).get("warnings", [])
    settings = {"access": RIGHTS}
    for volumes in (True, False):
        banned = {"initech": {**settings, **BANNED}}
        found = do(lab, "audit_info", tenants=banned, volumes=volumes)["findings"]
        rows = [row for row in found if row["kind"] == "privileged_container"]
        assert [(row["subject"], row["message"]) for row in rows] == [("700", sentence)]
        found = do(lab, "audit_info", tenants={"initech": settings}, volumes=volumes)["findings"]
        assert not [row for row in found if row["kind"] == "privileged_container"]
