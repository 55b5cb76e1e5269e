# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules and plugins import of this room."""

from __future__ import annotations

from . import bytecode  # before the other files: it makes their imports faster
from .module import COUNTING, Entry, Run, Sites
from .sites_file import read_sites_file

__all__ = ["COUNTING", "Entry", "Run", "Sites", "bytecode", "read_sites_file"]
