# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ceph pools of a listing."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.ceph.pool import (
    pick_coded,
)

DATA: dict[str, Any] = {"pool_name": "ec-data", "size": 3, "pg_num": 32}
METADATA: dict[str, Any] = {"pool_name": "ec-metadata", "size": 2, "min_size": 1}


@pytest.mark.parametrize("pools", [[DATA], [METADATA], []], ids=str)
def test_half_of_an_erasure_coded_pool_is_none(pools: list[dict[str, Any]]) -> None:
    assert pick_coded(pools, {"name": "ec"}) is None


def test_an_erasure_coded_pool_has_the_values_of_both_halves() -> None:
    found = pick_coded([DATA, METADATA], {"name": "ec"})
    assert found is not None
    assert (found["pool_name"], found["pg_num"]) == ("ec", 32)
    assert (found["size"], found["min_size"]) == (2, 1)
