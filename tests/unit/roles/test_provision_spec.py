# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's argument specification agrees with the module, which checks the VMs of an estate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.doc_fragments.fleet_item import (
    ModuleDocFragment as FleetItem,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import (
    VM_SPECS,
    fleet_spec,
)

ATTRIBUTES = ("type", "elements", "choices", "required", "default")

# Options of the module, beside those that begin with "parallel", that are variables of the role.
OF_A_RUN = ("prune", "reboot_batch")


def essence(spec: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return what validation makes use of, by the path of each option.

    A role's specification knows no aliases.
    """
    found: dict[str, Any] = {}
    for name, option in spec.items():
        where = f"{path}{name}"
        found[where] = {key: option.get(key) for key in ATTRIBUTES} | {
            "no_log": bool(option.get("no_log"))
        }
        found.update(essence(option.get("options") or {}, f"{where}."))
    return found


@pytest.fixture(scope="module")
def role(repo: Path) -> Path:
    return repo / "roles" / "provision"


@pytest.fixture(scope="module")
def entry_points(role: Path) -> dict[str, Any]:
    return yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
        "argument_specs"
    ]


def documented(name: str, fragments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the documentation says of an option, in the shape of a specification."""
    found: dict[str, Any] = {}
    for option, content in fragments.items():
        found[option] = {key: value for key, value in content.items() if key in ATTRIBUTES}
        if "suboptions" in content:
            found[option]["options"] = documented(name, content["suboptions"])
    return found


def names_of(spec: Mapping[str, Any], path: str = "") -> set[str]:
    found: set[str] = set()
    for name, option in spec.items():
        found |= {f"{path}{name}"} | names_of(option.get("options") or {}, f"{path}{name}.")
    return found


@pytest.mark.parametrize("entry_point", ["main", "absent"])
def test_ansible_checks_nothing_within_the_variables(
    entry_points: dict[str, Any], entry_point: str
) -> None:
    """Its error would print the whole specification and not name the VM.

    The module checks it instead.
    """
    for name, option in entry_points[entry_point]["options"].items():
        assert "options" not in option, name


def test_every_option_of_an_item_is_documented() -> None:
    items = yaml.safe_load(FleetItem.DOCUMENTATION)["options"]["vms"]["suboptions"]
    # The options of the whole list have the suboptions.
    of_list = ("backup.", "site_placement.")
    expected = {name for name in names_of(VM_SPECS.item) if not name.startswith(of_list)}
    assert names_of(documented("vms", items)) == expected


@pytest.mark.parametrize(
    ("variable", "entry_point"),
    [
        *(
            (name, "main")
            for name in fleet_spec()
            if name in OF_A_RUN or name.startswith("parallel")
        ),
        *((name, "absent") for name in ("parallel", "parallel_per_node")),
    ],
)
def test_a_fleets_options_are_those_of_the_module(
    entry_points: dict[str, Any], variable: str, entry_point: str
) -> None:
    option = entry_points[entry_point]["options"][f"provision_{variable}"]
    module_option = fleet_spec()[variable]
    if "fallback" in module_option:  # the module asks the environment where the role has no value
        assert "default" not in option
        option = {**option, "default": module_option["default"]}
    assert essence({variable: option}) == essence({variable: module_option})


def test_defaults_are_those_that_are_documented(role: Path, entry_points: dict[str, Any]) -> None:
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    documented = {
        name: option["default"]
        for entry_point in entry_points.values()
        for name, option in entry_point["options"].items()
        if "default" in option
    }
    assert defaults == documented
