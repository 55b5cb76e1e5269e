# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workflow over sites, from the registry to the merged results: awx_setup makes it in the stand-in
for AWX from the remotes of a Datacenter Manager, and its jobs run as AWX runs them, against three
simulated sites. One of them is down.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("ansible_runner")

from tests.awx import rules
from tests.awx.controller import Controller, Item
from tests.awx.data import read
from tests.awx.jobs import Finished, Job
from tests.labs.pdm import Manager
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.module_runner import run_module
from tests.plays.provision_helpers import Player, site_of
from tests.plays.test_awx_setup import SETTINGS, SETUP, awx, collection, nodes_of, setup

pytestmark = pytest.mark.slow
__all__ = ["awx", "collection", "setup"]

KIND = next(one for one in read("credential_types") if one["name"] == "Proxmox VE sites")
VMS = [
    {"name": "web1", "tenant": "acme", "site": "north"},
    {"name": "web2", "tenant": "acme", "site": "south"},
    {"name": "web3", "tenant": "acme", "site": "west"},
    {"name": "web4", "tenant": "globex"},
]
# More lines of a result than AWX gets.
MISSING = [{"name": f"new{number}", "tenant": "acme", "site": "south"} for number in range(30)]
DRIFT = "Proxmox VE: Compare the estate with each site"
REPORT = "Proxmox VE: Report on each site"
ESTATE: dict[str, Any] = {
    "tenants": {"acme": {"sites": ["north", "south", "west"]}, "globex": {}},
    "provision_defaults": {"blank": True, "memory": 256, "cores": 1},
    "provision_vms": VMS,
    "provision_state": "present",
    "provision_drift_unlisted": False,
}


class Sites:
    """Three sites with the guests of the estate, and the jobs of their workflows."""

    def __init__(self, labs: dict[str, Lab], awx: Controller, home: Path) -> None:
        self.labs = labs
        self.awx = awx
        self.home = home
        self.sites = [site_of(name, lab.simulator) for name, lab in labs.items()]
        self.sites[0]["default"] = True
        self.place = home / "results"
        self.place.mkdir()

    def provision(self) -> None:
        given = {"sites": self.sites, "defaults": ESTATE["provision_defaults"]}
        made = run_module("vms", {**given, "tenant_settings": ESTATE["tenants"], "vms": VMS})
        assert not made.get("failed"), made["msg"]

    def write_registry(self, manager: Manager) -> Path:
        """Write a sites file without hosts, which the manager has."""
        keys = ("ca_path", "token_id", "token_secret", "default")
        own = {site["name"]: {key: site[key] for key in keys if key in site} for site in self.sites}
        file = self.home / "sites.yml"
        file.write_text(
            json.dumps({"sites_from": "pdm", "pdm": manager.options, "sites": own}), "utf-8"
        )
        return file

    def run(self, workflow: str, vms: list[dict[str, Any]]) -> tuple[dict[str, Finished], bool]:
        """Run a workflow as AWX does: a node gets the artifacts of the nodes before it."""
        named = nodes_of(self.awx, workflow)
        ids = {node.id: name for name, node in named.items()}
        nodes = {
            name: {"always_nodes": [ids[one] for one in node.links.get("always_nodes", [])]}
            for name, node in named.items()
        }
        fixed = json.loads(self.awx.named("workflow_job_templates", workflow).values["extra_vars"])
        jobs: dict[str, Finished] = {}

        def run(name: str) -> bool:
            artifacts: dict[str, Any] = {}
            for before, node in nodes.items():
                if name in node["always_nodes"]:
                    artifacts |= jobs[before].artifacts
            template = self.awx.items[named[name].values["unified_job_template"]]
            job = self._job(template, f"{workflow}-{name}", vms)
            variables = json.loads(template.values["extra_vars"]) | artifacts | fixed
            jobs[name] = job.send(template.values["playbook"], variables)
            return jobs[name].status != 0

        _ended, failed = rules.walk(nodes, run)
        return jobs, failed

    def _job(self, template: Item, name: str, vms: list[dict[str, Any]]) -> Job:
        (login,) = (self.awx.items[number] for number in template.links["credentials"])
        kind = self.awx.items[login.values["credential_type"]]
        inputs = login.values["inputs"] if kind.name == KIND["name"] else {"sites": "[]"}
        directory = self.home / name.replace(" ", "").replace(":", "")
        job = Job(directory / str(len(list(self.home.iterdir()))), inputs, KIND)
        job.environment["PROXMOX_RETRIES"] = "1"
        job.set_estate({**ESTATE, "provision_vms": vms})
        return job


@pytest.fixture
def sites(awx: Controller, setup: Player, tmp_path: Path) -> Iterator[Sites]:
    with ExitStack() as running:
        labs = {}
        for name in ("north", "south"):
            labs[name] = running.enter_context(open_lab("--lag-s", "0"))
        west = ExitStack()
        labs["west"] = west.enter_context(open_lab("--lag-s", "0"))
        made = Sites(labs, awx, tmp_path)
        made.provision()
        hosts = {site["name"]: ("pve", [urlsplit(site["host"]).netloc]) for site in made.sites}
        with Manager(tmp_path, hosts) as manager:
            registry = made.write_registry(manager)
            listed = "{{ query('pve.fleet.sites', '" + str(registry) + "') }}"
            given = {**SETTINGS, "awx_tenants": {}, "awx_sites": listed}
            setup.play(SETUP, **given, awx_sites_directory=str(made.place)).expect()
        west.close()
        yield made


def test_workflows_name_sites_that_are_down_or_have_no_result(sites: Sites) -> None:
    web2 = next(
        row
        for row in sites.labs["south"].client.get("cluster", "resources", type="vm")
        if row.get("name") == "web2"
    )
    sites.labs["south"].simulator.steer(f"/vms/{web2['vmid']}", {"config": {"cores": "4"}})
    jobs, failed = sites.run(DRIFT, [*VMS, *MISSING])
    jobs["north"].expect()
    for name in ("south", "west", "merge results"):
        jobs[name].expect(2)
    assert failed
    merge = jobs["merge results"]
    assert "Could not be read completely: west: Could not " in merge.output
    assert "Differences at south." in merge.output
    assert merge.artifacts["fleet_sites_read"] == ["north", "south"]
    assert merge.artifacts["fleet_sites_unread"] == ["west"]
    assert "~ acme/web2" in merge.output
    # The whole results are in the files of the sites.
    written = json.loads((sites.place / "drift.json").read_text(encoding="utf-8"))
    south = {"web2", *(vm["name"] for vm in MISSING)}
    for name, found in (("north", {"web1", "web4"}), ("south", south), ("west", {"web3"})):
        own = json.loads((sites.place / f"drift-{name}.json").read_text(encoding="utf-8"))
        assert {one["name"] for one in own["vms"]} == found
        assert written["sites"][name]["file"] == str(sites.place / f"drift-{name}.json")
        assert written["sites"][name]["summary"] == own["summary"]
    (handed_over,) = (
        found for name, found in jobs["south"].artifacts.items() if name.startswith("fleet_site_")
    )
    assert len(handed_over["lines"]) == 20
    assert handed_over["more_lines"] > 0
    assert all(len(line) <= 300 for line in handed_over["lines"])
    assert written["sites"]["south"]["lines"] == handed_over["lines"]
    assert f"{handed_over['more_lines']} more lines in {handed_over['file']}" in merge.output
    check_reports(sites)
    check_a_site_without_a_result(sites)


def check_reports(sites: Sites) -> None:
    """The report workflow has a page of each site that answers, and names the other one."""
    jobs, failed = sites.run(REPORT, VMS)
    assert failed
    for name in ("north", "south"):
        jobs[name].expect()
        page = (sites.place / f"report-{name}" / "report.html").read_text(encoding="utf-8")
        assert name in page
    jobs["west"].expect(2)
    merge = jobs["merge results"].expect(2)
    assert merge.artifacts["fleet_sites_read"] == ["north", "south"]
    assert sorted(
        merge.artifacts["fleet_sites_unread"] + merge.artifacts["fleet_sites_missing"]
    ) == ["west"]
    written = json.loads((sites.place / "report.json").read_text(encoding="utf-8"))
    for name in ("north", "south"):
        assert written["sites"][name]["complete"]
        assert written["sites"][name]["file"] == str(sites.place / f"report-{name}" / "report.html")


def check_a_site_without_a_result(sites: Sites) -> None:
    """A job that fails before its result: the registry entry in its credential is empty."""
    login = sites.awx.named("credentials", "Proxmox VE: site south")
    login.values["inputs"]["sites"] = json.dumps({"sites": []})
    jobs, failed = sites.run(DRIFT, VMS)
    assert failed
    jobs["north"].expect()
    merge = jobs["merge results"].expect(2)
    assert "No result of south: see the output of their jobs." in merge.output
    assert merge.artifacts["fleet_sites_missing"] == ["south"]
    assert merge.artifacts["fleet_sites_read"] == ["north"]
