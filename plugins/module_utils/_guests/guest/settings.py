# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a task: its timeouts, and its requests to the guest (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..kinds.addresses import AddressRule, parse_subnets


@dataclass(frozen=True)
class GuestRequest:
    """The request to the guest.

    `wait_for` is none, running, agent or address; `timeout` in seconds.
    """

    addresses: bool = False
    wait_for: str = "none"
    timeout: int = 300
    rule: AddressRule = AddressRule()

    @property
    def needs_agent(self) -> bool:
        return self.addresses or self.wait_for in ("agent", "address")


@dataclass(frozen=True)
class TaskSettings:
    """The settings of a task for its own work; `task_timeout` in seconds for each task of PVE."""

    task_timeout: int = 300
    guest: GuestRequest = GuestRequest()


def read_guest_request(options: Mapping[str, Any]) -> GuestRequest:
    """Return the request of the options to the guest.

    Raises ConfigurationError for a text that is not a subnet.
    """
    return GuestRequest(
        addresses=bool(options.get("addresses")),
        wait_for=options.get("wait_for") or "none",
        timeout=int(options.get("wait_timeout") or 300),
        rule=AddressRule(
            family=options.get("address_family") or "ipv4",
            nics=tuple(options.get("address_nics") or ()),
            subnets=parse_subnets(options.get("address_subnets") or ()),
        ),
    )
