# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many runs in one process; `make bench ARGS="--only soak"` measures 2,000."""

from __future__ import annotations

import pytest

from tests.bench.keys import KEYS
from tests.bench.workloads.soak import soak


@pytest.mark.long
def test_memory_and_sockets_stay_as_they_are() -> None:
    soaked = soak(500)
    assert KEYS["soak_grown_mib"].reached(soaked.grown_mib), soaked
    assert soaked.last_sockets <= soaked.warm_sockets, soaked
