# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of modules drill and drill_info, without the connection."""

from __future__ import annotations

from .form import Spec
from .generated import drill as own_options
from .generated.backup import choice_spec
from .generated.drill import copies_spec, plan_spec


def drill_spec() -> Spec:
    """Return the options of module drill."""
    return {**own_options.drill_spec(), **copies_spec()}


def drill_info_spec() -> Spec:
    """Return the options of module drill_info."""
    return {**choice_spec(), **plan_spec(), **copies_spec()}
