# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step that separates a guest from other tenants' guests, before it starts (pure)."""

from __future__ import annotations

from dataclasses import replace

from ..._resource.plan import Step
from ..model import Actual, Guest

FIREWALL = "FIREWALL"
"""The method of a step that stands for the writes of a guest's firewall."""


def isolate(desired: Guest, actual: Actual) -> list[Step]:
    """Return the step that writes the firewall of a guest; none if nothing is left to do.

    The step stands for several requests, which are planned from the firewall of the guest when it
    is sent: a clone has the firewall of its source (qemu-server: PVE/API2/Qemu.pm, clone_vm).
    """
    isolation = desired.isolation
    if isolation is None:
        return []
    moved = replace(actual, node=desired.node or actual.node)
    nics = ", ".join(sorted(isolation.members))
    summary = f"Isolate {nics} of {moved.label} with security group '{isolation.group}'"
    data = {"label": moved.label, "group": isolation.group, "members": isolation.members}
    path = (*moved.path, "firewall")
    return [Step("isolate", summary, FIREWALL, path, data, is_task=False)]
