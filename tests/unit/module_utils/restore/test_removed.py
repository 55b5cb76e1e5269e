# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which failed restore has removed a container, and which archives are of that container."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.tasks.row import (
    FAILED,
    OK,
    RUNNING,
    TaskRow,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.archive import Archive
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.choose import (
    ChosenArchive,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.desired import (
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.run import (
    completion_of,
    failed_restore,
    is_of_removed,
)

VOLUME = "nas:backup/vzdump-lxc-300-2026_11_20-20_15_33.tar.zst"
ARCHIVE = Archive(VOLUME, "nas", "dir", "pve1", "", "lxc", 300, time=1000, size=1)
CHOSEN = ChosenArchive(ARCHIVE, {"hostname": "box"})
DESIRED = read_desired(
    {"vmid": 300, "archive": "newest", "confirm": "box", "keep": "archive", "options": {"cores": 2}}
)


def restore(started: int, status: str = FAILED) -> TaskRow:
    ended = 0 if status == RUNNING else started + 5
    return TaskRow(
        f"u{started}", "pve2", "vzrestore", "300", "a@pve", None, started, ended, status, ""
    )


@pytest.mark.parametrize(
    ("restores", "removed", "started"),
    [
        ([], None, None),
        ([restore(2000)], None, 2000),
        ([restore(2000), restore(3000)], None, 3000),
        ([restore(2000), restore(3000, OK)], None, None),
        ([restore(2000), restore(3000, RUNNING)], None, None),
        ([restore(2000)], 1999, 2000),
        ([restore(2000)], 2000, None),
        ([restore(2000)], 4000, None),
    ],
)
def test_the_last_restore_has_failed_and_nothing_was_removed_since(
    restores: list[TaskRow], removed: int | None, started: int | None
) -> None:
    found = failed_restore(restores, {} if removed is None else {300: removed})
    assert (found.started if found else None) == started


def test_an_archive_of_an_earlier_guest_must_be_named() -> None:
    assert is_of_removed(DESIRED, CHOSEN, {})
    assert is_of_removed(DESIRED, CHOSEN, {300: 999})
    assert not is_of_removed(DESIRED, CHOSEN, {300: 1000})
    assert is_of_removed(replace(DESIRED, volume=VOLUME), CHOSEN, {300: 1000})


def test_the_container_keeps_its_number_its_node_and_its_name() -> None:
    found = completion_of(DESIRED, CHOSEN, "pve2")
    assert found.options == {"cores": 2, "vmid": 300, "node": "pve2"}
    assert (found.new_name, found.confirm, found.completes) == ("box", "", True)
