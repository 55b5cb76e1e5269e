# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The backup jobs of an estate: which exist, and which guests are in each."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.job.coverage import (
    named_jobs,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.job.declared import (
    COMMENT,
    DeclaredGuest,
    declared_in,
    difference,
    is_declarable,
    plan_jobs,
    read_declaration,
)

NIGHTLY: dict[str, Any] = {"schedule": "02:30", "storage": "nas", "keep": {"keep_daily": 7}}
OFTEN: dict[str, Any] = {"schedule": "*/6:00", "storage": "nas"}


def guest(vmid: int, options: dict[str, Any]) -> DeclaredGuest:
    return DeclaredGuest(vmid, read_declaration(options))


def id_of(options: dict[str, Any]) -> str:
    return read_declaration(options).job


def row(options: dict[str, Any], vmid: str, **more: Any) -> dict[str, Any]:
    """Return the job of a declaration as Proxmox VE lists it."""
    named = {"id": id_of(options), "schedule": options["schedule"], "storage": options["storage"]}
    if "keep" in options:
        named["prune-backups"] = {"keep-daily": str(options["keep"]["keep_daily"])}
    return {**named, "vmid": vmid, "enabled": 1, "comment": COMMENT, **more}


def planned(guests: list[DeclaredGuest], *rows: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return ID and guests of the jobs that change, None for a deleted job."""
    jobs = plan_jobs(guests, named_jobs(rows))
    return [(job.keys["name"], sorted(job.values["vms"]) if job.present else None) for job in jobs]


def test_guests_of_one_declaration_share_a_job() -> None:
    guests = [guest(101, NIGHTLY), guest(102, OFTEN), guest(103, dict(reversed(NIGHTLY.items())))]
    assert sorted(planned(guests)) == sorted([(id_of(NIGHTLY), [101, 103]), (id_of(OFTEN), [102])])
    assert planned(guests, row(NIGHTLY, "101,103"), row(OFTEN, "102")) == []


def test_guests_that_the_run_does_not_know_stay() -> None:
    assert planned([guest(101, NIGHTLY)], row(NIGHTLY, "107")) == [(id_of(NIGHTLY), [101, 107])]


def test_a_guest_moves_and_is_never_without_a_job() -> None:
    moved = planned([guest(101, OFTEN)], row(NIGHTLY, "101,107"))
    assert moved == [(id_of(OFTEN), [101]), (id_of(NIGHTLY), [107])]


def test_the_last_guest_takes_its_job_along() -> None:
    assert planned([guest(101, {"schedule": ""})], row(NIGHTLY, "101")) == [(id_of(NIGHTLY), None)]
    moved = planned([guest(101, OFTEN)], row(NIGHTLY, "101"))
    assert moved == [(id_of(OFTEN), [101]), (id_of(NIGHTLY), None)]


def test_jobs_of_others_are_not_changed() -> None:
    others = [
        {"id": "nightly", "schedule": "02:30", "storage": "nas", "all": 1, "enabled": 1},
        {"id": "mine", "schedule": "02:30", "storage": "nas", "vmid": "101", "enabled": 1},
    ]
    assert planned([guest(101, {"schedule": ""})], *others) == []
    assert planned([guest(101, NIGHTLY)], *others) == [(id_of(NIGHTLY), [101])]


@pytest.mark.parametrize(
    "edit", [{"enabled": 0}, {"node": "pve1"}, {"exclude": "101"}, {"mode": "stop"}], ids=str
)
def test_an_edited_job_is_repaired(edit: dict[str, Any]) -> None:
    edited = row(NIGHTLY, "101", **edit)
    assert planned([guest(101, NIGHTLY)], edited) == [(id_of(NIGHTLY), [101])]


def test_a_job_with_the_same_settings_serves_whatever_its_name() -> None:
    edited = row(NIGHTLY, "101", schedule="03:00")
    now = {**NIGHTLY, "schedule": "03:00"}
    assert planned([guest(101, now)], edited) == []
    assert planned([guest(101, now), guest(102, now)], edited) == [(id_of(NIGHTLY), [101, 102])]


def test_a_job_without_the_mark_is_refused() -> None:
    with pytest.raises(Conflict, match="has no mark of estates"):
        planned([guest(101, NIGHTLY)], row(NIGHTLY, "101", comment=""))


def test_two_declarations_of_one_job_are_refused() -> None:
    edited = row(NIGHTLY, "101", schedule="03:00")
    guests = [guest(101, {**NIGHTLY, "schedule": "03:00"}), guest(102, NIGHTLY)]
    with pytest.raises(Conflict, match="two declarations lead to"):
        planned(guests, edited)


def test_differences() -> None:
    jobs = named_jobs([row(NIGHTLY, "101,102"), row(OFTEN, "102", enabled=0)])
    assert difference(guest(101, NIGHTLY), jobs) is None
    assert difference(guest(101, OFTEN), jobs) == (OFTEN, NIGHTLY)
    assert difference(guest(101, {"schedule": ""}), jobs) == (None, NIGHTLY)
    assert difference(guest(103, NIGHTLY), jobs) == (NIGHTLY, None)
    twice = named_jobs([row(NIGHTLY, "101"), row(OFTEN, "101")])
    found = difference(guest(101, NIGHTLY), twice)
    assert found is not None
    assert found[0] == NIGHTLY
    assert sorted(map(str, found[1])) == sorted([str(NIGHTLY), str(OFTEN)])
    disabled = {**OFTEN, "enabled": False}
    assert sorted(map(str, declared_in(102, jobs))) == sorted([str(NIGHTLY), str(disabled)])
    assert [is_declarable(one) for one in (NIGHTLY, disabled)] == [True, False]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"storage": "nas"}, "backup.schedule"),
        ({"schedule": "02:30"}, "backup.storage"),
        ({**NIGHTLY, "storage": "not a name"}, "is not a storage ID"),
        ({**NIGHTLY, "keep": {"keep_last": 0}}, "would keep every backup"),
        ({**NIGHTLY, "keep": {"keep_all": True, "keep_last": 1}}, "keeps everything"),
        ({**NIGHTLY, "bwlimit": -1}, "bwlimit"),
    ],
    ids=str,
)
def test_values_that_a_job_cannot_have(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationFailed, match=text):
        read_declaration(options)
