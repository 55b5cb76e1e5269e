# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook awx_setup, run with awx.awx against a stand-in for the API of AWX."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.awx.controller import Controller, Item
from tests.awx.data import HOME, job_template, read
from tests.plays.provision_helpers import Played, Player
from tests.tools import awx_collection

pytestmark = pytest.mark.slow

SETUP = "pve.fleet.awx_setup"
PLAYBOOKS = tuple(sorted(path.name for path in (HOME / "project").glob("*.yml")))
LOGIN = {"host": "pve1.example.com", "token_id": "ops@pve!awx", "token_secret": "s3cret-1"}
SETTINGS: dict[str, Any] = {
    "awx_project_url": "https://git.example.com/proxmox.git",
    "awx_environment_image": "registry.example.com/pve-fleet-ee:1.0.0",
    "awx_login": LOGIN,
    "awx_tenants": {"acme": {"users": ["ann"]}},
}


@pytest.fixture
def awx() -> Iterator[Controller]:
    with Controller(PLAYBOOKS) as controller:
        for name in ("ann", "bob"):
            controller.create_user(name)
        yield controller


@pytest.fixture(scope="session")
def collection() -> Path:
    """The collection awx.awx."""
    try:
        return awx_collection.fetch()
    except awx_collection.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def setup(awx: Controller, collection: Path, tmp_path: Path) -> Player:
    paths = f"{collection}{os.pathsep}{os.environ['ANSIBLE_COLLECTIONS_PATH']}"
    environment = {
        **awx.environment,
        "ANSIBLE_COLLECTIONS_PATH": paths,
        "ANSIBLE_PIPELINING": "true",  # fewer processes for each of many modules
    }
    return Player(tmp_path, environment, usual=False)


def play(setup: Player, *arguments: str, **settings: Any) -> Played:
    played = setup.play(SETUP, *arguments, **{**SETTINGS, **settings})
    assert "s3cret" not in played.output
    return played


def state(awx: Controller) -> list[tuple[Any, ...]]:
    return [(one.endpoint, one.values, one.links, one.survey) for one in awx.items.values()]


def test_a_second_run_changes_nothing(awx: Controller, setup: Player) -> None:
    assert play(setup).expect().changed > 20
    before = state(awx)
    awx.writes.clear()

    again = play(setup).expect()
    assert again.changed == 0, again.output
    assert state(awx) == before
    for item in (*awx.all("job_templates"), *awx.all("workflow_job_templates")):
        assert item.values["survey_enabled"] == bool(item.survey)

    check_what_is_there(awx)
    check_what_a_tenant_may(awx)


def check_what_is_there(awx: Controller) -> None:
    templates = read("job_templates")
    fleet = {f"Proxmox VE: {one['name']}" for one in templates if "fleet" in one["scopes"]}
    tenant = {f"acme: {one['name']}" for one in templates if "tenant" in one["scopes"]}
    assert {item.name for item in awx.all("job_templates")} == fleet | tenant
    login = awx.named("credentials", "Proxmox VE: Proxmox VE")
    assert login.values["inputs"] == LOGIN
    assert awx.named("credentials", "acme: Proxmox VE").values["inputs"] == {}
    source = awx.named("inventory_sources", "acme: Proxmox VE")
    assert source.values["source_vars"] == '{"PROXMOX_TENANT": "acme"}'
    assert awx.named("inventory_sources", "Proxmox VE: Proxmox VE").values["source_vars"] == ""
    undo = awx.named("workflow_job_template_nodes", "undo")
    assert awx.named("workflow_job_template_nodes", "change").links["failure_nodes"] == [undo.id]
    (snapshots,) = [one for one in awx.all("schedules") if "snapshots" in one.name]
    assert snapshots.values["enabled"] is False
    assert all(one.values["enabled"] for one in awx.all("schedules") if one is not snapshots)


def check_what_a_tenant_may(awx: Controller) -> None:
    """A tenant's team has roles on objects of its own organization only, and on none that could be
    pointed at other VMs.
    """
    organization = awx.named("organizations", "Proxmox VE acme")
    team = awx.named("teams", "acme: operators")
    granted = awx.granted(team)
    assert granted
    for endpoint, name, role in granted:
        item = awx.named(endpoint, name)
        assert item.values["organization"] == organization.id
        assert role == ("read" if endpoint == "inventories" else "execute")
    member = team.roles["member_role"]
    assert awx.members[member]["users"] == [awx.named("users", "ann").id]
    for item in awx.all("job_templates"):
        if item.values["organization"] == organization.id:
            check_bound(awx, item)


def check_bound(awx: Controller, template: Item) -> None:
    """A job template of tenant acme works on acme with its login, whatever a launch says."""
    described = job_template(template.name.removeprefix("acme: "), "tenant")
    variable = described["tenant_variable"]
    assert json.loads(template.values["extra_vars"]) == {variable: "acme", "estate_tenant": "acme"}
    assert variable not in {one["variable"] for one in template.survey.get("spec", [])}
    prompts = {name for name, value in template.values.items() if name[:4] == "ask_" and value}
    assert prompts <= {"ask_job_type_on_launch"}
    (credential,) = template.links["credentials"]
    assert awx.items[credential].name == "acme: Proxmox VE"


@pytest.mark.long
def test_check_mode_writes_nothing(awx: Controller, setup: Player) -> None:
    empty = play(setup, "--check").expect()
    assert awx.writes == []
    assert empty.changed > 10

    play(setup).expect()
    awx.writes.clear()
    assert play(setup, "--check").expect().changed == 0
    changed = play(setup, "--check", awx_project_url="https://git.example.com/new.git").expect()
    assert changed.changed == 2  # the projects
    assert awx.writes == []


@pytest.mark.long
def test_a_change_by_hand_is_undone_and_a_secret_kept(awx: Controller, setup: Player) -> None:
    play(setup).expect()
    template = awx.named("job_templates", "acme: Provision VMs")
    template.values["ask_variables_on_launch"] = True
    awx.named("credentials", "Proxmox VE: Proxmox VE").values["inputs"]["token_secret"] = "new"
    assert play(setup).expect().changed == 1
    assert template.values["ask_variables_on_launch"] is False
    login = awx.named("credentials", "Proxmox VE: Proxmox VE").values["inputs"]
    assert login["token_secret"] == "new"
    play(setup, awx_update_secrets=True).expect()
    assert awx.named("credentials", "Proxmox VE: Proxmox VE").values["inputs"] == LOGIN


@pytest.mark.long
def test_two_tenants_have_nothing_in_common(awx: Controller, setup: Player) -> None:
    tenants = {"acme": {"users": ["ann"]}, "globex": {"users": ["bob"]}}
    play(setup, awx_tenants=tenants, awx_nightly_snapshots=True).expect()
    granted = [awx.granted(awx.named("teams", f"{name}: operators")) for name in tenants]
    assert not granted[0] & granted[1]
    assert len(granted[0]) == len(granted[1])
    assert all(one.values["enabled"] for one in awx.all("schedules"))


def test_what_is_missing_is_said_before_anything_is_created(
    awx: Controller, tmp_path: Path
) -> None:
    player = Player(tmp_path, awx.environment)
    output = player.play(SETUP).expect(2).output
    assert "awx_project_url is not set" in output
    output = player.play(SETUP, awx_project_url="x").expect(2).output
    assert "extensions/execution_environment" in output
    wrong = {**SETTINGS, "awx_tenants": {"Acme": {}}}
    assert "'Acme' cannot be a tenant" in player.play(SETUP, **wrong).expect(2).output
    output = player.play(SETUP, **SETTINGS).expect(2).output
    assert "ansible-galaxy collection install awx.awx" in output
    assert awx.writes == []
