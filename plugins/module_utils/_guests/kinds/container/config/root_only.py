# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of a container that only root@pam itself can make, not a token of it (pure).

The rules come from pve-container, LXC.pm: check_ct_modify_config_perm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ....._foundation.schema.lxc import LXC
from ....._foundation.schema.values import changed_sub_keys
from ...config.change import ConfigChange
from .volumes import paths_of_node

_DEVICE = re.compile(r"^dev\d+$")


def root_only(
    change: ConfigChange, target: Mapping[str, str], *, unprivileged: bool
) -> dict[str, str]:
    """Return the options of a change that only root can make, each with the reason in PVE's words.

    `unprivileged` is whether the container is, or becomes, unprivileged.
    """
    refused: dict[str, str] = {}
    for slot, path in paths_of_node(change.sets).items():
        kind = "device" if path.startswith("/dev/") else "bind"
        refused[slot] = f"mount point type {kind} is only allowed for root@pam"
    for key in sorted({*change.sets, *change.deletes}):
        if _DEVICE.match(key):
            refused[key] = "configuring device passthrough is only allowed for root@pam"
        elif key == "hookscript":
            refused[key] = "changing the hookscript is only allowed for root@pam"
        elif key == "features":
            why = _features(change, target, unprivileged=unprivileged)
            if why:
                refused[key] = why
    return refused


def _features(change: ConfigChange, target: Mapping[str, str], *, unprivileged: bool) -> str:
    """Return why the change of features is refused, or an empty text."""
    if not unprivileged:
        return "changing feature flags for privileged container is only allowed for root@pam"
    old = target.get("features", "")
    new = change.sets.get("features", "")
    if changed_sub_keys("features", old, new, LXC) <= {"nesting"}:
        return ""
    return "changing feature flags (except nesting) is only allowed for root@pam"
