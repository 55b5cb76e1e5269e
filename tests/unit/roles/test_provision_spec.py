# Copyright (c) The pve.fleet contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's argument specification says the same as the module's, so that a wrong estate is refused at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._spec.connection import connection_spec
from ansible_collections.pve.fleet.plugins.module_utils._spec.fleet import fleet_spec, item_spec, shared_spec
from ansible_collections.pve.fleet.plugins.module_utils._spec.vm import vm_spec

ATTRIBUTES = ("type", "elements", "choices", "required", "default")

ROLE_ONLY: dict[str, dict[str, Any]] = {
    # provision_state decides where a VM says nothing.
    "state": {"default": None},
}


def essence(spec: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return what validation makes use of, by the path of each option. A role's specification knows no aliases."""
    found: dict[str, Any] = {}
    for name, option in spec.items():
        where = f"{path}{name}"
        found[where] = {key: option.get(key) for key in ATTRIBUTES} | {"no_log": bool(option.get("no_log"))}
        found.update(essence(option.get("options") or {}, f"{where}."))
    return found


@pytest.fixture(scope="module")
def role(repo: Path) -> Path:
    return repo / "roles" / "provision"


@pytest.fixture(scope="module")
def entry_points(role: Path) -> dict[str, Any]:
    return yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]


@pytest.mark.parametrize("entry_point", ["main", "absent"])
@pytest.mark.parametrize("variable", ["provision_vm", "provision_vms", "provision_defaults"])
def test_vm_takes_the_options_of_the_module(entry_points: dict[str, Any], entry_point: str, variable: str) -> None:
    """An item's defaults are told as those that hold where nothing else says more; the module puts them in last."""
    expected = essence(shared_spec() if variable == "provision_defaults" else vm_spec())
    for option, difference in ROLE_ONLY.items():
        expected[option].update(difference)
    if variable == "provision_vms":
        expected["name"]["required"] = True
    assert essence(entry_points[entry_point]["options"][variable]["options"]) == expected
    if variable != "provision_defaults":
        assert expected.keys() == essence(item_spec()).keys()


@pytest.mark.parametrize(
    ("variable", "entry_point"),
    [
        *((name, "main") for name in fleet_spec() if name == "prune" or name.startswith("parallel")),
        *((name, "absent") for name in ("parallel", "parallel_per_node")),
    ],
)
def test_a_fleets_options_are_those_of_the_module(
    entry_points: dict[str, Any], variable: str, entry_point: str
) -> None:
    option = entry_points[entry_point]["options"][f"provision_{variable}"]
    assert essence({variable: option}) == essence({variable: fleet_spec()[variable]})


@pytest.mark.parametrize("entry_point", ["main", "absent"])
def test_connection_takes_the_options_of_the_module(entry_points: dict[str, Any], entry_point: str) -> None:
    assert essence(entry_points[entry_point]["options"]["provision_connection"]["options"]) == essence(
        connection_spec()
    )


def test_defaults_are_those_that_are_documented(role: Path, entry_points: dict[str, Any]) -> None:
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    documented = {
        name: option["default"]
        for entry_point in entry_points.values()
        for name, option in entry_point["options"].items()
        if "default" in option
    }
    assert defaults == documented


def test_what_a_removal_passes_on_are_options_of_the_module(role: Path) -> None:
    variables = yaml.safe_load((role / "vars" / "main.yml").read_text(encoding="utf-8"))
    assert set(variables["_provision_removal"]) <= set(vm_spec())
