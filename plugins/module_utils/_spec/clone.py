# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of module clone, without the connection."""

from __future__ import annotations

from . import clone_options
from .vm import common_spec
from .vm_options import Spec, identity_spec


def clone_spec() -> Spec:
    """Return the options of module clone: those of a VM, and how it is cloned."""
    return {**identity_spec(), **common_spec(), **clone_options.clone_spec()}
