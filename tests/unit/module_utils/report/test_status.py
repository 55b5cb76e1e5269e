# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of guests: columns, order, selection, age of backups, drift."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.pve.fleet.plugins.filter.status_table import status_table
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.document import VERSION


def guest(vmid: int, name: str, **more: Any) -> dict[str, Any]:
    backup = {"state": "none", "time": None}
    row = {"site": "", "vmid": vmid, "name": name, "tenant": "acme", "kind": "vm"}
    return {**row, "node": "pve1", "status": "running", "backup": backup, **more}


def report(*guests: dict[str, Any], drift: Any = None, sites: int = 1) -> dict[str, Any]:
    return {
        "version": VERSION,
        "checked": "2026-11-29T12:00:00Z",
        "sites": [{"site": "", "nodes": [{"node": "pve1"}, {"node": "pve3"}]}] * sites,
        "tenants": [{"tenant": "acme"}, {"tenant": "initech"}],
        "vms": [one for one in guests if one["kind"] == "vm"],
        "containers": [one for one in guests if one["kind"] == "container"],
        "drift": drift,
    }


OLD = {"state": "old", "time": "2026-11-20T12:00:00Z"}
NEW = {"state": "ok", "time": "2026-11-29T07:30:00Z"}
GUESTS = (
    guest(101, "web10", backup=NEW),
    guest(102, "web2", backup=OLD, status="stopped", node="pve2"),
    guest(103, "proxy", kind="container", tenant="globex"),
    guest(104, "free", tenant=""),
)
DRIFT = {
    "vms": [
        {"site": "", "vmid": 101, "status": "in_sync"},
        {"site": "", "vmid": 102, "status": "drifted"},
    ]
}


def test_a_table_has_a_row_for_each_guest_in_natural_order() -> None:
    addresses: list[dict[str, Any]] = [
        {"vmid": 101, "address": "10.0.0.5"},
        {"vmid": 102, "address": None},
    ]
    assert status_table(report(*GUESTS, drift=DRIFT), addresses) == [
        "NAME   TENANT  KIND       NODE  STATE    ADDRESS   BACKUP    DRIFT",
        "free   -       vm         pve1  running  -         none      not listed",
        "web2   acme    vm         pve2  stopped  -         9 d, old  drifted",
        "web10  acme    vm         pve1  running  10.0.0.5  4 h       in sync",
        "proxy  globex  container  pve1  running  -         none      not listed",
        "4 guests",
    ]


def names(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines[1:-1]]


def test_guests_are_selected_and_sorted() -> None:
    whole = report(*GUESTS, drift=DRIFT)
    assert names(status_table(whole, only={"tenant": "acme, globex", "state": ["running"]})) == [
        "web10",
        "proxy",
    ]
    assert names(status_table(whole, only={"drift": "drifted", "node": []})) == ["web2"]
    assert names(status_table(whole, sort="node", only={"tenant": ["acme"]})) == ["web10", "web2"]
    assert names(status_table(whole, sort=["name"], reverse=True))[0] == "web10"
    assert status_table(whole, only={"tenant": ["initech"]})[-1] == "0 guests"


def test_guests_of_several_sites_have_their_site_and_no_foreign_address() -> None:
    """VMIDs are unique within a site only."""
    whole = report(guest(101, "a", site="berlin"), guest(101, "b", site="munich"), sites=2)
    lines = status_table(whole, [{"vmid": 101, "address": "10.0.0.5"}], sort="site")
    assert lines[0].startswith("SITE    NAME")
    assert [line.split()[:2] for line in lines[1:-1]] == [["berlin", "a"], ["munich", "b"]]
    assert "10.0.0.5" not in "".join(lines)


def test_a_name_of_a_guest_cannot_control_the_terminal() -> None:
    (_head, line, _count) = status_table(report(guest(101, "a\x1b[2J\nb")))
    assert line.startswith("a\ufffd[2J b")


@pytest.mark.parametrize(
    ("value", "options", "cause"),
    [
        ({}, {}, "needs a report of pve.fleet.report_info"),
        (report(), {"sort": "colour"}, "has no column colour"),
        (report(), {"only": {"status": "running"}}, "has no column status"),
    ],
)
def test_mistakes_are_named(value: Any, options: dict[str, Any], cause: str) -> None:
    with pytest.raises(AnsibleFilterError, match=cause):
        status_table(value, **options)


def test_a_name_that_names_nothing_is_refused() -> None:
    for only in ({"node": "pve3"}, {"tenant": ["initech"]}):
        assert status_table(report(*GUESTS), only=only)[-1] == "0 guests"
    with pytest.raises(AnsibleFilterError) as refused:
        status_table(report(*GUESTS), only={"tenant": "acmee", "node": "pve7"})
    assert "there is no tenant 'acmee' (did you mean 'acme'?)" in str(refused.value)
    assert "there is no node 'pve7'" in str(refused.value)
