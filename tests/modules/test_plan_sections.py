# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource of a cluster file changes behind its approved plan, for each section: it is refused, and
the others of the file are written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.test_plans import SCHEMA, approved_requests, written
from tests.tools.declarations import load
from tests.tools.sections import sections_of

pytestmark = pytest.mark.usefixtures("fast")

# A resource of each section that has no scenarios of its own, and a change of it.
MORE: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "groups": ("group", {"name": "faulty", "comment": "a"}, {"comment": "b"}),
    "pools": ("pool", {"name": "faulty", "comment": "a"}, {"comment": "b"}),
    "roles": ("role", {"name": "faulty", "privileges": ["VM.Audit"]}, {"privileges": ["VM.Clone"]}),
    "users": ("user", {"name": "faulty@pve", "comment": "a"}, {"comment": "b"}),
    "storages": (
        "storage",
        {"name": "faulty", "type": "dir", "path": "/mnt/faulty", "content": ["iso"]},
        {"content": ["backup"]},
    ),
    "backup_jobs": (
        "backup_job",
        {"name": "faulty", "schedule": "02:30", "storage": "local", "vms": ["100"]},
        {"schedule": "03:30"},
    ),
}


def resources() -> dict[str, tuple[str, dict[str, Any], dict[str, Any]]]:
    found = dict(MORE)
    for section in sections_of(load()):
        if "faults" in section:
            faults = section["faults"]
            found[section["name"]] = (section["module"], faults["item"], faults["change"])
    return found


RESOURCES = resources()
STAFF = {"name": "staff", "comment": "of 2026"}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "plan.json")


def file_of(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cluster file with the resource, and a group."""
    file: dict[str, Any] = {"groups": [STAFF]}
    file.setdefault(name, [])
    file[name] = [*file[name], dict(item)]
    return file


REALM: dict[str, Any] = {
    "name": "ldap",
    "type": "ldap",
    "server1": "ldap.example.com",
    "base_dn": "dc=example,dc=com",
    "user_attr": "uid",
}
# The sections before the group: a cluster file stops at the first resource that is refused.
EARLIER = ("realms", "realm_sync_jobs", "roles")


@pytest.mark.parametrize("change", ["none", "removed", "reached", "created"])
@pytest.mark.parametrize("name", RESOURCES)
def test_a_resource_that_changed_behind_the_plan(
    unused: Lab, place: str, name: str, change: str
) -> None:
    """It was removed, was changed as planned, or was created by another person; then it is refused,
    except if it is as planned.
    """
    module, item, more = RESOURCES[name]
    goal = {**item, **more}
    if name == "realm_sync_jobs":
        do(unused, "realm", **REALM)
    if change != "created":
        do(unused, module, **item)
    file = file_of(name, goal)
    planned = unused.run("cluster", check=True, plan_file=place, **file)
    assert not planned.get("failed"), planned["msg"]
    jsonschema.validate(json.loads(Path(place).read_text()), SCHEMA)
    if change == "removed":
        do(unused, module, **keys_of(name, item), state="absent")
    elif change != "none":
        do(unused, module, **(item if change == "created" else goal))
    is_refused = change in ("removed", "created")
    unused.simulator.reset_log()
    foreseen = unused.run("cluster", check=True, apply_plan=place, **file)
    assert unused.simulator.writes() == []
    result = unused.run("cluster", apply_plan=place, **file)
    assert written(unused) <= approved_requests(place)
    for found in (foreseen, result):
        assert found.get("failed", False) == is_refused, found
        if is_refused:
            assert " is not the approved one: not planned: " in found["msg"]
            assert " (planned: " in found["msg"]
            assert found["error"]["planned"]
            assert found["error"]["now"]
    groups = [row["groupid"] for row in unused.client.get("access", "groups")]
    assert ("staff" in groups) == (not is_refused or name not in EARLIER)
    unused.simulator.reset_log()
    again = unused.run("cluster", apply_plan=place, **file)
    assert again.get("failed", False) == is_refused
    assert not again["changed"]
    assert unused.simulator.writes() == []


def keys_of(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that name a resource."""
    return {key: item[key] for key in (("type", "name") if name == "mappings" else ("name",))}
