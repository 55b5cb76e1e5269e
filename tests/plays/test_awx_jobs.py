# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them, against the simulated Proxmox VE: the job templates of a tenant with their
surveys, and one estate in several slices at once.
"""

from __future__ import annotations

import base64
import gzip
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible_runner")

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import (
    group_name,
    vnet_id,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.needs.needs import (
    OPERATIONS,
)
from tests.awx import rules
from tests.awx.controller import Controller
from tests.awx.data import job_template
from tests.awx.jobs import LOGIN_TYPE, Finished, Job, Workflow
from tests.cases import repeated
from tests.demo.lab import Lab, Machine
from tests.modules.module_runner import run_module
from tests.plays.test_image_role import templates, web
from tests.tools import awx_collection

pytestmark = pytest.mark.slow
__all__ = ["web"]

ACCESS: dict[str, Any] = {
    "operations": list(OPERATIONS),
    "templates": ["debian-13"],
    "storages": ["ceph"],
    "image_storages": ["local"],
    "bridges": ["vmbr0"],
    "nodes": ["pve1", "pve2", "pve3"],
}
ACME: dict[str, Any] = {
    "pool": "acme",
    "quota": {"vms": 5},
    "defaults": {"source": "debian-13", "cores": 1, "memory": "256M"},
    "access": ACCESS,
}
ESTATE: dict[str, Any] = {
    "tenants": {"acme": ACME, "globex": {**ACME, "pool": "globex"}},
    "provision_vms": [
        {"name": "web1", "tenant": "acme"},
        {"name": "web2", "tenant": "acme"},
        {"name": "web1", "tenant": "globex"},
    ],
}
VMS = "pve.fleet.vms"
CHANGE = "Provision VMs"


def login(lab: Lab, tenant: str = "", **options: Any) -> dict[str, Any]:
    """Return the inputs of a credential: the CA is a text, and the rest is left empty.

    The credential of a tenant has the token that module tenant creates, as in AWX.
    """
    given: dict[str, Any] = lab.connection
    if tenant:
        settings = {"name": tenant, "pool": tenant, **ACCESS, **options}
        made = run_module("tenant", {**given, **settings})
        given = given | {
            key: made["credentials"]["sites"][0][key] for key in ("token_id", "token_secret")
        }
    return inputs_of(given)


def inputs_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a credential for the connection options of a module."""
    ca = Path(given["ca_path"]).read_text(encoding="utf-8")
    known = {"host": given["host"], "token_id": given["token_id"]}
    return {**known, "token_secret": given["token_secret"], "ca": ca, "user": "", "password": ""}


@pytest.fixture
def job(lab: Lab, tmp_path: Path) -> Job:
    """The jobs of tenant acme, with its own token."""
    made = Job(tmp_path / "job", login(lab, "acme"))
    made.set_estate(ESTATE)
    return made


@pytest.fixture
def everything(lab: Lab, tmp_path: Path) -> Job:
    """The jobs of administrators."""
    made = Job(tmp_path / "all", login(lab))
    made.set_estate(ESTATE)
    return made


def test_the_job_templates_of_a_tenant(lab: Lab, job: Job) -> None:
    job.launch("Check requirements", "acme").expect()
    planned = job.launch(CHANGE, "acme", options=["--check"]).expect()
    assert planned.recap("changed") == {"localhost": 1}
    assert lab.machines() == []

    done = job.launch(CHANGE, "acme").expect()
    assert sorted((one.name, one.tenant) for one in lab.machines()) == [
        ("web1", "acme"),
        ("web2", "acme"),
    ]
    # Neither the login nor the estate of the other tenant is in what people see of the job.
    for hidden in (lab.connection["token_secret"], "globex"):
        assert hidden not in done.output + str(done.events)
    ((host, result),) = done.results(VMS)
    assert (host, result["summary"]["created"]) == ("localhost", 2)
    assert job.launch(CHANGE, "acme").expect().recap("changed") == {}
    job.launch("Compare with the cluster", "acme").expect()


# Of each tenant one; both are clones or files that the token of the tenant may use.
CT1: dict[str, Any] = {
    "name": "ct1",
    "tenant": "acme",
    "source": "debian-13-standard",
    "default_storage": "ceph",
}
CT9: dict[str, Any] = {**CT1, "name": "ct9", "tenant": "globex"}


def set_guests(job: Job, *containers: dict[str, Any], **more: Any) -> None:
    """Set the estate of both tenants: VM web1 of acme, and containers."""
    listed = {"provision_vms": [WEB1], "provision_containers": list(containers)}
    job.set_estate({**ESTATE, **listed, **more})


def containers_of(lab: Lab) -> list[dict[str, Any]]:
    found = run_module("container_info", {**lab.connection, "config": True})
    return list(found["containers"])


# As test_the_job_templates_of_a_tenant with VMs, and test_container_plays.py without AWX.
@pytest.mark.long
def test_a_tenant_creates_changes_and_removes_containers(lab: Lab, job: Job) -> None:
    set_guests(job, {**CT1, "source": "debian-99"}, CT9)
    checked = job.launch("Check requirements", "acme").expect(2)
    assert "files of templates are" in checked.output
    set_guests(job, CT1, CT9)
    job.launch("Check requirements", "acme").expect()
    planned = job.launch(CHANGE, "acme", options=["--check"]).expect()
    assert planned.artifacts["fleet_planned"] == ["acme/web1", "acme/ct1"]
    assert containers_of(lab) == []

    done = job.launch(CHANGE, "acme").expect()
    assert done.artifacts["fleet_created"] == ["acme/web1", "acme/ct1"]
    assert [(one["name"], one["tenant"]) for one in containers_of(lab)] == [("ct1", "acme")]
    for hidden in (lab.connection["token_secret"], "globex", "ct9"):
        assert hidden not in done.output + str(done.events)
    assert job.launch(CHANGE, "acme").expect().recap("changed") == {}
    job.launch("Compare with the cluster", "acme").expect()

    set_guests(job, {**CT1, "cores": 2}, CT9)
    assert job.launch("Compare with the cluster", "acme").expect(2).artifacts[
        "fleet_differing"
    ] == ["acme/ct1"]
    assert job.launch(CHANGE, "acme").expect().artifacts["fleet_changed"] == ["acme/ct1"]
    (ct1,) = containers_of(lab)
    assert ct1["config"]["cores"] == 2

    set_guests(job, {**CT1, "state": "absent"}, CT9)
    job.launch(CHANGE, "acme").expect()
    assert containers_of(lab) == []
    job.launch("Compare with the cluster", "acme").expect()


def test_an_estate_with_containers_only_is_checked_as_such(lab: Lab, job: Job) -> None:
    job.set_estate({"tenants": ESTATE["tenants"], "provision_containers": [CT1]})
    done = job.launch("Check requirements", "acme").expect()
    assert "ceph (rootdir)" in done.output
    assert "VM.Config.Cloudinit" not in done.output
    banned = {"acme": {**ACME, "allow_privileged": False}}
    job.set_estate({"tenants": banned, "provision_containers": [{**CT1, "unprivileged": False}]})
    assert "allow_privileged is false" in job.launch(CHANGE, "acme").expect(2).output
    assert containers_of(lab) == []


def publish(lab: Lab, vmid: int, version: str) -> None:
    """Create a template of a version of image golden."""
    options = {"name": "golden", "tags": f"version-{version}", "scsi0": "ceph:1"}
    lab.call("POST", "/nodes/pve1/qemu", vmid=vmid, agent=1, boot="order=scsi0", **options)
    lab.call("POST", f"/nodes/pve1/qemu/{vmid}/template")


@pytest.mark.long
def test_a_tenant_replaces_images(lab: Lab, tmp_path: Path) -> None:
    """With the answers of the survey, the token of the tenant, and for its own guests only."""
    for vmid, version in ((9501, "1"), (9502, "2")):
        publish(lab, vmid, version)
    job = Job(tmp_path / "job", login(lab, "acme", templates=["golden"]))
    everything = Job(tmp_path / "all", login(lab))
    listed = [{"name": "web1", "tenant": "acme"}, {"name": "web1", "tenant": "globex"}]

    def set_source(source: str) -> None:
        settings = {**ACME, "defaults": {**ACME["defaults"], "source": source}}
        tenants = {"acme": settings, "globex": {**settings, "pool": "globex"}}
        estate = {"tenants": tenants, "provision_vms": listed}
        estate["provision_defaults"] = {"node": "pve1", "state": "started"}
        for one in (job, everything):
            one.set_estate(estate)

    def versions() -> dict[str, str]:
        notes = {one.tenant: lab.config(one)["description"] for one in lab.machines()}
        return {
            tenant: text.partition("image=golden:")[2].partition(" ")[0]
            for tenant, text in notes.items()
        }

    set_source("golden@1")
    everything.launch_for_all(CHANGE, {"provision_tenants": "acme,globex"}).expect()
    assert versions() == {"acme": "1", "globex": "1"}
    set_source("golden")
    mark = lab.mark()
    planned = job.launch("Replace images", "acme", options=["--check"]).expect()
    assert planned.recap("changed") == {"localhost": 1}
    assert [one for one in lab.requests_since(mark) if one.is_write] == []
    job.launch("Replace images", "acme").expect()
    assert versions() == {"acme": "2", "globex": "1"}
    assert job.launch("Replace images", "acme").expect().recap("changed") == {}
    answers = {"provision_tenants": "acme, globex", "provision_replace_wait_for": "none"}
    everything.launch_for_all("Replace images", answers).expect()
    assert versions() == {"acme": "2", "globex": "2"}


FRONT: dict[str, Any] = {"zone": "teams", "tag_range": [100, 199], "subnet": "10.1.0.0/24"}


def with_teams(lab: Lab) -> None:
    """Create the zone of tenants' networks, and switch the firewall of the cluster on."""
    for module, options in (
        ("sdn", {"zones": [{"name": "teams", "type": "vlan", "bridge": "vmbr0"}]}),
        ("firewall", {"scope": "cluster", "options": {"enable": True}}),
    ):
        assert not run_module(module, {**lab.connection, **options}).get("failed")


@pytest.mark.long
def test_the_job_of_a_tenant_uses_its_networks(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estate has the networks, so that the job asks nothing about them. The token of the tenant
    may use its own VNet, and its guests are isolated before they start.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with_teams(lab)
    job = Job(tmp_path / "job", login(lab, "acme", networks={"front": FRONT}))
    web1 = {**WEB1, "nics": [{"network": "front", "ip": "10.1.0.7/24"}]}
    tenants = {**ESTATE["tenants"], "acme": {**ACME, "networks": {"front": FRONT}}}
    job.set_estate({"tenants": tenants, "provision_vms": [web1]})
    job.launch("Check requirements", "acme").expect()
    planned = job.launch(CHANGE, "acme", options=["--check"]).expect()
    assert planned.artifacts["fleet_planned"] == ["acme/web1"]
    assert job.launch(CHANGE, "acme").expect().artifacts["fleet_created"] == ["acme/web1"]
    (machine,) = lab.machines()
    path = f"/nodes/{machine.node}/qemu/{machine.vmid}"
    assert f"bridge={vnet_id('tenant_acme', 'front')}" in lab.config(machine)["net0"]
    (rule,) = lab.call("GET", f"{path}/firewall/rules")
    assert (rule["type"], rule["action"]) == ("group", group_name("tenant_acme"))
    assert job.launch(CHANGE, "acme").expect().recap("changed") == {}
    job.launch("Compare with the cluster", "acme").expect()
    lab.call("PUT", f"{path}/firewall/options", enable=0)
    compared = job.launch("Compare with the cluster", "acme").expect(2)
    assert compared.artifacts["fleet_differing"] == ["acme/web1"]


@pytest.mark.long
def test_snapshots_by_survey(lab: Lab, job: Job) -> None:
    job.launch(CHANGE, "acme").expect()
    named = {"snapshot_policy_name": "before"}
    taken = job.launch("Take snapshots", "acme", named).expect()
    assert taken.recap("changed") == {"localhost": 1}
    assert taken.artifacts["fleet_snapshots"] == ["before"]
    assert len(taken.artifacts["fleet_snapshot_vmids"]) == 2
    again = job.launch("Take snapshots", "acme", named).expect()
    assert again.recap("changed") == {}
    assert again.artifacts["fleet_snapshot_vmids"] == []
    machine = next(one for one in lab.machines() if one.name == "web1")
    lab.simulator.steer(f"/vms/{machine.vmid}", {"config": {"cores": "4"}})
    drift = job.launch("Compare with the cluster", "acme").expect(2)
    assert "cores 4 -> 1" in drift.output
    assert drift.artifacts["fleet_differing"] == ["acme/web1"]
    job.launch("Roll back to a snapshot", "acme", named).expect()
    job.launch("Compare with the cluster", "acme").expect()

    for _time in range(2):  # empty answers mean a name with the time, and all VMs of the tenant
        job.launch("Take snapshots", "acme", {"snapshot_policy_keep": "1"}).expect()
    path = f"/nodes/{machine.node}/qemu/{machine.vmid}/snapshot"
    names = {row["name"] for row in lab.call("GET", path)} - {"current"}
    assert len(names) == 2
    assert any(name.startswith("awx-") for name in names)


def test_a_vm_without_a_tenant_stops_the_job_of_a_tenant(lab: Lab, job: Job) -> None:
    job.set_estate({**ESTATE, "provision_vms": [*ESTATE["provision_vms"], {"name": "web9"}]})
    assert "has no tenant of its own" in job.launch(CHANGE, "acme").expect(2).output
    assert lab.machines() == []


def test_the_requirements_are_those_of_the_tenant(lab: Lab, job: Job) -> None:
    wrong = {**ACME, "access": {"templates": ["debian-99"]}}
    job.set_estate({"tenants": {"acme": wrong}})
    checked = job.launch("Check requirements", "acme").expect(2)
    assert "debian-99" in checked.output
    assert any("debian-99" in one for one in checked.artifacts["fleet_checks_failed"])
    job.set_estate({"tenants": {"acme": {**ACME, "access": {"storages": ["no-such"]}}}})
    assert "no-such" in job.launch("Check requirements", "acme").expect(2).output


def test_a_tenant_that_is_not_in_the_estate_is_named(lab: Lab, job: Job, everything: Job) -> None:
    mark = lab.mark()
    for name, variable in (
        ("Check requirements", "preflight_tenant"),
        ("Take snapshots", "snapshot_policy_tenant"),
        ("Provision VMs", "provision_tenants"),
    ):
        output = everything.launch_for_all(name, {variable: "acmee"}).expect(2).output
        assert "There is no tenant acmee in the variable tenants of the estate" in output
        assert "The estate has acme, globex." in output
    output = job.launch("Take snapshots", "initech").expect(2).output
    assert "There is no tenant initech" in output
    assert "globex" not in output
    assert lab.requests_since(mark) == []


def test_the_inventory_source_of_a_tenant(lab: Lab, job: Job, everything: Job) -> None:
    everything.send("provision.yml", {"provision_tenants": "acme,globex"}).expect()
    data = job.sync({"PROXMOX_TENANT": "acme"})
    hosts = data["_meta"]["hostvars"]
    assert {one["proxmox_tenant"] for one in hosts.values()} == {"acme"}
    assert set(hosts) == {"web1", "web2"}
    # A job has this inventory, and works on localhost all the same.
    assert job.launch(CHANGE, "acme").expect().recap("ok").keys() == {"localhost"}
    assert len(job.sync({})["_meta"]["hostvars"]) == 2  # Proxmox VE hides the others
    assert len(everything.sync({})["_meta"]["hostvars"]) == 3


def test_another_tenant_is_out_of_reach(lab: Lab, job: Job, everything: Job) -> None:
    everything.send("provision.yml", {"provision_tenants": "globex"}).expect()
    before = lab.machines()
    failed = job.launch("Take snapshots", "acme", {"snapshot_policy_vms": str(before[0].vmid)})
    failed.expect(2)
    assert lab.machines() == before
    # The role fails in a later task, so that no line has the results of all VMs.
    ((_host, result),) = failed.results("pve.fleet.snapshot")
    assert result["error"]["category"] == "PermissionDenied"


CREDENTIAL = "initech: Proxmox VE"
WORKFLOW = "Change VMs, and roll back if it fails"


_ROLLBACK = re.compile(r"/(?:qemu|lxc)/(?P<vmid>\d+)/snapshot/[^/]+/rollback$")
WEB1 = {"name": "web1", "tenant": "acme"}
WEB2 = {"name": "web2", "tenant": "acme"}
LOST = {"name": "web3", "tenant": "acme", "source": "no-such-template"}


def set_vms(job: Job, *vms: dict[str, Any]) -> None:
    job.set_estate({**ESTATE, "provision_vms": list(vms)})


def provisioned(lab: Lab, *vms: dict[str, Any]) -> list[Machine]:
    """Create VMs as the estate describes them."""
    options = {"vms": list(vms), "tenant_settings": ESTATE["tenants"], "state": "started"}
    assert not run_module("vms", {**lab.connection, **options}).get("failed")
    return lab.machines()


def change(job: Job, vms: str = "web1", **options: Any) -> Workflow:
    return job.run_workflow(WORKFLOW, "acme", {"snapshot_policy_vms": vms}, **options)


def rolled_back(lab: Lab) -> list[int]:
    """Return the VMs and containers that were rolled back."""
    found = (_ROLLBACK.search(one.path) for one in lab.requests_since(0))
    return [int(match["vmid"]) for match in found if match is not None]


def test_a_workflow_rolls_back_what_failed(lab: Lab, job: Job) -> None:
    web1, _web2 = provisioned(lab, WEB1, WEB2)
    # One VM is changed, one is not, one cannot be created: only the first is rolled back.
    set_vms(job, {**WEB1, "onboot": True}, WEB2, LOST)
    ended = change(job, "web1,web2")
    assert ended.statuses == {"check": 0, "snapshot": 0, "change": 2, "undo": 0, "failed": 2}
    assert ended.failed
    assert "onboot" not in lab.config(web1)
    assert rolled_back(lab) == [web1.vmid]
    (snapshot,) = ended.artifacts["fleet_snapshots"]
    for text in (f"Rolled back to snapshot {snapshot}: web1. ", "Failed: acme/web3. "):
        assert text in ended.jobs["failed"].output


# As test_a_workflow_rolls_back_what_failed.
@pytest.mark.long
def test_a_workflow_rolls_containers_back_too(lab: Lab, job: Job) -> None:
    set_guests(job, CT1)
    job.launch(CHANGE, "acme").expect()
    (before,) = containers_of(lab)
    # The container is changed, the VM is not, and another VM cannot be created.
    set_guests(job, {**CT1, "cores": 2}, provision_vms=[WEB1, LOST])
    ended = change(job, "web1,ct1")
    assert ended.statuses == {"check": 0, "snapshot": 0, "change": 2, "undo": 0, "failed": 2}
    assert len(ended.artifacts["fleet_snapshot_vmids"]) == 2
    assert rolled_back(lab) == [before["vmid"]]
    (after,) = containers_of(lab)
    assert after["config"].get("cores") == before["config"].get("cores")
    assert after["status"] == "running"
    (snapshot,) = ended.artifacts["fleet_snapshots"]
    assert f"Rolled back to snapshot {snapshot}: ct1. " in ended.jobs["failed"].output


@pytest.mark.long
def test_a_workflow_creates_the_first_vm(lab: Lab, job: Job) -> None:
    """There is nothing to take a snapshot of, and a VM that is created and fails has none."""
    set_vms(job, WEB1)
    ended = change(job, "")
    assert ended.statuses == dict.fromkeys(("check", "snapshot", "change", "verify"), 0)
    assert ended.artifacts["fleet_created"] == ["acme/web1"]
    set_vms(job, {**WEB1, "onboot": True}, LOST)
    ended = change(job, "")
    assert ended.statuses == {"check": 0, "snapshot": 0, "change": 2, "undo": 0, "failed": 2}
    assert len(rolled_back(lab)) == 1


@pytest.mark.parametrize("pushed", repeated(["change", "plan", "snapshot", "verify"], more=0))
def test_a_workflow_ends_if_the_project_changes(lab: Lab, job: Job, pushed: str) -> None:
    """AWX 24.6 updates the project before each job: each job must run the first job's revision."""
    (web1,) = provisioned(lab, WEB1)
    set_vms(job, {**WEB1, "description": "checked"})

    def push(identifier: str) -> None:
        if identifier == pushed:
            set_vms(job, {**WEB1, "description": "pushed"})

    ended = change(job, approve=True, before=push)
    assert ended.failed
    job_of_push = ended.jobs[pushed]
    assert "the project changed after the first job of this workflow" in job_of_push.output
    assert rolled_back(lab) == []
    found = lab.config(web1).get("description", "")
    assert "pushed" not in found
    assert ("checked" in found) == (pushed == "verify")


@pytest.mark.long
def test_a_workflow_that_wrote_nothing_rolls_nothing_back(lab: Lab, job: Job) -> None:
    provisioned(lab, WEB1)
    set_vms(job, {**WEB1, "cores": 100000})  # refused at planning
    ended = change(job)
    assert ended.statuses == {"check": 0, "snapshot": 0, "change": 2, "undo": 0, "failed": 2}
    assert ended.failed
    assert "nothing was written" in ended.jobs["undo"].output
    assert "The change failed, and no VM was rolled back." in ended.jobs["failed"].output

    # A job that ends before it reports leaves open whether it wrote.
    lost = job.launch("Roll back a failed change", "acme").expect(2)
    assert "the job of the change reported no result" in lost.output
    assert rolled_back(lab) == []


@pytest.mark.long
def test_a_workflow_keeps_changes_that_wait_for_a_reboot(lab: Lab, job: Job) -> None:
    provisioned(lab, WEB1)
    lab.make_vm("stray", tags="tenant_acme", pool="acme")  # the change has nothing to do with it
    set_vms(job, {**WEB1, "machine": "q35"})
    ended = change(job, approve=True)
    assert list(ended.jobs) == ["check", "plan", "snapshot", "change", "verify"]
    assert not ended.failed, ended.jobs["verify"].output
    assert ended.artifacts["fleet_planned"] == ended.artifacts["fleet_changed"] == ["acme/web1"]
    assert ended.artifacts["fleet_pending"] == ["acme/web1"]
    assert rolled_back(lab) == []
    # By itself, the comparison reports both.
    compared = job.launch("Compare with the cluster", "acme").expect(2)
    assert compared.artifacts["fleet_unlisted"] == ["stray"]


def test_a_workflow_applies_the_plan_that_was_approved(lab: Lab, job: Job) -> None:
    """With the token of the tenant, for a VM and a container, and with the VMIDs and nodes of the
    plan. The next workflow has nothing to do.
    """
    set_guests(job, CT1, CT9)
    ended = change(job, "", approve=True)
    assert ended.statuses == dict.fromkeys(("check", "plan", "snapshot", "change", "verify"), 0)
    planned, done = ended.jobs["plan"].artifacts, ended.jobs["change"].artifacts
    assert planned["fleet_plan_digest"].startswith("sha256:")
    assert planned["fleet_plan"][:2] == [
        line for line in done["fleet_plan"] if line.startswith("+")
    ]
    assert done["fleet_created"] == ["acme/web1", "acme/ct1"]
    assert "globex" not in gzip.decompress(base64.b64decode(planned["fleet_plan_file"])).decode()
    again = change(job, "", approve=True)
    assert again.jobs["change"].recap("changed") == {}


# As test_plans.py without AWX.
@pytest.mark.long
def test_a_workflow_refuses_a_guest_that_changed_after_the_approval(lab: Lab, job: Job) -> None:
    web1, _web2 = provisioned(lab, WEB1, WEB2)
    set_vms(job, {**WEB1, "description": "planned"}, {**WEB2, "description": "planned"})

    def interfere(identifier: str) -> None:
        if identifier == "change":
            config = f"/nodes/{web1.node}/qemu/{web1.vmid}/config"
            lab.call("PUT", config, description="by hand")

    ended = change(job, "web1,web2", approve=True, before=interfere)
    assert ended.failed
    (line,) = [one for one in ended.artifacts["fleet_plan"] if one.startswith("! acme/web1")]
    assert "not the approved one: changed since it was planned: description by hand" in line
    assert ended.artifacts["fleet_failed"] == ["acme/web1"]
    assert ended.artifacts["fleet_changed"] == ["acme/web2"]
    assert lab.config(web1)["description"] == "by hand"


def test_a_workflow_with_an_approval_does_not_change_without_a_plan(lab: Lab, job: Job) -> None:
    """The job before the approval can be one of an older project, which hands no plan over."""
    provisioned(lab, WEB1)
    set_vms(job, {**WEB1, "onboot": True})
    variables = {"provision_tenants": "acme", "estate_tenant": "acme", "fleet_plan_required": True}
    mark = lab.mark()
    refused = job.send("provision.yml", variables).expect(2)
    assert "this workflow needs an approved plan" in refused.output
    assert lab.requests_since(mark) == []


def test_the_job_templates_of_administrators(lab: Lab, everything: Job) -> None:
    job = everything
    job.launch_for_all("Provision the whole estate").expect()
    assert len(lab.machines()) == 3
    job.launch_for_all("Compare with the cluster").expect()
    audit = job.launch_for_all("Check tenants").expect(2)  # the token of the demo is a wide one
    ((_host, found),) = audit.results("pve.fleet.audit_info")
    assert found["vms"] == 5  # two templates too
    assert len(audit.artifacts["fleet_findings"]) == len(found["findings"])
    place = job.directory.parent / "report"
    report = job.launch_for_all("Report on the cluster", {"report_directory": str(place)}).expect()
    assert report.artifacts["fleet_reports"] == [str(place / "report.html")]
    assert "globex" in (place / "report.html").read_text(encoding="utf-8")
    check_tidy(lab, job)
    check_files(job)
    # A choice of several is a list.
    job.send(job_template("Remove VMs", "fleet")["playbook"], {"provision_tenants": ["globex"]})
    assert {one.tenant for one in lab.machines()} == {"acme"}


def check_tidy(lab: Lab, job: Job) -> None:
    answers = {"tidy_tenant": "acme"}
    assert job.launch_for_all("Remove unfinished guests", answers).expect().recap("changed") == {}
    unknown = job.launch_for_all("Remove unfinished guests", {"tidy_tenant": "nosuch"}).expect(2)
    assert "There is no tenant nosuch" in unknown.output


def check_files(job: Job) -> None:
    """Of an export and of metrics, which would vanish with the directory of the job."""
    place = job.directory.parent / "files"
    place.mkdir()
    job.launch_for_all("Export the cluster", {"export_directory": str(place)}).expect()
    assert "web1" in (place / "estate.yml").read_text(encoding="utf-8")
    assert (place / "cluster.yml").exists()
    answers = {"metrics_path": str(place / "fleet.prom")}
    job.launch_for_all("Write metrics", answers).expect()
    assert "proxmox_machines_total" in (place / "fleet.prom").read_text(encoding="utf-8")
    job.launch_for_all("Meter the use of tenants", {"usage_path": str(place / "usage")}).expect()
    assert list((place / "usage").rglob("last.json"))
    for name, answers in (
        ("Meter the use of tenants", {"usage_path": "usage"}),
        ("Write metrics", {"metrics_path": "fleet.prom"}),
        ("Export the cluster", {"export_directory": "export"}),
    ):
        refused = job.launch_for_all(name, answers).expect(2)
        assert f"because {next(iter(answers))} is not an absolute path" in refused.output


def test_a_job_configures_the_cluster_of_the_estate(lab: Lab, everything: Job) -> None:
    roles = [{"name": "Watcher", "privileges": ["VM.Audit"]}]
    everything.set_estate({**ESTATE, "cluster_roles": roles})
    name = "Configure the cluster"
    planned = everything.launch_for_all(name, options=["--check"]).expect()
    assert planned.recap("changed") == {"localhost": 1}
    assert "Watcher" not in {one["roleid"] for one in lab.call("GET", "/access/roles")}
    everything.launch_for_all(name).expect()
    assert "Watcher" in {one["roleid"] for one in lab.call("GET", "/access/roles")}
    assert everything.launch_for_all(name).expect().recap("changed") == {}


def test_a_job_publishes_an_image(lab: Lab, everything: Job, web: str) -> None:
    name = "Publish an image"
    answers = {"image_name": "debian-14", "image_url": f"{web}/debian-14.qcow2"}
    everything.launch_for_all(name, answers).expect()
    assert templates(lab, "debian-14")
    assert everything.launch_for_all(name, answers).expect().recap("changed") == {}


@pytest.fixture
def awx() -> Iterator[Controller]:
    """An AWX in which awx_setup has run for the tenant initech."""
    with Controller(("tenant.yml",)) as controller:
        kind = controller.create(
            "credential_types", {key: LOGIN_TYPE[key] for key in ("name", "kind", "inputs")}
        )
        owner = controller.create("organizations", {"name": "Proxmox VE initech"})
        controller.create(
            "credentials",
            {"name": CREDENTIAL, "credential_type": kind.id, "organization": owner.id},
        )
        yield controller


def test_the_login_of_a_new_tenant_goes_into_its_credential(
    lab: Lab, tmp_path: Path, awx: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    try:
        collection = awx_collection.fetch()
    except awx_collection.Unavailable as error:
        pytest.skip(str(error))
    job = Job(tmp_path / "job", login(lab))
    access = {"templates": ["debian-13"], "bridges": ["vmbr0"], "nodes": ["pve1"]}
    with_teams(lab)
    settings = {"pool": "initech", "access": access, "networks": {"front": FRONT}}
    tenants = {"initech": settings, "hooli": {**settings, "pool": "hooli"}}
    lasting = ["root@pam!fleet", "ops@pve!auto"]  # the demo's own tokens
    job.set_estate({"tenants": tenants, "audit_lasting_tokens": lasting, "rotate_pause": 1})
    name, answers = "Create or remove a tenant", {"tenant_name": "initech"}

    before = lab.state()
    paths = f"{collection}{os.pathsep}{os.environ['ANSIBLE_COLLECTIONS_PATH']}"
    job.environment["ANSIBLE_COLLECTIONS_PATH"] = paths
    assert "This job has no login of AWX" in job.launch_for_all(name, answers).expect(2).output
    job.environment |= awx.environment
    elsewhere = {**job.environment, "CONTROLLER_OAUTH_TOKEN": "wrong"}
    job.environment, right = elsewhere, job.environment
    assert "Invalid authentication" in job.launch_for_all(name, answers).expect(2).output
    assert lab.state() == before

    job.environment = right
    done = job.launch_for_all(name, answers).expect()
    inputs = awx.named("credentials", CREDENTIAL).values["inputs"]
    assert inputs["token_secret"] not in done.output + str(done.events)
    assert inputs["ca"] == login(lab)["ca"].rstrip()
    # The job of a tenant with this credential works.
    own = Job(tmp_path / "own", inputs)
    own.set_estate({"tenants": {"initech": {"pool": "initech"}}, "provision_vms": []})
    assert own.sync({"PROXMOX_TENANT": "initech"})["_meta"]["hostvars"] == {}

    assert done.artifacts["fleet_tenant_changes"]
    (vnet,) = lab.call("GET", "/cluster/sdn/vnets", running=1)
    assert vnet["vnet"] == vnet_id("tenant_initech", "front")
    unknown = job.launch_for_all(name, {"tenant_name": "hooli"}).expect(2)
    assert "AWX does not know the tenant hooli: add it to awx_tenants" in unknown.output
    assert job.launch_for_all(name, answers).expect().recap("changed") == {}
    assert awx.named("credentials", CREDENTIAL).values["inputs"] == inputs
    rotate_tokens(tmp_path, job, awx, name, answers)
    gone = {**answers, "tenant_state": "absent", "tenant_confirm": "initech"}
    job.launch_for_all(name, gone).expect()
    assert lab.state() == before


def rotate_tokens(
    directory: Path, job: Job, awx: Controller, create: str, answers: dict[str, Any]
) -> None:
    """Rotate the token of initech, when it is due and after a job that lost its login."""
    rotate = "Rotate tokens"
    credential = awx.named("credentials", CREDENTIAL)
    before = dict(credential.values["inputs"])
    job.launch_for_all("Check tenants").expect()
    assert job.launch_for_all(rotate).expect().recap("changed") == {}, "not due"
    assert credential.values["inputs"] == before
    misspelt = job.launch_for_all(rotate, {"rotate_tenants": "initch"}).expect(2)
    assert "There is no tenant initch" in misspelt.output
    due = {"rotate_tenants": "initech", "rotate_expires_within": 92}
    running = awx.launch(credential, looks=3)
    done = job.launch_for_all(rotate, due).expect()
    assert running.status == "successful", "the old token was removed beside a job that uses it"
    after = dict(credential.values["inputs"])
    assert after["token_id"] == "tenant_initech@pve!fleet-2"
    assert after["token_secret"] not in done.output + str(done.events)
    job.launch_for_all("Check tenants").expect()
    # A job that ended between the token and the credential.
    credential.values["inputs"] = {"host": after["host"]}
    assert "Launch Rotate tokens" in job.launch_for_all(create, answers).expect(2).output
    job.launch_for_all(rotate).expect()
    again = credential.values["inputs"]
    assert again["token_id"] == "tenant_initech@pve!fleet"
    own = Job(directory / "rotated", again)
    own.set_estate({"tenants": {"initech": {"pool": "initech"}}, "provision_vms": []})
    assert own.sync({"PROXMOX_TENANT": "initech"})["_meta"]["hostvars"] == {}
    assert job.launch_for_all(create, answers).expect().recap("changed") == {}


class Slices:
    """One estate as hosts, cut by AWX: a job template with `job_slice_count`."""

    def __init__(self, directory: Path, lab: Lab, hosts: dict[str, Any], number: int) -> None:
        parts = rules.sliced(hosts, number)
        self.jobs = [Job(directory / f"slice{index}", login(lab)) for index in range(len(parts))]
        for job, names in zip(self.jobs, parts, strict=True):
            data = {name: {"provision_vm": hosts[name]} for name in names}
            job.set_inventory({"_meta": {"hostvars": data}, "fleet": {"hosts": names}})

    def run(self, tenants: dict[str, Any]) -> list[Finished]:
        """Run all slices at once, and return their ends.

        The project is the one of all jobs: its estate has a list of VMs too.
        """
        estate = {**ESTATE, "tenants": tenants, "provision_state": "stopped"}
        for job in self.jobs:
            job.set_estate(estate)
        started = [job.start("provision.yml", {"provision_hosts": "fleet"}) for job in self.jobs]
        return [one.finish() for one in started]


def failures(ends: list[Finished]) -> dict[str, dict[str, Any]]:
    """Return what failed, by host: each failure says why."""
    found: dict[str, dict[str, Any]] = {}
    for end in ends:
        failed = set(end.recap("failures"))
        # The task does not fail itself: the role fails after its report.
        reasons = {host: result for host, result in end.results(VMS) if "error" in result}
        assert failed == set(reasons), end.output
        found.update(reasons)
    return found


def estate_of(number: int) -> dict[str, Any]:
    """Return VMs as hosts. One for each node must be kept apart."""
    hosts: dict[str, Any] = {f"web{index:02}": {"tenant": "acme"} for index in range(number - 3)}
    apart = {"strategy": "least_used", "anti_affinity": ["db"]}
    for index in range(3):
        hosts[f"db{index}"] = {"tenant": "acme", "tags": ["db"], "placement": apart}
    return hosts


@pytest.mark.parametrize("number", [8, pytest.param(60, marks=pytest.mark.long)])
def test_slices_at_once_make_each_vm_once(lab: Lab, tmp_path: Path, number: int) -> None:
    hosts = estate_of(number)
    slices = Slices(tmp_path, lab, hosts, 4)
    room = {"acme": {**ACME, "quota": {"vms": number}}}

    # Slices that race for a place or a quota may lose: they say so, and a rerun completes it.
    for _attempt in range(3):
        lost = failures(slices.run(room))
        for name, result in lost.items():
            assert result["vms"][0]["error"]["category"] in ("Conflict", "QuotaExceeded"), result
            assert name in result["msg"]
        if not lost:
            break
    assert not lost

    machines = lab.machines()
    assert {one.name for one in machines} == set(hosts)
    assert len(machines) == len({one.vmid for one in machines}) == number
    nodes = Counter(one.node for one in machines if one.name.startswith("db"))
    assert set(nodes.values()) == {1}

    ends = slices.run(room)
    assert [end.recap("changed") for end in ends] == [{}] * 4
    assert [end.status for end in ends] == [0] * 4
    assert sum(len(end.recap("ok")) for end in ends) == number
    assert lab.machines() == machines


@pytest.mark.long
def test_slices_at_once_keep_a_quota(lab: Lab, tmp_path: Path) -> None:
    hosts = estate_of(12)
    slices = Slices(tmp_path, lab, hosts, 4)
    tight = {"acme": {**ACME, "quota": {"vms": 9}}}
    lost = failures(slices.run(tight))
    machines = lab.machines()
    assert len(machines) <= 9
    assert {one.name for one in machines} | set(lost) == set(hosts)
    assert {row["vms"][0]["error"]["category"] for row in lost.values()} <= {
        "Conflict",
        "QuotaExceeded",
    }
    lost = failures(slices.run(tight))
    assert len(lab.machines()) == 9
    assert len(lost) == 3

    wide = {"acme": {**ACME, "quota": {"vms": 12}}}
    for _attempt in range(3):
        if not failures(slices.run(wide)):
            break
    assert {one.name for one in lab.machines()} == set(hosts)
