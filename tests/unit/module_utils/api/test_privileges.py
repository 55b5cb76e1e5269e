# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The privileges of a caller on a path, and the privileges that a request lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.access.privileges import (
    Privileges,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.access.required import (
    RequiredRequest,
    find_missing,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.path_templates import OTHER
from tests.tools.facts.make_schema import VERSION, paths_of

HELD = Privileges(
    {
        "/": {"Sys.Audit": 0, "VM.Audit": 1},
        "/vms": {"VM.Audit": 1, "VM.Backup": 0},
        "/vms/100": {"VM.Console": 0},
        "/storage": {"Datastore.Audit": 1},
    }
)


def test_a_listed_path_has_what_is_listed() -> None:
    assert HELD.on("/vms") == {"VM.Audit", "VM.Backup"}
    assert HELD.on("/vms/100") == {"VM.Console"}


def test_another_path_has_what_its_parent_hands_down() -> None:
    assert HELD.on("/vms/101") == {"VM.Audit"}
    assert HELD.below("/vms") == {"VM.Audit"}
    assert HELD.on("/nodes/pve1") == {"VM.Audit"}
    assert HELD.on("/storage/local") == {"Datastore.Audit"}


def test_without_an_entry_nothing_is_held() -> None:
    nothing = Privileges({})
    assert nothing.on("/vms/100") == nothing.below("/storage") == nothing.on("/") == frozenset()


def test_a_parameter_that_the_request_lacks_is_a_hyphen() -> None:
    """pve-common: Tools.pm, template_replace."""
    request = RequiredRequest("PUT", ("cluster", "jobs", "realm-sync", "job1"), {})
    held = Privileges({"/access/groups": {"User.Modify": 1}})
    assert find_missing(request, held) == "/access/realm/-, Realm.AllocateUser"


def test_a_backup_that_stops_others_needs_the_node_since_9_2() -> None:
    """pve-manager: API2/VZDump.pm, vzdump: C(stop) ends the jobs of everybody on the node."""
    path = ("nodes", "pve1", "vzdump")
    rights = {"/storage/local": {"Datastore.AllocateSpace": 1}, "/vms/100": {"VM.Backup": 1}}
    plain, stopping = ({"vmid": "100", **more} for more in ({}, {"stop": "1"}))
    for release, missing in (((9, 2), "/nodes/pve1, Sys.Modify"), ((9, 1), None)):
        held = Privileges(rights, release=release)
        assert find_missing(RequiredRequest("POST", path, plain), held) is None
        assert find_missing(RequiredRequest("POST", path, stopping), held) == missing


def test_every_name_in_a_path_of_the_schema_is_known() -> None:
    """A check such as C(/storage/{storage}) gets the name from the path of the request."""
    found: list[str] = []
    checked = 0
    for path, methods in paths_of(VERSION).items():
        parts = [re.sub(r"^\{.*", "name", part) for part in path[1:].split("/")]
        for method, call in methods.items():
            request = RequiredRequest(method, parts, {})
            names = set(re.findall(r"\{([^}]+)\}", " ".join(paths_in(call.get("perm")))))
            if OTHER in request.template.split("/"):
                continue  # the collection does not send it
            checked += 1
            missing = {name for name in names if f"{{{name}}}" in path} - {*request.values}
            found += [f"{method} {path}: {name}" for name in missing]
    assert found == []
    assert checked > 300


def paths_in(check: Any) -> Iterator[str]:
    """Yield the ACL paths of a check of the schema."""
    for part in check or ():
        if isinstance(part, list):
            yield from paths_in(part)
        elif str(part).startswith("/"):
            yield part
