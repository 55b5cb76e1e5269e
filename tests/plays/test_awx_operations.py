# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The jobs of operators as AWX runs them: maintenance with its workflow, even use of the nodes,
and the power of an estate.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

pytest.importorskip("ansible_runner")

from tests.awx.credential import inject
from tests.awx.data import read
from tests.awx.jobs import Job
from tests.labs.maintenance import places, populate, put_vm
from tests.labs.relocate import make_guest, state
from tests.modules.estate_lab import Lab, open_lab
from tests.plays.node_ssh import NodeSsh
from tests.plays.provision_helpers import site_of
from tests.plays.test_awx_jobs import inputs_of

pytestmark = pytest.mark.slow

NODES = ["pve1", "pve2", "pve3"]
ANSWERS = {"maintenance_restart_containers": "true"}


@pytest.fixture(scope="module")
def running() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0") as lab:
        yield lab


@pytest.fixture
def night(running: Lab) -> Lab:
    running.simulator.reset()
    running.simulator.steer("/settings", {"task_ms": "reboot=500"})
    return running


@pytest.fixture
def ssh(night: Lab, tmp_path: Path) -> NodeSsh:
    """The nodes behind the addresses that the cluster has for them."""
    nodes = NodeSsh(night.simulator, tmp_path, NODES)
    for row in night.run("cluster_info")["cluster"]["nodes"]:
        nodes.add_address(row["node"], row["ip"])
    return nodes


@pytest.fixture
def job(night: Lab, ssh: NodeSsh, tmp_path: Path) -> Job:
    """The jobs of the administrators, with the program that stands in for SSH."""
    made = Job(tmp_path / "job", inputs_of(night.connection))
    made.set_estate({"tenants": {"acme": {}}})
    variables = {**ssh.variables, "maintenance_wait_timeout": 60}
    del variables["ansible_connection"]
    made.set_inventory({"_meta": {"hostvars": {}}, "all": {"vars": variables}})
    made.environment["ANSIBLE_PYTHON_INTERPRETER"] = sys.executable
    return made


def test_a_maintenance_with_an_approval_before_each_node(
    night: Lab, ssh: NodeSsh, job: Job
) -> None:
    """The second approval is denied: its node is not touched, and the workflow has failed."""
    before = populate(night)
    ssh.require_reboot("pve1")
    ended = job.run_maintenance(["pve1", "pve2"], ANSWERS, denied="pve2")
    assert ended.statuses == {"plan": 0, "maintain pve1": 0}
    assert ended.failed
    plan = ended.jobs["plan"]
    packed = base64.b64decode(plan.artifacts["fleet_plan_file"])
    document = json.loads(gzip.decompress(packed))
    assert [one["subject"] for one in document["parts"]] == ["pve1", "pve2"]
    assert plan.artifacts["fleet_plan_digest"] == document["digest"]
    notes = night.client.get("nodes", "pve1", "config")["description"]
    assert document["digest"] in notes  # this plan has maintained the node
    assert plan.recap("changed") == {}
    assert "vm201  moves to node" in plan.output
    assert (ssh.calls("pve1")[0], ssh.calls("pve2")) == ("-q update", [])
    assert night.client.get("nodes", "pve1", "status")["uptime"] < 3000
    done = job.run_maintenance(["pve2"], ANSWERS)
    assert (done.statuses, done.failed) == ({"plan": 0, "maintain pve2": 0}, False)
    assert ssh.calls("pve2")[1].endswith("dist-upgrade")
    assert places(night) == before
    assert night.run("evacuation_info")["maintenances"] == []
    unknown = job.launch_for_all("Maintain nodes", {"maintenance_nodes": "pve9"}).expect(2)
    assert "The cluster has no node pve9, and nothing was done" in unknown.output


@pytest.mark.long
def test_a_job_maintains_nodes_of_two_sites(night: Lab, job: Job, tmp_path: Path) -> None:
    """With a credential of type Proxmox VE sites, in the order of the survey."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0") as north:
        sites = [site_of("south", night.simulator), site_of("north", north.simulator)]
        with_sites(job, tmp_path, sites)
        before = populate(night), places(north)
        # The nodes of both clusters have the same addresses here, so that SSH is not used.
        without_ssh = {"maintenance_ha_mode": False, "maintenance_tasks": ""}
        job.set_inventory({"_meta": {"hostvars": {}}, "all": {"vars": without_ssh}})
        nodes = {
            "maintenance_nodes": "north_pve1,south_pve2",
            "maintenance_sites": "south, north",
            "maintenance_reboot": "never",
        }
        shown = job.launch_for_all("Maintain nodes", {**ANSWERS, **nodes}, ["--check"]).expect()
        assert night.simulator.writes() == north.simulator.writes() == []
        assert "vm201  moves to node" in shown.output
        done = job.launch_for_all("Maintain nodes", {**ANSWERS, **nodes}).expect()
        shown_nodes = [host for host in done.recap("ok") if host != "localhost"]
        assert sorted(shown_nodes) == ["north_pve1", "south_pve2"]
        assert (places(night), places(north)) == before
        writes = [north.simulator.writes(), night.simulator.writes()]
        assert all(any("/config" in one["path"] for one in each) for each in writes)
        wrong = {**nodes, "maintenance_nodes": "pve1"}
        refused = job.launch_for_all("Maintain nodes", wrong).expect(2)
        assert "The sites have no node pve1, and nothing was done." in refused.output


def with_sites(job: Job, tmp_path: Path, sites: list[dict[str, object]]) -> None:
    """Give the job a credential of type Proxmox VE sites instead of that of one cluster."""
    (kind,) = [one for one in read("credential_types") if one["name"] == "Proxmox VE sites"]
    inputs = {"sites": yaml.safe_dump({"sites": sites}), "site": str(sites[0]["name"])}
    login = inject(kind, inputs, tmp_path)
    kept = {key: one for key, one in job.environment.items() if not key.startswith("PROXMOX_")}
    job.environment = kept | login


def test_jobs_move_the_guests_of_a_tenant_to_another_site(
    night: Lab, ssh: NodeSsh, job: Job, tmp_path: Path
) -> None:
    """The second job unlocks the source by SSH and removes it. Both sites have the same addresses
    here: root works at the source only.
    """
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0") as munich:
        with_sites(
            job, tmp_path, [site_of("vienna", night.simulator), site_of("munich", munich.simulator)]
        )
        vmid = make_guest(night, "offline")
        estate = {"tenants": {"acme": {}}, "relocate_settle": 0, "relocate_node": "pve1"}
        job.set_estate({**estate, "relocate_storage": "local-lvm"})
        name = "Move guests to another site"
        answers = {
            "relocate_site": "vienna",
            "relocate_to_site": "munich",
            "relocate_tenant": "acme",
        }
        night.simulator.reset_log()
        planned = job.launch_for_all(name, answers, ["--check"]).expect()
        assert night.simulator.writes() == munich.simulator.writes() == []
        assert "acme/mover  planned as" in planned.output
        lines = planned.artifacts["fleet_plan"]
        assert lines[0].startswith("~ acme/mover  planned as")
        assert lines[-1] == "Plan: 1 to change"
        held = job.launch_for_all(name, answers).expect()
        assert "held until" in held.output
        assert state(night, vmid) == "stopped migrate"
        done = job.launch_for_all(name, {**answers, "relocate_hold": "0s"}).expect()
        assert "acme/mover  complete as" in done.output
        assert "~ acme/mover  complete as" in str(done.artifacts["fleet_plan"])
        assert (state(night, vmid), state(munich, vmid)) == ("gone", "stopped")


@pytest.mark.long
def test_jobs_empty_a_site_that_is_draining(
    night: Lab, ssh: NodeSsh, job: Job, tmp_path: Path
) -> None:
    """Without the confirmation nothing moves. Each job continues, and the last one changes nothing."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0") as munich:
        vienna = {**site_of("vienna", night.simulator), "state": "draining"}
        with_sites(job, tmp_path, [vienna, site_of("munich", munich.simulator)])
        vmids = [make_guest(night, "offline", 20300 + one, f"mover{one}") for one in range(2)]
        estate = {"relocate_settle": 0, "relocate_node": "pve1", "relocate_storage": "local-lvm"}
        job.set_estate({"tenants": {"acme": {}}, **estate})
        answers = {
            "relocate_site": "vienna",
            "relocate_to_site": "munich",
            "relocate_exclude": ",".join(
                str(row["vmid"])
                for row in night.client.get("cluster", "resources", type="vm")
                if row["vmid"] not in vmids
            ),
        }
        night.simulator.reset_log()
        refused = job.launch_for_all("Empty a site", answers).expect(2)
        assert "all: true" in refused.output
        answers["relocate_all"] = "true"
        planned = job.launch_for_all("Empty a site", answers, ["--check"]).expect()
        assert night.simulator.writes() == munich.simulator.writes() == []
        assert planned.output.count("planned as") == len(vmids)
        job.launch_for_all("Empty a site", answers).expect()
        done = job.launch_for_all("Empty a site", {**answers, "relocate_hold": "0s"}).expect()
        assert done.output.count("complete as") == len(vmids)
        for vmid in vmids:
            assert (state(night, vmid), state(munich, vmid)) == ("gone", "stopped")
        last = job.launch_for_all("Empty a site", answers).expect()
        assert "2 guests moved before" in last.output


def test_a_job_uses_the_nodes_evenly(night: Lab, job: Job) -> None:
    for vmid in (301, 302):
        put_vm(night, vmid, {"memory": "8192"})
    name, answers = "Use the nodes evenly", {"rebalance_max_moves": 1}
    night.simulator.reset_log()
    planned = job.launch_for_all(name, answers, ["--check"]).expect()
    assert night.simulator.writes() == []
    assert "moves to node" in planned.output
    job.launch_for_all(name, answers).expect()
    assert sorted(node == "pve2" for node, _runs in places(night).values()) == [False, True]


def test_jobs_stop_and_start_guests_by_a_record(night: Lab, job: Job, tmp_path: Path) -> None:
    before = populate(night)
    put_vm(night, 301, {"memory": "512"}, tags=["tenant_globex"])
    name = "Stop or start guests"
    answers = {"power_state": "stopped", "power_record": str(tmp_path / "power.json")}
    night.simulator.reset_log()
    planned = job.launch_for_all(name, answers, ["--check"]).expect()
    assert night.simulator.writes() == []
    assert "~ acme/vm202  stop in tier 3, guests of start order 1" in planned.output
    job.launch_for_all(name, answers).expect()
    assert [vmid for vmid, (_node, runs) in places(night).items() if runs] == [301, 206]
    job.launch_for_all(name, {**answers, "power_state": "started"}).expect()
    assert places(night) == {**before, 301: ("pve2", True)}
