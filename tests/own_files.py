# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of one process in options of modules, which expand variables of the environment.

A worker is a fork of the process that has imported the tests, so a constant cannot have its number.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

VARIABLE = "PVE_FLEET_TEST_FILES"
"""Is different in each worker."""
OWN_FILES = f"${{{VARIABLE}}}"
"""The beginning of the path of each file of this process."""


def name_files() -> None:
    """Name the files of this process."""
    os.environ[VARIABLE] = f"{tempfile.gettempdir()}/pve-fleet-{os.getpid()}"


def own_file(option: str) -> Path:
    """Return the file that an option means in this process."""
    return Path(os.path.expandvars(option))


name_files()
