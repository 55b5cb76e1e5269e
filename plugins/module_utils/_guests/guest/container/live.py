# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the addresses of a container: from its node while it runs, else from its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...._foundation.core.clock import poll
from ...._foundation.core.errors import (
    ApiError,
    FleetError,
    GuestNotReady,
    NetworkError,
    NotSupported,
    PermissionDenied,
)
from ...kinds.addresses import GuestAddress, agent_addresses, nic_macs, report_of
from ...kinds.container.config.actual import configured_addresses
from ...kinds.model import Actual
from ..context import TaskSettings

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


# The source of addresses in results.
_RUNNING = "interfaces"


_FIRST_PAUSE = 0.5  # seconds


def read_addresses(client: Client, actual: Actual) -> tuple[list[GuestAddress], str]:
    """Return the addresses of a container and why its node did not report them, an empty text if
    it did.

    If the container has stopped since its status was read, the answer is null; while it stops, the
    answer is an error (pve-container: LXC.pm, get_interfaces).
    """
    configured = configured_addresses(actual.target)
    if actual.status != "running":
        return configured, f"the container is {actual.status}"
    try:
        answer = client.get(*actual.path, "interfaces")
    except (NotSupported, NetworkError, ApiError, PermissionDenied) as error:
        return configured, _why_not(client, actual, error)
    if answer is None:
        return configured, "the container is stopped"
    return agent_addresses(answer, _RUNNING), ""


def _why_not(client: Client, actual: Actual, error: FleetError) -> str:
    """Return why the addresses could not be read: an error of PVE may mean that it has stopped."""
    reason = error.reason or error.message
    if not isinstance(error, ApiError):
        return reason
    try:
        status = client.get(*actual.path, "status", "current").get("status")
    except FleetError:
        return reason
    return reason if status == "running" else f"the container is {status}"


def report(client: Client, actual: Actual, request: TaskSettings) -> Mapping[str, Any]:
    """Return the addresses of a container as modules report them."""
    addresses, why = read_addresses(client, actual)
    return report_of(addresses, nic_macs(actual.target), request.rule, why)


def report_of_guest(
    client: Client, actual: Actual, request: TaskSettings, *, waits: bool
) -> Mapping[str, Any]:
    """Return the addresses of a container, after waiting for one if that is requested. Raises
    GuestNotReady without an address at the end of the wait.
    """
    answer = report(client, actual, request)
    if not waits or actual.status != "running" or request.wait_for != "address":
        return answer
    for _remaining in poll(client.clock, request.timeout, first=_FIRST_PAUSE):
        if _has_address(answer):
            break
        answer = report(client, actual, request)
    if _has_address(answer):
        return answer
    why = answer.get("agent_problem") or "it has no address that fits the choice"
    raise GuestNotReady(
        f"Timed out after {request.timeout} s waiting for an address of {actual.label}: {why}",
        "Look at its console, or raise wait_timeout; the container is complete and runs",
        "waiting for address",
    )


def _has_address(answer: Mapping[str, Any]) -> bool:
    return answer["address"] is not None and not answer["agent_problem"]
