# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a run that an approved request accepts although they are not equal.

Names of volumes: pve-storage, Plugin.pm (get_next_vm_diskname, parse_volname), ZFSPoolPlugin.pm
(subvol-VMID-disk-N), and linked clones (BASE/VOLUME).
"""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.requests import (
    PlannedRequest,
    Secrets,
    assigned_volume,
    planned_request,
)

PATH = ("nodes", "pve1", "lxc", 100, "config")
SECRETS = Secrets(b"key", ())


def put(**data: str) -> PlannedRequest:
    return planned_request("PUT", PATH, data, SECRETS)


def test_volumes_that_pve_names_are_accepted() -> None:
    planned = put(rootfs=f"{assigned_volume('fast', 104)},mp=/x,size=2G")
    for name in (
        "vm-104-disk-0",
        "subvol-104-disk-12",
        "104/vm-104-disk-1.raw",
        "base-9000-disk-0/vm-104-disk-1",
    ):
        assert put(rootfs=f"fast:{name},mp=/x,size=2G").is_among([planned]), name


@pytest.mark.parametrize(
    "value",
    [
        "slow:vm-104-disk-0,mp=/x,size=2G",
        "fast:vm-1040-disk-0,mp=/x,size=2G",
        "fast:vm-100-disk-0,mp=/x,size=2G",
        "fast:base-104-disk-0/vm-105-disk-0,mp=/x,size=2G",
        "fast:base-104-disk-0,mp=/x,size=2G",
        "fast:vm-104-disk-0,mp=/y,size=2G",
        "fast:vm-104-disk-0,mp=/x,size=3G",
        "fast:vm-104-disk-0,mp=/x,size=2G,ro=1",
        "fast:vm-104-disk-0,slow:vm-104-disk-1,mp=/x,size=2G",
    ],
)
def test_other_volumes_and_options_are_not(value: str) -> None:
    assert not put(rootfs=value).is_among([put(rootfs="fast:*-104-disk-*,mp=/x,size=2G")])


def test_a_volume_of_the_guest_that_is_named_is_the_same() -> None:
    planned = put(unused0="fast:vm-100-disk-0")
    assert put(unused0="fast:vm-100-disk-0").is_among([planned])
    assert not put(unused0="fast:vm-100-disk-1").is_among([planned])
    copied = put(rootfs="fast:base-9000-disk-0,size=2G")
    assert put(rootfs="fast:vm-100-disk-1,size=2G").is_among([copied])


def test_the_image_in_the_notes_is_compared_and_the_rest_of_the_marker_is_not() -> None:
    planned = put(description="Web\n<!-- pve.fleet: origin=9000 image=golden:2 -->")
    assert planned.data["description"] == "Web image=golden:2"
    same = "Web\n<!-- pve.fleet: origin=9001 image=golden:2 run=abc -->"
    assert put(description=same).is_among([planned])
    other = "Web\n<!-- pve.fleet: origin=9000 image=golden:3 -->"
    assert not put(description=other).is_among([planned])
    assert put(description="<!-- pve.fleet maintenance x -->").data["description"] == ""
