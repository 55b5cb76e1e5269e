# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them, against the simulated Proxmox VE: the job templates of a tenant with their
surveys, and one estate in several slices at once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible_runner")

from tests.awx.controller import Controller
from tests.awx.jobs import LOGIN_TYPE, Finished, Job
from tests.demo.lab import Lab
from tests.tools import awx_collection

pytestmark = pytest.mark.slow

ACME: dict[str, Any] = {
    "pool": "acme",
    "quota": {"vms": 5},
    "defaults": {"source": "debian-13", "cores": 1, "memory": "256M"},
    "access": {"templates": ["debian-13"], "nodes": ["pve1"], "bridges": ["vmbr0"]},
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


def login(lab: Lab) -> dict[str, Any]:
    """Return the inputs of a credential: the CA is a text, and the rest is left empty."""
    given = lab.connection
    ca = Path(given["ca_path"]).read_text(encoding="utf-8")
    known = {"host": given["host"], "token_id": given["token_id"]}
    return {**known, "token_secret": given["token_secret"], "ca": ca, "user": "", "password": ""}


@pytest.fixture
def job(lab: Lab, tmp_path: Path) -> Job:
    made = Job(tmp_path / "job", login(lab))
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


def test_snapshots_by_survey(lab: Lab, job: Job) -> None:
    job.launch(CHANGE, "acme").expect()
    named = {"snapshot_policy_name": "before"}
    taken = job.launch("Take snapshots", "acme", named).expect()
    assert taken.recap("changed") == {"localhost": 1}
    assert job.launch("Take snapshots", "acme", named).expect().recap("changed") == {}
    machine = next(one for one in lab.machines() if one.name == "web1")
    lab.simulator.steer(f"/vms/{machine.vmid}", {"config": {"cores": "4"}})
    drift = job.launch("Compare with the cluster", "acme").expect(2)
    assert "cores: wanted 1, actual 4" in drift.output
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
    assert "debian-99" in job.launch("Check requirements", "acme").expect(2).output
    job.set_estate({"tenants": {"acme": {**ACME, "access": {"storages": ["no-such"]}}}})
    assert "no-such" in job.launch("Check requirements", "acme").expect(2).output


def test_the_inventory_source_of_a_tenant(lab: Lab, job: Job) -> None:
    job.send("provision.yml", {"provision_tenants": "acme,globex"}).expect()
    data = job.sync({"PROXMOX_TENANT": "acme"})
    hosts = data["_meta"]["hostvars"]
    assert {one["proxmox_tenant"] for one in hosts.values()} == {"acme"}
    assert set(hosts) == {"web1", "web2"}
    # A job has this inventory, and works on localhost all the same.
    assert job.launch(CHANGE, "acme").expect().recap("ok").keys() == {"localhost"}
    assert len(job.sync({})["_meta"]["hostvars"]) == 3


def test_another_tenant_is_out_of_reach(lab: Lab, job: Job) -> None:
    job.send("provision.yml", {"provision_tenants": "globex"}).expect()
    before = lab.machines()
    failed = job.launch("Take snapshots", "acme", {"snapshot_policy_vms": str(before[0].vmid)})
    failed.expect(2)
    assert lab.machines() == before
    ((_host, result),) = failed.results("pve.fleet.snapshot", failed=True)
    assert result["error"]["category"] in ("Conflict", "NotFound")


CREDENTIAL = "initech: Proxmox VE"
WORKFLOW = "Change VMs, and roll back if it fails"


def test_a_workflow_rolls_back_what_failed(lab: Lab, job: Job) -> None:
    web1 = {"name": "web1", "tenant": "acme"}
    job.set_estate({**ESTATE, "provision_vms": [web1]})
    job.launch(CHANGE, "acme").expect()
    (machine,) = lab.machines()
    answers = {"snapshot_policy_name": "before", "snapshot_policy_vms": "web1"}
    changed = {**web1, "onboot": True}

    lost = {"name": "web2", "tenant": "acme", "source": "no-such-template"}
    job.set_estate({**ESTATE, "provision_vms": [changed, lost]})
    ended = job.run_workflow(WORKFLOW, "acme", answers)
    assert ended == {"check": 0, "snapshot": 0, "change": 2, "undo": 0}
    assert "onboot" not in lab.config(machine)

    job.set_estate({**ESTATE, "provision_vms": [changed]})
    ended = job.run_workflow(WORKFLOW, "acme", {**answers, "snapshot_policy_name": "again"})
    assert ended == {"check": 0, "snapshot": 0, "change": 0, "verify": 0}
    assert lab.config(machine)["onboot"] == 1


def test_the_job_templates_of_administrators(lab: Lab, job: Job) -> None:
    job.launch_for_all("Provision the whole estate").expect()
    assert len(lab.machines()) == 3
    job.launch_for_all("Compare with the cluster").expect()
    audit = job.launch_for_all("Check tenants").expect(2)  # the token of the demo is a wide one
    ((_host, found),) = audit.results("pve.fleet.audit_info")
    assert found["vms"] == 5  # two templates too
    place = job.directory.parent / "report"
    job.launch_for_all("Report on the cluster", {"report_directory": str(place)}).expect()
    assert "globex" in (place / "report.html").read_text(encoding="utf-8")
    job.launch_for_all("Remove VMs", {"provision_tenants": "globex"}).expect()
    assert {one.tenant for one in lab.machines()} == {"acme"}


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
    lab: Lab, tmp_path: Path, awx: Controller
) -> None:
    try:
        collection = awx_collection.fetch()
    except awx_collection.Unavailable as error:
        pytest.skip(str(error))
    job = Job(tmp_path / "job", login(lab))
    access = {"templates": ["debian-13"], "bridges": ["vmbr0"], "nodes": ["pve1"]}
    job.set_estate({"tenants": {"initech": {"pool": "initech", "access": access}}})
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

    assert job.launch_for_all(name, answers).expect().recap("changed") == {}
    assert awx.named("credentials", CREDENTIAL).values["inputs"] == inputs
    gone = {**answers, "tenant_state": "absent", "tenant_confirm": "initech"}
    job.launch_for_all(name, gone).expect()
    assert lab.state() == before


class Slices:
    """One estate as hosts, cut by AWX: a job template with `job_slice_count`."""

    def __init__(self, directory: Path, lab: Lab, hosts: dict[str, Any], number: int) -> None:
        self.jobs = [Job(directory / f"slice{index}", login(lab)) for index in range(number)]
        for index, job in enumerate(self.jobs):
            # AWX orders hosts by name, and takes each fourth.
            names = sorted(hosts)[index::number]
            data = {name: {"provision_vm": hosts[name]} for name in names}
            job.set_inventory({"_meta": {"hostvars": data}, "fleet": {"hosts": names}})

    def run(self, tenants: dict[str, Any]) -> list[Finished]:
        """Run all slices at once, and return their ends."""
        for job in self.jobs:
            job.set_estate({"tenants": tenants, "provision_state": "stopped"})
        started = [job.start("provision.yml", {"provision_hosts": "fleet"}) for job in self.jobs]
        return [one.finish() for one in started]


def failures(ends: list[Finished]) -> dict[str, dict[str, Any]]:
    """Return what failed, by host: each failure says why."""
    found: dict[str, dict[str, Any]] = {}
    for end in ends:
        failed = set(end.recap("failures"))
        reasons = dict(end.results(VMS, failed=True))
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
