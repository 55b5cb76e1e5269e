# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection that requires a tenant refuses each task that writes and has none."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.generated.administrative import (
    ADMINISTRATIVE,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.required_tenant import (
    READING,
)
from tests.declared import MODULES
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab

# The modules that need a tenant, each with a task without one. A new module that writes belongs
# here or to the administrative ones.
TASKS: dict[str, list[dict[str, Any]]] = {
    "backup": [{"vmid": 100, "storage": "local"}, {"tags": ["web"], "storage": "local"}],
    "clone": [{"name": "new", "source": "debian-13"}],
    "container_image": [{"name": "web", "source": "debian-13"}],
    "container": [
        {"name": "web", "cores": 2},
        {"name": "web", "state": "absent"},
        {"vmid": 100, "state": "stopped"},
    ],
    "replication": [{"id": "100-0", "target": "pve2"}, {"id": "100-0", "state": "absent"}],
    "restore": [{"vmid": 100, "new_name": "new"}],
    "firewall": [{"scope": "guest", "name": "web", "rules": []}],
    "snapshot": [{"name": "web", "snapshot": "one"}, {"tags": ["prod"], "snapshot": "one"}],
    "tidy": [{}],
    "vm": [
        {"name": "web", "cores": 2},
        {"name": "web", "state": "absent"},
        {"vmid": 100, "state": "stopped"},
    ],
    "vms": [
        {"vms": [{"name": "web"}]},
        {"vms": [{"name": "a", "tenant": "acme"}, {"name": "b"}]},
        {"vms": [{"name": "web"}], "remove": True},
        {"vms": []},
    ],
}

ALWAYS = {"tidy"}  # they have no task without a tenant


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def test_each_module_is_of_one_kind() -> None:
    reading = {name for name in MODULES if name.endswith("_info")} | READING
    assert sorted([*reading, *ADMINISTRATIVE, *TASKS]) == list(MODULES)
    for name in MODULES:
        module = importlib.import_module(f"ansible_collections.pve.fleet.plugins.modules.{name}")
        assert module.ENTRY.name == name


@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
@pytest.mark.parametrize("source", ["task", "site", "environment"])
@pytest.mark.parametrize("module", TASKS)
def test_task_without_a_tenant_is_refused_before_any_request(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, module: str, source: str, check: bool
) -> None:
    more: dict[str, Any] = {"require_tenant": True}
    if source == "site":
        site = {"name": "one", **lab.connection, "require_tenant": True}
        more = {**dict.fromkeys(lab.connection), "sites": [site], "require_tenant": False}
    elif source == "environment":
        monkeypatch.setenv("PROXMOX_REQUIRE_TENANT", "true")
        more = {"require_tenant": False}
    lab.simulator.reset_log()
    for options in TASKS[module]:
        result = lab.run(module, check=check, **options, **more)
        if module in ALWAYS:
            assert "missing required arguments: tenant" in result["msg"]
            continue
        assert result["error"]["reason"] == "require_tenant", options
        assert "Set tenant" in result["msg"]
    assert lab.simulator.log() == []


def test_tasks_with_a_tenant_and_those_that_read_are_not_refused(lab: Lab) -> None:
    required: dict[str, Any] = {"require_tenant": True}
    do(lab, "vm", name="web", tenant="acme", memory="1G", **required)
    do(lab, "vms", vms=[{"name": "a", "tenant": "acme"}], check=True, **required)
    do(lab, "vms", vms=[{"name": "a"}], tenant="acme", check=True, **required)
    do(lab, "snapshot", name="web", tenant="acme", snapshot="one", **required)
    do(lab, "vm_info", **required)
    do(lab, "pool", name="new", **required)
    assert do(lab, "vm", name="web", cores=3)["changed"], "nothing requires it here"


def test_templates_are_made_without_a_tenant_and_no_tenants_vm_becomes_one(lab: Lab) -> None:
    do(lab, "vm", name="web", tenant="acme", memory="1G")
    task: dict[str, Any] = {"state": "template", "require_tenant": True}
    do(lab, "vm", name="golden", memory="1G", disks=[{"size": 1}], **task)
    for check in (True, False):
        result = lab.run("vm", name="web", check=check, **task)
        assert result["error"]["reason"] == "require_tenant"
        assert "it has the tag of a tenant" in result["msg"]


def test_value_that_is_neither_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXMOX_REQUIRE_TENANT", "maybe")
    result = lab.run("vm", name="web", cores=2)
    assert "PROXMOX_REQUIRE_TENANT is 'maybe'" in result["msg"]
