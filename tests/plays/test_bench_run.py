# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One small part of the benchmark, from its command line to the page.

Builds the environment where it is missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_part_is_measured_and_written(repo: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.bench",
        "--only",
        "create",
        "inv1000",
        "--runs",
        "1",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, cwd=repo, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))
    assert found["inv1000_requests"] <= 2
    sides = {row["side"]: row for row in found["parts"]["create"]["rows"]}
    assert set(sides) == {"pve.fleet", "community.proxmox"}
    # the server's own task takes as long
    assert all(row["seconds"]["median"] > 0.7 for row in sides.values())
    assert "| create | community.proxmox |" in (tmp_path / "benchmarks.md").read_text(
        encoding="utf-8"
    )
    assert "<svg" in (tmp_path / "benchmarks.svg").read_text(encoding="utf-8")
