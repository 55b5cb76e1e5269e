# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tasks of simple resources, with the properties that all of them must have."""

from __future__ import annotations

from typing import Any

from tests.modules.estate_lab import Lab

# Requests of a run that changes nothing: a reading, and the version if an option depends on it. A
# ZFS pool needs the list of pools, its devices, the disks of the node and the storage of its name.
# A CPU model that is not listed needs the privileges of the login.
_READS = {"disk_storage": 4, "cpu_model": 3}


def requests_of(lab: Lab) -> list[dict[str, Any]]:
    """Return the requests since the last reset, without the login by a password."""
    return [entry for entry in lab.simulator.log() if entry["path"] != "/access/ticket"]


def writes_of(lab: Lab) -> list[dict[str, Any]]:
    """Return the requests of these that change something."""
    return [entry for entry in requests_of(lab) if entry["method"] != "GET"]


def done(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Preview, run and repeat a task: the repetition writes nothing."""
    lab.simulator.reset_log()
    foreseen = lab.run(module, check=True, **options)
    assert writes_of(lab) == []
    made = lab.run(module, **options)
    assert not made.get("failed"), made
    assert (foreseen["changed"], foreseen["plan"], foreseen["diff"]) == (
        made["changed"],
        made["plan"],
        made["diff"],
    )
    lab.simulator.reset_log()
    assert not lab.run(module, **options)["changed"]
    assert len(requests_of(lab)) <= _READS.get(module, 2)
    assert writes_of(lab) == []
    return made


def refused(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Return the failure of a task, which is the same in check mode and made no write."""
    lab.simulator.reset_log()
    failures = [lab.run(module, check=check, **options) for check in (True, False)]
    assert all(failure.get("failed") for failure in failures), failures
    assert failures[0]["msg"] == failures[1]["msg"]
    assert "exception" not in failures[1]
    assert writes_of(lab) == []
    return failures[1]
