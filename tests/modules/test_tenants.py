# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose a VM is: every module and every way of naming another tenant's VM, and what changes while a
task runs.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins import modules as module_package
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from tests.cases import repeated
from tests.modules.estate_lab import Lab, open_lab

# What a module can be asked to do to a VM, without naming it.
WRITES: dict[str, list[dict[str, Any]]] = {
    "vm": [
        {"cores": 8},
        {"tags": ["x"], "tags_exact": True},
        {"disks": [{"name": "scsi0", "size": "50G"}]},
        {"disks": [{"name": "scsi0", "state": "absent"}]},
        {"state": "started"},
        {"state": "stopped"},
        {"state": "template"},
        {"state": "absent"},
        {"state": "absent", "adopt": True},
        {"adopt": True, "cores": 8},
        {"node": "pve2"},
        {"rebalance": True, "placement": {"exclude": ["pve1"]}},
        {"pool": "acme"},
        {"quota": {"vms": 100}, "cores": 8},
        {"shared_sources": ["theirs", "20001"], "cores": 8},
    ],
    "clone": [{"source": "debian-13"}, {"source": "debian-13", "state": "started"}],
    "snapshot": [
        {"snapshot": "s1"},
        {"snapshot": "before", "state": "absent"},
        {"snapshot": "before", "state": "rolled_back"},
        {"snapshot": "before", "state": "rolled_back", "force": True},
        {"keep": 0, "pattern": "*", "state": "absent"},
    ],
}
# Module vms asks the same of each VM in its list.
WRITES["vms"] = WRITES["vm"]
# Options that let a module use a VM of another tenant as a source.
SOURCES: dict[str, list[dict[str, Any]]] = {
    "vm": [
        {"source": "20001"},
        {"source": "20001", "adopt": True},
        {"source": "20002"},
        {"source": "their-template"},
        {"source": "20003"},
        {"source": "ceph:vm-20001-disk-0"},
        {"disks": [{"import_from": "ceph:vm-20001-disk-0", "size": "9G"}]},
        {"disks": [{"import_from": "ceph:base-20002-disk-0", "size": "9G"}]},
        {"disks": [{"size": 1}, {"name": "ide2", "iso": "ceph:vm-20001-disk-0"}]},
        {"source": "20001", "shared_sources": ["2000", "20001x", "their"]},
    ],
    "clone": [
        {"source": "20001"},
        {"source": "20002"},
        {"source": "theirs"},
        {"source": "their-template"},
        {"source": "20003"},
        {"source": "20001", "snapshot": "before"},
        {"source": "20001", "full": True, "storage": "local-lvm"},
    ],
}
SOURCES["vms"] = SOURCES["vm"]
# What reads: it must not tell anything of another tenant's VM.
READS = ["vm_info", "snapshot_info"]
# What acts on all VMs of a tenant, or on their tasks: tests/modules/test_task_info.py and
# test_tidy.py have foreign ones.
OF_ALL = ["estate_info", "task_info", "tidy"]
# What asks the same with guests of both kinds or with other options, and the test of it.
ELSEWHERE = {
    "backup": "test_backup",
    "backup_info": "test_backup_info",
    "backup_job_info": "test_backup_job",
    "container": "test_container",
    "container_image": "test_container_image",
    "drill_info": "test_drill",
    "container_info": "test_container_info",
    "failover": "test_failover",
    "firewall": "test_firewall",
    "firewall_info": "test_firewall",
    "ha_resource": "test_ha",
    "ha_rule": "test_ha",
    "relocate": "test_relocate",
    "replication": "test_datacenter",
    "restore": "test_restore",
}
NUMBERS: list[dict[str, Any]] = [{"vmid": 20001}, {"name": "theirs", "vmid": 20001}]
NAMES: list[dict[str, Any]] = [{"name": "theirs"}, *NUMBERS]
# No VM is named to these, or only ones that they show to everybody who may see them.
WITHOUT_TENANT = {"cluster_info", "node_info", "preflight_info"}
TENANTS = ["acme", "globe", "globex2", "lobex"]


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    """A cluster with globex's running VM and template, and a VM and a clone of no tenant."""
    with open_lab("--lag-s", "0") as lab:
        lab.vm(
            name="theirs",
            vmid=20001,
            source="debian-13",
            node="pve1",
            tenant="globex",
            state="started",
        )
        lab.client.task(
            "POST", "nodes", "pve1", "qemu", 20001, "snapshot", data={"snapname": "before"}
        )
        lab.vm(
            name="their-template",
            vmid=20002,
            source="debian-13",
            node="pve1",
            tenant="globex",
            state="template",
        )
        lab.vm(name="nobodys", vmid=20003, source="debian-13", node="pve1")
        yield lab


def specification(name: str) -> dict[str, Any]:
    """Return the argument specification of a module, without the connection."""
    return dict(importlib.import_module(f"{module_package.__name__}.{name}").ENTRY.spec)


def test_every_module_that_knows_tenants_is_in_the_table() -> None:
    names = {found.name for found in pkgutil.iter_modules(module_package.__path__)}
    knows = {name for name in names if "tenant" in specification(name)}
    here = WRITES.keys() | set(READS) | set(OF_ALL)
    assert knows - WITHOUT_TENANT == here | ELSEWHERE.keys()
    for module, file in ELSEWHERE.items():
        text = (Path(__file__).parent / f"{file}.py").read_text(encoding="utf-8")
        assert re.search(r"tenant", text), module


# A variable of the environment that is not set, a survey field left empty, a variable without a
# value.
BLANK: list[Any] = ["", "  ", None]
NEEDED: dict[str, dict[str, Any]] = {
    "vm": {"name": "theirs", "state": "absent"},
    "clone": {"name": "mine", "source": "debian-13"},
    "snapshot": {"name": "theirs", "snapshot": "s1"},
    "snapshot_info": {"name": "theirs"},
    "vms": {"vms": [{"name": "theirs", "state": "absent"}]},
}


def assert_refused_without_a_request(
    lab: Lab, module: str, option: str, options: dict[str, Any]
) -> None:
    lab.simulator.reset_log()
    result = lab.run(module, **options)
    assert result.get("failed"), result
    assert result["error"]["category"] == "ValidationFailed"
    assert option in result["msg"]
    assert lab.simulator.log() == []
    # Older Ansible refuses a null by itself where an option is required, as that of tidy.
    if result["error"]["reason"] == "arguments" and (module, options.get(option)) == ("tidy", None):
        assert "'NoneType'" in result["msg"]
        return
    assert result["error"]["reason"] == option
    assert "without a value" in result["msg"]


@pytest.mark.parametrize("blank", ["", "  "], ids=repr)
def test_a_tenants_name_without_a_value_does_not_mean_all(shared: Lab, blank: str) -> None:
    assert_refused_without_a_request(shared, "tenant_info", "name", {"name": blank})


@pytest.mark.parametrize("blank", repeated(BLANK), ids=repr)
@pytest.mark.parametrize("module", sorted([*WRITES, *READS, *OF_ALL]))
def test_a_tenant_without_a_value_is_refused(shared: Lab, module: str, blank: Any) -> None:
    assert_refused_without_a_request(
        shared, module, "tenant", {**NEEDED.get(module, {}), "tenant": blank}
    )


@pytest.mark.parametrize("module", sorted(WRITES.keys() | set(READS) | {"cluster_info"}))
def test_a_tenant_prefix_without_a_value_is_refused(shared: Lab, module: str) -> None:
    assert_refused_without_a_request(
        shared, module, "tenant_prefix", {**NEEDED.get(module, {}), "tenant_prefix": ""}
    )


@pytest.mark.parametrize("blank", BLANK, ids=repr)
def test_a_tenant_without_a_value_is_refused_in_a_list(shared: Lab, blank: Any) -> None:
    items = [
        {"name": "own", "tenant": "acme"},
        {"name": "theirs", "state": "absent", "tenant": blank},
    ]
    assert_refused_without_a_request(shared, "vms", "tenant", {"vms": items})


def test_null_in_a_list_means_the_tenant_given_for_all(shared: Lab) -> None:
    result = shared.run(
        "vms", check=True, tenant="acme", vms=[{"vmid": 20001, "state": "absent", "tenant": None}]
    )
    assert result["vms"][0]["error"]["reason"] == "foreign tenant"


@pytest.mark.parametrize("blank", BLANK, ids=repr)
def test_a_tenant_without_a_value_is_refused_in_the_defaults(shared: Lab, blank: Any) -> None:
    options = {"vms": [{"name": "theirs", "state": "absent"}], "defaults": {"tenant": blank}}
    assert_refused_without_a_request(shared, "vms", "tenant", options)


@pytest.mark.parametrize("blank", ["", [""], ["acme", ""], None], ids=repr)
def test_tenants_without_a_value_are_refused(shared: Lab, blank: Any) -> None:
    options = {"vms": [{"name": "theirs", "tenant": "acme"}], "tenants": blank, "remove": True}
    assert_refused_without_a_request(shared, "vms", "tenants", options)


def test_null_in_a_list_means_the_tenant_of_the_defaults(shared: Lab) -> None:
    items = [{"vmid": 20001, "state": "absent", "tenant": None}]
    result = shared.run("vms", check=True, defaults={"tenant": "acme"}, vms=items)
    assert result["vms"][0]["error"]["reason"] == "foreign tenant"


def test_prune_without_a_tenants_name_is_refused(shared: Lab) -> None:
    options = {"vms": [{"name": "own"}], "pool": "acme", "prune": True, "tenant": ""}
    assert_refused_without_a_request(shared, "vms", "tenant", options)


def rows(table: dict[str, list[dict[str, Any]]]) -> list[Any]:
    return [
        pytest.param(module, options, id=f"{module}-{options}"[:80])
        for module, uses in table.items()
        for options in uses
    ]


def refused(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Return the failure of a module, in check mode and out of it, which must have made no
    write.
    """
    if module == "vms":
        options = {"tenant": options.pop("tenant"), "vms": [options]}
    lab.simulator.reset_log()
    for check in (True, False):
        result = lab.run(module, check=check, **options)
        assert result.get("failed"), result
        assert lab.simulator.writes() == []
    return result["vms"][0] if module == "vms" and "vms" in result else result


@pytest.mark.parametrize("named", repeated(NUMBERS), ids=str)
@pytest.mark.parametrize(("module", "options"), rows(WRITES))
def test_a_foreign_vm_is_refused_and_nothing_is_written(
    shared: Lab, module: str, options: dict[str, Any], named: dict[str, Any]
) -> None:
    for tenant in TENANTS:
        result = refused(shared, module, tenant=tenant, **named, **options)
        assert result["error"]["category"] == "Conflict", result["msg"]
        assert result["error"]["reason"] in ("foreign tenant", "other origin"), result["msg"]
        assert "pve1" not in result["msg"]


@pytest.mark.parametrize(("module", "options"), rows(WRITES))
def test_a_name_never_means_a_foreign_vm(shared: Lab, module: str, options: dict[str, Any]) -> None:
    """The task is about a VM of its own tenant, which does not exist.

    Nothing of the foreign one is shown.
    """
    wanted = {"name": "theirs", "tenant": "acme", **options}
    if module == "vms":
        wanted = {"tenant": "acme", "vms": [{"name": "theirs", **options}]}
    shared.simulator.reset_log()
    result = shared.run(module, check=True, **wanted)
    assert shared.simulator.writes() == []
    assert "globex" not in str(result)
    found = result["vms"][0] if "vms" in result else result.get("vm")
    assert not found or found.get("vmid") != 20001
    if module == "snapshot":
        assert "NotFound" in str(result["error"]) or result["error"]["category"] == "NotFound"


@pytest.mark.parametrize("vms", [["20001"], ["mine-too", "20001"], ["20001", "theirs"]], ids=str)
@pytest.mark.parametrize("options", WRITES["snapshot"], ids=str)
def test_a_foreign_vm_in_a_list_is_refused(
    shared: Lab, options: dict[str, Any], vms: list[str]
) -> None:
    result = refused(shared, "snapshot", tenant="acme", vms=vms, **options)
    errors = [vm["error"] for vm in result["vms"]] if "vms" in result else [result["error"]]
    assert "foreign tenant" in str(errors), result["msg"]
    assert "pve1" not in result["msg"]


def test_a_choice_by_tags_meets_own_vms_only(shared: Lab) -> None:
    for tags in (["tenant_globex"], ["image"], []):
        result = shared.run("snapshot", tenant="globe", tags=tags, snapshot="s1")
        assert result["error"]["reason"] == "unknown tenant", result["msg"]
        assert "vms" not in result


@pytest.mark.parametrize(("module", "options"), rows(SOURCES))
def test_nothing_is_taken_from_a_foreign_vm(
    shared: Lab, module: str, options: dict[str, Any]
) -> None:
    result = refused(shared, module, name="mine", tenant="acme", **options)
    if options.get("source") == "theirs":  # by name, it does not exist for this tenant
        assert result["error"]["category"] == "NotFound", result["msg"]
        assert "their-template" not in result["msg"]
        return
    assert result["error"]["category"] == "Conflict", result["msg"]
    assert result["error"]["reason"] == "foreign tenant", result["msg"]
    assert "shared_sources" in result["msg"]


ATTACHED: list[dict[str, Any]] = [
    {"disks": [{"name": "scsi5", "import_from": "ceph:vm-20001-disk-0", "size": "9G"}]},
    {"disks": [{"name": "scsi5", "import_from": "ceph:base-20002-disk-0", "size": "9G"}]},
    {"disks": [{"name": "sata1", "iso": "ceph:vm-20001-disk-0"}]},
    {"options": {"efidisk0": "ceph:vm-20001-disk-0,efitype=4m"}},
    {"options": {"efidisk0": {"file": "ceph:vm-20001-disk-0"}}},
]


@pytest.mark.parametrize("options", ATTACHED, ids=str)
@pytest.mark.parametrize("new", [True, False])
def test_no_disk_of_a_foreign_vm_is_attached(
    shared: Lab, name: str, options: dict[str, Any], new: bool
) -> None:
    if not new:
        shared.vm(name=name, tenant="acme", source="debian-13")
    result = refused(shared, "vm", name=name, tenant="acme", source="debian-13", **options)
    assert result["error"]["reason"] == "foreign tenant", result["msg"]
    if not new:  # its own disks do not matter here
        assert shared.vm(name=name, tenant="acme", disks=[{"name": "scsi0", "cache": "writeback"}])[
            "changed"
        ]


@pytest.mark.parametrize("module", READS)
def test_a_foreign_vm_is_not_shown(shared: Lab, module: str) -> None:
    shared.simulator.reset_log()
    for tenant in TENANTS:
        for named in ({}, *NAMES):
            result = shared.run(module, tenant=tenant, **named)
            if result.get(
                "failed"
            ):  # it was named, and is not this tenant's; or there is no tenant
                assert named or "there is no tenant" in result["msg"]
                assert result["error"]["category"] in ("Conflict", "NotFound"), result["msg"]
                continue
            assert [
                vm["name"]
                for vm in result["vms"]
                if vm["name"] in ("theirs", "their-template", "nobodys")
            ] == []
    own = shared.run(module, tenant="globex")
    assert "theirs" in [vm["name"] for vm in own["vms"]]
    assert shared.simulator.writes() == []


@pytest.mark.parametrize("module", ["vm", "clone"])
def test_what_is_shared_can_be_cloned(shared: Lab, module: str) -> None:
    for index, (source, listed) in enumerate(
        (
            ("20001", ["theirs"]),
            ("20002", ["20002"]),
            ("their-template", ["their-template"]),
            ("20003", ["nobodys"]),
        )
    ):
        made = shared.run(
            module, name=f"of-{module}-{index}", tenant="acme", source=source, shared_sources=listed
        )
        assert not made.get("failed"), made
        assert made["vm"]["tenant"] == "acme"
        assert [tag for tag in made["vm"]["tags"] if tag.startswith("tenant_")] == ["tenant_acme"]
    made = shared.run(module, name=f"of-{module}-own", tenant="globex", source="their-template")
    assert made["vm"]["tenant"] == "globex"


# -- what changes while a task runs
# -----------------------------------------------------------------


def after_request(
    lab: Lab, matches: Callable[[str, tuple[Any, ...]], bool], then: Callable[[], object]
) -> Any:
    """Do something once, right after the first request that matches was answered and before the
    next is sent.
    """
    real = ProxmoxerTransport.send
    done: list[bool] = []

    def send(self: ProxmoxerTransport, request: Request) -> Any:
        answer = real(self, request)
        if not done and matches(request.method, request.segments):
            done.append(True)
            then()
        return answer

    return mock.patch.object(ProxmoxerTransport, "send", send)


def is_listing(method: str, segments: tuple[Any, ...]) -> bool:
    return segments[:2] == ("cluster", "resources")


@pytest.mark.parametrize(
    "options", [{"cores": 8}, {"state": "absent"}, {"state": "stopped"}, {"tags": ["x"]}], ids=str
)
@pytest.mark.parametrize("by", ["name", "vmid"])
def test_a_vm_that_was_given_away_since_the_listing(
    quiet: Lab, name: str, by: str, options: dict[str, Any]
) -> None:
    vm = quiet.vm(name=name, source="debian-13", tenant="acme", state="started")["vm"]

    def give_away() -> None:
        quiet.simulator.steer(f"vms/{vm['vmid']}", {"config": {"tags": "tenant_globex"}})

    with after_request(quiet, is_listing, give_away):
        result = quiet.refused(**{by: vm[by]}, tenant="acme", **options)
    assert result["error"]["reason"] == "foreign tenant"


def test_a_snapshot_of_a_vm_that_was_given_away_since_the_listing(quiet: Lab, name: str) -> None:
    vm = quiet.vm(name=name, source="debian-13", tenant="acme")["vm"]

    def give_away() -> None:
        quiet.simulator.steer(f"vms/{vm['vmid']}", {"config": {"tags": "tenant_globex"}})

    quiet.simulator.reset_log()
    with after_request(quiet, is_listing, give_away):
        result = quiet.run("snapshot", name=name, tenant="acme", snapshot="s1")
    assert result["error"]["reason"] == "foreign tenant"
    assert quiet.simulator.writes() == []


@pytest.mark.parametrize(
    ("module", "options"), [("vm_info", {"config": True}), ("snapshot_info", {})], ids=str
)
@pytest.mark.parametrize("named", [True, False])
def test_a_vm_that_was_given_away_since_the_listing_is_not_shown(
    quiet: Lab, name: str, module: str, options: dict[str, Any], named: bool
) -> None:
    vm = quiet.vm(name=name, source="debian-13", tenant="acme", description="confidential")["vm"]

    def give_away() -> None:
        quiet.simulator.steer(f"vms/{vm['vmid']}", {"config": {"tags": "tenant_globex"}})

    with after_request(quiet, is_listing, give_away):
        named_by: dict[str, Any] = {"name": name} if named else {}
        result = quiet.run(module, tenant="acme", **options, **named_by)
    assert "confidential" not in str(result)
    assert not result.get("vms") or result["vms"][0].get("error"), result


@pytest.mark.parametrize("module", ["vm", "clone"])
def test_a_source_that_was_given_away_since_the_listing(quiet: Lab, name: str, module: str) -> None:
    vm = quiet.vm(name=name, source="debian-13", tenant="acme")["vm"]

    def give_away() -> None:
        quiet.simulator.steer(f"vms/{vm['vmid']}", {"config": {"tags": "tenant_globex"}})

    quiet.simulator.reset_log()
    with after_request(quiet, is_listing, give_away):
        result = quiet.run(module, name=f"{name}-2", tenant="acme", source=str(vm["vmid"]))
    assert result["error"]["reason"] == "foreign tenant"
    assert quiet.simulator.writes() == []


def test_a_vm_that_is_given_away_while_it_stops_is_not_removed(quiet: Lab, name: str) -> None:
    vm = quiet.vm(name=name, source="debian-13", tenant="acme", state="started")["vm"]

    def is_stop(method: str, segments: tuple[Any, ...]) -> bool:
        return method == "POST" and segments[-1] == "stop"

    def give_away() -> None:
        quiet.simulator.steer(f"vms/{vm['vmid']}", {"config": {"tags": "tenant_globex"}})

    with after_request(quiet, is_stop, give_away):
        result = quiet.run("vm", name=name, tenant="acme", state="absent")
    assert result["error"]["reason"] == "foreign tenant"
    assert result["error"]["done"] == [f"Stop VM '{name}' ({vm['vmid']}) on node {vm['node']}"]
    assert quiet.config(vm)["name"] == name


def test_a_vm_that_was_replaced_while_it_stops_is_not_removed(quiet: Lab, name: str) -> None:
    """Someone else destroys it and makes one of the same number, which is the caller's to
    touch.
    """
    vm = quiet.vm(name=name, source="debian-13", node="pve1", state="started")["vm"]

    def is_stop(method: str, segments: tuple[Any, ...]) -> bool:
        return method == "POST" and segments[-1] == "stop"

    def replace() -> None:
        quiet.simulator.ask("DELETE", f"vms/{vm['vmid']}")
        quiet.client.task(
            "POST", "nodes", "pve1", "qemu", data={"vmid": vm["vmid"], "name": "another"}
        )

    with after_request(quiet, is_stop, replace):
        result = quiet.run("vm", name=name, state="absent")
    assert result["error"]["reason"] == "replaced", result
    assert quiet.config(vm)["name"] == "another"


@pytest.mark.parametrize("by", ["name", "vmid"])
@pytest.mark.parametrize("last", ["pending", "stop"])
def test_a_vm_that_was_renamed_since_it_was_read_is_not_removed(
    quiet: Lab, name: str, last: str, by: str
) -> None:
    """The task named it. What has another name by now is neither stopped nor destroyed."""
    vm = quiet.vm(name=name, source="debian-13", state="started")["vm"]
    options: dict[str, Any] = {"name": name, "state": "absent"}
    if by == "vmid":
        options["vmid"] = vm["vmid"]

    def rename() -> None:
        quiet.simulator.steer(f"vms/{vm['vmid']}", {"config": {"name": "renamed"}})

    with after_request(quiet, lambda _method, segments: segments[-1] == last, rename):
        result = quiet.run("vm", **options)
    assert result["error"]["reason"] == "replaced", result
    assert "is named 'renamed' by now" in result["msg"]
    assert len(result["error"].get("done", [])) == (1 if last == "stop" else 0)
    assert quiet.status(vm) == ("stopped" if last == "stop" else "running")
    assert quiet.run("vm", vmid=vm["vmid"], state="absent")["changed"]


def test_a_vm_that_was_given_away_after_its_digest_was_read(quiet: Lab, name: str) -> None:
    """The update is refused by PVE for its digest.

    The look that follows finds another tenant's VM.
    """
    vm = quiet.vm(name=name, source="debian-13", tenant="acme")["vm"]

    def is_pending(method: str, segments: tuple[Any, ...]) -> bool:
        return segments[-1] == "pending"

    def give_away() -> None:
        quiet.simulator.steer(f"vms/{vm['vmid']}", {"config": {"tags": "tenant_globex"}})

    with after_request(quiet, is_pending, give_away):
        result = quiet.run("vm", name=name, tenant="acme", cores=8)
    assert result["error"]["reason"] == "foreign tenant"
    assert quiet.config(vm)["cores"] != 8


def test_a_name_that_moved_to_another_vm_since_the_listing(name: str) -> None:
    """Two VMs of one tenant swap their names within the seconds in which the listing still knows
    the old ones.
    """
    with open_lab("--lag-s", "0") as lab:
        first = lab.vm(name="first", source="debian-13", tenant="acme")["vm"]
        second = lab.vm(name="second", source="debian-13", tenant="acme")["vm"]
        assert lab.client.get("cluster", "resources", type="vm")
        lab.simulator.steer("settings", {"lag_s": 60})
        for vm, new in ((first, "second"), (second, "first")):
            lab.client.write(
                "PUT", "nodes", vm["node"], "qemu", vm["vmid"], "config", data={"name": new}
            )
        made = lab.vm(name="first", tenant="acme", cores=7)
        assert made["vm"]["vmid"] == second["vmid"]
        assert lab.vm(name="second", tenant="acme", state="absent")["changed"]
        assert lab.config(second)["cores"] == 7


def test_two_vms_of_one_name_in_one_tenant(quiet: Lab, name: str) -> None:
    for vmid in (21001, 21002):
        data = {"vmid": vmid, "name": name, "tags": "tenant_acme"}
        quiet.client.task("POST", "nodes", "pve1", "qemu", data=data)
    for options in ({"cores": 3}, {"state": "absent"}):
        result = quiet.refused(name=name, tenant="acme", **options)
        assert (result["error"]["category"], result["error"]["reason"]) == (
            "Conflict",
            "ambiguous name",
        )
        assert "21001 on pve1, 21002 on pve1" in result["msg"]
        assert "vmid" in result["msg"]
