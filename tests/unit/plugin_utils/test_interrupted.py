# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a task that is interrupted."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from ansible_collections.pve.fleet.plugins.plugin_utils._interrupted import (
    MAX_LISTED,
    TaskNotes,
    next_step,
    report,
    reported,
)

CLONE = "UPID:pve1:000003FC:0004ECF3:6B0289E8:qmclone:9000:root@pam!fleet:"
START = "UPID:pve2:000003FD:0004ECF4:6B0289E9:qmstart:101:root@pam!fleet:"


def test_report_contains_no_escape_sequence() -> None:
    notes = TaskNotes()
    notes.step("Start VM 'web\x1b[31m'")
    assert "    Start VM 'web\ufffd[31m'\n" in report(notes, "pve.fleet.vm for localhost")


def test_report_says_what_is_done_and_what_runs() -> None:
    notes = TaskNotes()
    one, two, three = (notes.about(f"acme/{name}") for name in ("one", "two", "three"))
    one.began(CLONE)
    one.ended(CLONE)
    one.step("Clone VM 'debian' (9000)")
    one.complete()
    two.step("Clone VM 'debian' (9000)")
    two.step("Set tags")
    two.began(START)
    three.began(CLONE)
    assert report(notes, "pve.fleet.vms for localhost").splitlines() == [
        "pve.fleet.vms for localhost was interrupted.",
        "  complete:",
        "    acme/one",
        "  not complete, and done so far:",
        "    acme/two: Clone VM 'debian' (9000); Set tags",
        "  still running in Proxmox VE:",
        f"    acme/two: start of VM 101 on node pve2, {START}",
        f"    acme/three: clone of VM 9000 on node pve1, {CLONE}",
        "  Next step: run the playbook again. It waits for what still runs, and does what is left.",
    ]


def test_report_of_a_task_about_one_thing() -> None:
    notes = TaskNotes()
    notes.step("Create pool 'acme'")
    assert "  done:\n    Create pool 'acme'\n" in report(notes, "pve.fleet.pool for localhost")
    assert report(TaskNotes(), "pve.fleet.pool for localhost") == ""


@pytest.mark.parametrize(
    ("module", "options", "start"),
    [
        (
            "pve.fleet.drill",
            {},
            "run the drill again, which creates other copies. Copies of this run remain",
        ),
        (
            "pve.fleet.failover",
            {"rehearsal": True},
            "run the rehearsal again, which creates other copies. Copies",
        ),
        ("pve.fleet.failover", {"rehearsal": "false"}, "run the playbook again. It waits"),
        ("pve.fleet.drill", {"state": "absent"}, "run the playbook again. It waits"),
        ("pve.fleet.vms", {}, "run the playbook again. It waits"),
    ],
)
def test_next_step_after_copies_were_made(
    module: str, options: dict[str, object], start: str
) -> None:
    """Neither another drill nor another rehearsal continues with the copies of this one."""
    step = next_step(module, options)
    assert step.startswith(start)
    notes = TaskNotes()
    notes.step("Restore a copy")
    assert f"  Next step: {step}\n" in report(notes, module, step)


def test_long_sections_are_cut() -> None:
    notes = TaskNotes()
    for number in range(MAX_LISTED + 7):
        notes.about(f"vm-{number}").complete()
    lines = notes.lines()
    assert len(lines) == 1 + MAX_LISTED + 1
    assert lines[-1] == "    and 7 more"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_writes_the_report_before_the_handler_that_was_set(number: int) -> None:
    ahead, end = os.pipe()
    notes = TaskNotes()
    got: list[int] = []
    before = signal.signal(number, lambda given, _frame: got.append(given))
    try:
        with reported(notes, "pve.fleet.vm for host", stderr=end):
            notes.step("Start VM 'a'")
            signal.raise_signal(number)
            assert got == [number]
            # Only the first signal is reported.
            signal.raise_signal(number)
        os.close(end)
        with os.fdopen(ahead, encoding="utf-8") as stream:
            assert stream.read() == report(notes, "pve.fleet.vm for host")
        assert got == [number, number]
    finally:
        signal.signal(number, before)


def test_handlers_are_set_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with reported(TaskNotes(), "pve.fleet.vm", "", 2):
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_thread_sets_no_handler() -> None:
    seen: list[object] = []

    def work() -> None:
        with reported(TaskNotes(), "pve.fleet.vm", "", 2):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
