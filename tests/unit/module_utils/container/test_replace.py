# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The holder of a root file system, the steps to a new one, and the refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import StorageRow
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.storages.images import (
    ImageVersion,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.quantities import GIB
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.replace.plan import (
    HolderNotes,
    ReplacementFacts,
    plan_replaced,
    record_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.replace.run import (
    require_replaceable,
    require_storage,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.kind import (
    CONTAINER,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.marker import Marker
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual, Guest

NEW, OLD = ImageVersion("golden", "2"), Marker(origin=900, image=ImageVersion("golden", "1"))
DESIRED = Guest(CONTAINER, "web", None, None)


def guest(vmid: int, **config: str) -> Actual:
    whole = {"hostname": "web", "unprivileged": "1", "ostype": "debian", **config}
    return Actual(CONTAINER, vmid, "pve1", "stopped", whole, whole, digest="d")


WEB = guest(100, rootfs="ceph:vm-100-disk-0,acl=1,size=2G", unused0="ceph:vm-100-disk-7")
TEMPLATE = guest(901, rootfs="ceph:base-901-disk-0,size=2G", template="1", tags="version-2")
TEMPLATE = replace(TEMPLATE, target={**TEMPLATE.target, "hostname": "golden"})
MOVED = HolderNotes(100, NEW, "2G", "unused1", "", OLD, "debian", WEB.target["rootfs"])


def holder(record: HolderNotes, **config: str) -> Actual:
    return guest(555, rootfs="ceph:vm-555-disk-1,size=1G", description=record.render(), **config)


def actions(container: Actual, held: Actual | None) -> list[str]:
    plan = plan_replaced(ReplacementFacts(DESIRED, container, held, 555, TEMPLATE))
    return [step.action for step in plan.steps]


def with_volume(volume: str) -> Actual:
    return guest(100, **{**WEB.target, "unused1": volume})


@pytest.mark.parametrize(
    "record", [HolderNotes(100, NEW), MOVED, replace(MOVED, volume="ceph:vm-100-disk-8")], ids=str
)
def test_a_record_is_read_from_the_notes_that_it_was_written_to(record: HolderNotes) -> None:
    assert record_of(holder(record)) == record


@pytest.mark.parametrize("notes", ["", "Mine", "Holder of container 100: image=a@b_c"])
def test_other_notes_have_no_record(notes: str) -> None:
    assert record_of(guest(555, rootfs="ceph:x,size=1G", description=notes)) is None


def test_a_run_continues_where_the_last_one_ended() -> None:
    rest = ["config", "config", "move volume", "note", "swap"]
    assert actions(WEB, None) == ["clone", *rest]
    assert actions(WEB, holder(HolderNotes(100, NEW), mp0="ceph:vm-555-disk-2,size=1G")) == [
        "resize",
        *rest[1:],
    ]
    assert actions(WEB, holder(MOVED, mp0="ceph:vm-555-disk-0,mp=/image")) == rest[2:]
    assert actions(with_volume("ceph:vm-100-disk-8"), holder(MOVED)) == rest[3:]


def test_only_the_recorded_volume_becomes_the_root() -> None:
    """A slot that has another volume since then would make data the root file system."""
    held = holder(replace(MOVED, volume="ceph:vm-100-disk-8"))
    assert actions(with_volume("ceph:vm-100-disk-8"), held) == ["swap"]
    again = ["remove", "clone", "config", "config", "move volume", "note", "swap"]
    assert actions(with_volume("ceph:vm-100-disk-9"), held) == again
    assert actions(WEB, held) == again
    occupied = holder(MOVED, mp0="ceph:vm-555-disk-0,mp=/image")
    assert actions(with_volume("ceph:vm-100-disk-9"), occupied) == again
    assert actions(WEB, holder(HolderNotes(100, ImageVersion("golden", "3")))) == again


def test_the_new_root_keeps_the_options_of_the_old_one() -> None:
    held = holder(replace(MOVED, volume="ceph:vm-100-disk-8"))
    facts = ReplacementFacts(DESIRED, with_volume("ceph:vm-100-disk-8"), held, 555, TEMPLATE)
    (swap,) = plan_replaced(facts).steps
    assert swap.data == {
        "rootfs": "ceph:vm-100-disk-8,acl=1,size=2G",
        "unused2": "ceph:vm-100-disk-0",
        "description": "<!-- pve.fleet: origin=901 image=golden:2 -->",
        "digest": "d",
    }


def changed(actual: Actual, **config: str) -> Actual:
    whole = {**actual.target, **config}
    return replace(actual, live=whole, target=whole)


@pytest.mark.parametrize(
    ("container", "raw", "words"),
    [
        (changed(WEB, unprivileged="0"), None, "one of both is privileged"),
        (changed(WEB, arch="arm64"), None, "another architecture"),
        (changed(WEB, rootfs="ceph:vm-100-disk-0,idmap=u:0:1:2"), None, "a map of IDs"),
        (WEB, [["lxc.idmap", "u 0 100000 65536"]], "a map of IDs"),
        (changed(WEB, lock="backup"), None, "it is locked (backup)"),
        (changed(WEB, template="1"), None, "it is a template"),
        (changed(WEB, rootfs="/srv/root"), None, "its root is not a volume"),
    ],
)
def test_refusals(container: Actual, raw: Any, words: str) -> None:
    require_replaceable(WEB, TEMPLATE, None)
    with pytest.raises(FleetError, match=words.replace("(", r"\(").replace(")", r"\)")):
        require_replaceable(container, TEMPLATE, raw)


def row(kind: str, used: int = 0) -> StorageRow:
    return StorageRow("ceph", "pve1", True, True, kind, frozenset(), used * GIB, 10 * GIB)


def test_a_storage_needs_room_and_names_that_can_change() -> None:
    require_storage(WEB, TEMPLATE, row("rbd", used=8))
    with pytest.raises(FleetError, match="has 1 GiB free, and a second root needs 2 GiB"):
        require_storage(WEB, TEMPLATE, row("rbd", used=9))
    directory = changed(WEB, rootfs="ceph:subvol-100-disk-0,size=2G")
    require_storage(directory, TEMPLATE, row("zfspool"))
    with pytest.raises(FleetError, match="cannot rename volumes such as ceph:subvol-100-disk-0"):
        require_storage(directory, TEMPLATE, row("btrfs"))
