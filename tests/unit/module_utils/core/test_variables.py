# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which variables are mistakes, and which belong to something else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.variables import (
    PlayVariables,
    VariableFamily,
    find_missing,
    find_unknown,
    find_wrong,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.variables import (
    FAMILIES,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.tenants import (
    read_estate_tenants,
)

REPO = Path(__file__).resolve().parents[4]


def unknown(family: str, name: str, extra: bool = False, **more: Any) -> list[str]:
    given = PlayVariables([name], [name] if extra else [], **more)
    return list(find_unknown([FAMILIES[family]], given))


@pytest.mark.parametrize(
    ("family", "name", "likely"),
    [
        ("export", "export_tennant", "export_tenant"),
        ("export", "export_Tenant", "export_tenant"),
        ("tenant", "tenant_sate", "tenant_state"),
        ("tenant", "tenant_nmae", "tenant_name"),
        ("image", "image_chekcsum", "image_checksum"),
        ("metrics", "metrics_drfit", "metrics_drift"),
        ("provision", "provision_tenant", "provision_tenants"),
        ("provision", "provision_concurrency", ""),
        ("snapshot_policy", "snapshot_policy_tennant", "snapshot_policy_tenant"),
    ],
)
def test_a_misspelt_variable_is_found_wherever_it_is_set(
    family: str, name: str, likely: str
) -> None:
    for extra in (True, False):
        (text,) = unknown(family, name, extra)
        assert text.startswith(f"{name} is not a variable of pve.fleet")
        assert f"did you mean '{likely}" in text or not likely


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("tenant", "tenant_domain"),
        ("image", "image_registry"),
        ("report", "report_recipients"),
        ("metrics", "metrics_port"),
        ("audit", "audit_log_path"),
        ("export", "export_nfs_options"),
    ],
)
def test_variables_of_other_roles_are_mistakes_only_on_the_command_line(
    family: str, name: str
) -> None:
    assert unknown(family, name) == []
    assert len(unknown(family, name, extra=True)) == 1
    for pattern in (name, f"{name[:8]}*"):
        assert unknown(family, name, extra=True, unchecked=(pattern,)) == []


@pytest.mark.parametrize(
    ("name", "likely"),
    [
        ("provison_tenants", "provision_tenants"),
        ("provision-tenants", "provision_tenants"),
        ("tenents", "tenants"),
    ],
)
def test_a_misspelt_prefix_is_found_on_the_command_line(name: str, likely: str) -> None:
    assert f"did you mean '{likely}'" in unknown("provision", name, extra=True)[0]
    assert unknown("provision", name) == []


@pytest.mark.parametrize(
    "name",
    [
        "ansible_user",
        "_provision_result_of_mine",
        "estate_tenant",
        "proxmox_vmid",
        "web_tenants",
        "x",
    ],
)
def test_other_variables_are_not_mistakes(name: str) -> None:
    assert unknown("provision", name, extra=True) == []


@pytest.mark.parametrize(
    "name",
    [
        "awx_job_id",
        "awx_job_template_name",
        "awx_project_scm_branch",
        "awx_user_email",
        "awx_workflow_job_id",
    ],
)
def test_variables_that_awx_gives_to_a_job_are_not_mistakes(name: str) -> None:
    assert unknown("awx", name, extra=True) == []
    assert len(unknown("awx", "awx_project_urll", extra=True)) == 1


@pytest.mark.parametrize(
    ("family", "name", "value", "text"),
    [
        (
            "tenant",
            "tenant_state",
            "Absent",
            "tenant_state: 'Absent' is not one of present, absent (did you mean 'absent'?)",
        ),
        ("tenant", "tenant_state", "", "tenant_state: '' is not one of present, absent"),
        ("tenant", "tenant_state", None, "tenant_state has no value"),
        ("tenant", "tenant_state", "absent", ""),
        ("export", "export_replace", "flase", "export_replace: 'flase' is not true or false"),
        ("export", "export_replace", "no", ""),
        (
            "audit",
            "audit_max_token_age",
            "soon",
            "audit_max_token_age: 'soon' is not a whole number",
        ),
        ("audit", "audit_max_token_age", "30", ""),
        ("provision", "provision_parallel", None, ""),
        (
            "provision",
            "provision_state",
            "running",
            (
                "provision_state: 'running' is not one of present, started, stopped"
                " (did you mean 'started'?)"
            ),
        ),
    ],
)
def test_a_value_that_a_variable_cannot_have_is_found(
    family: str, name: str, value: Any, text: str
) -> None:
    found = list(find_wrong([FAMILIES[family]], {name: value}, {name: value}.__getitem__))
    assert found == ([text] if text else [])


def test_values_that_need_no_check_are_not_read() -> None:
    def refuse(name: str) -> Any:
        raise AssertionError(name)

    names = ("provision_vms", "provision_connection", "provision_hosts", "tenant_vault_password")
    families = [FAMILIES["provision"], FAMILIES["tenant"]]
    assert list(find_wrong(families, dict.fromkeys(names, "{{ x }}"), refuse)) == []


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("provision_defaults", "x", "provision_defaults is not a dictionary"),
        ("provision_classes", ["web"], "provision_classes is not a dictionary"),
        ("provision_tenants", {"acme": {}}, "provision_tenants is not a list"),
        ("provision_defaults", {}, ""),
        ("provision_defaults", "{{ others }}", ""),
        ("provision_tenants", "acme,globex", ""),
        ("provision_tenants", None, ""),
        ("provision_vms", "web1", "provision_vms is not a list"),
        ("provision_vms", "{{ others }}", ""),
    ],
)
def test_a_value_that_is_not_a_dictionary_or_list_is_found(
    name: str, value: Any, text: str
) -> None:
    """The playbooks do without Ansible's validation, whose message has no suggestion."""
    found = list(find_wrong([FAMILIES["provision"]], {name: value}, {name: value}.__getitem__))
    assert found == ([text] if text else [])


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"acme": {"quotas": {"vms": 3}}}, "unknown option 'quotas' (did you mean 'quota'?)"),
        ({"acme": {"quota": ""}}, "quota: '' is not a dictionary"),
        ({"acme": {"access": {"operation": []}}}, "(did you mean 'operations'?)"),
        ({"acme": {"access": {"operations": ["raed"]}}}, "(did you mean 'read'?)"),
        ({"acme": {}, "ACME": {}}, "'acme' and 'ACME' are one tenant"),
        ({"acme": "web"}, "The settings of tenant acme were refused"),
        (["acme"], "is not a dictionary of tenants"),
        ("", "is not a dictionary of tenants"),
    ],
)
def test_wrong_settings_of_a_tenant_are_refused(given: Any, cause: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        read_estate_tenants(given)
    assert cause in refused.value.message


def test_tenants_without_settings_are_known() -> None:
    assert read_estate_tenants({"acme": None, "globex": {}}) == {"acme": {}, "globex": {}}
    assert read_estate_tenants(None) == {}


@pytest.mark.parametrize(
    "path",
    [*sorted((REPO / "playbooks").glob("*.yml")), *sorted((REPO / "roles").rglob("main.yml"))],
)
def test_every_variable_that_a_playbook_or_role_reads_is_known(path: Path) -> None:
    """A variable that is read and unknown could not be set."""
    text = path.read_text(encoding="utf-8")
    prefixes = "|".join(family.prefix for family in FAMILIES.values() if family.prefix != "awx_")
    read = set(re.findall(rf"\{{\{{[^}}]*?(?<![.\w'])((?:{prefixes})[a-z_]+)", text))
    known = {name for family in FAMILIES.values() for name in family.variables}
    assert read <= known


def test_defaults_of_roles_are_known() -> None:
    known = {name for family in FAMILIES.values() for name in family.variables}
    for path in (REPO / "roles").glob("*/defaults/main.yml"):
        defaults = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert defaults.keys() <= known


def test_a_required_variable_must_have_a_value() -> None:
    family = VariableFamily("tidy_", {}, required={"tidy_tenant": "Name the tenant"})
    values: dict[str, Any] = {"tidy_tenant": ""}
    expected = ["tidy_tenant is not set. Name the tenant"]
    assert list(find_missing([family], {}, values.get)) == expected
    assert list(find_missing([family], values, values.get)) == expected
    values["tidy_tenant"] = "acme"
    assert list(find_missing([family], values, values.get)) == []
