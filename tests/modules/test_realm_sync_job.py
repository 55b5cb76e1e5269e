# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules realm_sync_job and realm_sync_job_info (pve-access-control: API2/Jobs/RealmSync.pm)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused, with_directory
from tests.modules.estate_lab import Lab

NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "realm": "ldap",
    "schedule": "daily",
    "scope": "users",
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    with_directory(unused.client, unused.simulator)
    return unused


def job(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the result; check mode predicts its steps and its diff, and writes nothing."""
    lab.simulator.reset_log()
    foreseen = do(lab, "realm_sync_job", check=True, **options)
    assert lab.simulator.writes() == []
    made = do(lab, "realm_sync_job", **options)
    assert (foreseen["plan"], foreseen["diff"]) == (made["plan"], made["diff"])
    return made


def test_a_job_is_created_changed_listed_and_deleted(lab: Lab) -> None:
    made = job(lab, **NIGHTLY, comment="first")
    assert made["done"] == ["Create realm sync job 'nightly'"]
    assert made["realm_sync_job"] == {
        **NIGHTLY,
        "comment": "first",
        "enabled": True,
        "enable_new": None,
        "remove_vanished": None,
    }
    lab.simulator.reset_log()
    assert not do(lab, "realm_sync_job", **NIGHTLY)["changed"]
    assert [one["path"] for one in lab.simulator.log()] == ["/cluster/jobs/realm-sync/nightly"]
    (listed,) = do(lab, "realm_sync_job_info")["realm_sync_jobs"]
    assert not do(lab, "realm_sync_job", **listed)["changed"]
    changed = job(lab, name="nightly", comment="", enabled=False, enable_new=False)
    assert changed["realm_sync_job"] == {
        **made["realm_sync_job"],
        "comment": "",
        "enabled": False,
        "enable_new": False,
    }
    assert job(lab, name="nightly", state="absent")["realm_sync_job"] is None
    assert do(lab, "realm_sync_job_info")["realm_sync_jobs"] == []


def test_the_parts_to_remove_are_a_set_and_an_empty_list_removes_nothing(lab: Lab) -> None:
    """Without the option the realm decides; PVE's word for no parts is none."""
    job(lab, **NIGHTLY, remove_vanished=["entry", "acl"])
    assert not do(lab, "realm_sync_job", name="nightly", remove_vanished=["acl", "entry"])[
        "changed"
    ]
    emptied = job(lab, name="nightly", remove_vanished=[])
    assert emptied["realm_sync_job"]["remove_vanished"] == []
    stored = lab.client.get("cluster", "jobs", "realm-sync", "nightly")
    assert stored["remove-vanished"] == "none"
    assert not do(lab, "realm_sync_job", name="nightly", remove_vanished=[])["changed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**NIGHTLY, "realm": "nope"}, "there is no realm 'nope'"),
        ({**NIGHTLY, "realm": "pve"}, "it is of type pve, and only LDAP and AD realms"),
        ({**NIGHTLY, "schedule": "now and then"}, "is not a schedule"),
        ({**NIGHTLY, "remove_vanished": ["all"]}, "remove_vanished"),
        ({**NIGHTLY, "name": "saved"}, "a backup job has this name"),
        ({"name": "nightly", "realm": "ldap", "schedule": "daily"}, "scope"),
    ],
    ids=str,
)
def test_mistakes_are_refused_before_any_write(
    lab: Lab, options: dict[str, Any], message: str
) -> None:
    """A backup job is in the same file, jobs.cfg: PVE refuses its name after the check mode."""
    do(lab, "backup_job", name="saved", schedule="daily", all=True, storage="local")
    assert message in refused(lab, "realm_sync_job", **options)["msg"]


def test_the_realm_of_a_job_cannot_be_changed(lab: Lab) -> None:
    job(lab, **NIGHTLY)
    failed = refused(lab, "realm_sync_job", name="nightly", realm="pve")
    assert "realm" in failed["msg"]
