# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers that a tenant takes over, and those of other tenants that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def config_of(lab: Lab, vmid: int) -> dict[str, Any]:
    return dict(lab.client.get("nodes", "pve1", "lxc", vmid, "config"))


def test_container_without_a_tenant_is_adopted(lab: Lab) -> None:
    add_container(lab, 700, hostname="web", tags="proxy")
    before = config_of(lab, 700)
    for options in ({"name": "web"}, {"vmid": 700}):
        failure = refused(lab, "container", tenant="acme", cores=2, **options)
    assert failure["error"]["category"] == "Conflict"
    assert "adopt=true of module vm or container" in failure["msg"]
    wanted: dict[str, Any] = {"vmid": 700, "name": "web", "tenant": "acme", "adopt": True}
    foreseen = do(lab, "container", check=True, **wanted)
    assert lab.simulator.writes() == []
    result = do(lab, "container", **wanted)
    assert result["changed"]
    assert (foreseen["plan"], foreseen["diff"]) == (result["plan"], result["diff"])
    assert result["container"]["tenant"] == "acme"
    found = config_of(lab, 700)
    assert set(found.pop("tags").split(";")) == {"proxy", "tenant_acme"}
    unchanged = {key: value for key, value in before.items() if key not in ("tags", "digest")}
    assert unchanged.items() <= found.items()
    assert not do(lab, "container", name="web", tenant="acme", state="present")["changed"]


@pytest.mark.parametrize("tags", ["tenant_globex", "tenant_globex;tenant_initech"])
def test_container_of_another_tenant_is_not_adopted(lab: Lab, tags: str) -> None:
    add_container(lab, 700, hostname="hidden-name", tags=tags)
    for options in ({}, {"state": "started"}, {"state": "absent"}):
        failure = refused(lab, "container", vmid=700, tenant="acme", adopt=True, **options)
        assert failure["error"]["reason"] == "foreign tenant"
        assert failure["msg"].startswith("Container 700 was refused: it belongs to another tenant")
        assert "hidden-name" not in str(failure)


def test_container_with_the_tags_of_several_tenants_is_not_adopted(lab: Lab) -> None:
    add_container(lab, 700, hostname="web", tags="tenant_acme;tenant_globex")
    failure = refused(lab, "container", vmid=700, tenant="acme", adopt=True)
    assert "it has the tags of several tenants" in failure["msg"]
