# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests that have no safe copy, and the marks of a copy."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.drill.copies import (
    TAG,
    copy_name,
    copy_notes,
    copy_tags,
    find_copy,
    is_marked,
    tenant_tags,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.kind import (
    CONTAINER,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.kind import Kind
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.drill.isolate import (
    find_obstacle,
)

NOTES = copy_notes("3f9a01c2", 1_700_000_000)


@pytest.mark.parametrize(
    ("kind", "config", "part"),
    [
        (VM, {"hostpci0": "01:00"}, "hostpci0"),
        (VM, {"usb0": "host=1-2"}, "usb0"),
        (VM, {"usb0": "spice"}, ""),
        (VM, {"serial0": "/dev/ttyS0"}, "serial0"),
        (VM, {"serial0": "socket"}, ""),
        (VM, {"args": "-device x"}, "args"),
        (VM, {"hookscript": "local:snippets/a.sh"}, "hookscript"),
        (VM, {"scsi1": "/dev/disk/by-id/one,size=1G"}, "scsi1"),
        (VM, {"scsi1": "ceph:vm-1-disk-0,size=1G"}, ""),
        (VM, {"template": "1"}, "template"),
        (CONTAINER, {"dev0": "/dev/dri"}, "dev0"),
        (CONTAINER, {"mp0": "/srv/data,mp=/data"}, "mp0"),
        (CONTAINER, {"lxc.cgroup2.devices.allow": "a"}, "lxc.cgroup2"),
        (CONTAINER, {"rootfs": "ceph:vm-1-disk-0,size=1G", "features": "nesting=1"}, ""),
    ],
)
def test_a_copy_uses_nothing_of_its_node(kind: Kind, config: Mapping[str, str], part: str) -> None:
    obstacle = find_obstacle(kind, config)
    assert part in obstacle
    assert bool(obstacle) == bool(part)


def test_only_its_own_tags_mark_a_copy() -> None:
    """The guest of a tenant that has the tag as well still counts."""
    assert is_marked(copy_tags("acme"))
    assert is_marked([TAG.upper()])
    assert not is_marked([TAG, "tenant_acme"])
    assert not is_marked(copy_tags("acme")[1:])
    assert tenant_tags(copy_tags("Acme"), "tenant_") == ("tenant_acme",)


@pytest.mark.parametrize(
    ("tags", "name", "notes", "origin"),
    [
        ("fleet-drill;web", "drill-100-3f9a01-web", NOTES, 100),
        ("fleet-drill", "web", NOTES, 100),
        ("fleet-drill", "drill-101-3f9a01-web", NOTES, 100),
        ("fleet-drill", "drill-100-3f9a01-web", "notes of a user", 100),
        ("fleet-drill", "drill-100-3f9a01-web", NOTES, None),
    ],
)
def test_a_guest_that_lacks_one_mark_is_not_a_copy(
    tags: str, name: str, notes: str, origin: int | None
) -> None:
    assert find_copy({"tags": tags}, name, notes, origin) is None


def test_a_copy_has_every_mark() -> None:
    name = copy_name(100, "a-very-long-name-" * 5, "3f9a01c2")
    found = find_copy({"tags": ";".join(copy_tags(None))}, name, NOTES, 100)
    assert found is not None
    assert (found.run, found.began) == ("3f9a01c2", 1_700_000_000)
    assert len(name) <= 63
