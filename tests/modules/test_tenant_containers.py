# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers of a tenant, with nothing but the token that module tenant gives it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made

URL = "https://cloud.debian.org/debian-13.iso"
NEW: dict[str, Any] = {
    "name": "ct1",
    "tenant": "initech",
    "pool": "initech",
    "source": "debian-13-standard",
    "default_storage": "ceph",
    "memory": "1G",
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def test_file_of_a_template_needs_a_right_on_its_storage(lab: Lab) -> None:
    """The storage with the file is listed and read with Datastore.Audit (pve-storage: Storage.pm,
    check_volume_access), which image_storages gives.
    """
    login = made(lab, "initech")
    failure = refused(lab, "container", **login, **NEW)
    assert failure["error"]["reason"] == "template missing"
    assert "Datastore.Audit on the storage" in failure["msg"]
    do(lab, "tenant", name="initech", image_storages=["local"], storages=["ceph"])
    login = made(lab, "hooli", image_storages=["local"])
    own = {**NEW, **login, "tenant": "hooli", "pool": "hooli"}
    container = do(lab, "container", **own, state="started", nics=[{"bridge": "vmbr0"}])
    assert container["container"]["status"] == "running"
    # It may not put files there.
    failure = lab.run("storage_download", **login, storage="local", source_url=URL)
    assert failure["error"]["category"] == "PermissionDenied"


def test_container_templates_are_given_as_those_of_vms(lab: Lab) -> None:
    add_container(lab, 700, hostname="golden", template=1, net0="name=eth0,bridge=vmbr0")
    add_container(lab, 701, hostname="other", template=1)
    login = made(lab, "initech", templates=["debian-13", "golden"])
    task = {**login, **NEW, "source": "golden", "full": True}
    do(lab, "container", **task)
    assert do(lab, "container", **task)["changed"] is False
    failure = refused(lab, "container", **{**task, "name": "ct2", "source": "other"})
    assert failure["error"]["reason"] == "template missing"
    result = do(lab, "tenant", name="hooli", templates=["701", "700"], storages=["ceph"])
    assert any("Template 700 has a NIC on vmbr0" in line for line in result["warnings"])
    rights = result["tenant"]["rights"]
    assert rights["/vms/700"] == rights["/vms/701"] == ["tenant_hooli.template"]
    missing = refused(lab, "tenant", name="umbrella", templates=["nosuch"])
    assert "golden" in missing["msg"]


def test_vm_names_the_modules_for_containers(lab: Lab) -> None:
    add_container(lab, 700, hostname="golden", template=1)
    for source in ("golden", "700"):
        failure = refused(lab, "vm", name="copy", tenant="acme", source=source)
        assert "pve.fleet.clone or pve.fleet.container" in failure["msg"]


def test_tenant_with_a_container_alone_is_listed(lab: Lab) -> None:
    add_container(lab, 702, hostname="ct1", tags="tenant_umbrella")
    (tenant,) = do(lab, "tenant_info", name="umbrella")["tenants"]
    assert tenant["containers"] == [702]
    assert tenant["vms"] == []
