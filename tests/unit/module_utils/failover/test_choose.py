# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which guests of a lost site come up, in which order, and whether they run at the other site."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.drill.copies import (
    copy_tags,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    NodeRow,
    VmRow,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import NetworkError
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.start_order import (
    LAST,
    start_order,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.archive import Archive
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.choose import (
    SAFETY_BACKUP_NOTES,
    ChosenArchive,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.choose import (
    GuestSelection,
    choose,
    in_groups,
    newest_archives,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.read import (
    OtherSite,
    find_start_blockers,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.select import (
    OwnerScope,
)

EVERY = GuestSelection(OwnerScope(None, "tenant_"), frozenset(), frozenset(), 0.0)
ACME = replace(EVERY, owner=OwnerScope("tenant_acme", "tenant_"))


def archive(vmid: int, time: int, **more: Any) -> Archive:
    volume = f"nas:backup/vzdump-qemu-{vmid}-{time}.vma"
    one = Archive(volume, "nas", "dir", "pve1", "", "qemu", vmid, time, 1)
    return one._replace(**more)


def guest(vmid: int, name: str, tags: str = "tenant_acme", **config: str) -> ChosenArchive:
    return ChosenArchive(archive(vmid, 100), {"name": name, "tags": tags, **config})


def test_the_newest_archive_of_each_guest_is_chosen() -> None:
    kept = archive(101, 300, notes=f"web: {SAFETY_BACKUP_NOTES}")
    old = archive(104, 50, type="openvz")
    archives = [archive(101, 100), archive(101, 200), kept, old, archive(102, 50), archive(103, 50)]
    choice = replace(EVERY, excluded=frozenset(("103",)))
    found = newest_archives(archives, choice)
    assert [(one.vmid, one.time) for one in found] == [(101, 200), (102, 50)]


@pytest.mark.parametrize(
    ("choice", "chosen", "skipped", "problems"),
    [
        (EVERY, ["web", "db"], [104, 105], []),
        (replace(EVERY, owner=OwnerScope("tenant_acme", "tenant_")), ["web"], [104], []),
        (replace(EVERY, excluded=frozenset(("web",))), ["db"], [101, 104, 105], []),
        (replace(EVERY, oldest=200.0), [], [101, 102, 104, 105], []),
        (replace(EVERY, named=frozenset(("102",))), ["db"], [], []),
        (replace(EVERY, named=frozenset(("web", "gone"))), ["web"], [], ["guest gone is named"]),
        (replace(EVERY, named=frozenset(("debian",))), [], [104], ["it is a template"]),
        (
            replace(EVERY, excluded=frozenset(("wbe",)), named=frozenset(("web",))),
            ["web"],
            [],
            ["guest wbe is excluded, and no archive of it was found (did you mean 'web'?)"],
        ),
        (
            replace(ACME, named=frozenset(("web", "db"))),
            ["web"],
            [],
            ["guest db is named, and it is not a guest of tenant_acme"],
        ),
        (
            replace(ACME, owner=OwnerScope("tenant_nosuch", "tenant_")),
            [],
            [],
            ["no archive is of a guest of tenant 'nosuch'"],
        ),
        (replace(EVERY, excluded=frozenset(("106",))), ["web", "db"], [104, 105], []),
    ],
)
def test_guests_are_chosen_and_the_others_are_reported(
    choice: GuestSelection, chosen: list[str], skipped: list[int], problems: list[str]
) -> None:
    copy = guest(105, "drill-101-aa-web", ";".join(copy_tags("acme")))
    found = [
        guest(101, "web"),
        guest(102, "db", "tenant_globex"),
        guest(104, "debian", template="1"),
        copy,
    ]
    result = choose(found, choice, known=["106"])
    assert [one.name for one in result.guests] == chosen
    assert [one.archive.vmid for one, _reason in result.skipped] == skipped
    assert len(result.problems) == len(problems)
    assert all(part in text for part, text in zip(problems, result.problems, strict=True))


def test_two_guests_of_a_tenant_with_one_name_are_a_problem() -> None:
    both = [guest(101, "web"), guest(102, "web"), guest(103, "web", "tenant_globex")]
    assert choose(both, EVERY).problems == ["VM 'web' (102) has the name of guest 101"]


def test_groups_follow_the_start_order() -> None:
    assert in_groups({101: LAST, 102: 1, 103: 2, 104: 1}) == [[102, 104], [103], [101]]
    assert start_order({"startup": "order=3,up=20"}) == (3, 20, None)
    assert start_order({"startup": "down=90"}) == (LAST, 0, 90)
    assert start_order({}) == (LAST, 0, None)


def site(rows: Iterable[VmRow], *, online: bool = True) -> OtherSite:
    node = NodeRow("pve1", online, 4, 1, 1)
    vms = {row.vmid: row for row in rows}
    return OtherSite("vienna", ClusterState(vms, {"pve1": node}, (), frozenset(), vms.keys()))


def row(vmid: int, name: str, status: str, tags: tuple[str, ...] = ("tenant_acme",)) -> VmRow:
    return VmRow("qemu", vmid, "pve1", name, status, tags, None, False, None, 1, 1, 1, 0)


@pytest.mark.parametrize(
    ("other", "lost", "part"),
    [
        (None, False, "set from_site, or lost"),
        (None, True, ""),
        (OtherSite("vienna", error=NetworkError(answer="no answer")), False, "no answer"),
        (OtherSite("vienna", error=NetworkError(answer="no answer")), True, ""),
        (site([row(101, "web", "running")]), True, "is running as guest 101 on node pve1"),
        (site([row(101, "", "paused")]), True, "is paused as guest 101"),
        (site([row(555, "web", "running")]), True, "is running as guest 555"),
        (site([row(555, "web", "running", ("tenant_globex",))]), False, ""),
        (site([row(101, "web", "stopped")]), False, ""),
        (site([]), False, ""),
        (site([row(101, "web", "unknown")], online=False), False, "node pve1 is offline"),
        (site([row(101, "web", "unknown")], online=False), True, ""),
    ],
)
def test_a_guest_must_not_run_at_both_sites(other: OtherSite | None, lost: bool, part: str) -> None:
    problems = find_start_blockers(other, [guest(101, "web")], "tenant_", lost=lost)
    assert len(problems) == bool(part)
    assert part in "".join(problems)
