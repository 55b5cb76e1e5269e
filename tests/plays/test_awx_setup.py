# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook awx_setup, run with awx.awx against a stand-in for the API of AWX."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.awx import rules
from tests.awx.controller import Controller, Item
from tests.awx.data import HOME, job_template, maintenance_nodes, read
from tests.plays.provision_helpers import Played, Player
from tests.tools import awx_collection
from tests.workers import HOME_VARIABLE

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
CHAT: dict[str, Any] = {
    "name": "chat",
    "type": "slack",
    "configuration": {"token": "s3cret-2", "channels": ["#pve"]},
}
# Every option: AWX checks what they are.
OPTIONS: dict[str, Any] = {
    "awx_approval": True,
    "awx_approval_timeout": 3600,
    "awx_auditors": ["bob"],
    "awx_galaxy_credentials": ["Ansible Galaxy"],
    "awx_job_timeout": 600,
    "awx_job_timeouts": {"Provision VMs": 7200},
    "awx_labels": ["proxmox"],
    "awx_notifications": [
        CHAT,
        {
            "name": "hook",
            "type": "webhook",
            "configuration": {"url": "https://hook.example.com", "headers": {}},
            "events": ["success", "error", "approval"],
        },
    ],
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
        "ANSIBLE_ACTION_PLUGINS": str(HOME.parent / "action_plugins"),  # of a play elsewhere
    }
    return Player(tmp_path, environment, usual=False)


def play(setup: Player, *arguments: str, **settings: Any) -> Played:
    played = setup.play(SETUP, *arguments, **{**SETTINGS, **settings})
    assert "s3cret" not in played.output
    return played


@dataclass(frozen=True)
class Done:
    """The first run with every option: its result, its number of requests, and the objects."""

    played: Played
    requests: int
    saved: bytes


@pytest.fixture
def done(awx: Controller, setup: Player) -> Done:
    """AWX after a first run, which is made once for all processes of a run of the tests."""
    home = Path(os.environ[HOME_VARIABLE])
    with open(home / "awx-setup.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = home / "awx-setup"
        if not file.exists():
            played = play(setup, **OPTIONS).expect()
            first = Done(played, len(awx.requests), awx.saved())
            file.write_bytes(pickle.dumps(first))
        found: Done = pickle.loads(file.read_bytes())
    awx.restore(found.saved)
    awx.requests.clear()
    awx.writes.clear()
    return found


def state(awx: Controller) -> list[tuple[Any, ...]]:
    """Return a copy of the objects, without empty links."""
    return [
        (
            one.endpoint,
            copy.deepcopy(one.values),
            {part: sorted(numbers) for part, numbers in one.links.items() if numbers},
            one.survey,
        )
        for one in awx.items.values()
    ]


# The requests of the first and of the second run with the modules of awx.awx, which look up each
# name. Now they are 240 and 84.
FIRST_BEFORE, SECOND_BEFORE = 710, 542


def test_the_set_up_sends_at_most_half_of_the_requests_of_before(done: Done) -> None:
    assert 0 < done.requests <= FIRST_BEFORE // 2


def test_a_second_run_changes_nothing(awx: Controller, setup: Player, done: Done) -> None:
    """It also sends at most half of the requests of before."""
    first = done.played
    assert first.changed == 3, first.output  # what all share, the administrators, and the tenant
    assert "Create job template 'acme: Provision VMs'" in first.output
    before = state(awx)

    again = play(setup, **OPTIONS).expect()
    assert again.changed == 0, again.output
    assert awx.writes == []
    assert 0 < len(awx.requests) <= SECOND_BEFORE // 2
    assert state(awx) == before
    for item in (*awx.all("job_templates"), *awx.all("workflow_job_templates")):
        assert item.values["survey_enabled"] == bool(item.survey)

    check_what_is_there(awx)
    check_what_a_tenant_may(awx)
    check_options(awx)

    # A second user by hand, and a user who is not listed any more: the list is the truth. Without
    # a list, members are not touched.
    added = awx.named("users", "bob").id
    for team in ("acme: operators", "Proxmox VE: operators"):
        member = awx.named("teams", team).roles["member_role"]
        awx.members[member].setdefault("users", []).append(added)
    less = {**OPTIONS, "awx_approval": False, "awx_tenants": {"acme": {"users": []}}}
    play(setup, **less).expect()
    assert awx.members_of("acme: operators") == set()
    assert awx.members_of("Proxmox VE: operators") == {"bob"}
    check_without_approval(awx)


def check_options(awx: Controller) -> None:
    nodes = {node.name: node for node in awx.all("workflow_job_template_nodes")}
    assert nodes["check"].links["success_nodes"] == [nodes["plan"].id]
    assert nodes["plan"].values["job_type"] == "check"
    approval = awx.items[nodes["approve"].values["unified_job_template"]]
    assert approval.endpoint == "workflow_approval_templates"
    assert approval.values["timeout"] == 3600
    workflow = awx.named("workflow_job_templates", f"acme: {read('workflows')[0]['name']}")
    assert json.loads(workflow.values["extra_vars"])["fleet_plan_required"] is True
    label = awx.all("labels")[0]
    for template in awx.all("job_templates"):
        expected = 7200 if template.name.endswith("Provision VMs") else 600
        assert template.values["timeout"] == expected
        assert [awx.items[number].name for number in template.links["labels"]] == [label.name]
    fleet, tenant = (awx.named("organizations", name) for name in ("Proxmox VE", "Proxmox VE acme"))
    galaxy = awx.named("credentials", "Ansible Galaxy")
    assert fleet.links["galaxy_credentials"] == tenant.links["galaxy_credentials"] == [galaxy.id]
    chat, hook = (
        awx.named("notification_templates", f"Proxmox VE: {name}").id for name in ("chat", "hook")
    )
    assert fleet.links["notification_templates_error"] == [chat, hook]
    assert fleet.links["notification_templates_approvals"] == [hook]
    check_messages(awx.items[chat].values["messages"])
    assert set(awx.items[hook].values["messages"].values()) == {None}
    assert "notification_templates_error" not in tenant.links
    readers = {("organizations", one.name, "auditor") for one in (fleet, tenant)}
    assert awx.granted(awx.named("teams", "Proxmox VE: auditors")) == readers
    assert awx.members_of("Proxmox VE: auditors") == {"bob"}
    approvers = awx.granted(awx.named("teams", "Proxmox VE: operators"))
    assert (workflow.endpoint, workflow.name, "approval") in approvers
    granted = {name for _kind, name, _role in awx.granted(awx.named("teams", "acme: operators"))}
    assert "acme: Provision VMs" not in granted
    assert not {name for name in granted if "failed change" in name}


def check_messages(messages: dict[str, Any]) -> None:
    """The notification of a job that plans shows its plan; that of another job has AWX's own text."""
    text = messages["success"]["message"]
    plan = {"fleet_plan_digest": "sha256:12", "fleet_plan": ["~ acme/web", "Plan: 1 to change"]}
    usual = "Job #42 'a job' successful: https://awx.example.com/42"
    shown = rules.shown_message(text, {"artifacts": plan})
    assert shown == f"{usual}\nPlan sha256:12\n~ acme/web\nPlan: 1 to change"
    others: list[dict[str, Any]] = [{}, {"artifacts": {}}, {"artifacts": "$hidden due to ..."}]
    for job in others:
        assert rules.shown_message(text, job) == usual


def check_without_approval(awx: Controller) -> None:
    nodes = {node.name: node for node in awx.all("workflow_job_template_nodes")}
    assert not {"plan", "approve"} & set(nodes)
    assert nodes["check"].links["success_nodes"] == [nodes["snapshot"].id]
    granted = {name for _kind, name, _role in awx.granted(awx.named("teams", "acme: operators"))}
    assert "acme: Provision VMs" in granted
    approvers = {
        role for _kind, _name, role in awx.granted(awx.named("teams", "Proxmox VE: operators"))
    }
    assert "approval" not in approvers


def check_what_is_there(awx: Controller) -> None:
    templates = [one for one in read("job_templates") if "needs_sites" not in one]
    fleet = {f"Proxmox VE: {one['name']}" for one in templates if "fleet" in one["scopes"]}
    tenant = {f"acme: {one['name']}" for one in templates if "tenant" in one["scopes"]}
    assert {item.name for item in awx.all("job_templates")} == fleet | tenant
    login = awx.named("credentials", "Proxmox VE: Proxmox VE")
    assert login.values["inputs"] == LOGIN
    assert awx.named("credentials", "acme: Proxmox VE").values["inputs"] == {}
    source = awx.named("inventory_sources", "acme: Proxmox VE")
    assert source.values["source_vars"] == '{"PROXMOX_TENANT": "acme"}'
    assert awx.named("inventory_sources", "Proxmox VE: Proxmox VE").values["source_vars"] == ""
    # The tenants that set-up knows are the choices of the administrators.
    chosen = {
        one.name: (question["type"], question["choices"])
        for one in awx.all("job_templates")
        for question in one.survey.get("spec", [])[:1]
        if "tenant" in question["variable"]
    }
    assert len(chosen) == 10
    assert chosen["Proxmox VE: Take snapshots"] == ("multiplechoice", ["acme"])
    assert chosen["Proxmox VE: Provision VMs"] == ("multiselect", ["acme"])
    nodes = {node.name: node for node in awx.all("workflow_job_template_nodes")}
    assert nodes["change"].links["failure_nodes"] == [nodes["undo"].id]
    assert nodes["undo"].links["always_nodes"] == [nodes["failed"].id]
    (workflow,) = awx.all("workflow_job_templates")
    fixed = json.loads(workflow.values["extra_vars"])
    assert read("workflows")[0]["extra_vars"].items() <= fixed.items()
    # No login is needed before a job starts: "Check requirements" says what is wrong with one.
    for template in awx.all("job_templates"):
        assert awx.updates_before(template) == []
    # Nightly snapshots, a storage for backups, a directory for drills, a weekly rebalance, and a
    # login of AWX for the rotation of tokens are options that are not set.
    off = {one.name for one in awx.all("schedules") if not one.values["enabled"]}
    assert off == {
        "acme: Back up guests every night",
        "acme: Take snapshots every night",
        "Proxmox VE: Meter the use of tenants every five minutes",
        "Proxmox VE: Prove restores every week",
        "Proxmox VE: Rotate tokens every week",
        "Proxmox VE: Use the nodes evenly every week",
    }


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
def test_a_maintenance_has_an_approval_before_each_node(awx: Controller, setup: Player) -> None:
    nodes = ["pve1", "pve2"]
    play(setup, awx_nodes=nodes).expect()
    awx.writes.clear()
    again = play(setup, awx_nodes=nodes).expect()
    assert again.changed == 0, again.output
    workflow = awx.named("workflow_job_templates", "Proxmox VE: Maintain the nodes one by one")
    steps = {
        node.name: node
        for node in awx.all("workflow_job_template_nodes")
        if node.values["workflow_job_template"] == workflow.id
    }
    names = {node.id: name for name, node in steps.items()}
    found = {
        name: {key: node.values[key] for key in ("job_type", "extra_data") if node.values.get(key)}
        | {"success_nodes": [names[one] for one in node.links.get("success_nodes", [])]}
        for name, node in steps.items()
    }
    assert found == maintenance_nodes(nodes)
    assert json.loads(workflow.values["extra_vars"])["fleet_plan_required"] is True
    approval = awx.items[steps["approve pve2"].values["unified_job_template"]]
    assert approval.endpoint == "workflow_approval_templates"
    granted = awx.granted(awx.named("teams", "Proxmox VE: operators"))
    assert (workflow.endpoint, workflow.name, "approval") in granted


def test_check_mode_writes_nothing(awx: Controller, setup: Player) -> None:
    empty = play(setup, "--check").expect()
    assert awx.writes == []
    assert empty.changed == 3
    assert "Create job template 'acme: Provision VMs'" in empty.output
    assert "Grant role execute on 'acme: Take snapshots' for team 'acme: operators'" in empty.output


@pytest.mark.long
@pytest.mark.usefixtures("done")
def test_check_mode_behind_a_run_writes_nothing(awx: Controller, setup: Player) -> None:
    """It reports the change, and that alone."""
    new = {"awx_project_url": "https://git.example.com/new.git"}
    changed = play(setup, "--check", **{**OPTIONS, **new}).expect()
    assert changed.changed == 2
    assert "Change project 'Proxmox VE: pve.fleet': scm_url" in changed.output
    assert "Change project 'acme: pve.fleet': scm_url" in changed.output
    assert awx.writes == []


@pytest.mark.usefixtures("done")
def test_changes_by_hand_are_undone_and_a_secret_is_kept(awx: Controller, setup: Player) -> None:
    before = state(awx)
    granted = awx.granted(awx.named("teams", "acme: operators"))
    template = awx.named("job_templates", "acme: Provision VMs")
    schedule = awx.named("schedules", "acme: Take snapshots every night")
    (workflow,) = awx.all("workflow_job_templates")
    nodes = {node.name: node for node in awx.all("workflow_job_template_nodes")}
    team = awx.named("teams", "acme: operators").id
    template.values["ask_variables_on_launch"] = True
    template.survey = {**template.survey, "spec": template.survey["spec"][:1]}
    template.links["credentials"].append(awx.named("credentials", "Proxmox VE: Proxmox VE").id)
    template.links["labels"] = []
    schedule.values["rrule"] = "DTSTART:20260101T000000Z RRULE:FREQ=DAILY;INTERVAL=2"
    workflow.survey = {}
    nodes["change"].links["failure_nodes"] = []
    nodes["snapshot"].values["extra_data"] = {}
    awx.items[nodes["approve"].values["unified_job_template"]].values["timeout"] = 1
    awx.members[awx.named("job_templates", "acme: Take snapshots").roles["execute_role"]] = {}
    awx.members[template.roles["execute_role"]]["teams"] = [team]
    fleet = awx.named("organizations", "Proxmox VE")
    fleet.links["notification_templates_error"] = []
    fleet.links["galaxy_credentials"] = []
    hook = awx.named("notification_templates", "Proxmox VE: hook").values
    hook["notification_configuration"]["url"] = "https://elsewhere.example.com"
    chat = awx.named("notification_templates", "Proxmox VE: chat").values
    login = awx.named("credentials", "Proxmox VE: Proxmox VE").values["inputs"]
    chat["notification_configuration"]["token"] = login["token_secret"] = "new"
    repaired = play(setup, **OPTIONS).expect()
    assert repaired.changed == 2, repaired.output
    assert chat["notification_configuration"]["token"] == login["token_secret"] == "new"
    login["token_secret"], chat["notification_configuration"]["token"] = "s3cret-1", "s3cret-2"
    assert state(awx) == before
    assert awx.granted(awx.named("teams", "acme: operators")) == granted
    login["token_secret"] = "new"
    play(setup, awx_update_secrets=True).expect()
    assert awx.named("credentials", "Proxmox VE: Proxmox VE").values["inputs"] == LOGIN


@pytest.mark.long
def test_a_refusal_of_awx_has_its_object_and_no_secret(awx: Controller, setup: Player) -> None:
    wrong = {**CHAT, "configuration": {"token": "s3cret-3"}}
    output = play(setup, "-vvv", awx_notifications=[wrong]).expect(2).output
    assert "Create notification template 'Proxmox VE: chat' failed" in output
    assert "Missing required fields for Notification Configuration: ['channels']" in output
    assert "Done before: Create organization 'Proxmox VE'" in output


@pytest.mark.long
@pytest.mark.usefixtures("done")
def test_the_client_refuses_an_ambiguous_name(awx: Controller, setup: Player) -> None:
    """Two teams of one name are teams of two organizations."""
    other = awx.create("organizations", {"name": "other"}).id
    awx.create("teams", {"name": "Proxmox VE: operators", "organization": other})
    output = play(setup).expect(2).output
    assert "AWX has 2 teams with the name 'Proxmox VE: operators', instead of one" in output


def site_named(name: str, **more: Any) -> dict[str, Any]:
    login = {"token_id": "ops@pve!awx", "token_secret": f"s3cret-{name}"}
    return {"name": name, "host": f"pve.{name}.example.com", **login, **more}


SITES = [
    site_named("north", default=True),
    site_named("south", state="draining"),
    site_named("west"),
    {"name": "east", "state": "closed"},
]
OVER_SITES = {
    "awx_sites": SITES,
    "awx_sites_directory": "/var/lib/fleet/sites",
    "awx_site_instances": {"north": ["exec1"]},
    "awx_tenants": {},
}
DRIFT = "Proxmox VE: Compare the estate with each site"


def nodes_of(awx: Controller, workflow: str) -> dict[str, Item]:
    number = awx.named("workflow_job_templates", workflow).id
    nodes = awx.all("workflow_job_template_nodes")
    return {node.name: node for node in nodes if node.values["workflow_job_template"] == number}


@pytest.mark.long
def test_workflows_over_the_sites_of_the_registry(awx: Controller, setup: Player) -> None:
    """A node for each open site, and after all of them a node that merges their results."""
    awx.create("instances", {"hostname": "exec1"})
    play(setup, **OVER_SITES).expect()
    before = state(awx)
    awx.writes.clear()
    again = play(setup, **OVER_SITES).expect()
    assert (again.changed, awx.writes) == (0, [])
    assert state(awx) == before
    check_sites(awx)

    # Check mode writes nothing. Then a site is closed, and the state of another changes.
    closed = [{**SITES[0], "labels": {"region": "eu"}}, {**SITES[1], "state": "closed"}, SITES[2]]
    checked = play(setup, "--check", **{**OVER_SITES, "awx_sites": closed}).expect()
    assert awx.writes == []
    play(setup, **{**OVER_SITES, "awx_sites": closed}).expect()
    for label in (
        "Change credential 'Proxmox VE: site north': description",
        f"Remove node 'south' of workflow job template '{DRIFT}'",
        f"Change workflow job template '{DRIFT}': extra_vars",
    ):
        assert label in checked.output
    assert set(nodes_of(awx, DRIFT)) == {"north", "west", "merge results"}
    inputs = awx.named("credentials", "Proxmox VE: site north").values["inputs"]
    assert json.loads(inputs["sites"]) == {"sites": [closed[0]]}


def check_sites(awx: Controller) -> None:
    open_sites = {"north", "south", "west"}
    for name in open_sites:
        login = awx.named("credentials", f"Proxmox VE: site {name}")
        assert login.values["inputs"]["site"] == name
        (own,) = json.loads(login.values["inputs"]["sites"])["sites"]
        assert own == next(one for one in SITES if one["name"] == name)
        source = awx.named("inventory_sources", f"Proxmox VE: site {name}")
        assert source.values["credential"] == login.id
        inventory = awx.items[source.values["inventory"]]
        assert inventory.name == f"Proxmox VE: VMs at {name}"
        drift = awx.named("job_templates", f"Proxmox VE: Compare with the cluster at {name}")
        assert drift.links["credentials"] == [login.id]
        variables = json.loads(drift.values["extra_vars"])
        assert variables["provision_drift_sites"] == [name, *([""] if name == "north" else [])]
        assert variables["provision_drift_file"] == f"/var/lib/fleet/sites/drift-{name}.json"
        (group,) = awx.all("instance_groups")
        for one in (drift, inventory):
            assert one.links.get("instance_groups", []) == ([group.id] if name == "north" else [])
            assert one.values["prevent_instance_group_fallback"] == (name == "north")
    assert not [one for one in awx.items.values() if "east" in str(one.values.get("name"))]
    for workflow in (DRIFT, "Proxmox VE: Report on each site"):
        nodes = nodes_of(awx, workflow)
        merge = nodes.pop("merge results")
        assert set(nodes) == open_sites
        assert {tuple(one.links["always_nodes"]) for one in nodes.values()} == {(merge.id,)}
        assert not any(one.values["all_parents_must_converge"] for one in [merge, *nodes.values()])
        fixed = json.loads(awx.named("workflow_job_templates", workflow).values["extra_vars"])
        assert fixed["fleet_sites"] == ["north", "south", "west"]
    granted = awx.granted(awx.named("teams", "Proxmox VE: operators"))
    assert ("workflow_job_templates", DRIFT, "execute") in granted
    names = {name for kind, name, _role in granted if kind == "job_templates"}
    assert "Proxmox VE: Merge the results of the sites" not in names


@pytest.mark.long
def test_mistakes_in_the_registry_are_named_before_the_first_write(
    awx: Controller, setup: Player
) -> None:
    blank = [SITES[0], {**SITES[1], "token_secret": ""}, {"name": "west", "token_secret": "s3cret"}]
    output = play(setup, **{**OVER_SITES, "awx_sites": blank}).expect(2).output
    assert "site south in awx_sites has no login" in output
    assert "site west in awx_sites has no host" in output
    for wrong, text in (
        ({"awx_sites_directory": "sites"}, "keep their results in awx_sites_directory"),
        ({"awx_sites": [SITES[0], SITES[0]]}, "needs a name of its own"),
        ({"awx_site_instances": {"nort": []}}, "awx_site_instances names nort."),
        ({}, "AWX has no instance exec1."),
    ):
        assert text in play(setup, **{**OVER_SITES, **wrong}).expect(2).output
    assert awx.writes == []


@pytest.mark.long
def test_two_tenants_have_nothing_in_common(awx: Controller, setup: Player) -> None:
    tenants = {"acme": {"users": ["ann"]}, "globex": {"users": ["bob"]}}
    awx.create_credential("AWX login", "Red Hat Ansible Automation Platform")
    all_schedules = {
        "awx_nightly_snapshots": True,
        "awx_weekly_rebalance": True,
        "awx_backup_storage": "nas",
        "awx_drill_directory": "/var/lib/fleet/drill",
        "awx_usage_directory": "/var/lib/fleet/usage",
        "awx_controller_credential": "AWX login",
    }
    play(setup, awx_tenants=tenants, **all_schedules).expect()
    granted = [awx.granted(awx.named("teams", f"{name}: operators")) for name in tenants]
    assert not granted[0] & granted[1]
    assert len(granted[0]) == len(granted[1])
    assert {one.name for one in awx.all("schedules") if not one.values["enabled"]} == set()


def test_users_of_a_tenant_that_is_not_listed_any_more_are_revoked(
    awx: Controller, setup: Player
) -> None:
    """The last task of the playbook alone: the others have tests of their own."""
    play = yaml.safe_load((HOME.parent / "awx_setup.yml").read_text(encoding="utf-8"))[0]
    last = {**play["tasks"][-1], "ansible.builtin.include_tasks": str(HOME / "tasks/unlisted.yml")}
    assert play["tasks"][-1]["ansible.builtin.include_tasks"] == "awx/tasks/unlisted.yml"
    settings = [str(HOME / "vars/settings.yml")]
    whole = {**play, "vars_files": settings, "tasks": [last]}
    (setup.directory / "unlisted.yml").write_text(yaml.safe_dump([whole]), encoding="utf-8")
    for tenant, user in (("acme", "ann"), ("globex", "bob")):
        about = {"name": f"Proxmox VE {tenant}", "description": f"Tenant {tenant} of Proxmox VE"}
        owner = awx.create("organizations", about).id
        team = awx.create("teams", {"name": f"{tenant}: operators", "organization": owner})
        awx.members[team.roles["member_role"]]["users"] = [awx.named("users", user).id]
    kept = setup.play("unlisted.yml", **SETTINGS).expect()
    assert "awx_tenants does not name globex, whose users keep their rights" in kept.output
    assert kept.changed == 0
    revoked = {**SETTINGS, "awx_revoke_unlisted": True}
    assert setup.play("unlisted.yml", **revoked).expect().changed == 1
    assert awx.members_of("globex: operators") == set()
    assert awx.members_of("acme: operators") == {"ann"}
    assert setup.play("unlisted.yml", **revoked).expect().changed == 0


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
    for wrong, text in (
        ({"awx_approvals": True}, "awx_approvals is not a variable of pve.fleet"),
        ({"awx_tenants": {"acme": {"user": ["ann"]}}}, "unknown user."),
        ({"awx_job_timeouts": {"Provision": 60}}, "awx_job_timeouts names Provision."),
        ({"awx_notifications": [{"name": "chat", "type": "slack"}]}, "Correct chat."),
        ({"awx_notifications": [{**CHAT, "events": ["end"]}]}, "Correct chat."),
    ):
        assert text in player.play(SETUP, **{**SETTINGS, **wrong}).expect(2).output
    output = player.play(SETUP, **SETTINGS).expect(2).output
    assert "ansible-galaxy collection install awx.awx" in output
    assert awx.writes == []


def test_what_does_not_exist_is_named_before_the_first_write(
    awx: Controller, setup: Player
) -> None:
    for mode in ([], ["--check"]):
        refused = {"awx_controller_credential": "AWX login"}
        output = play(setup, *mode, **refused).expect(2).output
        assert "AWX has no credential with the name 'AWX login'" in output
    tenants = {"acme": {"users": ["ann", "zoe"]}, "globex": {"users": ["noone"]}}
    output = play(setup, "--check", awx_tenants=tenants).expect(2).output
    assert "AWX has no user zoe, noone." in output
    wrong = {"controller_oauthtoken": "wrong"}
    output = play(setup, "--check", awx_connection=wrong).expect(2).output
    assert "AWX could not be asked" in output
    assert "Invalid authentication credentials" in output
    assert awx.writes == []
