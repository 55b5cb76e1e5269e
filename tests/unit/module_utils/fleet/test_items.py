# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options for all VMs, of a class and of one VM become the options of that VM."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import fleet_spec
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.items import (
    merge,
    read_items,
    read_scope,
    removal_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.registry import CONTAINERS
from tests.unit.module_utils.vm.vm_cases import Judge

NO_SERVER: Any = Judge()  # no name of these desired VMs is for the server to judge
VALIDATOR = ArgumentSpecValidator(fleet_spec())
DEFAULTS = {name: rule.get("default") for name, rule in vm_spec().items()}


def checked(own: dict[str, Any], **shared: Any) -> dict[str, Any]:
    """Return the options of a list with one VM, as Ansible hands them over."""
    result = VALIDATOR.validate({"vms": [own], **shared})
    assert not result.error_messages, result.error_messages
    return result.validated_parameters


def merged(own: dict[str, Any], **shared: Any) -> dict[str, Any]:
    params = checked(own, **shared)
    return merge(params, params["vms"][0])


BIG = {
    "classes": {
        "big": {
            "cores": 8,
            "memory": "8G",
            "tags": ["big"],
            "cloud_init": {"user": "c", "upgrade": True},
        }
    }
}

# what the VM says, what is said for all, and what of it holds
LAYERS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({}, {}, {"cores": None, "state": "present", "reboot": "never", "tags": None}),
    ({}, {"cores": 2}, {"cores": 2}),
    ({"cores": 4}, {"cores": 2}, {"cores": 4}),
    ({"cores": None}, {"cores": 2}, {"cores": 2}),
    ({"onboot": False}, {"onboot": True}, {"onboot": False}),
    ({"description": ""}, {"description": "all"}, {"description": ""}),
    ({"memory": 0}, {"memory": "1G"}, {"memory": 0}),
    ({}, {"state": "started"}, {"state": "started"}),
    ({"state": "absent"}, {"state": "started"}, {"state": "absent"}),
    ({"state": "present"}, {"state": "started"}, {"state": "present"}),
    ({"migrate": True}, {"migrate": False}, {"migrate": True}),
    ({}, {"migrate": False}, {"migrate": False}),
    ({}, {"class": "big", **BIG}, {"cores": 8, "memory": "8G", "tags": ["big"], "class": None}),
    ({"class": "big"}, BIG, {"cores": 8}),
    ({"class": "big"}, {**BIG, "cores": 2}, {"cores": 8}),
    ({"class": "big", "cores": 1}, {**BIG, "cores": 2}, {"cores": 1}),
    (
        {"class": "own", "classes": {"own": {"cores": 3}}},
        {**BIG, "class": "big"},
        {"cores": 3, "memory": None},
    ),
    ({"classes": {"big": {"cores": 3}}}, {**BIG, "class": "big"}, {"cores": 3, "memory": None}),
    ({"tags": ["own"]}, {"tags": ["all"]}, {"tags": ["all", "own"]}),
    (
        {"tags": ["own", "all"]},
        {"tags": ["all"], "class": "big", **BIG},
        {"tags": ["all", "big", "own"]},
    ),
    ({"tags": []}, {"tags": ["all"]}, {"tags": ["all"]}),
    ({"tags": []}, {}, {"tags": []}),
    ({"nics": [{"vlan": 7}]}, {"nics": [{"vlan": 1}, {"vlan": 2}]}, {"nics": [7, 2]}),
    ({"nics": []}, {"nics": [{"vlan": 1}]}, {"nics": []}),
    ({}, {"nics": [{"vlan": 1}]}, {"nics": [1]}),
    ({"options": {"a": 1}}, {"options": {"a": 2, "b": 3}}, {"options": {"a": 1, "b": 3}}),
    (
        {"placement": {"strategy": "first"}},
        {"placement": {"nodes": ["a"]}},
        {"placement": {"strategy": "first", "nodes": ["a"]}},
    ),
    (
        {},
        {"placement": {"nodes": ["a"]}},
        {"placement": {"strategy": "least_used", "nodes": ["a"]}},
    ),
    ({"quota": {"vms": 1}}, {"quota": {"vms": 5, "cores": 2}}, {"quota": {"vms": 1, "cores": 2}}),
    (
        {"cloud_init": {"user": "own"}},
        {"cloud_init": {"user": "all", "password": "secret"}, "class": "big", **BIG},
        {"cloud_init": {"user": "own", "password": "secret", "upgrade": True}},
    ),
    (
        {},
        {"cloud_init": {"user": "all"}, "class": "big", **BIG},
        {"cloud_init": {"user": "c", "upgrade": True}},
    ),
]


@pytest.mark.parametrize(("own", "shared", "expected"), LAYERS, ids=str)
def test_own_over_class_over_what_is_said_for_all(
    own: dict[str, Any], shared: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = merged({"name": "web", **own}, **shared)
    assert found["name"] == "web"
    for key, value in expected.items():
        if key == "nics":
            assert [nic["vlan"] for nic in found[key]] == value
        elif isinstance(value, dict):
            assert {part: found[key].get(part) for part in value} == value, key
        else:
            assert found[key] == value, key


def test_defaults_are_those_of_module_vm() -> None:
    found = merged({"name": "web"})
    assert {**found, "name": None} == {**DEFAULTS, "name": None}


def test_the_vms_of_a_list_do_not_touch_each_other() -> None:
    params = VALIDATOR.validate(
        {
            "vms": [{"name": "a", "options": {"x": 1}, "tags": ["a"]}, {"name": "b"}],
            "options": {"y": 2},
            "tags": ["t"],
        }
    ).validated_parameters
    first, second = (merge(params, own) for own in params["vms"])
    assert (first["options"], first["tags"]) == ({"x": 1, "y": 2}, ["t", "a"])
    assert (second["options"], second["tags"]) == ({"y": 2}, ["t"])
    assert params["options"] == {"y": 2}


def test_a_class_that_is_not_there() -> None:
    with pytest.raises(ConfigurationError, match="huge"):
        merged({"name": "web", "class": "huge"}, **BIG)


def test_exact_lists_count_only_where_a_list_is_given() -> None:
    params = VALIDATOR.validate(
        {
            "vms": [{"name": "a"}, {"name": "b", "nics": [{}], "disks": []}],
            "nics_exact": True,
            "disks_exact": True,
        }
    ).validated_parameters
    first, second = read_items(params, NO_SERVER)
    assert (first.desired.hardware.nics_exact, first.desired.hardware.disks_exact) == (False, False)
    assert (second.desired.hardware.nics_exact, second.desired.hardware.disks_exact) == (True, True)


@pytest.mark.parametrize(
    ("params", "label"),
    [
        ({"tenant": "Acme"}, "tag tenant_acme"),
        ({"pool": "lab"}, "pool lab"),
        ({"tenant": "acme", "tenant_prefix": "t-", "pool": "lab"}, "tag t-acme and pool lab"),
    ],
    ids=str,
)
def test_what_may_be_pruned_is_bounded(params: dict[str, Any], label: str) -> None:
    assert read_scope(params).label == label


@pytest.mark.parametrize(
    "params", [{}, {"tenant": ""}, {"tenant": None, "pool": ""}, {"tenant": "a;b"}], ids=str
)
def test_without_bounds_nothing_is_pruned(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        read_scope(params)


def test_a_vm_that_is_pruned_is_stopped_as_the_task_says() -> None:
    found = removal_of(
        checked({"name": "a"}, graceful=True, tenant="acme", cores=4, protection=False), 100, "old"
    )
    assert {
        key: found[key]
        for key in ("vmid", "name", "state", "tenant", "graceful", "shutdown_timeout")
    } == {
        "vmid": 100,
        "name": "old",
        "state": "absent",
        "tenant": "acme",
        "graceful": True,
        "shutdown_timeout": 60,
    }
    # the list does not lift the protection of a VM that is not in the list
    assert found["protection"] is None
    assert found["cores"] is None


def test_an_empty_text_in_the_class_of_a_container_removes_its_option() -> None:
    """As among its own options; a VM has no such option."""
    classes = {"small": {"timezone": "", "memory": ""}}
    options = merge({"classes": classes, "class": "small"}, {"name": "web"}, CONTAINERS)
    assert options["timezone"] == ""
    assert options["memory"] is None
