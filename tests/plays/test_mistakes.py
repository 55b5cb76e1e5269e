# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelt variables and wrong values are refused by playbooks and roles before any request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player

ROOT = Path(__file__).parents[2]
PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
# The playbooks in which the settings of tenants in an estate have a meaning.
READ_TENANTS = ("audit", "drift", "metrics", "provision", "report", "tenant", "rotate")


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    return Player(tmp_path, lab.environment)


def refusal(lab: Lab, player: Player, playbook: str, *arguments: str) -> str:
    """Return the output of a playbook that fails before its first request."""
    mark = lab.mark()
    output = player.play(playbook, *arguments).expect(2).output
    assert lab.requests_since(mark) == []
    assert "Traceback" not in output
    return output


@pytest.mark.parametrize(
    ("playbook", "arguments", "cause"),
    [
        (
            "tenant",
            ("-e", "tenant_name=acme", "-e", "tenant_state=Absent"),
            "tenant_state: 'Absent' is not one of present, absent (did you mean 'absent'?)",
        ),
        (
            "export",
            ("-e", "export_directory=.", "-e", "export_tennant=acme"),
            "export_tennant is not a variable of pve.fleet (did you mean 'export_tenant'?)",
        ),
        (
            "provision",
            ("-e", "provison_tenants=acme", "-e", '{"provision_vms": []}'),
            "provison_tenants is not a variable of pve.fleet (did you mean 'provision_tenants'?)",
        ),
        (
            "provision",
            ("-e", "provision_state=Started", "-e", '{"provision_vms": []}'),
            (
                "provision_state: 'Started' is not one of present, started, stopped"
                " (did you mean 'started'?)"
            ),
        ),
        (
            "snapshot",
            ("-e", "snapshot_policy_tennant=acme"),
            "snapshot_policy_tennant is not a variable of pve.fleet",
        ),
        ("awx_setup", ("-e", "awx_project_ulr=x"), "(did you mean 'awx_project_url'?)"),
    ],
)
def test_a_mistake_is_refused_before_any_request(
    lab: Lab, player: Player, playbook: str, arguments: tuple[str, ...], cause: str
) -> None:
    output = refusal(lab, player, f"pve.fleet.{playbook}", *arguments)
    assert f"Nothing was done. {cause}" in output or cause in output
    assert "pve_fleet_unchecked_variables" in output


@pytest.mark.parametrize("playbook", READ_TENANTS)
def test_wrong_settings_of_a_tenant_are_refused(lab: Lab, player: Player, playbook: str) -> None:
    estate = {
        "provision_vms": [],
        "tenants": {"acme": {"quotas": {"vms": 1}}},
        "tenant_name": "acme",
        "metrics_path": str(player.directory / "a.prom"),
        "report_directory": str(player.directory),
    }
    (player.directory / "estate.yml").write_text(yaml.safe_dump(estate), encoding="utf-8")
    output = refusal(lab, player, f"pve.fleet.{playbook}", "-e", "@estate.yml")
    cause = "The settings of tenant acme were refused: unknown option 'quotas'"
    assert f"{cause} (did you mean 'quota'?)" in output


def test_every_playbook_checks_its_variables() -> None:
    """The check is the first task, so that nothing precedes it."""
    of_workflows = {"awx_failed", "awx_undo"}  # they read artifacts, and have no variables of users
    for name in sorted(set(PLAYBOOKS) - of_workflows):
        text = (Path(__file__).parents[2] / "playbooks" / f"{name}.yml").read_text(encoding="utf-8")
        (play,) = yaml.safe_load(text)
        first = str(play["tasks"][0])
        if "rolespec_validate" in first:  # the first task of the role makes the check
            first = _checks_of(play["tasks"][0])
        assert "pve.fleet.mistakes" in first, name


def _checks_of(task: dict[str, Any]) -> str:
    """Return the checks of the role that a task runs: of its tasks, or of its variables."""
    (role,) = [value["name"] for value in task.values() if isinstance(value, dict)]
    folder = ROOT / "roles" / str(role).rpartition(".")[2]
    files = [*folder.glob("tasks/*.yml"), *folder.glob("vars/*.yml")]
    return "".join(file.read_text("utf-8") for file in files)


# A role, its entry point, and a misspelt variable of it.
ROLES = [
    ("provision", "main", "provision_vmss"),
    ("provision", "drift", "provision_drift_fiel"),
    ("tenant", "main", "tenant_nmae"),
    ("tenant", "absent", "tenant_confrim"),
    ("image", "main", "image_ulr"),
    ("preflight", "main", "preflight_task"),
    ("report", "main", "report_titel"),
    ("snapshot_policy", "snapshot", "snapshot_policy_vm"),
]


def role_tasks(role: str, entry_point: str, variable: str) -> dict[str, Any]:
    """Return tasks that fail unless the role refuses the variable for its name."""
    include = {
        "name": f"Run {role}",
        "ansible.builtin.include_role": {"name": f"pve.fleet.{role}", "tasks_from": entry_point},
        "vars": {variable: "x", "report_directory": "/nowhere"},
    }
    cause = f"{variable} is not a variable of pve.fleet .did you mean"
    refused = f"ansible_failed_result.msg is search('{cause}')"
    excused = "ansible_failed_result.msg is not search('registry|domain')"
    return {
        "name": f"Try {role}",
        "block": [include, {"name": "Note", "ansible.builtin.debug": {"msg": f"{role} ACCEPTED"}}],
        "rescue": [{"name": "Check", "ansible.builtin.assert": {"that": [refused, excused]}}],
    }


def test_every_role_checks_its_variables(lab: Lab, player: Player) -> None:
    play = {
        "name": "Roles with variables that nothing reads",
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"image_registry": "registry.example.com", "tenant_domain": "example.com"},
        "tasks": [role_tasks(*one) for one in ROLES],
    }
    (player.directory / "roles.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    mark = lab.mark()
    output = player.play("roles.yml").expect().output
    assert "ACCEPTED" not in output
    assert lab.requests_since(mark) == []


# A role, its entry point, a wrong value, and the value that was meant.
VALUES = [
    ("provision", "main", {"provision_state": "Started"}, "started"),
    ("provision", "main", {"provision_reboot": "ifneeded"}, "if_needed"),
    ("tenant", "main", {"tenant_credentials": "vaulted"}, "vault"),
    ("tenant", "absent", {"tenant_strays": "removed"}, "remove"),
    ("image", "main", {"image_content": "imports"}, "import"),
    ("image", "main", {"image_compression": "gzip"}, "gz"),
    ("snapshot_policy", "snapshot", {"snapshot_policy_state": "Absent"}, "absent"),
]


def test_every_role_suggests_a_value(lab: Lab, player: Player) -> None:
    """Ansible's own message prints the whole specification of the role, without a suggestion."""
    tasks: list[dict[str, Any]] = []
    for role, entry_point, variables, meant in VALUES:
        include = {
            "name": f"Run {role}",
            "ansible.builtin.include_role": {
                "name": f"pve.fleet.{role}",
                "tasks_from": entry_point,
            },
            "vars": {"provision_vms": [], "tenant_name": "acme", **variables},
        }
        (variable,) = variables
        cause = f"{variable}: .{variables[variable]}. is not one of .* .did you mean .{meant}."
        checks = [
            f"ansible_failed_result.msg is search('{cause}')",
            "'argument_spec_data' not in ansible_failed_result",
        ]
        accepted = {"name": "Note", "ansible.builtin.debug": {"msg": f"{variable} ACCEPTED"}}
        check = {"name": "Check", "ansible.builtin.assert": {"that": checks}}
        tasks.append({"name": variable, "block": [include, accepted], "rescue": [check]})
    play = {"name": "Values", "hosts": "localhost", "gather_facts": False, "tasks": tasks}
    (player.directory / "values.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    mark = lab.mark()
    output = player.play("values.yml").expect().output
    assert "ACCEPTED" not in output
    assert lab.requests_since(mark) == []


def test_no_role_leaves_its_choices_to_ansible() -> None:
    for path in (Path(__file__).parents[2] / "roles").glob("*/meta/argument_specs.yml"):
        for name, entry_point in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].items():
            for variable, rule in entry_point["options"].items():
                assert "choices" not in rule, (path, name, variable)


def test_variables_of_others_can_be_named(lab: Lab, player: Player) -> None:
    more = ("-e", "provision_notes=x", "-e", "pve_fleet_unchecked_variables=provision_n*")
    player.play("pve.fleet.provision", "-e", '{"provision_vms": []}', *more).expect()


# A variable of a playbook or role that names something, the variables beside it, and the hint.
NAMES_NOTHING: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("export", {"export_tenant": "acne"}, {"export_directory": "."}, "acme"),
    ("tidy", {"tidy_tenant": "acne"}, {}, "acme"),
    ("drill", {"drill_tenant": "acne"}, {"drill_directory": "DIRECTORY"}, "acme"),
    ("drill", {"drill_vms": ["wbe1"]}, {"drill_directory": "DIRECTORY"}, "web1"),
    ("drill", {"drill_node": "pve11"}, {"drill_directory": "DIRECTORY"}, "pve1"),
    ("drill", {"drill_pool": "acne"}, {"drill_directory": "DIRECTORY"}, "acme"),
    ("drill", {"drill_storage": "cehp"}, {"drill_directory": "DIRECTORY"}, "ceph"),
    ("rebalance", {"rebalance_tenants": ["acne"]}, {}, "acme"),
    ("rebalance", {"rebalance_placement": {"exclude": ["pve11"]}}, {}, "pve1"),
    ("power", {"power_tenants": ["acne"]}, {"power_state": "stopped"}, "acme"),
    (
        "power",
        {"power_exclude": ["wbe1"]},
        {"power_state": "stopped", "power_tenants": ["acme"]},
        "web1",
    ),
]


@pytest.mark.parametrize(("playbook", "named", "others", "hint"), NAMES_NOTHING, ids=str)
def test_a_variable_that_names_nothing_is_refused(
    lab: Lab,
    player: Player,
    playbook: str,
    named: dict[str, Any],
    others: dict[str, Any],
    hint: str,
) -> None:
    lab.make_vm("web1", tags="tenant_acme")
    variables = json.dumps({**named, **others}).replace("DIRECTORY", str(player.directory))
    output = player.play(f"pve.fleet.{playbook}", "-e", variables).expect(2).output
    assert f"(did you mean '{hint}'?)" in output
