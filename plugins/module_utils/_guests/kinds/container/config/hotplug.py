# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Predicts which changes of a running container are live and which wait for a restart (pure).

The rules come from pve-container, LXC/Config.pm: $LXC_FASTPLUG_OPTIONS, vmconfig_hotplug_pending.
Check mode uses the prediction; after a change the pending options are read from PVE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Options that change at once, set or removed.
_FAST = frozenset(
    "cores cpulimit cpuunits description hookscript hostname lock memory onboot protection startup"
    " swap tags".split()
)
# Devices that can be added to a running container; a change of an existing device waits.
_ADDED = re.compile(r"^(?:mp|dev)\d+\Z")
_NIC = re.compile(r"^net\d+\Z")
# PVE removes these NICs from a running container, other NICs at its next start.
_REMOVED_NIC = re.compile(r"^net\d\Z")
_UNUSED = re.compile(r"^unused\d+\Z")


def waits_for_stop(key: str, old: str | None, new: str | None, live: Mapping[str, str]) -> bool:
    """Return whether a change of `key` on a running container waits for a restart.

    `old` or `new` is None for an unset option.
    """
    if key in _FAST or _UNUSED.match(key):
        return False
    if new is None:
        return not _REMOVED_NIC.match(key)
    if _NIC.match(key):
        return False
    return old is not None or not _ADDED.match(key)
