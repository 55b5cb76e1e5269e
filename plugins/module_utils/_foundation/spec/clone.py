# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of module clone, without the connection."""

from __future__ import annotations

from .form import Spec
from .generated import clone as own_options
from .generated.vm import identity_spec
from .vm import common_spec


def clone_spec() -> Spec:
    """Return the options of module clone: the options of a VM and of the clone itself."""
    return {**identity_spec(), **common_spec(), **own_options.clone_spec()}
