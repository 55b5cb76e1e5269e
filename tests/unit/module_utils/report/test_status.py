# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of guests: columns, order, selection, age of backups, drift."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.pve.fleet.plugins.filter.status_table import status_table
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.move import describe_move
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.document import VERSION

MOVE = "0f:101:munich:701:online:1:1764500000:proven:1764500100:vienna"


def test_a_guest_that_moves_adds_a_column() -> None:
    """A complete move, and the record that a clone has copied, add nothing."""
    notes = f"mail\n<!-- pve.fleet: move={MOVE} -->"
    move = describe_move({"description": notes}, 701)
    assert move is not None
    assert describe_move({"description": notes}, 102) is None
    done = {**move, "state": "complete"}
    lines = status_table(report(guest(701, "web1", move=move), guest(702, "web2", move=done)))
    assert lines[0].endswith("DRIFT  MOVE")
    assert lines[1].endswith("-      proven, vienna 101 to munich 701")
    assert lines[2].endswith("-      -")
    assert status_table(report(guest(702, "web2", move=done)))[0].endswith("DRIFT")


def guest(vmid: int, name: str, **more: Any) -> dict[str, Any]:
    backup = {"state": "none", "time": None}
    row = {"site": "", "vmid": vmid, "name": name, "tenant": "acme", "kind": "vm"}
    return {**row, "node": "pve1", "status": "running", "backup": backup, **more}


def report(*guests: dict[str, Any], drift: Any = None, sites: int = 1) -> dict[str, Any]:
    return {
        "version": VERSION,
        "checked": "2026-11-29T12:00:00Z",
        "sites": [{"site": "", "reason": None, "nodes": [{"node": "pve1"}, {"node": "pve3"}]}]
        * sites,
        "tenants": [{"tenant": "acme"}, {"tenant": "initech"}],
        "vms": [one for one in guests if one["kind"] == "vm"],
        "containers": [one for one in guests if one["kind"] == "container"],
        "drift": drift,
    }


OLD = {"state": "old", "time": "2026-11-20T12:00:00Z"}
NEW = {"state": "ok", "time": "2026-11-29T07:30:00Z"}
GUESTS = (
    guest(101, "web10", backup=NEW, address="10.0.0.5"),
    guest(102, "web2", backup=OLD, address=None, status="stopped", node="pve2"),
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
    assert status_table(report(*GUESTS, drift=DRIFT)) == [
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


def test_guests_of_several_sites_have_their_site_and_address() -> None:
    """VMIDs are unique within a site only."""
    berlin = guest(101, "a", site="berlin", address="10.0.0.5")
    whole = report(berlin, guest(101, "b", site="munich"), sites=2)
    lines = status_table(whole, sort="site")
    assert lines[0].startswith("SITE    NAME")
    assert [line.split()[:2] for line in lines[1:-1]] == [["berlin", "a"], ["munich", "b"]]
    assert ["10.0.0.5" in line for line in lines[1:-1]] == [True, False]


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


@pytest.mark.parametrize(
    ("only", "hint"),
    [
        ({"state": ["runing"]}, "no state 'runing' (did you mean 'running'?)"),
        ({"drift": ["drifed"]}, "no drift 'drifed' (did you mean 'drifted'?)"),
        ({"kind": ["lxc"]}, "no kind 'lxc'"),
    ],
)
def test_a_value_that_no_guest_can_have_is_refused(only: dict[str, list[str]], hint: str) -> None:
    with pytest.raises(AnsibleFilterError) as refused:
        status_table(report(*GUESTS), only=only)
    assert hint in str(refused.value)


def test_a_value_that_no_guest_has_now_selects_none() -> None:
    only = {"state": ["paused"], "kind": ["container"], "drift": ["outdated"]}
    assert status_table(report(*GUESTS), only=only)[-1] == "0 guests"


def test_a_site_that_was_not_read_is_named() -> None:
    given = report(*GUESTS, sites=2)
    given["sites"] = [
        given["sites"][0],
        {"site": "paris", "reason": "no answer\x1b[2J", "nodes": []},
    ]
    line = "The guests of paris are missing: no answer"
    assert status_table(given)[-1].startswith(line)
    assert "\x1b" not in status_table(given)[-1]
