# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workers of pytest-xdist as forks of one process that has imported every test."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HOME_VARIABLE = "PVE_FLEET_TEST_HOME"
"""Names the directory of one run of the tests."""


def collected() -> Path:
    """The file with the paths that the tests are collected from."""
    return Path(os.environ[HOME_VARIABLE]) / "collected.json"


def fork_workers(kinds: list[str], paths: list[str]) -> list[str]:
    """Return the kinds of workers, as execnet names them, with forks instead of interpreters."""
    collected().write_text(json.dumps(paths), encoding="utf-8")
    forked = f"popen//python={sys.executable} -m tests.workers"
    return [forked if kind == "popen" else kind for kind in kinds]
