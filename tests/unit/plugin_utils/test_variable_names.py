# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of modules in roles and playbooks, which name the variables of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.pve.fleet.plugins.plugin_utils._variable_names import (
    names_at,
    prefix_at,
    variables_of,
    with_names,
)

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("place", "prefix"),
    [
        ("roles/maintenance/tasks/away.yml", "maintenance_"),
        ("roles/provision/tasks/absent.yml", "provision_"),
        ("playbooks/power.yml", "power_"),
        ("tests/plays/any.yml", ""),
    ],
)
def test_the_place_of_a_task_tells_its_variables(place: str, prefix: str) -> None:
    assert prefix_at(f"{ROOT / place}:12") == prefix


def test_a_task_of_the_user_keeps_the_names_of_options() -> None:
    assert prefix_at("/home/ops/roles/maintenance/tasks/main.yml:3") == ""
    assert prefix_at("") == ""


@pytest.mark.parametrize(
    ("prefix", "text", "named"),
    [
        (
            "failover_",
            "Solve these, or leave guests out with exclude.",
            "Solve these, or leave guests out with failover_exclude.",
        ),
        (
            "failover_",
            "storage 'max_age' is not there. Check storages and max_age, or set lost=true.",
            (
                "storage 'max_age' is not there. Check failover_storages and failover_max_age, or set"
                " failover_lost=true."
            ),
        ),
        (
            "maintenance_",
            "by a restart only, which restart_containers allows. Repair this, or set unmovable to leave.",
            (
                "by a restart only, which maintenance_restart_containers allows. Repair this, or set"
                " maintenance_unmovable to leave."
            ),
        ),
        (
            "power_",
            "Look at its console, set unresponsive to leave or force, and run again",
            "Look at its console, set power_unresponsive to leave or force, and run again",
        ),
        (
            "tenant_",
            "The storage of the vms has a name, and the state is exclude.",
            "The storage of the vms has a name, and the state is exclude.",
        ),
        ("failover_", "VM 'exclude' (101) in /vms/exclude", "VM 'exclude' (101) in /vms/exclude"),
    ],
)
def test_options_are_named_as_variables(prefix: str, text: str, named: str) -> None:
    assert with_names(text, variables_of(prefix)) == named


@pytest.mark.parametrize(
    ("given", "text", "named"),
    [
        (
            ["api_token_id", "api_host"],
            "Set token_id and token_secret, or user and password; host=pve1",
            "Set api_token_id and token_secret, or user and password; api_host=pve1",
        ),
        (["url"], "Set the option host, or PROXMOX_HOST", "Set the option url, or PROXMOX_HOST"),
        (["host", "name"], "Set the option host", "Set the option host"),
        (["ca_bundle"], "Set ca_path to the CA", "Set ca_bundle to the CA"),
    ],
)
def test_options_are_named_by_the_aliases_that_the_user_wrote(
    given: list[str], text: str, named: str
) -> None:
    assert with_names(text, names_at("/home/ops/site.yml:3", given)) == named


def test_a_role_names_aliases_and_variables() -> None:
    names = names_at(f"{ROOT}/roles/failover/tasks/main.yml:3", ["api_token_id", "exclude"])
    text = with_names("Set token_id, or leave guests out with exclude.", names)
    assert text == "Set api_token_id, or leave guests out with failover_exclude."
