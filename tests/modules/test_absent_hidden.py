# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An object that a login may not see is not taken for absent: every task with C(state=absent), with a
login without any privileges.

Proxmox VE leaves such objects out of the lists of guests (pve-manager, API2/Cluster.pm, resources),
volumes (pve-storage, API2/Storage/Content.pm, index; Storage.pm, check_volume_access), SDN
(pve-network, API2/Network/SDN/*.pm, index), CPU models (pve-manager,
API2/Cluster/Qemu/CustomCPUModels.pm) and rights (pve-access-control, API2/ACL.pm, read_acl).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.access.listed import (
    is_listed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.access.privileges import (
    Privileges,
)
from tests.declared import MODULES
from tests.faults.scenarios import NAME, SCENARIOS, TENANT, Scenario, container, machine
from tests.faults.table import open_table
from tests.modules.access_lab import do, limited
from tests.modules.estate_lab import Lab
from tests.tools.declarations import load
from tests.tools.make_modules import declared_options

SUBJECT = {"name": NAME, "tenant": TENANT, "state": "absent"}
JOB = {"id": "400-0"}
TANK = {"size": 1, "storage": "tank"}
# Tasks of modules without a scenario, and further kinds of objects.
MORE = (
    Scenario("a VM of a list", "vms", {"vms": [SUBJECT]}, machine()),
    Scenario("a container of a list", "vms", {"containers": [SUBJECT]}, containers=container()),
    Scenario("a VM without a tenant", "vm", {"name": NAME, "state": "absent"}, machine()),
    Scenario("a tenant", "tenant", {"name": "acme", "state": "absent"}),
    Scenario(
        "a subnet",
        "sdn",
        {"subnets": [{"cidr": "10.1.0.0/24", "vnet": "front", "state": "absent"}]},
    ),
    Scenario("all zones", "sdn", {"zones": [], "exact": ["zones"]}),
    Scenario("all rights", "acl", {"path": "/pool/acme", "grants": [], "exact": True}),
    Scenario("a name server", "sdn", {"dns": [{"name": "dns1", "state": "absent"}]}),
    Scenario(
        "a replication job",
        "replication",
        {**JOB, "state": "absent"},
        before=(
            ("storage", {"name": "tank", "type": "zfspool", "pool": "tank", "content": ["images"]}),
            ("vm", {"name": "zfs", "vmid": 400, "node": "pve1", "disks": [TANK]}),
            ("replication", {**JOB, "target": "pve2"}),
        ),
    ),
    Scenario("a drill", "drill", {"run": "00ff00", "state": "absent"}),
    Scenario("a cluster option", "cluster_options", {"registered_tags": ["x"], "state": "absent"}),
    Scenario("a Ceph flag", "ceph_flag", {"flags": ["noout"], "state": "absent"}),
    Scenario("a metadata server", "ceph_mds", {"node": "pve1", "state": "absent"}),
    Scenario("a monitor", "ceph_mon", {"node": "pve1", "state": "absent"}),
)
OTHERS = {
    "ha_group": "Proxmox VE 8 only; GET /cluster/ha/groups needs Sys.Audit",
    "role": "every login sees all roles (pve-access-control: API2/Role.pm)",
}


def _removes(value: Any) -> bool:
    """Return whether options contain C(state=absent)."""
    if isinstance(value, Mapping):
        return value.get("state") == "absent" or any(map(_removes, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_removes, value))


TASKS = (*(one for one in SCENARIOS if _removes(one.options)), *MORE)


@pytest.fixture(scope="module")
def table() -> Iterator[Lab]:
    with open_table() as lab:
        yield lab


def _blind(lab: Lab, scenario: Scenario) -> dict[str, Any]:
    """Prepare the scenario, and return its options with a login without privileges."""
    lab.simulator.clear_faults()
    lab.simulator.reset()
    scenario.prepare(lab)
    options = {**scenario.options, "user": None, "password": None}
    options |= limited(lab, "blind", {})
    lab.simulator.reset_log()
    return options


@pytest.mark.parametrize("scenario", TASKS, ids=lambda one: one.key)
def test_a_hidden_object_is_not_taken_for_absent(table: Lab, scenario: Scenario) -> None:
    options = _blind(table, scenario)
    for check in (True, False):
        result = table.run(scenario.module, check=check, **options)
        assert result.get("failed"), result
        assert "bug in the collection" not in result["msg"]
    changes = [row for row in table.simulator.writes() if row["status"] < 400]
    assert changes == []


AUDIT = {"/storage/local": "PVEAuditor", "/storage/local-lvm": "PVEAuditor"}


@pytest.mark.parametrize(
    ("volume", "needed"),
    [
        (
            "local-lvm:vm-20999-disk-0",
            "Datastore.Audit on /storage/local-lvm and VM.Config.Disk on /vms/20999",
        ),
        ("local:snippets/hidden.yaml", "Datastore.Allocate on /storage/local"),
        (
            "local:backup/vzdump-qemu-20101-2026_11_01-00_00_00.vma.zst",
            "Datastore.AllocateSpace on /storage/local and VM.Backup on /vms/20101",
        ),
        ("local:iso/hidden.iso", ""),
    ],
)
def test_a_hidden_volume_is_refused(table: Lab, volume: str, needed: str) -> None:
    """The login may read the list of the storage, which lacks the volume with or without it."""
    table.simulator.reset()
    absent: dict[str, Any] = {"volume": volume, "node": "pve1", "state": "absent"}
    assert not do(table, "volume", **absent)["changed"]
    result = table.run("volume", **absent, **limited(table, "auditor", AUDIT))
    assert bool(result.get("failed")) == bool(needed), result
    if needed:
        assert "Proxmox VE hides it from a login without" in result["msg"]
        assert needed in result["msg"]


@pytest.mark.parametrize("module", ["vm", "container", "vms"])
def test_a_tenant_removes_a_guest_that_is_already_gone(table: Lab, module: str) -> None:
    """A login that sees the tenant's pool sees each of its guests."""

    def task(tenant: str) -> dict[str, Any]:
        guest = {"name": "gone", "tenant": tenant, "state": "absent"}
        return {"vms": [guest]} if module == "vms" else guest

    table.simulator.reset()
    login = limited(table, "own", {"/pool/acme": "PVEVMAdmin"})
    assert not do(table, module, **task("acme"), **login)["changed"]
    result = table.run(module, **task("globex"), **login)
    assert "VM.Audit on /vms, or VM.Audit on /pool/globex" in result["msg"]


def test_a_way_needs_all_of_its_privileges() -> None:
    held = Privileges({"/storage/a": {"Datastore.Audit": 1}, "/vms": {"VM.Audit": 0}})
    audit, disk = ("/storage/a", "Datastore.Audit"), ("/vms/7", "VM.Config.Disk")
    assert is_listed(held, (audit,))
    assert not is_listed(held, (audit, disk))
    assert is_listed(held, (disk,), (audit,))
    assert not is_listed(held, (("/vms/", "VM.Audit"),))  # it does not hold below
    assert is_listed(held, (("/vms", "VM.Audit"),))


def test_every_module_with_absent_is_tried() -> None:
    declarations = load()
    tried = {one.module for one in TASKS} | OTHERS.keys()
    missing = []
    for name in MODULES:
        state = declared_options(name, declarations).get("state") or {}
        if "absent" in (state.get("choices") or ()) and name not in tried:
            missing.append(name)
    assert missing == []
