# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of modules snapshot and snapshot_info, without the connection."""

from __future__ import annotations

from .form import Spec
from .generated import snapshot as own_options
from .generated.snapshot import choice_spec


def snapshot_spec() -> Spec:
    """Return the options of module snapshot."""
    return {**choice_spec(), **own_options.snapshot_spec()}


def snapshot_info_spec() -> Spec:
    """Return the options of module snapshot_info."""
    return {**choice_spec(), **own_options.snapshot_info_spec()}
