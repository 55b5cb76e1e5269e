# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .formats import Schema
from .generated import lxc
from .versions import rules_by_version, together

# Options of a container that are newer than 8.4 (debian/changelog of pve-container, 6.0.15, 6.1.6).
_IN_8_4: Mapping[str, Mapping[str, Any] | None] = {
    "entrypoint": None,
    "env": None,
    "mp[n]": {"format": {"idmap": None, "keepattrs": None}, "type": "string"},
    "net[n]": {"format": {"host-managed": None}, "type": "string"},
    "rootfs": {"format": {"idmap": None}, "type": "string"},
}

# The maximum number of devices by family (pve-container: LXC/Config.pm, $MAX_MOUNT_POINTS etc.).
_MAX_COUNTS: Mapping[str, int] = {"dev": 256, "mp": 256, "net": 32, "unused": 256}

_BY_VERSION = rules_by_version(lxc.OPTIONS, {**lxc.DIFFERENCES, (8, 4): _IN_8_4})
LXC = Schema(_BY_VERSION, together(_BY_VERSION), _MAX_COUNTS)
