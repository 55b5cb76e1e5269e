# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The molecule scenario for authors of roles, run as they run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("molecule")


@pytest.mark.long
def test_the_scenario_of_the_simulator_passes(repo: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(repo),
        "PVE_SIMULATOR": f"{sys.executable} -m tests.simulator",
        "MOLECULE_EPHEMERAL_DIRECTORY": str(tmp_path),
        "HOME": str(tmp_path),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "molecule", "--no-debug", "test", "--scenario-name", "simulator"],
        cwd=repo / "extensions",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    for action in ("converge", "idempotence", "verify"):
        assert f"simulator > {action}: Executed: Successful" in output
    assert not (tmp_path / "simulator.pid").exists()
