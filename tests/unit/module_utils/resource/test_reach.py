# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which resources of PVE a table can describe: the schema of 9.2 is walked, and five tables that no
module has yet run against a server that checks each request by that schema.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.interface import PlanBook
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.upid import TaskResult
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    FleetError,
    NotFound,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import Table
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha import (
    resource,
    rule,
)
from tests.fake_clock import FakeClock
from tests.modules.new_resource import table as new_resource
from tests.simulator.core.acl import built_in_roles
from tests.simulator.schema.definition import load_paths
from tests.unit.module_utils.resource import proof_tables
from tests.unit.module_utils.resource.proof_tables import (
    BACKUP_JOB,
    HA_RESOURCE,
    HA_RULE,
    SDN_ZONE,
    STORAGE,
    TABLES,
)

PATHS = load_paths("9.2")
DECLARABLE = sorted(path for path, methods in PATHS.items() if {"PUT", "DELETE"} <= set(methods))
# Paths with PUT and DELETE that no table describes.
POSITION = "an ordered list: its position is not an identity"
REASONS = {
    "/access/tfa/{userid}/{id}": "an entry is made by a challenge that its user answers",
    "/cluster/firewall/groups/{group}/{pos}": POSITION,
    "/cluster/firewall/rules/{pos}": POSITION,
    "/cluster/ha/groups/{group}": "replaced by rules in PVE 9",
    "/cluster/sdn/prefix-lists/{id}/entries/{url_seq}": POSITION,
    "/cluster/sdn/vnets/{vnet}/firewall/rules/{pos}": POSITION,
    "/cluster/sdn/vnets/{vnet}/ips": "there is no GET: the IPAM lists addresses",
    "/nodes/{node}/certificates/acme/certificate": "PUT renews, and there is no GET",
    "/nodes/{node}/firewall/rules/{pos}": POSITION,
    "/nodes/{node}/lxc/{vmid}/firewall/rules/{pos}": POSITION,
    "/nodes/{node}/network": "PUT applies and DELETE reverts all interfaces: a commit call",
    "/nodes/{node}/qemu/{vmid}/firewall/rules/{pos}": POSITION,
    "/nodes/{node}/storage/{storage}/content/{volume}": "a volume is uploaded or allocated",
    "/nodes/{node}/subscription": "PUT sets the key of a node, POST asks the shop again",
    "/pools": "the same pools as /pools/{poolid}",
}


def why_unreachable(path: str) -> str:
    """Return the first feature that a table lacks for a path, or an empty text."""
    methods = PATHS[path]
    if "GET" not in methods:
        return "it cannot be read"
    parent = PATHS.get(path.rsplit("/", 1)[0], {})
    if "POST" not in methods and "POST" not in parent:
        return "it cannot be created"
    return ""


def test_every_declarable_path_is_reachable_or_has_a_reason() -> None:
    """Required parameters of a PUT are `always` fields, a digest is sent by `digest`, so that only
    reading and creating can be missing.
    """
    unreachable = {path for path in DECLARABLE if why_unreachable(path)}
    created_elsewhere = {
        "/cluster/sdn/route-maps/entries/{route-map-id}/entry/{order}": "/cluster/sdn/route-maps"
    }
    assert unreachable - set(REASONS) <= set(created_elsewhere)
    assert set(REASONS) <= set(DECLARABLE)
    assert len(DECLARABLE) == 57


def test_tables_send_what_every_put_requires() -> None:
    for table in TABLES:
        path = "/" + "/".join(table.update_call.path)
        schema = {p.replace("{", "").replace("}", ""): p for p in DECLARABLE}
        found = next(
            p for plain, p in schema.items() if plain.rsplit("/", 1)[0] == path.rsplit("/", 1)[0]
        )
        parameters = PATHS[found]["PUT"]["params"]
        keys = {segment.strip("{}") for segment in found.split("/") if segment.startswith("{")}
        required = {name for name, one in parameters.items() if not one.get("optional")} - keys
        assert required <= {one.property for one in table.fields if one.always}
        assert ("PUT" in table.digest) <= ("digest" in parameters)


def test_each_table_is_short() -> None:
    files = [Path(module.__file__ or "") for module in (proof_tables, new_resource, rule, resource)]
    tables = [
        node
        for file in files
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    ]
    lengths = {ast.unparse(one.targets[0]): one.end_lineno - one.lineno + 1 for one in tables}  # type: ignore[operator]
    assert set(lengths) >= {"HA_RULE", "HA_RESOURCE", "STORAGE", "BACKUP_JOB", "SDN_ZONE"}
    assert max(lengths.values()) < 80


@dataclass
class SectionServer:
    """A section file of PVE over HTTP: parameters are checked by the schema, a wrong digest is
    refused. With `commits`, changes are pending until they are applied.

    Source of the refusal: pve-common, PVE/Tools.pm, assert_if_modified.
    """

    table: Table
    key: str
    commits: bool = False
    login: str = "root@pam!fleet"
    plan_book: PlanBook = field(default_factory=PlanBook)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    writes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    version_number: int = 1
    before_write: Callable[[str], None] = lambda _method: None
    clock: FakeClock = field(default_factory=FakeClock)

    def release(self) -> tuple[int, ...]:
        return (9, 2, 11)

    def privileges(self) -> Mapping[str, Any]:
        return {"/": dict.fromkeys(built_in_roles("9.2")[0], 1)}

    def version(self) -> tuple[int, int]:
        return (9, 2)

    def note(self, summary: str) -> None:
        pass

    def get(self, *segments: str | int, **_more: Any) -> Any:
        if segments == ("access", "permissions"):
            return {"/": dict.fromkeys(built_in_roles("9.2")[0], 1)}
        name = str(segments[-1])
        if name not in self.rows:
            raise NotFound(reason="does not exist")
        row = {self.key: name, **self.rows[name]}
        if self.commits:
            return {**row, **({"state": self.states[name]} if name in self.states else {})}
        return {**row, "digest": f"d{self.version_number}"}

    def write(
        self, method: str, *segments: str | int, data: Mapping[str, Any] | None = None, **_more: Any
    ) -> Any:
        self.before_write(method)
        sent = dict(data or {})
        self.writes.append((method, dict(sent)))
        if segments == ("cluster", "sdn"):
            self.apply()
            return None
        self.require_valid(method, segments, sent)
        if sent.pop("digest", f"d{self.version_number}") != f"d{self.version_number}":
            raise Conflict(reason="changed", answer="detected modified configuration")
        self.version_number += 1
        name = str(sent.pop(self.key, segments[-1]))
        self.change(method, name, sent)
        return None

    def task(self, method: str, *segments: str | int, **more: Any) -> TaskResult:
        self.write(method, *segments, **more)
        return TaskResult("UPID:pve1:1", "pve1", "reloadnetworkall", "OK", ())

    def require_valid(
        self, method: str, segments: tuple[str | int, ...], sent: Mapping[str, Any]
    ) -> None:
        call = self.table.create_call if method == "POST" else self.table.update_call
        parent = "/" + "/".join(str(part) for part in call.path if not str(part).startswith("{"))
        path = next(
            one
            for one in PATHS
            if (one == parent if method == "POST" else one in DECLARABLE)
            and one.rsplit("/{", 1)[0] == parent
        )
        parameters = PATHS[path][method]["params"]
        required = {name for name, one in parameters.items() if not one.get("optional")}
        missing = required - set(sent) - {self.key}
        unknown = set(sent) - set(parameters)
        assert not missing, f"{method} {path}: {missing} are required"
        assert not unknown, f"{method} {path}: {unknown} are not in the schema"

    def change(self, method: str, name: str, sent: dict[str, Any]) -> None:
        if method == "DELETE":
            if self.commits:
                self.states[name] = "deleted"
            else:
                del self.rows[name]
            return
        row = self.rows.setdefault(name, {})
        for gone in str(sent.pop("delete", "")).split(","):
            row.pop(gone, None)
        row.update(sent)
        if self.commits:
            self.states.setdefault(name, "new" if method == "POST" else "changed")

    def apply(self) -> None:
        for name, state in self.states.items():
            if state == "deleted":
                del self.rows[name]
        self.states.clear()


def open_server(table: Table) -> SectionServer:
    return SectionServer(table, table.keys[0].property, commits=table.commit_call is not None)


CASES: list[tuple[Table, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        HA_RULE,
        {"name": "apart"},
        {"type": "resource-affinity", "affinity": "negative", "resources": ["vm:100", "vm:101"]},
        {"comment": "x", "resources": ["vm:102"]},
    ),
    (HA_RESOURCE, {"sid": "vm:100"}, {"request": "started"}, {"max_restart": 3, "comment": "x"}),
    (
        STORAGE,
        {"name": "backups"},
        {"type": "nfs", "server": "10.0.0.5", "export": "/srv", "content": ["backup"]},
        {"content": ["backup", "iso"], "options": "vers=4.2"},
    ),
    (
        BACKUP_JOB,
        {"name": "nightly"},
        {"schedule": "02:00", "vms": ["100"], "mail_to": ["b@x", "a@x"]},
        {"vms": ["100", "101"], "comment": "all"},
    ),
    (
        SDN_ZONE,
        {"name": "blue"},
        {"type": "vxlan", "peers": ["10.0.0.2", "10.0.0.1"]},
        {"nodes": ["pve1"], "peers": ["10.0.0.1"]},
    ),
]


@pytest.mark.parametrize(
    ("table", "key", "new", "more"), CASES, ids=lambda one: getattr(one, "kind", "")
)
def test_a_resource_is_created_changed_emptied_and_removed(
    table: Table, key: dict[str, Any], new: dict[str, Any], more: dict[str, Any]
) -> None:
    server = open_server(table)

    def task(check: bool = False, **options: Any) -> Result:
        return run(table, {**key, **options}, server, check)

    for options in (
        new,
        more,
        {"comment": ""} if "comment" in table.options else {},
        {"state": "absent"},
    ):
        foreseen = task(check=True, **options)
        count = len(server.writes)
        made = task(**options)
        assert foreseen.diff == made.diff
        assert foreseen.values["plan"] == made.values["done"]
        assert len(server.writes) - count == len(made.values["done"])
        assert not task(**options).changed
    assert server.rows == {}
    assert all("delete" not in data for method, data in server.writes if method == "POST")
    assert server.states == {}


def zone(server: SectionServer, **options: Any) -> Result:
    return run(SDN_ZONE, {"name": "blue", **options}, server, False)


def test_an_ordered_list_differs_by_its_order() -> None:
    server = open_server(SDN_ZONE)
    zone(server, type="vxlan", peers=["10.0.0.1", "10.0.0.2"])
    assert not zone(server, peers=["10.0.0.1", "10.0.0.2"]).changed
    assert zone(server, peers=["10.0.0.2", "10.0.0.1"]).changed
    assert server.rows["blue"]["peers"] == "10.0.0.2,10.0.0.1"


def test_a_change_that_was_not_committed_is_committed_by_the_next_run() -> None:
    server = open_server(SDN_ZONE)
    zone(server, type="vxlan", peers=["10.0.0.1"])

    def fail(method: str) -> None:
        if len(server.writes) == 3:
            raise FleetError(reason="interrupted")

    server.before_write = fail
    with pytest.raises(FleetError) as caught:
        zone(server, nodes=["pve1"])
    assert caught.value.details["done"] == ["Set nodes of SDN zone 'blue'"]
    server.before_write = lambda _method: None
    assert zone(server, nodes=["pve1"]).values["done"] == ["Apply the changes of SDN zone 'blue'"]
    assert not zone(server, nodes=["pve1"]).changed


def test_two_runs_that_each_add_a_member_lose_none() -> None:
    """The set is written as a whole: without the digest the second run would undo the first."""
    server = open_server(HA_RULE)
    rule = {"name": "apart", "type": "resource-affinity", "affinity": "negative"}
    run(HA_RULE, {**rule, "resources": ["vm:100", "vm:101"]}, server, False)

    def in_between(_method: str) -> None:
        server.before_write = lambda _other: None
        run(HA_RULE, {"name": "apart", "resources": ["vm:102"]}, server, False)

    server.before_write = in_between
    run(HA_RULE, {"name": "apart", "resources": ["vm:103"]}, server, False)
    kept = set(server.rows["apart"]["resources"].split(","))
    assert kept == {"vm:100", "vm:101", "vm:102", "vm:103"}


def test_without_a_digest_the_second_run_would_lose_one() -> None:
    """Shows that the test above can fail."""
    table = replace(HA_RULE, digest=())
    server = open_server(table)
    rule = {"name": "apart", "type": "resource-affinity", "affinity": "negative"}
    run(table, {**rule, "resources": ["vm:100"]}, server, False)

    def in_between(_method: str) -> None:
        server.before_write = lambda _other: None
        run(table, {"name": "apart", "resources": ["vm:102"]}, server, False)

    server.before_write = in_between
    run(table, {"name": "apart", "resources": ["vm:103"]}, server, False)
    assert "vm:102" not in server.rows["apart"]["resources"].split(",")


REFUSED: list[tuple[Table, dict[str, Any], str]] = [
    (STORAGE, {"name": "xx", "content": ["iso"]}, "type is required for a new storage"),
    (STORAGE, {"name": "xx", "type": "dir"}, "path is required for a new storage"),
    (
        STORAGE,
        {"name": "xx", "type": "dir", "path": "/srv", "server": "10.0.0.5"},
        "server is an option of type nfs, cifs, pbs, and the type is dir",
    ),
    (HA_RULE, {"name": "1x", "type": "node-affinity"}, "is not a valid ID"),
    (HA_RULE, {"name": "x" * 41, "type": "node-affinity"}, "is not a valid ID"),
]


@pytest.mark.parametrize(("table", "options", "words"), REFUSED)
def test_fields_of_another_variant_and_missing_ones_are_refused(
    table: Table, options: dict[str, Any], words: str
) -> None:
    server = open_server(table)
    for check in (True, False):
        with pytest.raises(ValidationFailed, match=words):
            run(table, options, server, check)
    assert server.writes == []


def test_the_variant_of_a_resource_that_exists_cannot_change() -> None:
    server = open_server(STORAGE)
    run(STORAGE, {"name": "xx", "type": "dir", "path": "/srv"}, server, False)
    other = {"name": "xx", "type": "nfs"}
    with pytest.raises(Conflict, match="cannot change type of an existing storage"):
        run(STORAGE, other, server, False)
    with pytest.raises(ValidationFailed, match="and the type is dir"):
        run(STORAGE, {"name": "xx", "server": "10.0.0.5"}, server, False)


def test_messages_have_the_title_and_results_the_kind() -> None:
    server = open_server(BACKUP_JOB)
    made = run(BACKUP_JOB, {"name": "nightly", "schedule": "02:00"}, server, False)
    assert made.values["done"] == ["Create backup job 'nightly'"]
    assert set(made.values) >= {"backup_job"}


def test_a_commit_needs_a_look_for_pending_changes() -> None:
    with pytest.raises(ValueError, match="belong together"):
        replace(SDN_ZONE, is_pending=None)
