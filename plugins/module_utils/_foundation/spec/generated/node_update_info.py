# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_update_info.yml: do not edit.
"""The options of module node_update_info."""

from ..form import Spec


def node_update_info_spec() -> Spec:
    """Return the options of module node_update_info."""
    return {"node": {"type": "str"}}
