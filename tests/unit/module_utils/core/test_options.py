# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dictionaries of options: converted as Ansible converts them, and one short cause for each
mistake.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.options import (
    hidden_values,
    parse_options,
    shorter_refusal,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import VM_SPECS
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.preflight_info import (
    storages_item_spec,
)

ITEM = VM_SPECS.item
UNKNOWN = "Unsupported parameters for (vm) module:"
SEE = "See ansible-doc for the options."
NOT_A_DICTIONARY = "was refused: it is not a dictionary. Write"
UNABLE = "and we were unable to convert to"
CONVERT = f"{UNABLE} dict:"
NOT_ITEMS = (
    "was refused: an item of the list is not a dictionary of options. Write each as one, such as"
)
TENANTS = (
    "tenants was refused: it is a list, and a dictionary is needed. Write each entry under its"
    " name, such as 'tenants: {NAME: {...}}', instead of '- name: NAME'."
)

MEANT = [
    ("running", "present, started, absent", " (did you mean 'started'?)"),
    ("Deleted", "present, absent", " (did you mean 'absent'?)"),
    ("set", "present, absent", " (did you mean 'present'?)"),
    ("running", "present, absent", ""),
    ("stoped", "started, stopped", " (did you mean 'stopped'?)"),
]


@pytest.mark.parametrize(("given", "choices", "hint"), MEANT)
def test_choice_of_the_same_meaning(given: str, choices: str, hint: str) -> None:
    message = f"value of state must be one of: {choices}, got: {given}"
    assert shorter_refusal(message, {}) == f"{message}{hint}"
    spec = {"state": {"choices": choices.split(", ")}}
    with pytest.raises(ValidationFailed) as caught:
        parse_options(spec, {"state": given})
    assert caught.value.message == f"state: '{given}' is not one of {choices}{hint}."


RIGHT: list[dict[str, Any]] = [
    {"name": "web1", "cores": "2", "memory": "4G", "onboot": "yes"},
    {"name": 7, "vmid": "100", "tags": "a,b", "cpulimit": "1.5"},
    {"disks": [{"name": "scsi0", "size": "10G"}, {"ssd": 1, "state": "absent"}], "nics": []},
    {"cloud_init": {"user": "ops", "ssh_keys": "one"}, "options": {"args": "x"}},
    {"cloud_init": "user=ops", "placement": '{"nodes": ["pve1"]}'},
    {"cores": None, "disks": None, "placement": {"seed": None}},
    {"state": "started", "wait_for": "none", "classes": {"web": {"cores": 1}}},
]


@pytest.mark.parametrize("given", RIGHT, ids=str)
def test_options_are_converted_as_ansible_converts_them(given: dict[str, Any]) -> None:
    validator = ArgumentSpecValidator(ITEM)
    ansible = validator.validate(given)
    assert ansible.error_messages == []
    found = parse_options(ITEM, given)
    assert found.keys() == given.keys()
    assert bare(found) == bare({name: ansible.validated_parameters[name] for name in given})


def bare(value: Any) -> Any:
    """Return a value without the options of nested dictionaries that Ansible adds as null."""
    if isinstance(value, dict):
        return {name: bare(part) for name, part in value.items() if part is not None}
    return [bare(part) for part in value] if isinstance(value, list) else value


WRONG: list[tuple[dict[str, Any] | Any, str]] = [
    ({"clas": "web"}, "unknown option 'clas' (did you mean 'class'?)"),
    ({"zzzzzz": 1}, "unknown option 'zzzzzz'"),
    (
        {"nics": [{}, {"brigde": "vmbr0"}]},
        "unknown option 'nics[1].brigde' (did you mean 'bridge'?)",
    ),
    ({"cloud_init": {"usr": "a"}}, "unknown option 'cloud_init.usr' (did you mean 'user'?)"),
    ({"cores": "many"}, "cores: 'many' is not a whole number"),
    ({"onboot": "perhaps"}, "onboot: 'perhaps' is not true or false"),
    ({"name": ["a"]}, "name: ['a'] is not a text"),
    ({"description": {"a": 1}}, "description: {'a': 1} is not a text"),
    ({"tags": {"a": 1}}, "tags: {'a': 1} is not a list"),
    ({"disks": [7]}, "disks[0]: 7 is not a dictionary of options"),
    ({"cloud_init": "x"}, "cloud_init: 'x' is not a dictionary of options"),
    ({"state": "on"}, "state: 'on' is not one of present, started"),
    ({"disks": [{"cache": "big"}]}, "disks[0].cache: 'big' is not one of none, writethrough"),
    (
        {"clas": 1, "cores": "x"},
        "unknown option 'clas' (did you mean 'class'?); cores: 'x' is not a whole number",
    ),
    (7, "7 is not a dictionary of options"),
]


@pytest.mark.parametrize(("given", "cause"), WRONG, ids=str)
def test_each_mistake_has_one_short_cause(given: Any, cause: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        parse_options(ITEM, given)
    assert caught.value.message.startswith(cause)
    assert len(caught.value.message) < 160


def test_a_secret_of_the_wrong_type_is_not_shown() -> None:
    with pytest.raises(ValidationFailed) as caught:
        parse_options(ITEM, {"cloud_init": {"password": ["hunter2"]}})
    assert caught.value.message == "cloud_init.password: the value is not a text."


def test_a_missing_option_is_named_and_a_default_is_filled_in() -> None:
    with pytest.raises(ValidationFailed, match="option 'name' is missing"):
        parse_options(storages_item_spec(), {"content": "iso"})
    assert parse_options(storages_item_spec(), {"name": "a"}) == {"name": "a", "content": "images"}


def test_values_that_must_not_be_shown_are_found_in_any_shape() -> None:
    given = {"cloud_init": {"password": "one", "user_data": ["two", {"a": "three"}], "user": "ops"}}
    assert hidden_values(ITEM, given) == {"one", "two", "three"}
    assert hidden_values(ITEM, {"cloud_init": '{"password": "json"}'}) == {"json"}
    assert hidden_values(ITEM, "wrong") == set()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            f"{UNKNOWN} coers, nics.brigde. Supported parameters include: a, b.",
            f"{UNKNOWN} coers (did you mean 'cores'?), nics.brigde (did you mean 'bridge'?). {SEE}",
        ),
        ("missing required arguments: name", "missing required arguments: name"),
        (
            f"Elements value for option 'storages' is of type str {CONVERT} dictionary requested",
            f"storages {NOT_ITEMS} 'storages: [{{name: NAME}}]'.",
        ),
        (f"argument 'tenants' is of type list {CONVERT} <class 'list'>", TENANTS),
        (f"argument 'tenants' is of type <class 'list'> {CONVERT} <class 'list'>", TENANTS),
        (
            f"argument 'placement' is of type str found in 'defaults'. {CONVERT} requested",
            f"placement {NOT_A_DICTIONARY} 'placement: {{nodes: VALUE, exclude: VALUE}}'.",
        ),
        (
            f"argument 'options' is of type str {CONVERT} requested",
            f"options {NOT_A_DICTIONARY} 'options: {{KEY: VALUE}}'.",
        ),
        (
            f"argument 'nics' is of type dict and we were unable to convert to list: {CONVERT}",
            "nics was refused: it is not a list. Write 'nics: [{name: VALUE, model: VALUE}]'.",
        ),
        (
            "argument 'tags' is of type dict and we were unable to convert to list: no",
            "tags was refused: it is not a list. Write 'tags: [VALUE]'.",
        ),
        (
            f"argument 'keep' is of type str {UNABLE} int: \"'abc'\" cannot be converted to an int",
            "keep was refused: it is not a whole number.",
        ),
        (
            f"argument 'force' is of type <class 'str'> {UNABLE} bool: The value is not valid",
            "force was refused: it is not true or false.",
        ),
        (
            f"Elements value for option 'vmids' is of type <class 'str'> {UNABLE} int: no",
            "vmids was refused: an item of the list is not a whole number.",
        ),
    ],
)
def test_the_list_of_all_names_is_left_out(message: str, expected: str) -> None:
    assert shorter_refusal(message, ITEM) == expected
