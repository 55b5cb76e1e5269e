# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the guest says of itself: its agent, its addresses, and waiting for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._core.errors import ApiError, FleetError, NetworkError, NotSupported, TaskTimeout
from .addresses import (
    Address,
    AddressRule,
    agent_addresses,
    choose_address,
    cloud_init_addresses,
    nic_macs,
    parse_subnets,
)
from .model import Actual

if TYPE_CHECKING:
    from .._api.client import Client

_FIRST_PAUSE, _PAUSE_FACTOR, _LONGEST_PAUSE = 0.5, 1.5, 2.0  # seconds
_CALL = 10.0  # seconds that one question to the agent may take


@dataclass(frozen=True)
class GuestWish:
    """What to ask of the guest. `wait_for` is none, running, agent or address; `timeout` in seconds."""

    addresses: bool = False
    wait_for: str = "none"
    timeout: int = 300
    rule: AddressRule = AddressRule()

    @property
    def asks(self) -> bool:
        return self.addresses or self.wait_for in ("agent", "address")


def read_guest_wish(params: Mapping[str, Any]) -> GuestWish:
    """Return what the options want from the guest. Raises ConfigurationError for a subnet that is none."""
    return GuestWish(
        addresses=bool(params.get("addresses")),
        wait_for=params.get("wait_for") or "none",
        timeout=int(params.get("wait_timeout") or 300),
        rule=AddressRule(
            family=params.get("address_family") or "ipv4",
            nics=tuple(params.get("address_nics") or ()),
            subnets=parse_subnets(params.get("address_subnets") or ()),
        ),
    )


def read_addresses(client: Client, actual: Actual) -> tuple[list[Address], str]:
    """Return the guest's addresses and why its agent did not tell them, an empty text where it did.

    Without an answer of the agent they are those of cloud-init: what the guest was told to take.
    """
    fallback = cloud_init_addresses(actual.target)
    if actual.status != "running":
        return fallback, f"the VM is {actual.status}"
    if not _agent_is_on(actual.live.get("agent", "")):
        return fallback, "agent not configured"  # PVE says so only where the option is not there at all
    try:
        path = (*actual.path, "agent", "network-get-interfaces")
        return agent_addresses(client.get(*path, tries=1, timeout=_CALL)), ""
    except (NotSupported, NetworkError, ApiError) as error:
        return fallback, error.reason or error.message


def _agent_is_on(option: str) -> bool:
    """Whether the option `agent`, such as `enabled=1,type=virtio`, switches the agent on."""
    return any(part.removeprefix("enabled=").lower() in ("1", "on", "yes", "true") for part in option.split(","))


def told(actual: Actual, addresses: list[Address], why: str, rule: AddressRule) -> dict[str, Any]:
    """Return the addresses as modules report them: all of them, the one chosen, and where they come from."""
    chosen = choose_address(addresses, rule, nic_macs(actual.target))
    return {
        "addresses": [
            {"address": one.address, "prefix": one.prefix, "interface": one.interface, "family": one.family}
            for one in addresses
        ],
        "address": chosen.address if chosen else None,
        "address_source": addresses[0].source if addresses else None,
        "agent_problem": why or None,
    }


def wait_for_guest(client: Client, actual: Actual, wish: GuestWish) -> dict[str, Any]:
    """Return the guest's addresses once it is as far as `wish` says.

    Raises NotSupported at once where no agent is configured, TaskTimeout after the wish's timeout.
    """
    deadline = client.clock.monotonic() + wish.timeout
    pause = _FIRST_PAUSE
    while True:
        addresses, why = read_addresses(client, actual)
        answer = told(actual, addresses, why, wish.rule)
        waits = wish.wait_for in ("agent", "address") and bool(why)
        waits = waits or (wish.wait_for == "address" and answer["address"] is None)
        if not waits:
            return answer
        if why == "agent not configured":
            raise NotSupported(
                attempted=f"{actual.label} could not be waited for",
                answer="it has no guest agent configured, so it cannot say when it is there",
                next_step="Set agent=true and install qemu-guest-agent in the guest, or leave wait_for out",
                reason=why,
            )
        if client.clock.monotonic() + pause > deadline:
            raise _too_late(actual, wish, why)
        client.clock.sleep(pause)
        pause = min(pause * _PAUSE_FACTOR, _LONGEST_PAUSE)


def _too_late(actual: Actual, wish: GuestWish, why: str) -> FleetError:
    nothing = "no address that fits the choice" if wish.wait_for == "address" else "no answer of its agent"
    return TaskTimeout(
        attempted=f"{actual.label} was waited for",
        answer=f"{nothing} after {wish.timeout} s{f': {why}' if why else ''}",
        next_step="Look at its console; the VM itself is made and runs",
        reason=f"waiting for {wish.wait_for}",
    )


NOTHING_TOLD: Mapping[str, Any] = {
    "addresses": None,
    "address": None,
    "address_source": None,
    "agent_problem": None,
}
