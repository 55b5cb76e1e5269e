# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The demo, which is the first command of a new user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_check_of_the_demo_passes(repo: Path) -> None:
    played = subprocess.run(
        [sys.executable, "-m", "tests.demo"], cwd=repo, capture_output=True, text=True, check=False
    )
    assert played.returncode == 0, played.stdout[-3000:]
    assert "Every check passed" in played.stdout
