# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An option that limits the objects of a task limits them, or the task is refused.

The options come from the declarations. Each module has a task that concerns a guest of globex; the
test adds each limiting option with a value that excludes this guest.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from tests.declared import MODULES
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab

VM, CONTAINER, OWN = 501, 502, 503
SSH = {"type": "in", "action": "ACCEPT", "macro": "SSH"}
TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"

# The value of each option that excludes the guests of globex.
EXCLUDING: dict[str, Any] = {
    "tenant": "acme",
    "tenants": ["acme"],
    "name": "own",
    "vmid": OWN,
    "vms": ["own"],
    "pool": "acme",
    "tags": ["other"],
}

# A task of each module that concerns a guest of globex. Without a task, the text names the reason.
TASKS: dict[str, dict[str, Any] | str] = {
    "backup": {"vmid": VM, "storage": "local"},
    "backup_info": {"vmid": VM},
    "backup_job_info": {},
    "container": {"vmid": CONTAINER, "description": "changed"},
    "container_image": {"vmid": CONTAINER, "state": "returned"},
    "container_info": {"vmid": CONTAINER},
    "drift_info": {"vms": [{"name": "web", "tenant": "globex"}]},
    "estate_info": {"vms": [str(VM)]},
    "firewall": {"scope": "guest", "vmid": VM, "rules": [SSH]},
    "firewall_info": {"scope": "guest", "vmid": VM},
    "ha_resource": {"sid": f"vm:{VM}", "comment": "changed"},
    "firewall_check": "its ends are dictionaries, see below",
    "ha_rule": {
        "name": "apart",
        "type": "resource-affinity",
        "affinity": "negative",
        "resources": [f"vm:{VM}", f"ct:{CONTAINER}"],
    },
    "power": {"state": "stopped", "tenants": ["globex"]},
    "replication": {"id": f"{VM}-0", "target": "pve2"},
    "restore": {"vmid": VM, "new_name": "copy"},
    "snapshot": {"vmid": VM, "snapshot": "one"},
    "snapshot_info": {"vmid": VM},
    "task_info": {"vmid": VM},
    "vm": {"vmid": VM, "cores": 3},
    "vm_info": {"vmid": VM},
    "vms": {"vms": [{"name": "web", "tenant": "globex", "cores": 3}]},
    "audit_info": "tenants describes the tenants of the estate",
    "backup_job": "vms, pool and name are values of the job",
    "clone": "tests/modules/test_clone.py has sources of other tenants",
    "drill_info": "it concerns archives, see tests/modules/test_drill.py",
    "failover": "tests/modules/test_failover.py has two sites",
    "metrics": "tenants describes the tenants of the estate",
    "metrics_info": "tenants describes the tenants of the estate",
    "preflight_info": "tenant, pool and vms are requirements",
    "rebalance": "tests/modules/test_rebalance.py has a full cluster",
    "relocate": "tests/modules/test_relocate.py has two sites",
    "report_info": "tenants describes the tenants of the estate",
    "tidy": "tenant is required, and nothing else chooses guests",
    "volume_info": "vmid is its only choice of guests",
}
# Options that are values of the object itself, or without which the task names nothing.
VALUES: dict[str, set[str]] = {
    "backup_job_info": {"name"},
    "container": {"name", "tags", "pool"},
    "estate_info": {"vms"},
    "ha_rule": {"name"},
    "power": {"tenants"},
    "vm": {"name", "tags", "pool"},
    "vms": {"vms", "tenant", "name", "tags", "pool"},
    "drift_info": {"vms"},
}


def options_of(module: str) -> dict[str, Any]:
    """Return the options of a module as its entry has them."""
    entry = importlib.import_module(f"ansible_collections.pve.fleet.plugins.modules.{module}")
    return dict(entry.ENTRY.spec)


def limits_of(module: str) -> list[str]:
    """Return the options that can limit the task of a module."""
    task = TASKS.get(module)
    if not isinstance(task, dict):
        return []
    return [
        name
        for name in options_of(module)
        if name in EXCLUDING and name not in task and name not in VALUES.get(module, ())
    ]


CASES = [(module, option) for module in TASKS for option in limits_of(module)]


@pytest.fixture
def lab(unused: Lab) -> Lab:
    place: dict[str, Any] = {
        "node": "pve1",
        "pool": "globex",
        "tenant": "globex",
        "state": "started",
    }
    disk = [{"name": "scsi0", "storage": "local-lvm", "size": 1}]
    do(unused, "vm", name="web", vmid=VM, memory="1G", disks=disk, tags=["prod"], **place)
    do(unused, "container", name="box", vmid=CONTAINER, source=TEMPLATE, **place)
    do(unused, "vm", name="own", vmid=OWN, memory="1G", node="pve1", tenant="acme", pool="acme")
    return unused


def names_guest(module: str, result: dict[str, Any]) -> bool:
    """Return whether a result concerns a guest of globex."""
    values = {key: one for key, one in result.items() if key not in ("invocation", "report")}
    text = json.dumps(values)
    return any(word in text for word in (str(VM), str(CONTAINER), '"web"', '"box"'))


def test_every_module_with_a_limiting_option_has_a_task() -> None:
    about_tenants = {"tenant", "tenants"}
    concerned = [name for name in MODULES if about_tenants & options_of(name).keys()]
    assert set(concerned) <= TASKS.keys() <= set(MODULES)


@pytest.mark.parametrize(("module", "option"), CASES)
def test_an_option_limits_or_is_refused(lab: Lab, module: str, option: str) -> None:
    task = TASKS[module]
    assert isinstance(task, dict)
    lab.simulator.reset_log()
    for check in (True, False):
        result = lab.run(module, check=check, **task, **{option: EXCLUDING[option]})
        assert "Traceback" not in str(result), result
        assert lab.simulator.writes() == [], (option, result)
        is_refused = bool(result.get("failed"))
        assert is_refused or not names_guest(module, result), (option, result)


# There is no resource of HA, no archive, and no volume that can be replicated.
REFUSED_ANYWAY = {"ha_rule", "restore", "replication"}


@pytest.mark.parametrize("module", [name for name, task in TASKS.items() if isinstance(task, dict)])
def test_without_the_option_the_task_concerns_the_guest(lab: Lab, module: str) -> None:
    task = TASKS[module]
    assert isinstance(task, dict)
    result = lab.run(module, check=True, **task)
    if module in REFUSED_ANYWAY:
        assert result["error"]["category"] != "ValidationError", result
        return
    assert not result.get("failed"), result
    is_silent = module in ("container_image", "firewall_info")  # the result does not name it
    assert is_silent or result.get("changed") or names_guest(module, result), result


def refused(lab: Lab, module: str, **options: Any) -> str:
    """Return the message of a task that is refused before any write, in check mode too."""
    lab.simulator.reset_log()
    for check in (True, False):
        result = lab.run(module, check=check, **options)
        assert result.get("failed"), result
        assert lab.simulator.writes() == []
    return str(result["msg"])


@pytest.mark.parametrize("module", ["firewall", "firewall_info"])
@pytest.mark.parametrize(
    ("scope", "option", "value"),
    [
        ({"scope": "cluster"}, "tenant", "acme"),
        ({"scope": "cluster"}, "name", "own"),
        ({"scope": "cluster"}, "vmid", OWN),
        ({"scope": "cluster"}, "node", "pve1"),
        ({"scope": "cluster"}, "group", "web"),
        ({"scope": "node", "node": "pve1"}, "tenant", "acme"),
        ({"scope": "node", "node": "pve1"}, "name", "own"),
        ({"scope": "group", "group": "web"}, "tenant", "acme"),
        ({"scope": "group", "group": "web"}, "vmid", OWN),
        ({"scope": "vnet", "vnet": "front"}, "tenant", "acme"),
        ({"scope": "guest", "vmid": VM}, "node", "pve2"),
        ({"scope": "guest", "vmid": VM}, "group", "web"),
    ],
    ids=str,
)
def test_an_option_of_another_scope_is_refused(
    lab: Lab, module: str, scope: dict[str, Any], option: str, value: Any
) -> None:
    do(lab, "firewall", scope="group", group="web", rules=[SSH])
    do(
        lab,
        "sdn",
        zones=[{"name": "lan", "type": "simple"}],
        vnets=[{"name": "front", "zone": "lan"}],
    )
    more: dict[str, Any] = {"rules": []} if module == "firewall" else {}
    refused(lab, module, **scope, **{option: value}, **more)


@pytest.mark.parametrize(
    "end",
    [
        {"node": "pve1", "tenant": "acme"},
        {"address": "192.0.2.1", "tenant": "acme"},
        {"node": "pve1", "vmid": VM},
        {"vmid": VM, "tenant": "acme"},
        {"vmid": VM, "name": "own"},
    ],
    ids=str,
)
def test_each_option_of_an_end_limits_it(lab: Lab, end: dict[str, Any]) -> None:
    refused(lab, "firewall_check", source=end, dest={"node": "pve2"}, dport=22)
