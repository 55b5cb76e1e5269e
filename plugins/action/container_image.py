# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of the same name in the controller's process, if the result is the same.

Written by `make options`: do not edit.
"""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.modules.container_image import ENTRY as entry
from ansible_collections.pve.fleet.plugins.plugin_utils._in_process import InProcess


class ActionModule(InProcess):
    """The way in for tasks with pve.fleet.container_image."""

    ENTRY = entry
