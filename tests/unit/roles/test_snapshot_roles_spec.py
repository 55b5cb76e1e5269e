# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles preflight and snapshot_policy say the same in their specification, their defaults and
their README.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.preflight_info import (
    preflight_info_spec,
)

ROLES = ["preflight", "snapshot_policy"]
# Left out, the VMs of every tenant are meant; an empty one is an error, so it cannot be the
# default. The defaults of the other two are those of the module, unless the environment sets them.
WITHOUT_A_DEFAULT = {
    "preflight_tenant",
    "snapshot_policy_tenant",
    "snapshot_policy_parallel",
    "snapshot_policy_task_timeout",
}


def load(repo: Path, role: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        (repo / "roles" / role / name).read_text(encoding="utf-8")
    )
    return found


def options(repo: Path, role: str) -> dict[str, dict[str, Any]]:
    specs = load(repo, role, "meta/argument_specs.yml")["argument_specs"]
    found: dict[str, dict[str, Any]] = {}
    for spec in specs.values():
        found |= {
            name: option for name, option in spec["options"].items() if not option.get("required")
        }
    return found


@pytest.mark.parametrize("role", ROLES)
def test_defaults_are_those_of_the_specification(repo: Path, role: str) -> None:
    wanted = {name: option.get("default") for name, option in options(repo, role).items()}
    defaults = load(repo, role, "defaults/main.yml")
    assert set(defaults) == set(wanted) - WITHOUT_A_DEFAULT
    for name, value in defaults.items():
        assert "{{" in str(value) or value == wanted[name], name


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_is_in_the_readme_and_has_the_roles_name(repo: Path, role: str) -> None:
    readme = (repo / "roles" / role / "README.md").read_text(encoding="utf-8")
    for name in options(repo, role):
        assert name.startswith(f"{role}_")
        assert f"`{name}`" in readme, name


@pytest.mark.parametrize("role", ROLES)
def test_every_entry_point_has_its_tasks(repo: Path, role: str) -> None:
    specs = load(repo, role, "meta/argument_specs.yml")["argument_specs"]
    assert all((repo / "roles" / role / "tasks" / f"{name}.yml").is_file() for name in specs)


def test_the_preflight_role_has_every_option_of_its_module(repo: Path) -> None:
    spec = preflight_info_spec()
    there = options(repo, "preflight")
    for name, option in spec.items():
        mine = there[f"preflight_{name}"]
        assert mine["type"] == option["type"]
        assert (mine.get("default") or None) == (option.get("default") or None)
        assert "options" not in mine
