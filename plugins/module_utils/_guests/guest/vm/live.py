# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the reports of a guest, from its agent or about its addresses, and waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...._foundation.core.clock import poll
from ...._foundation.core.errors import (
    ApiError,
    GuestNotReady,
    NetworkError,
    NotSupported,
    PermissionDenied,
)
from ...kinds.addresses import (
    AddressRule,
    GuestAddress,
    agent_addresses,
    agent_is_on,
    cloud_init_addresses,
    nic_macs,
    report_of,
)
from ...kinds.model import Actual
from ..context import TaskSettings

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


# The awaited event, by the option wait_for.
_AWAITED = {"agent": "the guest agent", "address": "an address"}


_NO_AGENT = "agent not configured"


_FIRST_PAUSE = 0.5  # seconds


_CALL = 10.0  # seconds that one question to the agent may take


def read_addresses(
    client: Client, actual: Actual, *, must_be_allowed: bool = False
) -> tuple[list[GuestAddress], str]:
    """Return the guest's addresses and why its agent did not report them, an empty text if it did.

    Without an answer of the agent, the addresses are those configured for cloud-init. Raises
    PermissionDenied for a caller who needs the right to query the agent and lacks it.
    """
    fallback = cloud_init_addresses(actual.target)
    if actual.status != "running":
        return fallback, f"the VM is {actual.status}"
    if not agent_is_on(actual.live.get("agent", "")):
        # PVE reports this only if the option is missing entirely
        return fallback, _NO_AGENT
    try:
        answer = client.get(*actual.path, "agent", "network-get-interfaces", tries=1, timeout=_CALL)
        return agent_addresses(answer), ""
    except (NotSupported, NetworkError, ApiError, PermissionDenied) as error:
        if must_be_allowed and isinstance(error, PermissionDenied):
            raise
        return fallback, error.reason or error.message


def guest_report(
    actual: Actual, addresses: list[GuestAddress], why: str, rule: AddressRule
) -> dict[str, Any]:
    """Return the addresses as modules report them: all, the chosen one, and their source."""
    return report_of(addresses, nic_macs(actual.target), rule, why)


def report_of_guest(
    client: Client, actual: Actual, request: TaskSettings, *, waits: bool
) -> Mapping[str, Any]:
    """Return the report of the guest, after waiting for it if that is requested and it runs."""
    if not waits or actual.status != "running":
        return guest_report(actual, *read_addresses(client, actual), request.rule)
    return wait_for_guest(client, actual, request)


def wait_for_guest(client: Client, actual: Actual, request: TaskSettings) -> dict[str, Any]:
    """Return the guest's addresses once it has reached the state of `request`.

    Raises NotSupported at once if no agent is configured, TaskTimeout after the request's timeout.
    """
    answer: dict[str, Any] = {}
    why = ""
    for _remaining in poll(client.clock, request.timeout, first=_FIRST_PAUSE):
        must_be_allowed = request.wait_for != "none"
        addresses, why = read_addresses(client, actual, must_be_allowed=must_be_allowed)
        answer = guest_report(actual, addresses, why, request.rule)
        if _is_awaited(request, answer, why) or why == _NO_AGENT:
            break
    _require_awaited(actual, request, answer, why)
    return answer


def _require_awaited(
    actual: Actual, request: TaskSettings, answer: Mapping[str, Any], why: str
) -> None:
    """Raise NotSupported without an agent, GuestNotReady if the guest is not ready (pure)."""
    if _is_awaited(request, answer, why):
        return
    if why != _NO_AGENT:
        awaited = _AWAITED[request.wait_for]
        cause = why or "the guest has no address that fits the choice"
        raise GuestNotReady(
            f"Timed out after {request.timeout} s waiting for {awaited} of {actual.label}: {cause}",
            "Look at its console, or raise wait_timeout; the VM itself is complete and runs",
            f"waiting for {request.wait_for}",
        )
    raise NotSupported(
        f"{actual.label} could not be waited for: it has no guest agent configured, so it cannot "
        "say when it is there",
        ("Set agent=true and install qemu-guest-agent in the guest, or leave wait_for out"),
        why,
    )


def _is_awaited(request: TaskSettings, answer: Mapping[str, Any], why: str) -> bool:
    """Return whether the guest is in the requested state; `why` its agent does not answer."""
    if request.wait_for == "agent":
        return not why
    if request.wait_for == "address":
        has_address = answer["address"] is not None
        return has_address and not why
    return True
