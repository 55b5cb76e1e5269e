# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans as files: playbooks with plan_file and apply_plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.demo.__main__ import EXAMPLES
from tests.demo.lab import Lab, Machine
from tests.plays.provision_helpers import DEPROVISION, PROVISION, Player, writes

ESTATE = ("-e", "@estate.yml")


def test_a_plan_that_is_not_there_is_named(player: Player) -> None:
    refused = player.play("pve.fleet.plan", "-e", "plan_file=nosuch.json").expect(2)
    assert f"There is no file {player.directory}/nosuch.json" in " ".join(refused.output.split())
    assert "Unable to access" not in refused.output


def test_an_estate_is_planned_approved_applied_and_removed(player: Player, lab: Lab) -> None:
    estate = player.directory / "estate.yml"
    text = (EXAMPLES / "estate.yml").read_text(encoding="utf-8")
    estate.write_text(text, encoding="utf-8")
    file = player.directory / "plan.json"

    mark = lab.mark()
    planned = player.play(PROVISION, *ESTATE, "-e", "plan_file=plan.json", "--check").expect()
    assert writes(lab, mark) == []
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["digest"][:19] in planned.output
    (part,) = document["parts"]
    assert len(part["changes"]) == 6

    forms = ("-e", f"plan_markdown={file}.md", "-e", f"plan_html={file}.html")
    shown = player.play("pve.fleet.plan", "-e", "plan_file=plan.json", *forms)
    assert document["digest"] in shown.expect().output
    assert [line for line in shown.lines if line.startswith("+ acme/acme-web1 ")]
    assert "+ acme/acme-web1" in Path(f"{file}.md").read_text(encoding="utf-8")
    page = Path(f"{file}.html").read_text(encoding="utf-8")
    assert f"<h2>vms at {part['site']}</h2>" in page
    assert page.count(f"<span>{part['site']}/") == 6  # the node of each new guest

    made = player.play(PROVISION, *ESTATE, "-e", "apply_plan=plan.json").expect()
    assert "Done: 6 created" in made.output
    approved = {
        f"{one['method']} {one['path']}" for change in part["changes"] for one in change["requests"]
    }
    sent = set()
    for one in lab.requests_since(mark):
        method = "PUT" if one.path.endswith("/config") else one.method
        if one.is_write:
            sent.add(f"{method} {one.path}")
    assert sent <= approved
    again = player.play(PROVISION, *ESTATE, "-e", "apply_plan=plan.json").expect()
    assert again.changed == 0

    tenant = ("-e", "provision_tenants=globex")
    player.play(DEPROVISION, *ESTATE, *tenant, "-e", "plan_file=plan.json", "--check").expect()
    (part,) = json.loads(file.read_text(encoding="utf-8"))["parts"]
    assert len(part["changes"]) == 3
    refused = player.play(PROVISION, *ESTATE, "-e", "plan_file=plan.json").expect(2)
    assert "check mode" in refused.output
    removed = player.play(DEPROVISION, *ESTATE, *tenant, "-e", "apply_plan=plan.json").expect()
    assert "Done: 3 removed" in removed.output


def test_drift_writes_the_plan_that_repairs_it(player: Player, lab: Lab) -> None:
    estate = player.directory / "estate.yml"
    text = (EXAMPLES / "estate.yml").read_text(encoding="utf-8")
    estate.write_text(text, encoding="utf-8")
    player.play(PROVISION, *ESTATE).expect()
    (web,) = [one for one in lab.machines() if one.name == "acme-web1"]
    lab.call("POST", f"/nodes/{web.node}/qemu/{web.vmid}/status/stop")
    mark = lab.mark()
    drift = player.play("pve.fleet.drift", *ESTATE, "-e", "plan_file=plan.json").expect(2)
    assert "Plan: 1 to change, 5 unchanged" in drift.output
    assert writes(lab, mark) == []
    repaired = player.play(PROVISION, *ESTATE, "-e", "apply_plan=plan.json").expect()
    assert "Done: 1 changed, 5 unchanged" in repaired.output
    player.play("pve.fleet.drift", *ESTATE).expect()


def test_drift_of_a_cluster_file_writes_its_plan_too(player: Player, lab: Lab) -> None:
    file = {"cluster_groups": [{"name": "editors", "comment": "Editors"}]}
    drift = player.play("pve.fleet.drift", "-e", "plan_file=plan.json", **file).expect(2)
    assert "+ group editors" in drift.output
    applied = player.play("pve.fleet.cluster", "-e", "apply_plan=plan.json", **file).expect()
    assert "Done: 1 created" in applied.output
    player.play("pve.fleet.drift", **file).expect()


def test_the_plans_of_a_tenant_and_of_a_power_change_are_applied(player: Player, lab: Lab) -> None:
    """The tenant gets a token, whose secret is in a file that the run reserves."""
    estate = player.directory / "estate.yml"
    text = (EXAMPLES / "estate.yml").read_text(encoding="utf-8")
    estate.write_text(text, encoding="utf-8")
    player.play(PROVISION, *ESTATE).expect()
    login = str(player.directory / "umbrella.sites.yml")
    tenant = {
        "tenant_name": "umbrella",
        "tenants": {"umbrella": {}},
        "tenant_credentials_file": login,
    }
    power = {"power_state": "stopped", "power_tenants": ["acme"]}
    for playbook, options in (("pve.fleet.tenant", tenant), ("pve.fleet.power", power)):
        mark = lab.mark()
        player.play(playbook, "-e", "plan_file=plan.json", "--check", **options).expect()
        assert writes(lab, mark) == []
        made = player.play(playbook, "-e", "apply_plan=plan.json", **options).expect()
        assert made.changed > 0
        again = player.play(playbook, "-e", "apply_plan=plan.json", **options).expect()
        assert again.changed == 0
    assert Path(login).exists()


def test_one_inventory_host_a_vm_has_no_common_plan(player: Player, lab: Lab) -> None:
    """None of the tasks knows the VMIDs of the others. One host alone can be planned."""
    hosts = {name: {"provision_vm": {"source": "debian-13"}} for name in ("web1", "web2")}
    inventory = json.dumps({"fleet": {"hosts": hosts}})
    (player.directory / "hosts.yml").write_text(inventory, encoding="utf-8")
    fleet = ("-i", "hosts.yml", "-e", "provision_hosts=fleet", "-e", "plan_file=plan.json")
    refused = player.play(PROVISION, *fleet, "--check").expect(2)
    assert "another task of this run has the plan of vms at" in refused.output
    player.play(PROVISION, *fleet, "--check", "--limit", "web1").expect()
    (part,) = json.loads((player.directory / "plan.json").read_text(encoding="utf-8"))["parts"]
    assert [one["guest"]["name"] for one in part["changes"]] == ["web1"]


NAMES = ("web1", "web2")
ESTATE_OF_TWO = [{"name": name, "tenant": "acme", "blank": True} for name in NAMES]
# A playbook, its variables, and whether a machine is as planned; None is a machine that is gone.
RENAMED: dict[str, tuple[dict[str, Any], Callable[[Machine | None], bool]]] = {
    "provision": (
        {"provision_vms": [{**one, "state": "stopped"} for one in ESTATE_OF_TWO]},
        lambda vm: vm is not None and vm.status == "stopped",
    ),
    "deprovision": (
        {"provision_vms": ESTATE_OF_TWO, "provision_tenants": ["acme"]},
        lambda vm: vm is None,
    ),
    "power": (
        {"power_state": "stopped", "power_tenants": ["acme"]},
        lambda vm: vm is not None and vm.status == "stopped",
    ),
}


@pytest.mark.parametrize(
    "playbook",
    [pytest.param(one, marks=() if one == "power" else pytest.mark.slow) for one in RENAMED],
)
def test_a_playbook_names_a_guest_that_was_renamed_and_continues(
    player: Player, lab: Lab, playbook: str
) -> None:
    variables, is_reached = RENAMED[playbook]
    vmids = {name: lab.make_vm(name, tags="tenant_acme") for name in NAMES}
    for vmid in vmids.values():
        lab.call("POST", f"/nodes/pve1/qemu/{vmid}/status/start")
    name = f"pve.fleet.{playbook}"
    player.play(name, "-e", "plan_file=plan.json", "--check", **variables).expect()
    lab.call("PUT", f"/nodes/pve1/qemu/{vmids['web1']}/config", name="other")
    for _run in range(2):
        mark = lab.mark()
        failed = player.play(name, "-e", "apply_plan=plan.json", **variables).expect(2)
        text = f"planned VMID {vmids['web1']} as qemu "
        assert text in failed.output, failed.output
        assert "Traceback" not in failed.output
        found = {one.vmid: one for one in lab.machines()}
        assert found[vmids["web1"]].status == "running"
        assert is_reached(found.get(vmids["web2"]))
    assert writes(lab, mark) == []
