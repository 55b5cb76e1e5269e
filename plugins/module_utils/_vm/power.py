# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power: which step brings a VM to the wished state (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .model import Actual, Desired, Step


def stop(actual: Actual, desired: Desired, *, hard: bool | None = None) -> Step:
    """Return the step that stops a running VM: a shutdown with a deadline, or the plug at once."""
    base = ("nodes", actual.node, "qemu", actual.vmid, "status")
    if hard or (hard is None and desired.shutdown_timeout == 0):
        return Step("stop", f"Stop {actual.label}", "POST", (*base, "stop"), timeout=120)
    data: dict[str, Any] = {"timeout": desired.shutdown_timeout}
    if desired.force:
        data["forceStop"] = 1
    return Step(
        "shutdown",
        f"Shut down {actual.label}",
        "POST",
        (*base, "shutdown"),
        data,
        timeout=desired.shutdown_timeout + 60,
    )


def finish(desired: Desired, actual: Actual, *, running: bool, waiting: bool) -> list[Step]:
    """Return the power steps behind all others: a start, or the reboot that applies what waits for it."""
    node = desired.node or actual.node
    base = ("nodes", node, "qemu", actual.vmid, "status")
    label = actual.label if node == actual.node else f"VM '{actual.name}' ({actual.vmid}) on node {node}"
    if desired.state == "started" and not running:
        return [Step("start", f"Start {label}", "POST", (*base, "start"))]
    reboots = desired.reboot == "always" or (desired.reboot == "if_needed" and waiting)
    if running and reboots and desired.state != "stopped":
        data: Mapping[str, Any] = {"timeout": desired.shutdown_timeout}
        timeout = desired.shutdown_timeout + 120
        return [Step("reboot", f"Reboot {label}", "POST", (*base, "reboot"), data, timeout=timeout)]
    return []


def status_after(desired: Desired, actual: Actual) -> str:
    """Return the power state that the plan leads to."""
    if desired.state == "started":
        return "running"
    return "stopped" if desired.state == "stopped" else actual.status
