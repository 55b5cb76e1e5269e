# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module drift_info against the simulator: what differs, who did it, and what cannot be known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import (
    group_name,
    vnet_id,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.origin import origin_of
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.marker import Marker
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from tests.modules.access_lab import ROOT, do, limited
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import check, machine, refused
from tests.modules.tenant_lab import RIGHTS

SCHEMA = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "drift.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
DEFAULTS: dict[str, Any] = {
    "tenant": "acme",
    "cores": 1,
    "memory": 256,
    "disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}],
}
WEB, DB = {"name": "web"}, {"name": "db", "state": "started"}
ESTATE: dict[str, Any] = {"defaults": DEFAULTS, "vms": [WEB, DB]}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.fixture
def made(lab: Lab) -> dict[str, dict[str, Any]]:
    """The VMs of the estate, as module vms creates them."""
    return provision(lab, **ESTATE)


def provision(lab: Lab, **options: Any) -> dict[str, dict[str, Any]]:
    result = lab.run("vms", **options)
    assert not result.get("failed"), result
    return {row["name"]: row for row in result["vms"]}


def compared(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the report, which must be as its schema says and cost no write."""
    result = check(lab, "drift_info", **options)
    VALIDATOR.validate(result["drift"])
    assert result["changed"] is False
    return result


def drift(lab: Lab, **options: Any) -> dict[str, Any]:
    report: dict[str, Any] = compared(lab, **options)["drift"]
    return report


def vms(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {vm["name"]: vm for vm in report["vms"]}


def put(lab: Lab, vm: dict[str, Any], **config: Any) -> None:
    path = ("nodes", vm["node"], "qemu", vm["vmid"], "config")
    lab.client.task("POST", *path, data=config)


def test_no_drift_after_a_run(lab: Lab, made: dict[str, Any]) -> None:
    result = compared(lab, **ESTATE, unlisted=False)
    report = result["drift"]
    assert (report["drift"], report["complete"]) == (False, True)
    assert {vm["status"] for vm in report["vms"]} == {"in_sync"}
    assert result["report"] == ["No drift: in_sync 2"]
    requests = len(lab.simulator.log())
    check(lab, "vms", **ESTATE)
    assert requests == len(lab.simulator.log())


def test_each_option_with_who_did_it(lab: Lab, made: dict[str, Any]) -> None:
    put(lab, made["web"], cores=4, description="by hand")
    node, vmid = made["web"]["node"], made["web"]["vmid"]
    for command in ("stop", "start"):  # change no option
        lab.client.task("POST", "nodes", node, "qemu", vmid, "status", command)
    report = drift(lab, **ESTATE)
    web = vms(report)["web"]
    assert report["drift"]
    assert web["status"] == "drifted"
    assert web["options"] == [{"option": "cores", "wanted": 1, "actual": 4, "pending": None}]
    assert (web["last_task"]["type"], web["last_task"]["user"]) == ("qmconfig", "root@pam")
    assert web["last_task"]["token"] == "fleet"
    assert vms(report)["db"]["status"] == "in_sync"
    assert vms(report)["db"]["last_task"] is None


def test_the_plan_is_that_of_a_run(lab: Lab, made: dict[str, Any]) -> None:
    put(lab, made["web"], cores=4, memory=512, net0="virtio,bridge=vmbr0")
    estate = {**ESTATE, "vms": [{**WEB, "nics": [{"name": "net0", "bridge": "vmbr1"}]}, DB]}
    row = check(lab, "vms", **estate)["vms"][0]
    web = vms(drift(lab, **estate))["web"]
    assert web["steps"] == row["plan"]
    assert [one["option"] for one in web["options"]] == ["cores", "memory", "net0"]
    provision(lab, **estate)
    assert not drift(lab, **estate, unlisted=False)["drift"]


def test_pending_options(lab: Lab, made: dict[str, Any]) -> None:
    estate = {**ESTATE, "vms": [WEB, {**DB, "memory": 512}]}
    provision(lab, **estate)
    db = vms(drift(lab, **estate))["db"]
    assert db["status"] == "pending"
    assert db["options"] == [
        {"option": "memory", "wanted": 512, "actual": 256, "pending": {"value": 512}}
    ]
    # one that was left pending by hand is not as wanted after the next stop either
    db = vms(drift(lab, **ESTATE))["db"]
    assert db["status"] == "drifted"
    assert db["options"] == [
        {"option": "memory", "wanted": 256, "actual": 256, "pending": {"value": 512}}
    ]


def test_power_node_and_pool(lab: Lab, made: dict[str, Any]) -> None:
    db = made["db"]
    lab.client.task("POST", "nodes", db["node"], "qemu", db["vmid"], "status", "stop")
    estate = {**ESTATE, "vms": [{**WEB, "pool": "acme"}, DB]}
    report = vms(drift(lab, **estate))
    assert report["db"]["options"] == [
        {"option": "status", "wanted": "running", "actual": "stopped", "pending": None}
    ]
    assert report["db"]["last_task"]["type"] == "qmstop"
    assert report["web"]["options"] == [
        {"option": "pool", "wanted": "acme", "actual": None, "pending": None}
    ]


def test_missing_unwanted_and_unlisted(lab: Lab, made: dict[str, Any]) -> None:
    stray = machine(lab, name="stray", tags="tenant_globex", node="pve3")
    estate = {**ESTATE, "vms": [{**WEB, "state": "absent"}, {"name": "new"}]}
    result = compared(lab, **estate)
    report = result["drift"]
    assert {name: vm["status"] for name, vm in vms(report).items()} == {
        "web": "unwanted",
        "new": "missing",
    }
    assert vms(report)["new"]["vmid"] is None
    others = {vm["name"]: vm for vm in report["unlisted"]}
    assert others.keys() == {"db", "stray"}
    assert others["stray"] | {"last_task": None} == {
        "name": "stray",
        "kind": "vm",
        "tenant": "globex",
        "site": "",
        "vmid": stray["vmid"],
        "node": "pve3",
        "power": "stopped",
        "last_task": None,
    }
    assert others["stray"]["last_task"]["type"] == "qmcreate"
    of_acme = drift(lab, **estate, tenants=["acme"])["unlisted"]
    assert [vm["name"] for vm in of_acme] == ["db"]
    assert drift(lab, **estate, unlisted=False)["unlisted"] == []
    lines = [line.split() for line in result["report"]]
    assert ["+", "acme/new", "missing"] in lines
    assert ["-", "acme/web"] in [line[:2] for line in lines]
    stranger = next(at for at, line in enumerate(lines) if line[:2] == ["!", "globex/stray"])
    assert lines[stranger][-4:] == ["not", "in", "the", "estate"]
    assert lines[stranger + 1][:3] == ["last", "task", "qmcreate"]


@pytest.mark.parametrize("chosen", [{"tenants": ["acme"]}, {}], ids=["of acme", "of all"])
def test_unlisted_vms_of_tenants_with_another_prefix(lab: Lab, chosen: dict[str, Any]) -> None:
    estate = {**ESTATE, "defaults": {**DEFAULTS, "tenant_prefix": "kunde_"}}
    provision(lab, **estate)
    result = compared(lab, **{**estate, "vms": [WEB]}, **chosen)
    (other,) = result["drift"]["unlisted"]
    assert (other["name"], other["tenant"]) == ("db", "acme")
    assert result["drift"]["drift"]
    assert result["report"][0] == "Drift: in_sync 1, unlisted 1"


def test_why_a_missing_vm_cannot_be_created(lab: Lab) -> None:
    estate = {"vms": [{"name": "new", "source": "no-such-template"}]}
    new = vms(drift(lab, **estate))["new"]
    assert new["status"] == "missing"
    assert "no-such-template" in new["reason"]


def test_an_action_of_every_run_does_not_differ(lab: Lab, made: dict[str, Any]) -> None:
    estate = {**ESTATE, "vms": [WEB, {**DB, "state": "restarted"}]}
    assert not drift(lab, **estate, unlisted=False)["drift"]


def test_what_is_ignored_is_counted(lab: Lab, made: dict[str, Any]) -> None:
    put(lab, made["web"], cores=4, memory=512)
    machine(lab, name="stray")
    everything = ["acme/w*:cores", "*:mem*", "stray"]
    report = drift(lab, **ESTATE, ignore=everything)
    assert not report["drift"]
    assert report["summary"]["ignored"] == 3
    assert vms(report)["web"]["status"] == "in_sync"
    report = drift(lab, **ESTATE, ignore=[f"{made['web']['vmid']}:cores", "stray", "db:memory"])
    assert [one["option"] for one in vms(report)["web"]["options"]] == ["memory"]
    report = drift(lab, **ESTATE, ignore=["ACME/*", "stray"])
    assert not report["drift"]


def test_quota_use(lab: Lab, made: dict[str, Any]) -> None:
    settings = {"acme": {"quota": {"vms": 5, "memory": "256M", "disk": "10G"}}}
    defaults = {key: value for key, value in DEFAULTS.items() if key != "tenant"}
    estate = [{**WEB, "tenant": "acme"}, {**DB, "tenant": "acme"}]
    result = compared(lab, defaults=defaults, vms=estate, tenant_settings=settings)
    used = {row["kind"]: (row["used"], row["limit"]) for row in result["drift"]["quotas"]}
    assert used == {
        "vms": (2, 5),
        "memory": (512 * 2**20, 256 * 2**20),
        "disk": (2 * 2**30, 10 * 2**30),
    }
    assert [row["exceeded"] for row in result["drift"]["quotas"]] == [False, True, False]
    assert "quota of acme: memory 512 MiB of 256 MiB, exceeded" in result["report"]


def test_a_vm_on_a_dead_node_is_unknown(lab: Lab, made: dict[str, Any]) -> None:
    node = made["web"]["node"]
    lab.simulator.steer(f"/nodes/{node}", {"online": False})
    try:
        result = compared(lab, **ESTATE, retries=1, unlisted=False)
    finally:
        lab.simulator.steer(f"/nodes/{node}", {"online": True})
    report = result["drift"]
    web = vms(report)["web"]
    assert (report["complete"], web["status"]) == (False, "unknown")
    assert node in web["reason"]
    assert report["nodes"] == [{"site": "", "node": node, "reason": f"node {node} is offline"}]
    assert result["report"][0].startswith("Unknown: ")


def test_a_dead_node_alone_is_not_no_drift(lab: Lab, made: dict[str, Any]) -> None:
    nodes = {vm["node"] for vm in made.values()}
    (other, *_rest) = {"pve1", "pve2", "pve3"} - nodes
    lab.simulator.steer(f"/nodes/{other}", {"online": False})
    try:
        result = compared(lab, **ESTATE, retries=1, unlisted=False)
    finally:
        lab.simulator.steer(f"/nodes/{other}", {"online": True})
    assert (result["drift"]["drift"], result["drift"]["complete"]) == (False, False)
    assert result["report"][0].startswith("Unknown: ")


def test_a_cluster_that_does_not_answer_is_unknown(lab: Lab) -> None:
    lab.simulator.fault(method="GET", path="/cluster/resources$", status=596, times=None)
    result = compared(lab, **ESTATE, retries=1)
    report = result["drift"]
    assert (report["drift"], report["complete"]) == (False, False)
    assert {vm["status"] for vm in report["vms"]} == {"unknown"}
    assert report["sites"][0]["reason"]
    assert result["report"][1].startswith("! the cluster  unknown: ")


def test_an_unreadable_vm_is_named(lab: Lab, made: dict[str, Any]) -> None:
    path = f"/qemu/{made['web']['vmid']}/(config|pending)$"
    message = "Permission check failed (/vms/1, VM.Audit)"
    lab.simulator.fault(method="GET", path=path, status=403, message=message, times=None)
    report = vms(drift(lab, **ESTATE))
    assert report["web"]["status"] == "unknown"
    assert "VM.Audit" in report["web"]["reason"]
    assert report["db"]["status"] == "in_sync"


def as_ops(lab: Lab, visible: dict[str, Any]) -> dict[str, Any]:
    """Return the connection of a caller who may see storages and one VM only."""
    for path, role in (
        (f"/vms/{visible['vmid']}", "PVEVMAdmin"),
        ("/storage", "PVEDatastoreAdmin"),
    ):
        data = {"path": path, "roles": role, "users": "ops@pve"}
        lab.client.write("PUT", "access", "acl", data=data)
    secret = "00000000-0000-4000-8000-0000000000f2"
    return {**lab.connection, "token_id": "ops@pve!auto", "token_secret": secret}


@pytest.mark.parametrize("wanted", [{}, {"state": "absent"}], ids=["present", "absent"])
def test_a_hidden_vm_is_unknown(
    lab: Lab, made: dict[str, dict[str, Any]], wanted: dict[str, Any]
) -> None:
    caller = as_ops(lab, made["db"])
    estate = {**ESTATE, "vms": [{**WEB, **wanted}, DB, {"name": "new"}]}
    result = run_module("drift_info", {**caller, **estate})
    report = vms(result["drift"])
    assert {name: vm["status"] for name, vm in report.items()} == {
        "web": "unknown",
        "db": "in_sync",
        "new": "missing",
    }
    assert f"VM.Audit on /vms/{made['web']['vmid']}" in report["web"]["reason"]
    assert not result["drift"]["complete"]


@pytest.mark.usefixtures("fast")
def test_a_vm_may_be_on_a_node_that_does_not_answer(lab: Lab, made: dict[str, Any]) -> None:
    lab.simulator.steer("/settings", {"lag_s": 1000})
    fresh = {"name": "fresh", "node": "pve3"}
    provision(lab, defaults=DEFAULTS, vms=[fresh])
    lab.simulator.fault(method="GET", path="/nodes/pve3/qemu$", status=595, times=None)
    try:
        for wanted in ({}, {"state": "absent"}):
            estate = {"defaults": DEFAULTS, "vms": [{**fresh, **wanted}]}
            report = drift(lab, **estate, retries=1, unlisted=False)
            assert vms(report)["fresh"]["status"] == "unknown"
            assert "pve3" in vms(report)["fresh"]["reason"]
            assert not report["complete"]
    finally:
        lab.simulator.clear_faults()
        lab.simulator.steer("/settings", {"lag_s": 0})


def test_a_pattern_does_not_match_a_vmid_that_is_not_there(lab: Lab) -> None:
    estate = {"defaults": DEFAULTS, "vms": [{"name": "new"}]}
    for pattern in ("*one", "None"):
        report = drift(lab, **estate, ignore=[pattern], unlisted=False)
        assert vms(report)["new"]["status"] == "missing", pattern


def test_an_unfinished_vm_is_not_in_sync_if_its_options_are_ignored(
    lab: Lab, made: dict[str, Any]
) -> None:
    web = made["web"]
    marker = Marker(run="a1b2c3", tenant="tenant_acme").render()
    put(lab, web, cores=4, description=marker)
    unfinished = {**ESTATE, "ignore": ["*:cores", "*:description"], "unlisted": False}
    assert vms(drift(lab, **unfinished))["web"]["status"] == "drifted"


def test_another_tenants_vm_is_unknown(lab: Lab) -> None:
    other = machine(lab, name="web", tags="tenant_globex")
    report = drift(lab, defaults=DEFAULTS, vms=[{"name": "web", "vmid": other["vmid"]}])
    (web,) = report["vms"]
    assert web["status"] == "unknown"
    assert "another tenant" in web["reason"]
    assert not report["complete"]


def grow(lab: Lab, vm: dict[str, Any], size: str) -> None:
    path = ("nodes", vm["node"], "qemu", vm["vmid"], "resize")
    lab.client.task("PUT", *path, data={"disk": "scsi0", "size": size})


def test_a_disk_that_was_grown_by_hand_hides_nothing(lab: Lab, made: dict[str, Any]) -> None:
    grow(lab, made["web"], "3G")
    put(lab, made["web"], cores=4)
    result = compared(lab, **ESTATE, unlisted=False)
    report = result["drift"]
    web = vms(report)["web"]
    assert (report["drift"], report["complete"]) == (True, True)
    assert (web["status"], web["steps"]) == ("drifted", [])
    assert "it has 3 GiB and cannot shrink to 1 GiB. PVE cannot shrink disks" in web["reason"]
    cores, disk = web["options"]
    assert cores == {"option": "cores", "wanted": 1, "actual": 4, "pending": None}
    assert (disk["option"], disk["wanted"]["size"], disk["actual"]["size"]) == ("scsi0", "1G", "3G")
    assert web["last_task"] is not None
    assert vms(report)["db"]["status"] == "in_sync"
    assert "PVE cannot shrink disks" in result["report"][2]
    refusal = refused(lab, "vms", **ESTATE)
    assert "cannot shrink" in refusal["msg"]
    # What is expected is ignored, and the rest is still seen.
    ignored = vms(drift(lab, **ESTATE, ignore=["*:scsi0"]))["web"]
    assert [one["option"] for one in ignored["options"]] == ["cores"]


@pytest.mark.parametrize(
    ("config", "wanted", "options"),
    [
        (  # PVE takes no drive from a protected VM
            {"protection": 1, "scsi1": "ceph:1"},
            {"disks": [{"name": "scsi1", "state": "absent"}]},
            ["cores", "scsi1"],
        ),
        (  # a disk is not replaced by a CD
            {"scsi1": "ceph:1"},
            {"disks": [{"name": "scsi1", "iso": "none"}]},
            ["cores", "scsi1"],
        ),
        (  # the slot of the cloud-init drive is in use
            {"ide2": "none,media=cdrom"},
            {"cloud_init": {"user": "ops"}},
            ["ciuser", "cores", "ide2"],
        ),
        (  # the version of a TPM stays
            {"tpmstate0": "ceph:1,version=v1.2"},
            {"disks": [{"name": "tpmstate0", "options": {"version": "v2.0"}}]},
            ["cores", "tpmstate0"],
        ),
        (  # the memory is below the minimum of ballooning
            {"balloon": 256},
            {"memory": 128},
            ["cores", "memory"],
        ),
        (  # no device of that name
            {},
            {"boot": ["scsi7"]},
            ["boot", "cores"],
        ),
    ],
)
def test_what_a_run_would_refuse_hides_nothing(
    lab: Lab,
    made: dict[str, Any],
    config: dict[str, Any],
    wanted: dict[str, Any],
    options: list[str],
) -> None:
    put(lab, made["web"], cores=4, **config)
    estate = {**ESTATE, "vms": [{**WEB, **wanted}]}
    web = vms(drift(lab, **estate, unlisted=False))["web"]
    assert (web["status"], web["steps"]) == ("drifted", [])
    assert [one["option"] for one in web["options"]] == options
    refusal = refused(lab, "vms", **estate)
    assert web["reason"] in refusal["msg"]


def test_the_number_of_another_vm_shows_no_difference(lab: Lab, made: dict[str, Any]) -> None:
    entry = {"name": "other", "vmid": made["web"]["vmid"], "source": "debian-13"}
    (other,) = drift(lab, vms=[entry], unlisted=False)["vms"]
    assert (other["status"], other["options"]) == ("unknown", [])
    assert "it is not called 'other'" in other["reason"]


IMAGE: dict[str, Any] = {"cores": 1, "memory": 256, "tenant": "acme"}


def test_a_source_that_is_not_visible_is_reported(lab: Lab) -> None:
    web = {"name": "web", "source": "debian-13", "full": True}
    provision(lab, defaults=IMAGE, vms=[web])
    misspelt: dict[str, Any] = {"defaults": IMAGE, "vms": [{**web, "source": "debian-31"}]}
    cause = "source debian-31 is not visible (did you mean 'debian-13'?): it is misspelt"
    assert cause in compared(lab, **misspelt, unlisted=False)["drift"]["vms"][0]["reason"]
    (warning,) = lab.run("vms", **misspelt)["warnings"]
    assert cause in warning
    assert warning.endswith("Existing guests with it: web")
    assert not lab.run("vms", **misspelt, remove=True, check=True).get("warnings")
    made = provision(lab, defaults=IMAGE, vms=[web])["web"]
    for source in ("debian-13", "9000"):
        estate = {"defaults": IMAGE, "vms": [{**web, "vmid": made["vmid"], "source": source}]}
        (before,) = compared(lab, **estate, unlisted=False)["drift"]["vms"]
        assert (before["status"], before["reason"]) == ("in_sync", None)
    lab.client.task("DELETE", "nodes", "pve1", "qemu", 9000)
    for source in ("debian-13", "9000"):
        estate = {"defaults": IMAGE, "vms": [{**web, "vmid": made["vmid"], "source": source}]}
        result = compared(lab, **estate, unlisted=False)
        (after,) = result["drift"]["vms"]
        assert after["status"] == "in_sync"
        assert f"its source {source} is not visible" in after["reason"]
        assert f"its source {source} is not visible" in result["report"][2]


@pytest.mark.parametrize("full", [False, True])
def test_a_newer_image_is_reported_and_not_applied(lab: Lab, full: bool) -> None:
    web = {"name": "web", "source": "debian-13", "full": full}
    made = provision(lab, defaults=IMAGE, vms=[web])["web"]
    estate = {"defaults": IMAGE, "vms": [{**web, "vmid": made["vmid"]}], "unlisted": False}
    assert drift(lab, **estate)["summary"]["in_sync"] == 1
    put(lab, {"node": "pve1", "vmid": 9000}, name="debian-13-old")
    newer = machine(lab, name="debian-13")
    lab.client.task("POST", "nodes", "pve1", "qemu", newer["vmid"], "template")
    result = compared(lab, **estate)
    report = result["drift"]
    (found,) = report["vms"]
    assert (found["status"], found["steps"], found["reason"]) == ("outdated", [], None)
    assert found["options"] == [
        {"option": "source", "wanted": newer["vmid"], "actual": 9000, "pending": None}
    ]
    assert (report["drift"], report["summary"]["outdated"]) == (False, 1)
    assert result["report"][0] == "No drift: outdated 1"
    text = f"source: it was cloned from template 9000, and the source is {newer['vmid']} now"
    assert result["report"][2].strip() == f"{text}; a run does not replace the VM"
    # A run changes nothing, with the number of the VM or without.
    for vms_ in ([web], estate["vms"]):
        lab.simulator.reset_log()
        again = lab.run("vms", defaults=IMAGE, vms=vms_)
        assert not again.get("failed"), again
        assert (again["changed"], lab.simulator.writes()) == (False, [])
    assert drift(lab, **estate, ignore=["*:source"])["summary"]["in_sync"] == 1
    put(lab, made, cores=2)
    (both,) = drift(lab, **estate)["vms"]
    assert both["status"] == "drifted"
    assert [one["option"] for one in both["options"]] == ["cores", "source"]
    (one,) = drift(lab, **estate, ignore=["*:cores"])["vms"]
    assert one["status"] == "outdated"


def test_a_copy_of_the_template_counts_as_the_template(lab: Lab) -> None:
    estate = {"defaults": IMAGE, "vms": [{"name": "web", "source": "debian-13"}]}
    provision(lab, **estate)
    copy = machine(lab, name="debian-13", node="pve2")
    lab.client.task("POST", "nodes", "pve2", "qemu", copy["vmid"], "template")
    assert drift(lab, **estate, unlisted=False)["summary"]["in_sync"] == 1


@pytest.mark.parametrize(
    ("scsi0", "origin"),
    [
        ("ceph:base-9000-disk-0/vm-101-disk-0,size=3G", 9000),
        ("nfs:9000/base-9000-disk-0.qcow2/101/vm-101-disk-0.qcow2,size=3G", 9000),
        ("local-lvm:vm-101-disk-0,size=3G", None),
        ("ceph:base-101-disk-0,size=3G", None),
        ("nfs:101/base-101-disk-0.qcow2,size=3G", None),
    ],
)
def test_the_template_of_a_linked_clone(scsi0: str, origin: int | None) -> None:
    """The names of volumes are those of pve-storage, PVE/Storage/*Plugin.pm, parse_volname."""
    actual = Actual(
        kind=VM, vmid=101, node="pve1", target={"scsi0": scsi0}, live={}, status="stopped"
    )
    assert origin_of(actual) == origin


def test_several_sites_of_which_one_is_dead(lab: Lab, munich: Lab) -> None:
    estate = {"defaults": DEFAULTS, "vms": [{**WEB, "site": "berlin"}, {**DB, "site": "munich"}]}
    sites = [
        {"name": "berlin", "default": True, **lab.connection},
        {"name": "munich", **munich.connection},
    ]
    result = run_module("vms", {"sites": sites, **estate})
    assert not result.get("failed"), result
    both = run_module("drift_info", {"sites": sites, **estate})["drift"]
    VALIDATOR.validate(both)
    assert not both["drift"]
    assert [row["site"] for row in both["sites"]] == ["berlin", "munich"]
    # With the login of one site, and the guests without a site, which are at the site of the task.
    more = [*estate["vms"], {"name": "other", "source": 9000}]
    own = {**estate, "vms": more, "sites": [sites[0]], "unlisted": False}
    for named, found in (
        (["berlin"], ["web"]),
        ([""], ["other"]),
        (["", "berlin"], ["web", "other"]),
    ):
        one = run_module("drift_info", {**own, "of_sites": named})["drift"]
        assert list(vms(one)) == found
    assert "no site 'munich'" in run_module("drift_info", own)["msg"]
    wrong = run_module("drift_info", {**own, "of_sites": ["munich"]})
    assert "no site 'munich'" in wrong["msg"]
    dead = [sites[0], {**sites[1], "host": "https://127.0.0.1:1"}]
    result = run_module("drift_info", {"sites": dead, **estate, "retries": 1})
    assert not result.get("failed"), result
    one = result["drift"]
    VALIDATOR.validate(one)
    assert {name: vm["status"] for name, vm in vms(one).items()} == {
        "web": "in_sync",
        "db": "unknown",
    }
    assert (one["drift"], one["complete"]) == (False, False)
    assert [bool(row["reason"]) for row in one["sites"]] == [False, True]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"vms": [{"name": "a", "coers": 1}]}, "coers"),
        ({"vms": [], "ignore": [":cores"]}, "ignore"),
        ({"vms": [], "ignore": ["web:"]}, "ignore"),
    ],
    ids=str,
)
def test_a_mistake_is_refused(lab: Lab, options: dict[str, Any], named: str) -> None:
    result = refused(lab, "drift_info", **options)
    assert result["error"]["category"] == "ValidationFailed"
    assert named in result["msg"]
    assert lab.simulator.log() == []


CONTAINER = {"source": "debian-13-standard", "rootfs": {"size": 1, "storage": "ceph"}}
WITH_CONTAINERS: dict[str, Any] = {
    "defaults": {"tenant": "acme", "memory": 256},
    "vms": [{"name": "web"}],
    "containers": [{"name": "ct1", "cores": 1, **CONTAINER}, {"name": "ct2", **CONTAINER}],
}


def test_containers_are_compared_option_by_option(lab: Lab) -> None:
    done = lab.run("vms", **WITH_CONTAINERS)
    assert not done.get("failed"), done
    report = drift(lab, **WITH_CONTAINERS, unlisted=False)
    assert (report["drift"], report["complete"]) == (False, True)
    assert [(one["name"], one["kind"]) for one in report["vms"]] == [
        ("web", "vm"),
        ("ct1", "container"),
        ("ct2", "container"),
    ]
    ct1, ct2 = (row for row in done["vms"] if row["kind"] == "container")
    path = ("nodes", ct1["node"], "lxc", ct1["vmid"], "config")
    lab.client.write("PUT", *path, data={"cores": 3, "nameserver": "10.0.0.1"})
    lab.simulator.ask("DELETE", f"/containers/{ct2['vmid']}", None)
    found = vms(drift(lab, **WITH_CONTAINERS, unlisted=False))
    assert found["ct1"]["options"] == [
        {"option": "cores", "wanted": 1, "actual": 3, "pending": None}
    ]
    assert found["ct1"]["status"] == "drifted"
    assert found["ct2"]["status"] == "missing"
    assert found["web"]["status"] == "in_sync"


def test_containers_that_are_not_in_the_estate(lab: Lab) -> None:
    for vmid, tags in ((710, "tenant_acme"), (711, "tenant_hooli")):
        add_container(lab, vmid, hostname=f"ct{vmid}", tags=tags)
    nothing = {"vms": [], "tenants": ["acme"], "tenants_required": False}
    assert drift(lab, **nothing)["unlisted"] == []
    result = compared(lab, **nothing, containers=[])
    (row,) = result["drift"]["unlisted"]
    assert (row["name"], row["kind"], row["vmid"]) == ("ct710", "container", 710)
    assert "! acme/ct710 (710, pve1)  not in the estate" in result["report"]
    both = drift(lab, vms=[], containers=[])["unlisted"]
    assert {row["vmid"] for row in both} == {710, 711}


def test_containers_count_in_the_quota_of_the_report(lab: Lab) -> None:
    add_container(lab, 710, hostname="ct1", tags="tenant_acme")
    machine(lab, name="web", tags="tenant_acme")
    estate = {
        "vms": [{"name": "web", "tenant": "acme"}],
        "containers": [{"name": "ct1", "tenant": "acme", "memory": 1024}],
        "tenant_settings": {"acme": {"quota": {"vms": 1}}},
    }
    report = drift(lab, **estate)
    (quota,) = report["quotas"]
    assert (quota["used"], quota["exceeded"]) == (2, True)
    assert vms(report)["ct1"]["status"] == "drifted"


STORAGE: dict[str, Any] = {"name": "media", "type": "dir", "path": "/srv/media", "content": ["iso"]}
BRIDGE: dict[str, Any] = {"node": "pve1", "interfaces": [{"name": "vmbr5", "type": "bridge"}]}
FILE: dict[str, Any] = {
    "groups": [{"name": "editors", "comment": "Editors"}],
    "networks": [BRIDGE],
    "storages": [STORAGE],
}


def of_file(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{one['section']}/{one['name']}": one for one in report["cluster"]}


def test_a_cluster_file_that_was_applied_has_no_drift(lab: Lab) -> None:
    missing = drift(lab, cluster=FILE)
    assert {one["status"] for one in missing["cluster"]} == {"missing", "drifted"}
    assert missing["summary"]["cluster"] == 3
    lab.run("cluster", **FILE)
    lab.simulator.reset_log()
    result = compared(lab, cluster=FILE)
    report = result["drift"]
    assert (report["drift"], report["complete"]) == (False, True)
    assert {one["status"] for one in report["cluster"]} == {"in_sync"}
    assert (report["vms"], report["unlisted"], report["logins"]) == ([], [], [])
    assert result["report"][0].startswith("No drift")


def test_who_changed_a_storage_and_a_network(lab: Lab) -> None:
    """PVE changes storage.cfg without a task: the logins remain. A reload of networks is a task
    (pve-manager, API2/Network.pm).
    """
    lab.run("cluster", **FILE)
    lab.run("pool_info", **ROOT)
    lab.client.write("PUT", "storage", "media", data={"content": "iso,backup"})
    lab.run(
        "node_network",
        node="pve1",
        interfaces=[{"name": "vmbr5", "type": "bridge", "comments": "x"}],
    )
    wanted = {"node": "pve1", "interfaces": [{"name": "vmbr5", "type": "bridge", "comments": ""}]}
    result = compared(lab, cluster={**FILE, "networks": [wanted]})
    found = of_file(result["drift"])
    media = found["storages/media"]
    assert media["status"] == "drifted"
    assert media["options"] == [
        {"option": "content", "wanted": ["iso"], "actual": ["backup", "iso"], "pending": None}
    ]
    assert media["last_task"] is None
    assert [one["user"] for one in result["drift"]["logins"]] == ["root@pam"]
    network = found["networks/pve1"]
    assert (network["status"], network["last_task"]["type"]) == ("drifted", "srvreload")
    assert network["last_task"]["token"] == "fleet"
    lines = "\n".join(result["report"])
    assert "~ storages media  content backup removed" in lines
    assert "~ networks pve1   vmbr5 comments removed" in lines
    assert "logged in: root@pam at " in lines


NETWORKS: dict[str, Any] = {
    "sdn": {
        "zones": [{"name": "teams", "type": "vlan", "bridge": "vmbr0"}],
        "vnets": [{"name": "web", "zone": "teams", "tag": 40, "alias": "Web"}],
        "fabrics": [{"name": "under", "protocol": "openfabric", "ip_prefix": "10.99.1.0/24"}],
        "fabric_nodes": [{"fabric": "under", "node": "pve1", "ip": "10.99.1.1"}],
    },
    "firewall": [
        {"scope": "cluster", "options": {"enable": True}},
        {"scope": "group", "group": "web", "rules": [{"type": "in", "action": "DROP"}]},
    ],
}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory for the token of the SDN lock."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_changed_vnets_and_groups_of_a_cluster_file(lab: Lab, state: None) -> None:
    lab.vm(name="c-300", vmid=300, node="pve1", memory="128M")
    of_guest = {"scope": "guest", "vmid": 300, "options": {"dhcp": True}}
    file = {**NETWORKS, "firewall": [*NETWORKS["firewall"], of_guest]}
    lab.run("cluster", **file)
    assert {one["status"] for one in drift(lab, cluster=file)["cluster"]} == {"in_sync"}
    vnet = ("cluster", "sdn", "vnets", "web")
    lab.client.write("PUT", *vnet, data={"alias": "other"})
    node = ("cluster", "sdn", "fabrics", "node", "under", "pve1")
    lab.client.write("PUT", *node, data={"ip": "10.99.1.2", "protocol": "openfabric"})
    options = ("nodes", "pve1", "qemu", 300, "firewall", "options")
    lab.client.write("PUT", *options, data={"dhcp": 0})
    lab.client.task("PUT", "cluster", "sdn")
    lab.client.write("DELETE", "cluster", "firewall", "groups", "web", 0)
    found = of_file(drift(lab, cluster=file))
    fabric, option = found["sdn/"]["options"]
    assert (option["option"], option["actual"]["alias"]) == ("vnets.web", "other")
    assert fabric["option"] == "fabric_nodes.under_pve1"
    assert found["firewall/guest/300"]["status"] == "drifted"
    assert found["sdn/"]["last_task"]["type"] == "reloadnetworkall"
    assert [one["option"] for one in found["firewall/group/web"]["options"]] == ["rules"]
    assert found["firewall/cluster"]["status"] == "in_sync"


def test_changed_networks_of_a_tenant(lab: Lab, state: None) -> None:
    """Each object is named; a tenant that is not chosen is not compared."""
    lab.run("cluster", **NETWORKS)
    front = {"zone": "teams", "tag": 50, "subnet": "10.1.0.0/24"}
    networks: dict[str, Any] = {"networks": {"front": front}}
    do(lab, "tenant", name="acme", **RIGHTS, **networks)
    estate = {"vms": [], "tenant_settings": {"acme": networks, "hooli": {}}}
    (row,) = drift(lab, **estate)["cluster"]
    assert (row["section"], row["name"], row["status"]) == ("tenants", "acme", "in_sync")
    vnet = vnet_id("tenant_acme", "front")
    group = ("cluster", "firewall", "groups", group_name("tenant_acme"))
    lab.client.write("DELETE", "cluster", "sdn", "vnets", vnet, "subnets", "teams-10.1.0.0-24")
    lab.client.task("PUT", "cluster", "sdn")
    lab.client.write("DELETE", *group, 0)
    alias = {"cidr": "10.9.0.0/24", "comment": "[pve.fleet: tenant=tenant_acme]"}
    lab.client.write("PUT", "cluster", "firewall", "aliases", vnet, data=alias)
    report = drift(lab, **estate)
    (row,) = report["cluster"]
    assert report["drift"]
    named = [one["option"] for one in row["options"]]
    assert named == ["subnets.10.1.0.0/24", f"aliases.{vnet}", "rules"]
    chosen = {**estate, "tenants": ["hooli"], "tenants_required": False}
    assert drift(lab, **chosen)["cluster"] == []


def test_a_changed_filter_of_a_guest_on_a_network_of_its_tenant(lab: Lab, state: None) -> None:
    lab.run("cluster", **NETWORKS)
    front = {"zone": "teams", "tag": 50, "subnet": "10.1.0.0/24"}
    networks: dict[str, Any] = {"networks": {"front": front}}
    do(lab, "tenant", name="acme", **RIGHTS, **networks)
    nics = [{"network": "front", "ip": "10.1.0.20/24"}]
    vm = {"name": "app1", "tenant": "acme", "source": "debian-13", "nics": nics}
    estate: dict[str, Any] = {"vms": [vm], "tenant_settings": {"acme": networks}}
    row = do(lab, "vms", **estate)["vms"][0]["vm"]
    assert vms(drift(lab, **estate))["app1"]["status"] == "in_sync"
    path = ("nodes", row["node"], "qemu", row["vmid"], "firewall", "ipset", "ipfilter-net0")
    lab.client.write("POST", *path, data={"cidr": "10.9.0.9"})
    found = vms(drift(lab, **estate))["app1"]
    assert found["status"] == "drifted"
    assert found["steps"][0].startswith("Isolate net0 of VM 'app1'")


def test_the_direction_of_a_node_rule_drifts(lab: Lab) -> None:
    """Since Proxmox VE 9.2.6, a rule keeps guests away from its nodes with affinity=negative
    (pve-ha-manager: PVE/HA/Rules/NodeAffinity.pm).
    """
    machine(lab, name="kept", vmid=812)
    rule: dict[str, Any] = {"name": "away", "type": "node-affinity", "nodes": ["pve1"]}
    rule |= {"affinity": "negative", "resources": ["vm:812"]}
    file: dict[str, Any] = {
        "ha_resources": [{"sid": "vm:812", "request_state": "stopped"}],
        "ha_rules": [rule],
    }
    made = lab.run("cluster", **file)
    assert not made.get("failed"), made
    assert of_file(drift(lab, cluster=file))["ha_rules/away"]["status"] == "in_sync"
    lab.run("ha_rule", name="away", affinity="positive")
    found = of_file(drift(lab, cluster=file))["ha_rules/away"]
    assert found["status"] == "drifted"
    assert found["options"] == [
        {"option": "affinity", "wanted": "negative", "actual": "positive", "pending": None}
    ]


def test_unwanted_and_ignored_resources_of_a_cluster_file(lab: Lab) -> None:
    lab.run("cluster", **FILE)
    lab.client.write("PUT", "storage", "media", data={"content": "backup"})
    absent = {"groups": [{"name": "editors", "state": "absent"}], "storages": [STORAGE]}
    report = drift(lab, cluster=absent, ignore=["storages/media:content"])
    found = of_file(report)
    assert found["groups/editors"]["status"] == "unwanted"
    assert found["storages/media"]["status"] == "in_sync"
    assert (report["summary"]["cluster"], report["summary"]["ignored"]) == (1, 1)


def test_a_section_that_cannot_be_read_is_unknown(lab: Lab) -> None:
    lab.run("cluster", **FILE)
    login = limited(lab, "reader", {"/storage": "PVEDatastoreAdmin"})
    report = drift(
        lab,
        cluster={"nodes": [{"node": "pve1", "description": "x"}], "storages": [STORAGE]},
        **login,
    )
    found = of_file(report)
    assert found["nodes/pve1"]["status"] == "unknown"
    assert "Sys.Audit" in found["nodes/pve1"]["reason"]
    assert found["storages/media"]["status"] == "in_sync"
    assert not report["complete"]


def test_a_difference_that_a_run_would_refuse(lab: Lab) -> None:
    lab.run("cluster", storages=[STORAGE])
    report = drift(lab, cluster={"storages": [{**STORAGE, "path": "/srv/other"}]})
    (media,) = report["cluster"]
    assert media["status"] == "drifted"
    assert "path" in media["reason"]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"storages": [{**STORAGE, "contnt": []}]}, "storages[0] was refused"),
        ({"storage": []}, "The option cluster was refused"),
    ],
)
def test_a_mistake_in_a_cluster_file_is_refused(
    lab: Lab, file: dict[str, Any], message: str
) -> None:
    lab.simulator.reset_log()
    result = lab.run("drift_info", cluster=file)
    assert result["failed"]
    assert message in result["msg"]
    assert lab.simulator.log() == []
