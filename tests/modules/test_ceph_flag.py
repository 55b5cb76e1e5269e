# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module ceph_flag against the simulator, which follows PVE/API2/Cluster/Ceph.pm of pve-manager."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused, writes_of


@pytest.fixture
def lab(unused: Lab) -> Lab:
    unused.simulator.steer("/cluster", {"ceph": {"flags": ["noscrub"]}})
    return unused


TASKS: list[tuple[dict[str, Any], list[str], str]] = [
    ({"flags": ["noout", "pause"]}, ["noout", "noscrub", "pause"], "Set noout, pause of Ceph"),
    ({"flags": ["noscrub", "noup"], "state": "absent"}, [], "Clear noscrub of Ceph"),
    ({"flags": [], "exact": True}, [], "Clear noscrub of Ceph"),
    (
        {"flags": ["nodeep-scrub"], "exact": True},
        ["nodeep-scrub"],
        "Set nodeep-scrub and clear noscrub of Ceph",
    ),
]


@pytest.mark.parametrize(("options", "flags", "summary"), TASKS, ids=str)
def test_flags_are_set_and_cleared(
    lab: Lab, options: dict[str, Any], flags: list[str], summary: str
) -> None:
    made = done(lab, "ceph_flag", **options)
    assert made["ceph_flag"] == {"flags": flags}
    assert made["plan"] == made["done"] == [summary]


def test_all_flags_go_with_one_request(lab: Lab) -> None:
    lab.simulator.reset_log()
    lab.run("ceph_flag", flags=["noout", "noup"], exact=True)
    (written,) = writes_of(lab)
    assert (written["method"], written["path"]) == ("PUT", "/cluster/ceph/flags")


def test_exact_with_absent_is_refused(lab: Lab) -> None:
    result = refused(lab, "ceph_flag", flags=["noout"], state="absent", exact=True)
    assert "Leave out exact" in result["msg"]


def test_cluster_without_ceph(lab: Lab) -> None:
    lab.simulator.steer("/cluster", {"ceph": None})
    assert refused(lab, "ceph_flag", flags=["noout"])["error"]["category"] == "NotSupported"
