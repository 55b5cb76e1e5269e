# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chooses the entry to every module: the controller's process, or a process of its own if this
ansible-core lacks an internal part that the first one needs.
"""

from __future__ import annotations

from ._as_a_module import AsAModule, warn

InProcess = AsAModule
try:
    from ._here import Here, rehearse

    rehearse()
    InProcess = Here  # type: ignore[misc]
except Exception as problem:
    warn(problem)
