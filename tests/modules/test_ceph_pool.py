# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules ceph_pool and ceph_pool_info against the simulator, which follows PVE/API2/Ceph/Pool.pm
and PVE/Ceph/Tools.pm of pve-manager.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused

FAST: dict[str, Any] = {"name": "fast", "node": "pve1"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    unused.simulator.steer("/cluster", {"ceph": {"rules": ["on-nvme"]}})
    return unused


def names_of(lab: Lab) -> list[str]:
    return [row["name"] for row in lab.run("ceph_pool_info")["ceph_pools"]]


def test_pool_is_created_changed_listed_and_deleted(lab: Lab) -> None:
    made = done(lab, "ceph_pool", **FAST, target_size="2T", crush_rule="on-nvme")["ceph_pool"]
    assert (made["size"], made["min_size"], made["pg_num"]) == (3, 2, 128)
    assert (made["target_size"], made["application"]) == (2 * 2**40, "rbd")
    changed = done(lab, "ceph_pool", **FAST, pg_autoscale_mode="on", target_size="0")
    assert changed["plan"] == ["Set pg_autoscale_mode, target_size of Ceph pool 'fast'"]
    (listed,) = lab.run("ceph_pool_info")["ceph_pools"]
    pasted = {key: value for key, value in listed.items() if key not in ("type", "used")}
    assert not lab.run("ceph_pool", **pasted)["changed"]
    exported = lab.run("cluster_export_info", sections=["ceph_pools"])["cluster"]
    assert not lab.run("cluster", ceph_pools=exported["cluster_ceph_pools"])["changed"]
    assert done(lab, "ceph_pool", **FAST, state="absent")["ceph_pool"] is None
    assert names_of(lab) == []


def test_minimum_is_set_again_after_the_size(lab: Lab) -> None:
    """Ceph resets it with the size, and PVE skips a minimum that was right before (set_pool)."""
    done(lab, "ceph_pool", **FAST)
    done_twice = lab.run("ceph_pool", **FAST, size=5, min_size=2)
    assert done_twice["done"] == [
        "Set size of Ceph pool 'fast'",
        "Set min_size of Ceph pool 'fast'",
    ]
    assert (done_twice["ceph_pool"]["size"], done_twice["ceph_pool"]["min_size"]) == (5, 2)


def test_erasure_coded_pool_is_created_once(lab: Lab) -> None:
    task = {**FAST, "erasure_coding": {"k": 2, "m": 1}, "size": 3}
    done(lab, "ceph_pool", **task)
    assert names_of(lab) == ["fast-data", "fast-metadata"]
    assert "fast" in [row["name"] for row in lab.run("storage_info")["storages"]]
    result = refused(lab, "ceph_pool", **{**task, "size": 2})
    assert "cannot change size of an existing erasure-coded Ceph pool" in result["msg"]
    result = refused(lab, "ceph_pool", **task, state="absent")
    assert "deleted by their own names" in result["msg"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"crush_rule": "nope"}, "unknown CRUSH rule", "Ceph has on-nvme, replicated_rule"),
    ({"size": 2, "min_size": 3}, "min_size", "min_size 3 is above size 2"),
    ({"name": "a b"}, "name", "Leave out blanks"),
    ({"name": "known", "application": "rgw"}, "application", "keeps its application rbd"),
]


@pytest.mark.parametrize(("options", "reason", "word"), REFUSED, ids=str)
def test_pool_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    assert lab.run("ceph_pool", name="known", node="pve1")["changed"]
    result = refused(lab, "ceph_pool", **{**FAST, **options})
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_pool_in_use_is_not_deleted(lab: Lab) -> None:
    done(lab, "ceph_pool", **FAST, add_storages=True)
    result = refused(lab, "ceph_pool", **FAST, state="absent")
    assert result["error"]["storages"] == ["fast"]
    vm = lab.vm(name="on-ceph", memory="128M", disks=[{"size": "1G", "storage": "fast"}])
    result = refused(lab, "ceph_pool", **FAST, state="absent", remove_storages=True)
    assert f"guest {vm['vm']['vmid']} (on-ceph)" in result["msg"]
    lab.vm(name="on-ceph", state="absent")
    done(lab, "ceph_pool", **FAST, state="absent", remove_storages=True)
    assert "fast" not in [row["name"] for row in lab.run("storage_info")["storages"]]


def test_cluster_without_ceph(lab: Lab) -> None:
    lab.simulator.steer("/cluster", {"ceph": None})
    for options in ({"name": "fast"}, FAST):
        result = refused(lab, "ceph_pool", **options)
        assert result["error"]["category"] == "NotSupported", result["msg"]
        assert "pveceph init" in result["msg"]
    assert lab.run("cluster_export_info", sections=["ceph_pools"])["complete"]
