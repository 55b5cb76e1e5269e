# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One error for several VMs: each cause once, and never a long text."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    AlreadyExists,
    Conflict,
    FleetError,
    QuotaExceeded,
    TaskFailed,
    UnknownVm,
    VmidTaken,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.failures.several import (
    FailedGuest,
    by_cause,
    failure_of_several,
)


def full(name: str, free: str = "80 GiB free") -> FailedGuest:
    error = QuotaExceeded(
        attempted=f"New VM '{name}' could not be planned on node pve1",
        answer=f"storage vg has {free}",
        next_step="Ask for less",
        reason="no room",
    )
    return FailedGuest(f"VM '{name}'", error)


def message_of(failures: list[FailedGuest]) -> str:
    return failure_of_several(failures, [one.label for one in failures]).message


def test_one_error_for_several_keeps_a_category_that_all_of_them_have() -> None:
    taken = FailedGuest("VM 'a'", VmidTaken(reason="vmid taken"))
    exists = FailedGuest("VM 'b'", AlreadyExists(reason="exists"))
    labels = ["VM 'a'", "VM 'b'", "VM 'c'"]
    one = failure_of_several([taken, exists], labels)
    assert (one.category, one.reason) == ("Conflict", "some VMs failed")
    other = failure_of_several([taken, FailedGuest("VM 'c'", UnknownVm())], labels)
    assert other.category == "TaskFailed"


def test_the_request_is_named_if_one_guest_failed() -> None:
    failed = FailedGuest("VM 'a'", TaskFailed(status=500, path="/nodes/pve1/qemu"))
    one = failure_of_several([failed], ["VM 'a'", "VM 'b'"])
    assert (one.status, one.path) == (500, "/nodes/pve1/qemu")
    both = failure_of_several([failed, FailedGuest("VM 'b'", TaskFailed())], ["VM 'a'", "VM 'b'"])
    assert (both.status, both.path) == (None, "")


@pytest.mark.parametrize(
    ("other", "counted"),
    [("VM 'b' (101)", "1 of 2 VMs"), ("container 'b'", "1 of 2 guests"), ("101", "1 of 2 guests")],
)
def test_guests_are_counted_by_their_kinds(other: str, counted: str) -> None:
    failed = full("a")
    message = failure_of_several([failed], [failed.label, other]).message
    assert message.startswith(f"{counted} failed: ")
    box = FailedGuest("Container 'box' (700)", UnknownVm())
    assert "1 of 1 container failed" in failure_of_several([box], [box.label]).message


def test_one_cause_of_many_vms_is_said_once() -> None:
    message = message_of([full(f"web{number}") for number in range(1, 112)])
    assert message == (
        "111 of 111 VMs failed: New VM 'web1' could not be planned on node pve1: storage vg has"
        " 80 GiB free. Ask for less. The same for VM 'web2', VM 'web3', VM 'web4', VM 'web5', VM"
        " 'web6' and 105 more. Repair these and run again: what is done stays done."
    )


def test_a_cause_that_names_its_vm_is_the_same_for_another() -> None:
    failures = [
        FailedGuest(
            f"VM '{name}' ({vmid})",
            Conflict(answer=f"VM '{name}' ({vmid}) is locked", next_step=f"Unlock {vmid}"),
        )
        for name, vmid in (("a", 101), ("b", 102))
    ]
    assert len(by_cause(failures)) == 1
    assert message_of(failures).count("is locked") == 1


def test_other_causes_stay_apart_and_are_bounded() -> None:
    failures = [full(f"web{number}", f"{number} GiB free") for number in range(1, 112)]
    message = message_of(failures)
    assert "And 106 more." in message
    assert len(message) < 1000
    long = [FailedGuest(f"VM '{number}x'", FleetError(answer="x" * 9000)) for number in range(9)]
    assert len(message_of(long)) < 4000


def test_failed_tasks_stay_apart() -> None:
    failures = [
        FailedGuest(f"VM '{name}'", TaskFailed(answer="exit code 1", upid=f"UPID:{name}"))
        for name in ("a", "b")
    ]
    assert len(by_cause(failures)) == 2
    assert message_of(failures).count("exit code 1") == 2
    assert "VM 'b': exit code 1" in message_of(failures)
