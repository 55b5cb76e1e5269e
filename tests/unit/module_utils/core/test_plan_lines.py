# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of a plan: signs, columns, reasons in the user's words, counts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.texts.plan_lines import (
    CHANGED,
    CREATED,
    FAILED,
    REMOVED,
    UNCHANGED,
    PlanLine,
    describe_change,
    describe_difference,
    describe_new,
    lines_of_diff,
    plan_lines,
    with_lines,
    without_unset,
)

ROWS = [
    PlanLine(CREATED, "globex/db1", "2 cores, 4G, 70G on pve3"),
    PlanLine(CHANGED, "acme/web1", "memory 2G -> 3G (reboot), tag web added", reboots=True),
    PlanLine(REMOVED, "acme/old1", "stopped on pve1, 1 disk of 20G"),
    PlanLine(FAILED, "acme/web2", "not changed: pve2 is offline", ("next step: Start it",)),
    *[PlanLine(UNCHANGED, f"acme/same{number}") for number in range(12)],
]


def test_a_plan_is_one_line_for_each_change_and_a_line_with_the_counts() -> None:
    assert plan_lines(ROWS, check_mode=True) == [
        "+ globex/db1  2 cores, 4G, 70G on pve3",
        "~ acme/web1   memory 2G -> 3G (reboot), tag web added",
        "- acme/old1   stopped on pve1, 1 disk of 20G",
        "! acme/web2   not changed: pve2 is offline",
        "    next step: Start it",
        "Plan: 1 to create, 1 to change, 1 to remove, 12 unchanged, 1 refused; 1 reboot",
    ]


def test_a_run_ends_with_its_counts() -> None:
    last = plan_lines(ROWS, check_mode=False)[-1]
    assert last == "Done: 1 created, 1 changed, 1 removed, 12 unchanged, 1 failed; 1 reboot"
    assert plan_lines([], check_mode=True) == ["Plan: nothing to do"]
    assert plan_lines([], check_mode=True, unlisted_failures=3) == ["Plan: 3 refused"]


def test_a_long_name_does_not_move_the_column_of_the_others() -> None:
    rows = [PlanLine(CREATED, "a" * 60, "x"), PlanLine(CREATED, "b", "y")]
    assert plan_lines(rows, check_mode=True)[1] == "+ b  y"


def test_more_lines_stand_before_the_counts() -> None:
    assert with_lines(["+ a", "Plan: 1 to create"], ["more"]) == [
        "+ a",
        "more",
        "Plan: 1 to create",
    ]


def test_no_control_character_and_no_line_end_reaches_the_terminal() -> None:
    rows = [PlanLine(CHANGED, "a\x1b[2J", "b\r\x1b]0;x\x07\nc", ("d\x9be",))]
    text = "\n".join(plan_lines(rows, check_mode=True, more=["f\x1b"]))
    assert len(text.splitlines()) == 4
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text.replace("\n", ""))


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        ({"memory": 2048}, {"memory": 3072}, ["memory 2G -> 3G"]),
        ({"memory": 1536}, {"memory": 1000}, ["memory 1536M -> 1000M"]),
        ({"tags": ["a"]}, {"tags": ["a", "web"]}, ["tag web added"]),
        ({"tags": ["a", "b"]}, {"tags": ["a"]}, ["tag b removed"]),
        ({"tags": ["a"]}, {"tags": ["a", "b", "c", "d"]}, ["3 tags added"]),
        ({"net0": {"tag": 10}}, {"net0": {"tag": 20}}, ["net0 tag 10 -> 20"]),
        ({}, {"scsi1": {"size": "50G", "storage": "x"}}, ["scsi1 50G added"]),
        ({"net1": {"bridge": "vmbr0"}}, {}, ["net1 removed"]),
        ({"node": "pve1"}, {"node": "pve2"}, ["node pve1 -> pve2"]),
        ({"subnets": []}, {"subnets": [{"cidr": "10.0.0.0/24"}]}, ["subnets 10.0.0.0/24 added"]),
        ({"grants": [{"role": "a"}]}, {"grants": []}, ["grants a removed"]),
        ({"status": "stopped"}, {"status": "running"}, ["start"]),
        ({"status": "running"}, {"status": "stopped"}, ["stopped"]),
        ({"onboot": False}, {"onboot": True}, ["onboot false -> true"]),
        ({"description": "x" * 50}, {"description": "y"}, ["description ... -> y"]),
        ({"restarted": False}, {"restarted": True}, ["reboot"]),
        ({"same": None}, {}, []),
    ],
)
def test_reason(before: dict[str, Any], after: dict[str, Any], texts: list[str]) -> None:
    assert describe_change(before, after) == texts


def test_an_item_that_changes_is_neither_added_nor_removed() -> None:
    before = {"ip_sets": [{"name": "all", "members": [1]}, {"name": "old", "members": []}]}
    after = {"ip_sets": [{"name": "all", "members": [1, 2]}, {"name": "new", "members": []}]}
    texts = ["ip_sets all changed", "ip_sets new added", "ip_sets old removed"]
    assert describe_change(before, after) == texts


def test_a_change_says_whether_it_needs_a_reboot() -> None:
    before = {"memory": 2048, "tags": [], "restarted": False}
    after = {"memory": 3072, "tags": ["web"], "restarted": True}
    assert describe_change(before, after) == ["memory 2G -> 3G (reboot)", "tag web added"]
    waiting = describe_change({"cores": 1}, {"cores": 2}, ["cores"])
    assert waiting == ["cores 1 -> 2 (waits for a reboot)"]


def test_a_new_guest_is_described_by_its_size_and_node() -> None:
    values = {"cores": 2, "sockets": 2, "memory": 4096, "node": "pve3", "scsi0": {"size": "20G"}}
    assert describe_new({**values, "scsi1": {"size": "50G"}}) == "4 cores, 4G, 70G on pve3"
    assert describe_new({"node": "pve1"}) == "on pve1"


def test_resources_are_described_by_their_values() -> None:
    before = {
        "pool 'a'": {"comment": "x"},
        "user 'b'": {},
        "role 'c'": {"privileges": ["VM.Audit"]},
    }
    after = {"pool 'a'": {"comment": "y"}, "user 'b'": {"name": "b"}, "role 'c'": {}}
    assert lines_of_diff(before, after) == [
        PlanLine(CHANGED, "pool 'a'", "comment x -> y"),
        PlanLine(CREATED, "user 'b'"),
        PlanLine(REMOVED, "role 'c'"),
    ]


def test_a_guest_without_values_that_is_removed_is_not_created() -> None:
    assert lines_of_diff({"VM 'web1' (101)": {}}, {}) == [PlanLine(REMOVED, "VM 'web1' (101)")]
    assert lines_of_diff({}, {"VM 'web1' (101)": {}}) == [PlanLine(CREATED, "VM 'web1' (101)")]


def test_a_diff_leaves_out_what_is_unset_on_both_sides() -> None:
    diff = {
        "before": {"pool": {}, "old": {"comment": "x", "parent": None}},
        "after": {"pool": {"name": "a", "parent": None, "vms": []}, "old": {"comment": ""}},
        "before_header": "h",
    }
    assert without_unset(diff) == {
        "before": {"pool": {}, "old": {"comment": "x"}},
        "after": {"pool": {"name": "a"}, "old": {"comment": ""}},
        "before_header": "h",
    }
    assert without_unset([{"before": "a", "after": ""}]) == [{"before": "a", "after": ""}]
    assert without_unset({"before": {"on": True}, "after": {"on": False}}) == {
        "before": {"on": True},
        "after": {"on": False},
    }


LONG = "nas:backup/vzdump-qemu-101-2026_12_01-11_30_05.vma.zst"


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({"a": LONG}, {"a": LONG}, ""),
        (
            {"a": LONG},
            {"a": LONG.replace("30_05", "31_06")},
            "a ...mu-101-2026_12_01-11_30_05.vma.zst -> ...mu-101-2026_12_01-11_31_06.vma.zst",
        ),
        ({"a": LONG}, {"a": "none"}, "a nas:backup/vzdump-qemu-101-2026_12... -> none"),
        ({}, {"a": LONG}, "a nas:backup/vzdump-qemu-101-2026_12... added"),
        ({"a": "x" * 60}, {"a": "x" * 61}, f"a ...{'x' * 33} -> ...{'x' * 34}"),
        (
            {"a": {"b": "-" * 90 + "1" + "-" * 90}},
            {"a": {"b": "-" * 90 + "2" + "-" * 90}},
            f"a b ...{'-' * 8}1{'-' * 25}... -> ...{'-' * 8}2{'-' * 25}...",
        ),
        ({"memory": 1024}, {"memory": 2048}, "memory 1G -> 2G"),
    ],
)
def test_a_refusal_shows_what_differs_in_long_values(
    before: dict[str, Any], after: dict[str, Any], line: str
) -> None:
    assert ", ".join(describe_difference(before, after)) == line
