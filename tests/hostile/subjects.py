# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that reads answers: the tasks of the fault table, the tasks that only read, the
inventory and the lookup.
"""

from __future__ import annotations

import json
import shutil
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

from ansible.errors import AnsibleError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import inventory_loader, lookup_loader

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.advance import advance
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.model import (
    NodeTasks,
    SitePosition,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.read_site import read_site
from tests.declared import minimal_tasks
from tests.faults.scenarios import LIMITS, NAME, ROOT, SCENARIOS, TENANT, VMID, Scenario, machine
from tests.labs.events import OPTIONS
from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module

from .recordings import Recording, recording

_AGENT = {"agent": "1", "ipconfig0": "ip=10.0.0.7/24,gw=10.0.0.1"}
RUNNING = machine(True, **_AGENT)
_FILE: Mapping[str, Any] = {
    "options": {"max_workers": 3},
    "groups": [{"name": "editors"}],
    "networks": [{"node": "pve1", "interfaces": [{"name": "vmbr5", "type": "bridge"}]}],
    "storages": [{"name": "ceph", "content": ["images"]}],
    "pools": [{"name": "acme", "comment": "Acme"}],
    "backup_jobs": [{"name": "nightly", "schedule": "02:30", "all": True, "storage": "local"}],
}


@dataclass(frozen=True)
class Subject:
    """A task that reads answers; `kind` is a module, or "inventory" or "lookup".

    `there` are VMs and `containers` containers, as entries of a cluster file; `before` are tasks
    that are done first, and `archives` has the content of archives by volume.
    `steering` are requests to the control plane of the simulator. `fails` says that the task fails
    with the right answers too.
    """

    key: str
    kind: str
    options: Mapping[str, Any]
    there: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    before: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    containers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    steering: tuple[tuple[str, str, Any], ...] = ()
    fails: bool = False
    archives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def scenario(self) -> Scenario:
        """What is there before, in the form of the fault table."""
        return Scenario(
            self.key,
            self.kind,
            self.options,
            self.there,
            self.before,
            containers=self.containers,
            archives=self.archives,
        )

    def record(self, lab: Lab, place: Path) -> Recording:
        """Return what the task is answered when nothing is wrong."""
        lab.simulator.reset()
        for control in self.steering:
            lab.simulator.ask(*control)
        with recording(Recording()):
            self.scenario.prepare(lab)
        found = Recording()
        with recording(found):
            found.result = self.run(lab, place)
        assert bool(found.result.get("failed")) is self.fails, (self.key, found.result)
        lab.simulator.clear_faults()
        return found

    def run(self, lab: Lab, place: Path) -> dict[str, Any]:
        """Return the result; a failure has `failed`, `msg` and what else a module returns."""
        return _RUNNERS.get(self.kind, self._as_module)(lab, dict(self.options), place)

    def _as_module(self, lab: Lab, options: dict[str, Any], _place: Path) -> dict[str, Any]:
        return run_module(self.kind, {**lab.connection, **options})


def _inventory(lab: Lab, options: dict[str, Any], place: Path) -> dict[str, Any]:
    """Return groups and variables that the inventory plugin makes of a file with these options."""
    file = place / "fleet.proxmox.yml"
    data = {"plugin": "pve.fleet.proxmox", **lab.connection, **options}
    text = json.dumps(data)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
    inventory = InventoryData()

    def fill() -> dict[str, Any]:
        plugin = inventory_loader.get("pve.fleet.proxmox")
        plugin.parse(inventory, DataLoader(), str(file), cache=False)
        hosts = {name: _plain(host.vars) for name, host in inventory.hosts.items()}
        groups = {name: sorted(map(str, group.hosts)) for name, group in inventory.groups.items()}
        return {"hosts": hosts, "groups": groups}

    return _guarded(fill)


def _lookup(lab: Lab, options: dict[str, Any], _place: Path) -> dict[str, Any]:
    """Return what the lookup plugin finds."""
    terms = options.pop("terms")

    def find() -> dict[str, Any]:
        plugin = lookup_loader.get("pve.fleet.vm")
        given = {**lab.connection, **options}
        return {"found": _plain(plugin.run(terms, variables={}, **given))}

    return _guarded(find)


def _guarded(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result, or the failure that Ansible would print; `exception` is a traceback."""
    try:
        return work()
    except AnsibleError as error:
        return {"failed": True, "msg": str(error)}
    except FleetError as error:
        return {"failed": True, **error.as_result()}
    except Exception as error:
        return {"failed": True, "msg": str(error), "exception": traceback.format_exc()}


def _plain(value: Any) -> Any:
    """Return the value as JSON has it: what a consumer of the result can read."""
    return json.loads(json.dumps(value, default=str))


def _metrics(lab: Lab, options: dict[str, Any], place: Path) -> dict[str, Any]:
    """Return what module metrics says of a file that is new each time."""
    file = place / "hostile.prom"
    file.unlink(missing_ok=True)
    return run_module("metrics", {**lab.connection, **options, "path": str(file)})


def _usage(lab: Lab, options: dict[str, Any], place: Path) -> dict[str, Any]:
    """Return what module usage says of the second sample in a directory that is new each time.

    The second sample is taken a minute after the first one: samples of one second are one sample.
    """
    directory = place / "usage"
    shutil.rmtree(directory, ignore_errors=True)
    given = {**lab.connection, **options, "path": str(directory)}
    now = int(time.time())
    with mock.patch.object(Clock, "time", return_value=float(now)):
        first = run_module("usage", given)
    if first.get("failed"):
        return first
    with mock.patch.object(Clock, "time", return_value=float(now + 60)):
        return run_module("usage", given)


def _events(lab: Lab, options: dict[str, Any], _place: Path) -> dict[str, Any]:
    """Return the events of two readings, the second of which finds everything new."""

    def read() -> dict[str, Any]:
        wanted = replace(OPTIONS, **options)
        events: list[dict[str, Any]] = []
        position = SitePosition()
        with connect({**lab.connection, "retries": 1}, {}) as client:
            for _number in range(2):
                reading = read_site(client, position, wanted)
                position, found = advance(position, reading, wanted)
                events += found
                json.dumps(found)
                unknown = {node: NodeTasks(0, {}, {}) for node in position.nodes}
                position = replace(position, tasks=unknown, guests={}, nodes=(), checked=0)
        if reading.error is not None:
            raise reading.error
        plain = [{**event, "id": "", "time": "", "newest": ""} for event in events]
        return {"events": sorted(plain, key=json.dumps)}

    return _guarded(read)


def _drill(lab: Lab, options: dict[str, Any], _place: Path) -> dict[str, Any]:
    """Return the outcome of each guest of the first round of a drill, whose copies are removed."""
    place = {**lab.connection, "vmid_range": [900000, 900000]}
    plan = run_module("drill_info", {**place, **options})
    if plan.get("failed") or not plan["rounds"]:
        return plan
    of_run = {**place, "run": "00aa11", "wait_timeout": 1, "settle": 0, "task_timeout": 60}
    guests = plan["rounds"][0]
    done = run_module("drill", {**of_run, "guests": guests})
    removed = run_module("drill", {**of_run, "guests": guests, "state": "absent"})
    failed = [one for one in (done, removed) if "exception" in one]
    if failed:
        return failed[0]
    outcomes = [(row["vmid"], row["outcome"]) for row in done.get("guests") or ()]
    return {"outcomes": outcomes}


_RUNNERS = {
    "a drill": _drill,
    "inventory": _inventory,
    "lookup": _lookup,
    "metrics": _metrics,
    "usage": _usage,
    "events": _events,
}


def of_scenario(scenario: Scenario) -> Subject:
    """Return the subject that is a row of the fault table."""
    return Subject(
        scenario.key,
        scenario.module,
        scenario.options,
        scenario.there,
        scenario.before,
        scenario.containers,
        archives=scenario.archives,
    )


_CEPH: tuple[tuple[str, str, Mapping[str, Any]], ...] = (("PUT", "/cluster", {"ceph": {}}),)
_OSDS = {"0": {"host": "pve1", "up": True, "in": True}}
_WITH_OSDS = (("PUT", "/cluster", {"ceph": {"osds": _OSDS, "flags": ["noout"]}}),)
_MONITOR = ("ceph_mon", {"node": "pve2"})
_SNAPSHOT = ("snapshot", {"name": NAME, "tenant": TENANT, "snapshot": "one"})
_MINE = {"name": NAME, "tenant": TENANT}
_SAVED = (("backup", {"name": "neighbour", "tenant": TENANT, "storage": "local"}),)

# A tenant with a network of its own, in a cluster whose firewall is on.
_TEAMS = ("sdn", {"zones": [{"name": "teams", "type": "vlan", "bridge": "vmbr0"}]})
_FIREWALL = ("firewall", {"scope": "cluster", "options": {"enable": True}})
_FRONT = {"front": {"zone": "teams", "tag": 100, "subnet": "10.1.0.0/24"}}
_NETWORKING = {"name": "initech", "networks": _FRONT}
_WITH_NETWORK = (_TEAMS, _FIREWALL, ("tenant", _NETWORKING))
_ON_NETWORK = {
    "name": "app",
    "blank": True,
    "tenant": "initech",
    "memory": "512M",
    "nics": [{"network": "front", "ip": "dhcp"}],
    **LIMITS,
}

_CARD = {"path": "0000:01:00.0", "id": "10de:2204", "subsystem_id": "10de:1467", "iommugroup": 1}
_PCI = {"type": "pci", "name": "gpu", "map": [{"node": "pve1", **_CARD}]}

READING: tuple[Subject, ...] = (
    Subject("facts of a VM", "vm_info", {**_MINE, "config": True}, RUNNING),
    Subject("facts of all VMs", "vm_info", {}, RUNNING),
    Subject("facts of a node", "node_info", {"node": "pve1", "details": True}),
    Subject("facts of all nodes", "node_info", {}, RUNNING),
    Subject("facts of the cluster", "cluster_info", {"networks": True}, RUNNING),
    Subject(
        "requirements",
        "preflight_info",
        {
            "tasks": ["vm_create", "vm_clone", "snapshot", "storage_download"],
            "vms": [NAME],
            "templates": ["debian-13"],
            "nodes": ["pve1"],
            "storages": [{"name": "ceph", "content": "images"}],
            "bridges": ["vmbr0"],
            "pool": "acme",
            "min_version": "8.0",
        },
        RUNNING,
    ),
    Subject(
        "snapshots of a VM", "snapshot_info", {**_MINE, "details": True}, RUNNING, (_SNAPSHOT,)
    ),
    Subject("tasks", "task_info", {"limit": 5, "log": True}, RUNNING, (_SNAPSHOT,)),
    Subject("a pool", "pool_info", {"name": "acme"}, RUNNING),
    Subject("all pools", "pool_info", {}),
    Subject("groups", "group_info", {}),
    Subject("a user", "user_info", {"name": "ops@pve"}),
    Subject("users", "user_info", {}),
    Subject("roles", "role_info", {}),
    Subject("rights", "acl_info", {}),
    Subject("audit", "audit_info", {}, RUNNING),
    Subject("metrics", "metrics_info", {"quotas": {TENANT: {"vms": 3}}}, RUNNING, (_SNAPSHOT,)),
    Subject("a file of metrics", "metrics", {}, RUNNING),
    Subject(
        "events",
        "events",
        {"max_age": 3600.0, "quotas": {TENANT: {"vms": 1}}, "storage_limit": 1.0},
        RUNNING,
        (_SNAPSHOT,),
    ),
    Subject("a mapping of a PCI device", "mapping", _PCI),
    Subject(
        "mappings checked on a node",
        "mapping_info",
        {"check_node": "pve1"},
        before=(("mapping", {**_PCI, "mdev": True}),),
    ),
    Subject("realms", "realm_info", {}),
    Subject(
        "a report",
        "report_info",
        {"estate": {"vms": [{"name": "neighbour", "cores": 3}]}, "prices": {"core": "1"}},
        RUNNING,
        (_SNAPSHOT,),
    ),
    Subject("a round of a drill", "a drill", {"vms": ["neighbour"], "tenant": TENANT}, {}, _SAVED),
    Subject(
        "replicas of a lost node",
        "failover",
        {"lost_nodes": ["pve3"], "replicas": {"pve1": []}, "rehearsal": True},
        RUNNING,
        fails=True,
    ),
    Subject("archives", "backup_info", {"max_age": "1h", "newest": True}, {}, _SAVED),
    Subject(
        "backup jobs of an estate",
        "vms",
        {
            "vms": [{"name": "neighbour"}],
            "tenant": TENANT,
            "backup": {"schedule": "02:30", "storage": "local"},
        },
        before=(("backup_job", {"name": "all", "schedule": "1:00", "all": True}),),
    ),
    Subject("drift", "drift_info", {"vms": [{"name": "neighbour", "cores": 3}]}, RUNNING),
    Subject("drift of a cluster file", "drift_info", {"cluster": _FILE}),
    Subject("an estate", "estate_info", {}, RUNNING),
    Subject("options of the cluster", "cluster_options_info", {}),
    Subject("a tenant", "tenant", {"name": "initech", "quota": {"vms": 3}}),
    Subject("networks of a tenant", "tenant", _NETWORKING, before=(_TEAMS, _FIREWALL)),
    Subject(
        "a tenant with networks leaves",
        "tenant",
        {"name": "initech", "state": "absent", "confirm": "initech"},
        before=_WITH_NETWORK,
    ),
    Subject(
        "audit of networks",
        "audit_info",
        {"backups": True},
        before=(*_WITH_NETWORK, ("vm", _ON_NETWORK)),
    ),
    Subject("a VM on a network", "vm", _ON_NETWORK, before=_WITH_NETWORK),
    Subject(
        "hosts on a network",
        "inventory",
        {"fetch": ["config"], "tenant": "initech", "strict": True},
        before=(*_WITH_NETWORK, ("vm", _ON_NETWORK)),
    ),
    Subject("tenants", "tenant_info", {}, RUNNING),
    Subject("tokens", "token_info", {"owner": "ops@pve"}),
    Subject(
        "hosts",
        "inventory",
        {"fetch": ["addresses", "config", "snapshots"], "tenant": TENANT, "strict": True},
        RUNNING,
        (_SNAPSHOT,),
    ),
    Subject(
        "hosts of sites",
        "inventory",
        {"group_by": ["node", "status", "tag", "pool", "tenant", "site"], "dead_site": "report"},
        RUNNING,
    ),
    Subject("a VM by name", "lookup", {"terms": [NAME], "tenant": TENANT}, RUNNING),
    Subject("a VM by number", "lookup", {"terms": [str(VMID)]}, RUNNING),
    Subject(
        "a user with groups",
        "user",
        {"name": "faulty@pve", "groups": ["faulty"]},
        before=(("group", {"name": "faulty"}),),
    ),
    Subject(
        "rights of a stranger",
        "acl",
        {"path": "/pool/acme", "grants": [{"user": "nosuch@pve", "role": "PVEVMUser"}]},
        fails=True,
    ),
    Subject(
        "a token of a user that does not exist",
        "token",
        {"owner": "nosuch@pve", "name": "auto", "comment": "x"},
        fails=True,
    ),
    Subject("a Ceph pool", "ceph_pool", {"name": "new", "crush_rule": "replicated_rule"}),
    Subject("accounts of ACME", "acme_account_info", ROOT),
    Subject("Ceph pools", "ceph_pool_info", {}, steering=_CEPH),
    Subject("the state of Ceph", "ceph_info", {}, steering=_WITH_OSDS),
    Subject("a task that does not exist", "task", minimal_tasks()["task"], fails=True),
    Subject("a Ceph monitor", "ceph_mon", {"node": "pve2", "state": "absent"}, before=(_MONITOR,)),
    Subject("an HA group of Proxmox VE 9", "ha_group", {"name": "nowhere"}, fails=True),
    Subject("HA groups of Proxmox VE 9", "ha_group_info", {}, fails=True),
    Subject("a pool below", "pool", {"name": "acme/inner"}),
    Subject(
        "a task with warnings",
        "vm",
        {**_MINE, **LIMITS, "state": "started"},
        machine(),
        steering=(("POST", "/faults", {"task": "qmstart", "warn": "beware"}),),
    ),
    Subject(
        "a VM of a number within a quota",
        "vm",
        {
            "name": "fresh",
            "vmid": 20900,
            "tenant": TENANT,
            "disks": [{"size": 1, "storage_class": "files"}],
            "storage_classes": {"files": {"storage": "local", "type": "thin"}},
            "quota": {"vms": 9, "disk": "900G"},
            "pool": "acme",
            **LIMITS,
        },
        RUNNING,
    ),
    Subject(
        "a VM of an image",
        "vm",
        {
            "name": "fresh",
            "node": "pve1",
            "disks": [
                {
                    "size": 9,
                    "storage": "ceph",
                    "import_from": "local:import/debian-13-genericcloud-amd64.qcow2",
                }
            ],
            **LIMITS,
        },
    ),
    Subject(
        "a VM of an ISO by its name",
        "vm",
        {"name": "fresh", "source": "debian-13-netinst.iso", "disks": [{"size": 9}], **LIMITS},
    ),
    Subject(
        "a clone of a snapshot",
        "clone",
        {"name": "fresh", "source": str(VMID), "snapshot": "one", "full": True, **LIMITS},
        machine(),
        (_SNAPSHOT,),
    ),
    Subject("out of its pool", "vm", {**_MINE, **LIMITS, "pool": ""}, machine()),
    Subject(
        "a snapshot of files",
        "snapshot",
        {**_MINE, **LIMITS, "snapshot": "two"},
        machine(scsi1=f"local:{VMID}/vm-{VMID}-disk-1.qcow2,size=1G"),
    ),
    Subject("nothing to change", "vm", {**_MINE, "cores": 1, "wait_for": "address"}, RUNNING),
)

_CHOSEN: tuple[Subject, ...] = (*map(of_scenario, SCENARIOS), *READING)


def declared() -> tuple[Subject, ...]:
    """Return a subject for each module that has no other: the task of its declaration."""
    chosen = {subject.kind for subject in _CHOSEN} | {"relocate"}  # it has two sites
    return tuple(
        Subject(f"the task of {name}", name, options)
        for name, options in minimal_tasks().items()
        if name not in chosen
    )


SUBJECTS: tuple[Subject, ...] = (*_CHOSEN, *declared())
