# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs this module in the controller's process. Written by `make options`: do not edit."""

from ansible_collections.pve.fleet.plugins.modules.relocate import ENTRY as entry
from ansible_collections.pve.fleet.plugins.plugin_utils._in_process import InProcess


class ActionModule(InProcess):
    ENTRY = entry
