# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of modules backup and backup_info, without the connection."""

from __future__ import annotations

from .form import Spec
from .generated import backup as own_options
from .generated.backup import choice_spec


def backup_spec() -> Spec:
    """Return the options of module backup."""
    return {**choice_spec(), **own_options.backup_spec()}


def backup_info_spec() -> Spec:
    """Return the options of module backup_info."""
    return {**choice_spec(), **own_options.backup_info_spec()}
