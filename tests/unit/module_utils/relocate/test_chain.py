# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The backup of a guest after its move, and its chain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.reservations import row_of
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.words import VM
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.belongings import (
    SiteObjects,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.chain import (
    describe_backup,
)

ROW = row_of(VM, {}, vmid=100, node="pve1", pool="acme", status="running")
SERVER = {"type": "pbs", "server": "pbs1", "datastore": "main", "namespace": "acme"}
HERE = {"nightly": {"id": "nightly", "vmid": "100", "storage": "safe", "enabled": True}}
Jobs = dict[str, dict[str, Any]]


@pytest.mark.parametrize(
    ("there", "server", "vmid", "text"),
    [
        ({"nightly": {"vmid": "700"}}, {}, 100, "in job nightly, the chain continues"),
        ({"nightly": {"vmid": "700"}}, {}, 300, "in job nightly, a new chain"),
        ({"nightly": {"vmid": "700"}}, {"namespace": "other"}, 100, "in job nightly, a new chain"),
        ({"nightly": {"vmid": "700"}}, {"type": "nfs"}, 100, "in job nightly, a new chain"),
        ({"nightly": {"vmid": "700", "enabled": False}}, {}, 100, "in no job"),
        ({"pool": {"pool": "acme"}}, {}, 100, "in job pool, the chain continues"),
        ({"other": {"vmid": "700"}, "far": {"all": 1, "node": "pve3"}}, {}, 100, "in no job"),
        ({}, {}, 100, "in no job"),
    ],
)
def test_the_jobs_and_the_chain(there: Jobs, server: dict[str, str], vmid: int, text: str) -> None:
    jobs = {name: {"id": name, "storage": "store", **job} for name, job in there.items()}
    storages = {"safe": SERVER}, {"store": {**SERVER, **server}}
    row = replace(ROW, vmid=vmid)
    found = describe_backup(
        row, 100, SiteObjects(backups=HERE), SiteObjects(backups=jobs), storages
    )
    assert found == text


def test_a_guest_without_any_backup() -> None:
    assert describe_backup(ROW, 100, SiteObjects(), SiteObjects(), ({}, {})) is None
