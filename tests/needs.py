# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that a test needs and that the environments of the matrix lack."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def tool(name: str) -> pytest.MarkDecorator:
    """Skip a test if this program of the development environment is not installed.

    The environments of other ansible-core versions can run the collection, but have no tool that
    writes or releases it.
    """
    there = (Path(sys.executable).parent / name).exists()
    return pytest.mark.skipif(not there, reason=f"{name} is not in the environment of this Python")
