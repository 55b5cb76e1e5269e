# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module ceph_osd against the simulator, which follows PVE/API2/Ceph/OSD.pm of pve-manager."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.scenarios import ROOT
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused, writes_of

OSD = {"host": "pve1", "up": True, "in": True}
NEW = {"node": "pve1", "dev": "/dev/sdb"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    osds = {"0": OSD, "1": {**OSD, "holds": True}, "2": {**OSD, "host": "pve2"}}
    unused.simulator.steer("/cluster", {"ceph": {"osds": osds}})
    return unused


def test_osd_is_created_and_deleted(lab: Lab) -> None:
    """An OSD is out and stopped before it is deleted, and cleaned disks are unused again."""
    options = {"db_dev": "/dev/sdc", "db_dev_size": 30.0, "crush_device_class": "nvme"}
    lab.simulator.reset_log()
    made = done(lab, "ceph_osd", **NEW, **options, encrypted=True, **ROOT)["ceph_osd"]
    assert (made["osdid"], made["in"], made["running"]) == (3, True, True)
    assert made["crush_device_class"] == "nvme"
    gone = {**NEW, "state": "absent", "cleanup": True, **ROOT}
    assert "OSD 3 is still in" in refused(lab, "ceph_osd", **gone)["msg"]
    stopped = done(lab, "ceph_osd", **NEW, **{"in": False}, running=False)
    assert stopped["plan"] == ["Mark OSD 3 of node pve1 out", "Stop OSD 3 of node pve1"]
    assert done(lab, "ceph_osd", **gone)["ceph_osd"] is None
    again: dict[str, Any] = {**NEW, **ROOT}
    assert lab.run("ceph_osd", check=True, **again)["changed"]


def test_request_for_a_new_osd(lab: Lab) -> None:
    lab.simulator.reset_log()
    options: dict[str, Any] = {**NEW, "wal_dev": "/dev/sdc", "encrypted": True, **ROOT}
    lab.run("ceph_osd", **options, running=False)
    created, stopped = writes_of(lab)
    assert created["params"] == {"dev": "/dev/sdb", "wal_dev": "/dev/sdc", "encrypted": "1"}
    assert stopped["path"] == "/nodes/pve1/ceph/stop"


def test_state_of_an_osd(lab: Lab) -> None:
    task: dict[str, Any] = {"node": "pve1", "osdid": 0}
    for options in ({"running": False, "in": False}, {"in": True}, {"running": True}):
        row = done(lab, "ceph_osd", **task, **options)["ceph_osd"]
        assert {name: row[name] for name in options} == options


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"dev": "/dev/sda"}, "in use", "dev /dev/sda is in use: partitions"),
    ({"dev": "/dev/sde"}, "in use", "dev /dev/sde is in use: ext4"),
    ({"dev": "/dev/sdb", "db_dev": "/dev/sde"}, "in use", "db_dev /dev/sde is in use: ext4"),
    ({"dev": "/dev/sdb", "db_dev": "/dev/sdb"}, "db_dev", "Set different disks"),
    ({"dev": "/dev/sdx"}, "unknown disk", "node pve1 has no disk /dev/sdx"),
    ({"dev": "/dev/sdb", "db_dev_size": 3}, "db_dev_size", "Set db_dev as well"),
    ({"osdid": 9}, "unknown OSD", "Set dev to create an OSD"),
    ({"osdid": 2}, "other node", "it belongs to node pve2"),
    ({"osdid": 0, "state": "absent"}, "not out and down", "OSD 0 is still in"),
    ({"osdid": 1, "running": False}, "not safe", "12 pgs currently mapped"),
    ({"osdid": 0, "crush_device_class": "hdd"}, "crush_device_class", "its device class is ssd"),
    ({}, "dev", "either dev or osdid"),
]


@pytest.mark.parametrize(("options", "reason", "word"), REFUSED, ids=str)
def test_osd_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(lab, "ceph_osd", node="pve1", **options, **ROOT)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_osd_with_data_is_deleted_by_force_only(lab: Lab) -> None:
    task: dict[str, Any] = {"node": "pve1", "osdid": 1, **ROOT}
    done(lab, "ceph_osd", **task, **{"in": False}, running=False, force=True)
    assert refused(lab, "ceph_osd", **task, state="absent")["error"]["reason"] == "not safe"
    done(lab, "ceph_osd", **task, state="absent", force=True)


def test_token_cannot_create_an_osd(lab: Lab) -> None:
    """Proxmox VE has no permission for it (OSD.pm, createosd)."""
    assert refused(lab, "ceph_osd", **NEW)["error"]["reason"] == "root only"


def test_node_without_ceph(lab: Lab) -> None:
    lab.simulator.steer("/cluster", {"ceph": None})
    result = refused(lab, "ceph_osd", **NEW)
    assert result["error"]["category"] == "NotSupported", result["msg"]
