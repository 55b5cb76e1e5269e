# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of the modules of the firewall, without the connection."""

from __future__ import annotations

from .form import Spec
from .generated import firewall as own_options
from .generated.firewall import info_spec, scope_spec


def firewall_spec() -> Spec:
    """Return the options of module firewall."""
    return {**scope_spec(), **own_options.firewall_spec()}


def firewall_info_spec() -> Spec:
    """Return the options of module firewall_info."""
    return {**scope_spec(), **info_spec()}
