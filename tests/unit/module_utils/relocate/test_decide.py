# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of decision 0036: each row of the page is a case here, and each case is a row there."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.move import (
    ARCHIVE,
    COMPLETE,
    OFFLINE,
    ONLINE,
    PROVEN,
    RESTART,
    RETURNED,
    VOID,
    MoveRecord,
    last_record_of,
    notes_with,
    parse_record,
    record_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.decide import (
    DONE,
    DROP_SOURCE,
    DROP_TARGET,
    FINISH,
    HOLD,
    LOCK_SOURCE,
    MOVE,
    PROVE,
    REFUSE,
    RELEASE_SOURCE,
    RELEASE_TARGET,
    RESTORE,
    RESUME_TARGET,
    RETURN,
    REVOKE,
    SHUT_DOWN,
    START_SOURCE,
    START_TARGET,
    UNLOCK_SOURCE,
    UNLOCK_TARGET,
    SideState,
    decide,
    decide_return,
)

DECISION = Path(__file__).parents[4] / "docs/decisions/0036-a-guest-moves-between-clusters.md"
RECORD = MoveRecord(
    "3f9a", 200, "munich", 300, ONLINE, True, 1764500000, origin="vienna", clusters="aa.bb"
)
STOPPED_BEFORE = replace(RECORD, mode=OFFLINE, ran=False)
BY_ARCHIVE = replace(RECORD, mode=ARCHIVE)
GONE = SideState()
BARE = SideState("stopped", "create", bare=True)


def side(text: str, record: MoveRecord | None = RECORD) -> SideState:
    """A side such as `stopped migrate`."""
    power, _blank, lock = text.partition(" ")
    return SideState(power, lock, record)


def marked(text: str, state: str, record: MoveRecord = RECORD) -> SideState:
    """A side whose record has this state."""
    return side(text, record.with_state(state, 1764500100))


def managed(one: SideState) -> SideState:
    """The same side as an HA resource."""
    return replace(one, managed=True)


LOCKED = side("stopped migrate")

# The row of the page (source, target), the states, the side and the step.
ROWS: list[tuple[str, SideState, SideState, str, str]] = [
    ("executes|none", side("running", None), GONE, "source", MOVE),
    ("executes|none", side("running"), GONE, "source", MOVE),
    ("executes|none", side("paused"), GONE, "source", MOVE),
    ("executes, or stopped without a lock|create", side("running"), BARE, "source", REVOKE),
    ("executes, or stopped without a lock|create", side("stopped"), BARE, "source", START_SOURCE),
    (
        "executes, or stopped without a lock|create",
        side("stopped", STOPPED_BEFORE),
        BARE,
        "source",
        REVOKE,
    ),
    ("executes|migrate, not running", side("running"), side("paused migrate"), "source", REVOKE),
    (
        "executes|migrate, not running",
        marked("running", VOID),
        side("stopped migrate"),
        "source",
        UNLOCK_TARGET,
    ),
    ("executes|revoked, no lock", marked("running", VOID), side("stopped"), "source", DROP_TARGET),
    ("executes|revoked, no lock", side("running"), marked("stopped", RETURNED), "source", "drop"),
    ("executes|not revoked, no lock", side("running"), side("stopped"), "source", REFUSE),
    ("executes|runs", side("running"), side("running migrate"), "none", REFUSE),
    ("executes, `migrate`|does not run", side("running migrate"), GONE, "source", UNLOCK_SOURCE),
    ("stopped, no lock|none", side("stopped", None), GONE, "source", MOVE),
    ("stopped, no lock|none", side("stopped"), GONE, "source", START_SOURCE),
    (
        "stopped, no lock|migrate, not running",
        side("stopped", STOPPED_BEFORE),
        side("stopped migrate", STOPPED_BEFORE),
        "source",
        REVOKE,
    ),
    (
        "stopped, no lock|migrate, not running",
        side("stopped"),
        side("paused migrate"),
        "source",
        START_SOURCE,
    ),
    ("stopped, no lock|proven", side("stopped"), marked("running", PROVEN), "target", DROP_SOURCE),
    ("stopped, no lock|not proven", side("stopped"), side("stopped"), "source", REFUSE),
    ("stopped, no lock|runs, not proven", side("stopped"), side("running"), "target", REFUSE),
    ("stopped, `migrate`|none, or create", side("stopped migrate"), GONE, "source", UNLOCK_SOURCE),
    ("stopped, `migrate`|none, or create", side("stopped migrate"), BARE, "source", UNLOCK_SOURCE),
    (
        "stopped, `migrate`|returned, does not run",
        side("stopped migrate"),
        marked("stopped", RETURNED),
        "source",
        UNLOCK_SOURCE,
    ),
    (
        "stopped, `migrate`|returned, does not run",
        side("stopped migrate"),
        marked("running", RETURNED),
        "target",
        REFUSE,
    ),
    (
        "stopped or `postmigrate`, `migrate`|paused, migrate",
        side("postmigrate migrate"),
        side("paused migrate"),
        "target",
        UNLOCK_TARGET,
    ),
    (
        "stopped or `postmigrate`, `migrate`|runs, migrate",
        side("stopped migrate"),
        side("running migrate"),
        "target",
        UNLOCK_TARGET,
    ),
    (
        "stopped, `migrate`|stopped, migrate, offline",
        side("stopped migrate", STOPPED_BEFORE),
        side("stopped migrate", STOPPED_BEFORE),
        "target",
        UNLOCK_TARGET,
    ),
    (
        "stopped, `migrate`|stopped, migrate, offline",
        side("stopped migrate", replace(RECORD, mode=RESTART)),
        side("stopped migrate", replace(RECORD, mode=RESTART)),
        "target",
        UNLOCK_TARGET,
    ),
    (
        "stopped, `migrate`|stopped, migrate, online",
        side("stopped migrate"),
        side("stopped migrate"),
        "unknown",
        REFUSE,
    ),
    (
        "stopped, `migrate`|no lock, not running",
        side("stopped migrate"),
        side("paused"),
        "target",
        RESUME_TARGET,
    ),
    (
        "stopped, `migrate`|no lock, not running",
        side("stopped migrate"),
        side("stopped"),
        "target",
        START_TARGET,
    ),
    (
        "stopped, `migrate`|no lock, not running",
        side("stopped migrate", STOPPED_BEFORE),
        side("stopped", STOPPED_BEFORE),
        "target",
        PROVE,
    ),
    ("stopped, `migrate`|runs, no lock", side("stopped migrate"), side("running"), "target", PROVE),
    (
        "stopped, `migrate`|runs, no lock",
        side("stopped migrate"),
        marked("running", PROVEN),
        "target",
        HOLD,
    ),
    ("none|with the record", GONE, marked("running", PROVEN), "target", FINISH),
    ("none|complete", GONE, marked("running", COMPLETE), "target", DONE),
    ("none|without a record", GONE, side("running", None), "target", DONE),
    ("none|none", GONE, GONE, "unknown", REFUSE),
    ("any|another record, or none", side("running"), side("running", None), "none", REFUSE),
    (
        "any|another record, or none",
        side("running"),
        side("stopped", replace(RECORD, id="77")),
        "none",
        REFUSE,
    ),
    ("another lock|any", side("running backup", None), GONE, "none", REFUSE),
    ("HA resource|right", managed(LOCKED), side("running migrate"), "target", RELEASE_SOURCE),
    ("HA resource|right", managed(LOCKED), marked("running", PROVEN), "target", RELEASE_SOURCE),
    (
        "HA resource|right",
        managed(side("stopped")),
        marked("running", PROVEN),
        "target",
        RELEASE_SOURCE,
    ),
    (
        "right|HA resource",
        side("running"),
        managed(side("paused migrate")),
        "source",
        RELEASE_TARGET,
    ),
    (
        "right|HA resource",
        marked("running", VOID),
        managed(side("stopped")),
        "source",
        RELEASE_TARGET,
    ),
    ("right|HA resource", LOCKED, managed(marked("stopped", RETURNED)), "source", RELEASE_TARGET),
]


def archived_side(text: str) -> SideState:
    """A side whose record is about a move by an archive."""
    return side(text, BY_ARCHIVE)


EMPTY = SideState("stopped", "", bare=True)
# The row of the second table: source, target, whether an archive has the last state, side and step.
ARCHIVE_ROWS: list[tuple[str, SideState, SideState, bool, str, str]] = [
    ("executes, no lock|none|any", archived_side("running"), GONE, False, "source", MOVE),
    ("executes, no lock|none|any", archived_side("running"), GONE, True, "source", MOVE),
    (
        "executes, any lock|none|any",
        archived_side("running migrate"),
        GONE,
        True,
        "source",
        "unlock source",
    ),
    (
        "executes, any lock|none|any",
        archived_side("running backup"),
        GONE,
        False,
        "source",
        "unlock source",
    ),
    ("stopped, no lock|none|no", archived_side("stopped"), GONE, False, "source", MOVE),
    ("stopped, no lock|none|yes", archived_side("stopped"), GONE, True, "source", LOCK_SOURCE),
    (
        "stopped, `backup`|none|any",
        archived_side("stopped backup"),
        GONE,
        True,
        "source",
        UNLOCK_SOURCE,
    ),
    (
        "stopped, `migrate`|none|no",
        archived_side("stopped migrate"),
        GONE,
        False,
        "source",
        UNLOCK_SOURCE,
    ),
    (
        "stopped, `migrate`|none|yes",
        archived_side("stopped migrate"),
        GONE,
        True,
        "source",
        RESTORE,
    ),
    (
        "stopped, `migrate`|empty: an interrupted restore|any",
        archived_side("stopped migrate"),
        BARE,
        True,
        "source",
        UNLOCK_TARGET,
    ),
    (
        "stopped, `migrate`|empty: an interrupted restore|any",
        archived_side("stopped migrate"),
        EMPTY,
        False,
        "source",
        DROP_TARGET,
    ),
    (
        "any|restored|any",
        archived_side("stopped migrate"),
        archived_side("stopped"),
        True,
        "target",
        START_TARGET,
    ),
    (
        "any|restored|any",
        archived_side("stopped migrate"),
        archived_side("running"),
        False,
        "target",
        PROVE,
    ),
    (
        "any|restored|any",
        archived_side("running"),
        archived_side("stopped"),
        True,
        "source",
        REFUSE,
    ),
]


@pytest.mark.parametrize(("row", "source", "target", "archived", "right", "step"), ARCHIVE_ROWS)
def test_each_row_of_a_move_by_an_archive(
    row: str, source: SideState, target: SideState, archived: bool, right: str, step: str
) -> None:
    verdict = decide(source, target, archived=archived)
    assert (verdict.side, verdict.step) == (right, step), row


@pytest.mark.parametrize(("row", "source", "target", "right", "step"), ROWS)
def test_each_row(row: str, source: SideState, target: SideState, right: str, step: str) -> None:
    verdict = decide(source, target)
    assert (verdict.side, verdict.step) == (right, step), row
    assert bool(verdict.why) == (step == REFUSE)


@pytest.mark.parametrize(("known", "right"), [(True, "target"), (False, "source")])
def test_the_log_decides_about_an_online_move(known: bool, right: str) -> None:
    locked = side("stopped migrate")
    assert decide(locked, locked, handed_over=known).side == right


def test_the_page_has_the_same_rows() -> None:
    """Each row of both tables of the decision is tested, and no other row."""
    for head, columns, tested in (
        ("| source | target | right side |", 2, {row for row, *_rest in ROWS}),
        ("| source | target | last state archived |", 3, {row for row, *_rest in ARCHIVE_ROWS}),
    ):
        table = DECISION.read_text("utf-8").partition(head)[2].partition("\n\n")[0]
        found = re.findall(r"^\| " + r"([^|]+) \| " * columns, table, re.MULTILINE)
        rows = {"|".join(one) for one in found if not set("".join(one)) <= {"-"}}
        assert rows == tested


POWERS = ["", "stopped", "running", "paused", "postmigrate", "prelaunch", "io-error"]
LOCKS = ["", "migrate", "create", "backup"]
STATES = ["", VOID, PROVEN, RETURNED]


def _all_sides() -> list[SideState]:
    found = [SideState(), BARE, managed(BARE)]
    for power, lock, state, record in itertools.product(
        POWERS[1:], LOCKS, STATES, (RECORD, STOPPED_BEFORE, BY_ARCHIVE)
    ):
        one = marked(f"{power} {lock}".rstrip(), state, record)
        found += [one, managed(one)]
    return found


@pytest.mark.parametrize("archived", [None, True, False])
@pytest.mark.parametrize("handed_over", [None, True, False])
def test_no_step_can_cause_two_running_guests(
    handed_over: bool | None, archived: bool | None
) -> None:
    """For all states of both sides: the target is only started, resumed or unlocked while the
    source cannot start; the source only while the target cannot; a running guest is not removed.
    Nothing is restored unless the source is locked and an archive has its last state.
    """
    for source, target in itertools.product(_all_sides(), _all_sides()):
        step = decide(source, target, handed_over=handed_over, archived=archived).step
        if step == RESTORE:
            assert (archived, source.lock, source.executes) == (True, "migrate", False)
        if step in (RESTORE, LOCK_SOURCE):
            assert not source.executes
            assert not target.exists
        if step in (START_TARGET, RESUME_TARGET):
            assert source.lock == "migrate"
            assert not source.executes
        if step == UNLOCK_TARGET:
            can_start = source.executes or not source.lock
            assert not can_start or not target.runs
        if step in (START_SOURCE, MOVE):
            assert not source.lock
            assert not target.runs
        if step == UNLOCK_SOURCE:
            assert not target.runs
        if step == DROP_TARGET:
            assert not target.runs
            assert not source.lock
        if step == DROP_SOURCE:
            assert not source.executes
            assert target.state == PROVEN


@pytest.mark.parametrize("handed_over", [None, True, False])
def test_the_wrong_side_leaves_ha_before_any_other_step(handed_over: bool | None) -> None:
    """The HA manager removes the lock of a fenced guest and starts it."""
    for source, target in itertools.product(_all_sides(), _all_sides()):
        verdict = decide(source, target, handed_over=handed_over)
        for one in (verdict, decide_return(source, target, verdict)):
            if one.step == REFUSE:
                continue
            if one.side == "target" and source.managed:
                assert one.step == RELEASE_SOURCE
            if one.side == "source" and target.managed:
                assert one.step in (RELEASE_TARGET, RELEASE_SOURCE)
            if one.step in (SHUT_DOWN, RETURN):
                assert not source.managed
                assert not target.managed


def test_a_record_survives_its_text() -> None:
    config = {"description": "first\n<!-- pve.fleet: origin=9000 -->"}
    notes = notes_with(config, RECORD.with_state(PROVEN, 5.0))
    assert notes.startswith("first\n<!-- pve.fleet: origin=9000 move=3f9a:200:munich:300:online:1:")
    for vmid, cluster in ((200, "aa"), (300, "bb")):
        assert record_of({"description": notes}, vmid, cluster) == RECORD.with_state(PROVEN, 5.0)
    for vmid, cluster in ((201, "aa"), (200, "cc")):
        assert record_of({"description": notes}, vmid, cluster) is None, "it is a copy"
    assert notes_with({"description": notes}, None) == config["description"]
    closed = notes_with(config, RECORD.with_state(COMPLETE, 6.0))
    assert record_of({"description": closed}, 200, "aa") is None
    assert last_record_of({"description": closed}) == RECORD.with_state(COMPLETE, 6.0)
    assert parse_record("") is None
    assert parse_record("a:b:c:d:sideways:1:2::0") is None
