# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each task of the fault table with a login that lacks one privilege: check mode refuses if and
only if the run is refused, with the same sentence.

The privileges are those that the API's schema names for the writes of the task; a write whose check
is code of PVE needs any of all. Sources: pve-access-control, RPCEnvironment.pm; qemu-server,
API2/Qemu.pm; pve-container, LXC.pm; the simulator follows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.path_templates import (
    template_of,
)
from tests.faults.scenarios import NAME, SCENARIOS, TENANT, Scenario, container, machine
from tests.faults.table import open_table
from tests.modules.access_lab import limited
from tests.modules.estate_lab import Lab
from tests.tools.facts.pack_schema import paths_of

_NAMES = re.compile(r"\"([A-Z]\w+(?:\.\w+)+)\"")
_CALLS = {
    re.sub(r"\{[^}]+\}", "{}", f"{method} {path}"): call.get("perm")
    for path, methods in paths_of("9.2").items()
    for method, call in methods.items()
}
# The privileges that code of PVE asks for, beyond the schema.
_OF_CODE = frozenset(
    "Datastore.Allocate Datastore.AllocateSpace Datastore.Audit Mapping.Use SDN.Use Sys.Console"
    " Sys.Modify VM.Allocate VM.Backup VM.Config.CDROM VM.Config.CPU VM.Config.Cloudinit"
    " VM.Config.Disk VM.Config.HWType VM.Config.Memory VM.Config.Network VM.Config.Options"
    " VM.PowerMgmt VM.Replicate".split()
)
_GUESTS = re.compile(r"/(qemu|lxc)\b|vzdump|/content/|replication|/sdn/vnets")
_SUBJECT = {"name": NAME, "tenant": TENANT}


@pytest.fixture(scope="module")
def table() -> Iterator[Lab]:
    with open_table() as lab:
        yield lab


def _prepare(lab: Lab, scenario: Scenario) -> None:
    lab.simulator.clear_faults()
    lab.simulator.reset()
    scenario.prepare(lab)
    lab.simulator.reset_log()


def _privileges(lab: Lab) -> frozenset[str]:
    """Return the privileges that the schema names for the writes since the log was reset."""
    found: set[str] = set()
    for row in lab.simulator.writes():
        call = re.sub(r"\{[^}]+\}", "{}", f"{row['method']} {template_of('/' + row['path'])}")
        found.update(_NAMES.findall(json.dumps(_CALLS.get(call))))
        if _GUESTS.search(row["path"]):
            found |= _OF_CODE
    return frozenset(found)


def _login(lab: Lab, lacking: str) -> dict[str, Any]:
    roles = lab.client.get("access", "roles")
    every = next(row["privs"] for row in roles if row["roleid"] == "Administrator")
    privileges = sorted({*every.split(",")} - {lacking})
    data = {"roleid": "most", "privs": ",".join(privileges)}
    lab.client.write("POST", "access", "roles", data=data)
    return limited(lab, "most", {"/": "most"})


def _refusal(result: Mapping[str, Any]) -> str:
    """Return the sentence of PVE, empty without a refusal for a lack of privileges."""
    text = json.dumps(result)
    found = re.search(r"Permission check failed(?: \([^)]*\))?", text)
    return found[0] if found else ""


def refusals(lab: Lab, scenario: Scenario, lacking: str) -> tuple[str, str]:
    """Return the sentences of check mode and of the run if the login lacks a privilege."""
    _prepare(lab, scenario)
    login = _login(lab, lacking)
    lab.simulator.reset_log()
    foreseen = lab.run(scenario.module, check=True, **{**scenario.options, **login})
    rows = [row for row in lab.simulator.log() if row["path"] == "/access/permissions"]
    assert sum("path" not in row["params"] for row in rows) <= 1, (scenario.key, lacking)
    result = lab.run(scenario.module, **{**scenario.options, **login})
    return _refusal(foreseen), _refusal(result)


def _vm(key: str, options: Mapping[str, Any], **config: Any) -> Scenario:
    return Scenario(key, "vm", {**_SUBJECT, **options}, machine(**config))


def _container(key: str, options: Mapping[str, Any], **config: Any) -> Scenario:
    return Scenario(key, "container", {**_SUBJECT, **options}, containers=container(**config))


def _mapped(kind: str, entry: Mapping[str, Any], **option: Any) -> Scenario:
    mapping = {"type": kind, "name": "mapped", "map": [{"node": "pve1", **entry}]}
    options = {**_SUBJECT, "options": option}
    return Scenario(f"mapped {kind}", "vm", options, machine(), (("mapping", mapping),))


_CARD = {"path": "0000:01:00.0", "id": "10de:2204", "iommugroup": 1, "subsystem_id": "10de:1467"}
# Options whose privileges depend on their values.
OPTIONS = (
    _vm("VLAN", {"nics": [{"name": "net0", "bridge": "vmbr0", "vlan": 7}]}),
    _vm("trunks", {"nics": [{"name": "net1", "bridge": "vmbr0", "trunks": ["5", "7-8"]}]}),
    _vm(
        "cloud-init user",
        {"cloud_init": {"user": "ops"}},
        ide2="ceph:vm-20100-cloudinit,media=cdrom",
    ),
    _vm("cloud-init drive", {"cloud_init": {"user": "ops"}}),
    _vm("new disk", {"disks": [{"name": "scsi3", "size": "1G", "storage": "ceph"}]}),
    _vm("empty CD drive", {"disks": [{"name": "ide3", "iso": "none"}]}),
    _vm("start order", {"options": {"startup": {"order": 3}}}),
    _vm("random numbers", {"options": {"rng0": {"source": "/dev/hwrng"}}}),
    _vm("serial port", {"options": {"serial0": "socket"}}),
    _vm("tags of a VM", {"tags": ["web"]}),
    _mapped("pci", _CARD, hostpci0={"mapping": "mapped"}),
    _mapped("usb", {"id": "0529:0001"}, usb0={"mapping": "mapped"}),
    _mapped("dir", {"path": "/var/lib/vz"}, virtiofs0={"dirid": "mapped"}),
    _container("VLAN of a container", {"nics": [{"name": "net0", "bridge": "vmbr0", "vlan": 7}]}),
    _container(
        "mount", {"mounts": [{"name": "mp1", "size": "1G", "storage": "ceph", "path": "/y"}]}
    ),
    _container("nesting", {"features": {"nesting": True}}),
    _container("name server", {"nameservers": ["10.0.0.1"]}),
    _container("swap", {"swap": "256M"}),
    _container("start order of a container", {"startup": "order=3"}),
    _container("tags of a container", {"tags": ["web"]}),
)


# A task of each rule, and the privilege that it lacks.
SHORT = [
    ("VLAN", "SDN.Use"),
    ("trunks", "SDN.Use"),
    ("cloud-init drive", "VM.Config.Cloudinit"),
    ("new disk", "Datastore.AllocateSpace"),
    ("empty CD drive", "VM.Config.CDROM"),
    ("start order", "Sys.Modify"),
    ("random numbers", "Mapping.Use"),
    ("serial port", "VM.Config.HWType"),
    ("mapped pci", "Mapping.Use"),
    ("mapped usb", "Mapping.Use"),
    ("mapped dir", "Mapping.Use"),
    ("VLAN of a container", "SDN.Use"),
    ("mount", "VM.Config.Disk"),
    ("nesting", "VM.Allocate"),
    ("name server", "VM.Config.Network"),
    ("hibernate", "VM.Config.Disk"),
    ("remove a disk", "Datastore.AllocateSpace"),
    ("move a root file system", "Datastore.AllocateSpace"),
    ("restore", "Datastore.AllocateSpace"),
    ("restore in place", "SDN.Use"),
    ("drill", "Datastore.AllocateSpace"),
    ("failover", "SDN.Use"),
    ("replace the root of a container", "SDN.Use"),
    ("stop a tenant's guests", "VM.PowerMgmt"),
    ("restore in place with a copy", "VM.Config.Options"),
    ("evacuate a node", "Sys.Modify"),
    ("return to a node", "Sys.Modify"),
]


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.key)
def test_check_mode_refuses_each_task_as_the_run(table: Lab, scenario: Scenario) -> None:
    if scenario.options.get("user") == "root@pam":
        pytest.skip("for root@pam with a password only")
    assert not differences(table, scenario)


# As test_check_mode_refuses_as_the_run, with every privilege of each task.
@pytest.mark.long
@pytest.mark.parametrize("scenario", OPTIONS, ids=lambda one: one.key)
def test_check_mode_refuses_each_option_as_the_run(table: Lab, scenario: Scenario) -> None:
    assert not differences(table, scenario)


def differences(lab: Lab, scenario: Scenario) -> dict[str, str]:
    """Return the differences by the privilege that is lacking."""
    _prepare(lab, scenario)
    result = lab.run(scenario.module, **scenario.options)
    assert not result.get("failed"), result
    found: dict[str, str] = {}
    for lacking in sorted(_privileges(lab)):
        foreseen, refused = refusals(lab, scenario, lacking)
        if foreseen != refused:
            found[lacking] = f"check: {foreseen or 'ok'}; run: {refused or 'ok'}"
    return found


@pytest.mark.parametrize(("key", "privilege"), SHORT)
def test_check_mode_refuses_as_the_run(table: Lab, key: str, privilege: str) -> None:
    scenario = next(one for one in (*OPTIONS, *SCENARIOS) if one.key == key)
    foreseen, refused = refusals(table, scenario, privilege)
    assert foreseen == refused
    assert refused.startswith("Permission check failed")
