# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data for AWX in playbooks/awx, held against their schema and the rules of AWX itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from packaging.requirements import Requirement

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import (
    ENVIRONMENT,
    resolve,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.variables import (
    PlayVariables,
    find_unknown,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.variables import (
    FAMILIES,
)
from tests.awx import rules
from tests.awx.credential import inject
from tests.awx.data import HOME, job_template, nodes_of, read, read_all, survey_of
from tests.tools import awx_collection

SCHEMA = json.loads((Path(rules.__file__).parent / "data.schema.json").read_text(encoding="utf-8"))
FILES = ("credential_types", "job_templates", "workflows", "schedules", "sites")
TEMPLATES: list[dict[str, Any]] = read("job_templates")
LOGIN, SITES = read("credential_types")
KINDS = ("fleet", "tenant")
WANTED = {"host": "pve1.example.com", "token_id": "ops@pve!awx", "token_secret": "s3cret"}


@pytest.mark.parametrize("name", FILES)
def test_data_are_as_their_schema(name: str) -> None:
    schema = {"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"}
    Draft202012Validator(schema).validate(read(name))


@pytest.mark.parametrize("kind", [LOGIN, SITES], ids=lambda kind: str(kind["name"]))
def test_credential_types_are_accepted_by_awx(kind: dict[str, Any]) -> None:
    assert rules.credential_type_errors(kind["inputs"], kind["injectors"]) == []
    assert kind["kind"] in rules.FACTS["credential_kinds"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"type": "integer"}, "type integer is not one of"),
        ({"type": "boolean", "secret": True}, "secret is only for strings"),
        ({"id": "tower"}, "is not a valid ID"),
        ({"hint": "?"}, "unknown"),
    ],
)
def test_the_rules_refuse_an_input_as_awx_does(change: dict[str, Any], error: str) -> None:
    field = {"id": "one", "label": "One", "type": "string", **change}
    assert error in rules.credential_type_errors({"fields": [field]}, {})[0]


@pytest.mark.parametrize(
    ("injectors", "error"),
    [
        ({"env": {"ANSIBLE_CONFIG": "x"}}, "ANSIBLE_CONFIG is not allowed"),
        ({"env": {"PATH": "x"}}, "PATH is not allowed"),
        ({"env": {"A": "{{ two }}"}}, "'two' is undefined"),
        ({"env": {"A": "{{ tower.filename.ca }}"}}, "no attribute 'ca'"),
        ({"file": {"template": "", "template.ca": ""}}, "must all have names"),
    ],
)
def test_the_rules_refuse_an_injector_as_awx_does(injectors: dict[str, Any], error: str) -> None:
    fields = {"fields": [{"id": "one", "label": "One", "type": "string"}]}
    assert error in rules.credential_type_errors(fields, injectors)[0]


def test_every_injected_variable_is_one_of_the_connection() -> None:
    known = {name for names in ENVIRONMENT.values() for name in names}
    for kind in (LOGIN, SITES):
        assert set(kind["injectors"]["env"]) <= known


def test_an_empty_field_means_unset(tmp_path: Path) -> None:
    environment = inject(LOGIN, WANTED, tmp_path)
    assert environment["PROXMOX_CA_PATH"] == environment["PROXMOX_VALIDATE_CERTS"] == ""
    connection = resolve({}, environment)
    assert connection.validate_certs
    assert connection.ca == connection.password == ""
    assert connection.token_id == WANTED["token_id"]


def test_every_variable_of_the_connection_may_be_empty() -> None:
    unset = resolve({}, {f"PROXMOX_{name.upper()}": value for name, value in WANTED.items()})
    names = [name for names in ENVIRONMENT.values() for name in names]
    assert len(names) > 20
    empty = dict.fromkeys(names, "")
    empty |= {f"PROXMOX_{name.upper()}": value for name, value in WANTED.items()}
    assert resolve({}, empty) == unset
    assert resolve({}, {**empty, "PROXMOX_PORT": "  "}) == unset


def test_all_fields_reach_the_connection(tmp_path: Path) -> None:
    values = {**WANTED, "ca": "-----BEGIN CERTIFICATE-----", "skip_tls_verification": True}
    connection = resolve({}, inject(LOGIN, values, tmp_path))
    assert Path(connection.ca).read_text(encoding="utf-8") == values["ca"]
    assert not connection.validate_certs

    values = {"host": "pve1", "user": "ops@pve", "password": "s3cret"}
    connection = resolve({}, inject(LOGIN, values, tmp_path))
    assert (connection.user, connection.password) == ("ops@pve", "s3cret")


def test_a_credential_without_a_login_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no credentials"):
        resolve({}, inject(LOGIN, {"host": "pve1"}, tmp_path))


def test_the_sites_credential_writes_a_file(tmp_path: Path) -> None:
    sites = [{"name": "north", **WANTED}, {"name": "south", **WANTED, "host": "pve2"}]
    environment = inject(SITES, {"sites": yaml.safe_dump(sites), "site": "south"}, tmp_path)
    connection = resolve(
        {}, environment, lambda path: yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    )
    assert (connection.site, connection.endpoint.host) == ("south", "pve2")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda one: f"{one['name']} {one['scopes']}")
def test_surveys_are_accepted_by_awx(template: dict[str, Any], kind: str) -> None:
    survey = survey_of(template, kind)
    if survey and kind in template["scopes"]:
        assert rules.survey_errors(survey) == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"type": "number"}, "type number is not known"),
        ({"type": "integer", "default": "4"}, "of another type"),
        ({"type": "multiplechoice"}, "choices are missing"),
        ({"type": "multiplechoice", "choices": ["a"], "default": "b"}, "not one of the choices"),
        ({"required": "yes"}, "required is missing or not a bool"),
        ({"min": "1"}, "min is not an integer"),
    ],
)
def test_the_rules_refuse_a_question_as_awx_does(change: dict[str, Any], error: str) -> None:
    question = {"variable": "a", "question_name": "A", "type": "text", "required": True, **change}
    survey = {"name": "", "description": "", "spec": [question]}
    assert error in rules.survey_errors(survey)[0]


def test_a_tenant_can_neither_answer_nor_override_whose_vms() -> None:
    workflow_variables = {
        variable
        for one in read("workflows")
        for variable in (*one["extra_vars"], *(question["variable"] for question in one["survey"]))
    }
    own = [one for one in TEMPLATES if "tenant" in one["scopes"]]
    assert len(own) >= 5
    for template in own:
        variables = {one["variable"] for one in survey_of(template, "tenant").get("spec", [])}
        assert template["tenant_variable"] not in variables | workflow_variables
        # Another variable of the same playbook must not widen it.
        assert not variables & {"provision_all", "provision_connection", "tenant_name"}
        assert not variables & {"estate_tenant", "provision_prune"}
    for variable in workflow_variables:
        assert "tenant" not in variable


def test_nothing_dangerous_is_prompted_for_at_a_launch() -> None:
    settings = read_all("settings")
    assert set(settings["pve_awx_fixed"].values()) == {False}
    known = rules.FACTS["endpoints"]["job_templates"]["fields"]
    assert set(settings["pve_awx_fixed"]) <= set(known)
    prompts = {name for name in known if name.startswith("ask_")}
    harmless = {"ask_diff_mode_on_launch", "ask_job_type_on_launch", "ask_verbosity_on_launch"}
    assert prompts - harmless == set(settings["pve_awx_fixed"])


def test_survey_variables_are_those_of_the_roles(repo: Path) -> None:
    known = set()
    for file in repo.glob("roles/*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"].values():
            known |= set(entry["options"])
    # Read by a playbook itself.
    known |= {"tenant_state", "preflight_tenant", "snapshot_policy_force"}
    known |= {"rotate_tenants", "rotate_expires_within"}
    known |= {"maintenance_nodes", "maintenance_sites", "relocate_site"}
    for family in ("backup", "export", "metrics", "power", "rebalance", "tidy", "usage"):
        known |= set(FAMILIES[family].variables)
    asked = {one["variable"] for template in TEMPLATES for one in template.get("survey", [])}
    asked |= {
        template["tenant_variable"] for template in TEMPLATES if "tenant_variable" in template
    }
    assert asked - known == set()


def test_every_variable_is_known_and_documented(repo: Path) -> None:
    known = set(FAMILIES["awx"].variables)
    files = [repo / "playbooks" / "awx_setup.yml", *(HOME / "tasks").glob("*.yml")]
    files += (HOME / "vars").glob("*.yml")
    texts = [file.read_text(encoding="utf-8") for file in files]
    used = {name for text in texts for name in re.findall(r"(?<![\w.'])awx_[a-z]\w+", text)}
    assert used - {"awx_setup", "awx_objects"} == known  # a playbook and its action
    guide = (repo / "docs" / "awx.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(awx_\w+)`", guide.partition("## Credential types")[0])) >= known


def test_variables_that_awx_gives_to_a_job_are_not_refused() -> None:
    # awx_meta_vars in awx/main/models/unified_jobs.py and jobs.py
    for name in (
        "awx_execution_node",
        "awx_job_id",
        "awx_job_scm_branch",
        "awx_job_launch_type",
        "awx_job_template_name",
        "awx_project_revision",
        "awx_project_scm_branch",
        "awx_inventory_id",
        "awx_user_email",
        "awx_schedule_id",
        "awx_workflow_job_name",
        "awx_parent_job_schedule_name",
    ):
        assert list(find_unknown([FAMILIES["awx"]], PlayVariables([name], [name]))) == []
    for name in ("awx_job_timeoutz", "awx_job_templates", "awx_inventory_files", "awx_userz"):
        assert list(find_unknown([FAMILIES["awx"]], PlayVariables([name], [name]))) != []


# Before and after the playbook of a job whose plan is approved in a workflow.
HANDED_OVER = ["approved.yml", "hand_over_plan.yml"]
# After the playbook of a job about one site.
OF_SITE = "pve.fleet.awx_site"


def test_every_job_template_has_a_playbook_in_the_project(repo: Path) -> None:
    for template in [*TEMPLATES, *read("sites")]:
        text = (HOME / "project" / template["playbook"]).read_text(encoding="utf-8")
        imported = [
            one["ansible.builtin.import_playbook"]
            for one in yaml.safe_load(text)
            if "ansible.builtin.import_playbook" in one
        ]
        estate, *others = imported
        assert estate == "read_estate.yml"
        if template["playbook"] == "rotate.yml":
            assert others == [], "it repeats the entry point of a role for each tenant"
            continue
        assert [one for one in others if "." not in one.removesuffix(".yml")] in ([], HANDED_OVER)
        (name,) = (one for one in others if one not in [*HANDED_OVER, OF_SITE])
        assert name.startswith("pve.fleet.")
        assert (repo / "playbooks" / f"{name.removeprefix('pve.fleet.')}.yml").is_file()


@pytest.mark.parametrize("one", read("schedules"), ids=lambda one: str(one["name"]))
def test_schedules_are_accepted_by_awx(one: dict[str, Any]) -> None:
    rrule = one["rrule"].replace("{{ pve_awx_time_zone }}", "Europe/Berlin")
    assert "{{" not in rrule
    assert rules.schedule_errors(rrule) == []
    for kind in one["scopes"]:
        template = job_template(one["job_template"], kind)
        survey = survey_of(template, kind) or {"spec": []}
        assert rules.answer_errors(survey, one.get("extra_data", {})) == []


@pytest.mark.parametrize(
    ("rrule", "error"),
    [
        ("DTSTART:20260101T000000 RRULE:FREQ=DAILY;INTERVAL=1", "no time zone"),
        ("DTSTART:20260101T000000Z RRULE:FREQ=DAILY", "INTERVAL"),
        ("RRULE:FREQ=DAILY;INTERVAL=1", "DTSTART"),
        ("DTSTART:20260101T000000Z RRULE:FREQ=SECONDLY;INTERVAL=1", "SECONDLY"),
        ("DTSTART:20260101T000000Z RRULE:FREQ=MONTHLY;INTERVAL=1;BYDAY=1MO", "BYDAY"),
    ],
)
def test_the_rules_refuse_a_schedule_as_awx_does(rrule: str, error: str) -> None:
    assert error in rules.schedule_errors(rrule)[0]


(WORKFLOW,) = read("workflows")


@pytest.mark.parametrize("approval", [False, True])
def test_a_workflow_is_accepted_by_awx(approval: bool) -> None:
    seen: set[str] = set()
    for node in nodes_of(WORKFLOW, approval=approval).values():
        leads_to = {*rules.next_nodes(node, True), *rules.next_nodes(node, False)}
        assert leads_to <= seen, "AWX links only nodes that exist"
        seen.add(node["identifier"])
        if "approval" in node:
            continue
        template = job_template(node["job_template"], "tenant")
        answers = {**_example(WORKFLOW["survey"]), **node.get("extra_data", {})}
        survey = survey_of(template, "tenant") or {"spec": []}
        asked = {one["variable"] for one in survey["spec"]}
        used = {name: value for name, value in answers.items() if name in asked}
        assert rules.answer_errors(survey, used) == [], "a required answer is missing"
        assert set(node.get("extra_data", {})) <= asked, "AWX ignores other variables"
        assert "job_type" not in node or template["job_type_on_launch"]


@pytest.mark.parametrize(
    ("fails", "ran", "failed"),
    [
        (set(), ["check", "snapshot", "change", "verify"], False),
        ({"check"}, ["check"], True),
        ({"snapshot"}, ["check", "snapshot"], True),
        ({"change", "failed"}, ["check", "snapshot", "change", "undo", "failed"], True),
        ({"verify", "failed"}, ["check", "snapshot", "change", "verify", "undo", "failed"], True),
        ({"change", "undo", "failed"}, ["check", "snapshot", "change", "undo", "failed"], True),
    ],
)
def test_a_workflow_fails_with_its_change(fails: set[str], ran: list[str], failed: bool) -> None:
    ended, status = rules.walk(nodes_of(WORKFLOW, approval=False), fails.__contains__)
    assert list(ended) == ran
    assert status == failed


OVER_SITES: dict[str, dict[str, Any]] = {
    "merge": {},
    **{name: {"always_nodes": ["merge"]} for name in ("north", "south", "west")},
}


@pytest.mark.parametrize(
    ("fails", "failed"),
    [(set(), False), ({"south"}, False), ({"south", "merge"}, True), ({"merge"}, True)],
)
def test_a_node_that_merges_runs_once_after_all_sites(fails: set[str], failed: bool) -> None:
    ended, status = rules.walk(OVER_SITES, fails.__contains__)
    assert list(ended) == ["north", "south", "west", "merge"]
    assert status == failed


def test_a_refused_approval_ends_the_workflow() -> None:
    ended, failed = rules.walk(nodes_of(WORKFLOW, approval=True), {"approve"}.__contains__)
    assert list(ended) == ["check", "plan", "approve"]
    assert failed


def test_awx_calls_a_workflow_successful_whose_failure_is_handled() -> None:
    """As in has_workflow_failed of awx/main/scheduler/dag_workflow.py."""
    nodes: dict[str, dict[str, Any]] = {"change": {"failure_nodes": ["undo"]}, "undo": {}}
    assert rules.walk(nodes, {"change"}.__contains__) == ({"change": True, "undo": False}, False)
    nodes["undo"] = {"always_nodes": ["failed"]}
    nodes["failed"] = {}
    assert rules.walk(nodes, {"change", "failed"}.__contains__)[1]


def test_slices_are_cut_as_awx_does() -> None:
    """As in get_sliced_hosts of awx/main/models/inventory.py, at most one slice for each host."""
    assert rules.sliced(["c", "a", "b"], 2) == [["a", "c"], ["b"]]
    assert rules.sliced(["b", "a"], 4) == [["a"], ["b"]]


def _example(survey: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an answer to each question."""
    return {one["variable"]: one.get("default", "web1") for one in survey}


def test_the_execution_environment_has_versions(repo: Path) -> None:
    home = repo / "extensions" / "execution_environment"
    definition = yaml.safe_load((home / "execution-environment.yml").read_text(encoding="utf-8"))
    assert definition["version"] == 3
    image, tag = definition["images"]["base_image"]["name"].rsplit(":", 1)
    assert tag != "latest", image
    parts = definition["dependencies"]
    packages = [*parts["python"]]
    packages += [parts[name]["package_pip"] for name in ("ansible_core", "ansible_runner")]
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", package) for package in packages), packages
    # What the collection needs is among them, in a version that it accepts.
    pinned = {one.name: str(one.specifier)[2:] for one in map(Requirement, parts["python"])}
    needed = (repo / "meta" / "ee-requirements.txt").read_text(encoding="utf-8").splitlines()
    for one in (Requirement(line) for line in needed if not line.startswith("#")):
        assert one.specifier.contains(pinned[one.name]), one

    collections = yaml.safe_load((home / parts["galaxy"]).read_text("utf-8"))
    project = yaml.safe_load((HOME / "project/collections/requirements.yml").read_text("utf-8"))
    version = yaml.safe_load((repo / "galaxy.yml").read_text("utf-8"))["version"]
    assert (
        collections["collections"]
        == project["collections"]
        == [
            {"name": "pve.fleet", "version": version},
            {"name": "awx.awx", "version": awx_collection.VERSION},
        ]
    )


def test_ansible_builder_uses_a_python_that_can_run_ansible(repo: Path, tmp_path: Path) -> None:
    """In the base image, /usr/bin/python3 is Python 3.9. ansible-core 2.18 needs 3.11 or newer."""
    pytest.importorskip("ansible_builder")
    home = repo / "extensions" / "execution_environment"
    command = [sys.executable, "-m", "ansible_builder", "create", "--context", str(tmp_path)]
    command += ["--output-filename", "Containerfile"]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = (tmp_path / "_build" / "requirements.yml").read_text(encoding="utf-8")
    assert kept == (home / "requirements.yml").read_text(encoding="utf-8")

    text = (tmp_path / "Containerfile").read_text(encoding="utf-8")
    given = dict(re.findall(r'^ARG (\w+)="(.*)"$', text, re.MULTILINE))
    image = re.search(r"python-3(\d+):", given["EE_BASE_IMAGE"])
    assert image
    assert given["PYCMD"] == f"/usr/bin/python3.{image[1]}"
    assert int(image[1]) >= 11
    assert "ansible-core==2.18." in given["ANSIBLE_INSTALL_REFS"]
    assert "RUN $PYCMD -m pip install --no-cache-dir $ANSIBLE_INSTALL_REFS" in text
