# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a VM uses the guest agent (pure)."""

from __future__ import annotations

from .._core.errors import ValidationFailed
from .._core.propstring import canonical, parse

# What the option needs here of its format (`_schema/qemu.py` has all of it).
_ENABLED = {"enabled": {"type": "boolean", "default_key": 1}}


def agent_is_on(option: str) -> bool:
    """Return whether the option C(agent), such as C(type=virtio,enabled=1), switches the
    agent on.
    """
    try:
        enabled = parse(option, _ENABLED).get("enabled", "0")
    except ValidationFailed:
        return False
    return canonical(enabled, _ENABLED["enabled"]) == "1"
