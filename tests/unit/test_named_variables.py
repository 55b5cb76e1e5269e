# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable that names guests, tenants, nodes or the like reaches an option that refuses a
name that names nothing. The variables are those of `tests/tools/variables.yml` and of the roles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.declarations import load
from tests.tools.make_modules import declared_names, declared_options, modules_of

REPO = Path(__file__).parents[2]
NAMING = re.compile(
    r"_(nodes?|pools?|storages?|storage_map|bridges?|networks?|tenants?|tags|exclude|vms|guests"
    r"|placement|tenant_placement|tenant_windows|max_vms_per_node)$"
)


class Loader(yaml.SafeLoader):
    """Reads the tags of Ansible as texts."""


Loader.add_multi_constructor("!", lambda loader, _tag, node: loader.construct_scalar(node))
TASK = re.compile(r"pve\.fleet\.(\w+)")


def variables() -> list[str]:
    """Return the variables of playbooks and roles whose name says that they name something."""
    families = yaml.safe_load((REPO / "tests/tools/variables.yml").read_text("utf-8"))
    found = {name for family in families.values() for name in family["variables"]}
    for path in (REPO / "roles").glob("*/meta/argument_specs.yml"):
        for entry_point in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values():
            found |= set(entry_point["options"])
    return sorted(name for name in found if NAMING.search(name))


def option_texts() -> Iterator[tuple[str, str, str]]:
    """Yield each module, option and value in the tasks of playbooks and roles."""
    paths = [*(REPO / "playbooks").rglob("*.yml"), *(REPO / "roles").rglob("tasks/*.yml")]
    for path in paths:
        yield from in_tasks(yaml.load(path.read_text("utf-8"), Loader=Loader))


def in_tasks(content: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(content, list):
        for item in content:
            yield from in_tasks(item)
    elif isinstance(content, dict):
        for key, value in content.items():
            module = TASK.fullmatch(str(key))
            if module and isinstance(value, dict):
                for option, text in value.items():
                    yield module[1], option, str(text)
            yield from in_tasks(value)


TEXTS = sorted(set(option_texts()))
DECLARATIONS = load()
CHECKED = {
    (module, option.partition(".")[0])
    for module in modules_of(DECLARATIONS)
    for key in ("names", "refuses")
    for option in declared_names(module, DECLARATIONS, key)
}
# Variables that reach no such option by name, with the reason.
OTHERS = {
    r"awx_(backup_storage|nodes|tenants)": "choices of surveys, and hosts of an inventory",
    r"backup_vms": "split at commas first, then option vms of module backup",
    r"cluster_(ceph_pools|networks|nodes|pools|storages)": "lists of resources",
    r"drill_(network|node|pool|storages?|storage_map|tags|tenant|vms)": (
        "options of drill_info, which roles/drill/vars/main.yml joins"
    ),
    r"export_on_nodes": "a switch",
    r"failover_replica_nodes": "hosts that Ansible connects to by SSH",
    r"image_(disk_storage|nodes?)": (
        "modules volume, storage_download and vm refuse an unknown node or storage"
    ),
    r"maintenance_nodes": "the limit of a play in AWX",
    r"preflight_(bridges|nodes|pool|storages|tenant|vms)": "preflight_info returns a finding",
    r"provision_(networks|vms|tenants|parallel_\w+)": "lists of an estate, and numbers",
    r"relocate_parallel_per_storage": "a number",
    r"status_(nodes|tenants)": "filter status_table refuses a name that names nothing",
    r"report_placement": "figures of capacity for the nodes of several sites",
}


def of_roles() -> set[str]:
    """Return the variables of roles that reach a checked option by its declaration."""
    found: set[str] = set()
    for module in modules_of(DECLARATIONS):
        for option, declared in declared_options(module, DECLARATIONS).items():
            if (module, option) in CHECKED:
                found |= {f"{role}_{option}" for role in declared.get("roles", {})}
    return found


DECLARED = of_roles()


@pytest.mark.parametrize("variable", variables())
def test_a_variable_that_names_something_reaches_an_option_that_checks_it(variable: str) -> None:
    uses = {
        (module, option) for module, option, text in TEXTS if re.search(rf"\b{variable}\b", text)
    }
    is_other = any(re.fullmatch(pattern, variable) for pattern in OTHERS)
    assert (variable in DECLARED or bool(uses & CHECKED)) != is_other, uses


@pytest.mark.parametrize("pattern", OTHERS)
def test_each_exception_is_a_variable(pattern: str) -> None:
    assert any(re.fullmatch(pattern, variable) for variable in variables())


def test_a_variable_that_a_plugin_reads_is_known() -> None:
    """An unknown one is refused."""
    families = yaml.safe_load((REPO / "tests/tools/variables.yml").read_text("utf-8"))
    texts = [path.read_text("utf-8") for path in (REPO / "plugins/plugin_utils").glob("*.py")]
    read = {name for text in texts for name in re.findall(r'variables, "(pve_fleet_\w+)"', text)}
    assert read
    assert read <= families["pve_fleet"]["variables"].keys()
