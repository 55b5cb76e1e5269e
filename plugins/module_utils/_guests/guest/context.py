# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a task, and the context that the run of one guest passes through its stages. Data
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..._foundation.cluster.placement import NodeChoice
from ..._foundation.cluster.view import ClusterView
from ..kinds.addresses import AddressRule, parse_subnets
from ..kinds.hardware import AnyDesired
from ..kinds.model import Guest
from .create.total_quota import SiteQuota

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class TaskSettings:
    """The settings of a task for its own work, and its request to the guest.

    `task_timeout` is in seconds for each task of PVE. `wait_for` is none, running, agent or
    address; `timeout` is in seconds.
    """

    task_timeout: int = 300
    addresses: bool = False
    wait_for: str = "none"
    timeout: int = 300
    rule: AddressRule = AddressRule()

    @property
    def needs_agent(self) -> bool:
        return self.addresses or self.wait_for in ("agent", "address")


def read_settings(options: Mapping[str, Any]) -> TaskSettings:
    """Return the settings in the checked options of a task.

    Raises ConfigurationError for a text that is not a subnet.
    """
    return TaskSettings(
        task_timeout=options.get("task_timeout", 300),
        addresses=bool(options.get("addresses")),
        wait_for=options.get("wait_for") or "none",
        timeout=int(options.get("wait_timeout") or 300),
        rule=AddressRule(
            family=options.get("address_family") or "ipv4",
            nics=tuple(options.get("address_nics") or ()),
            subnets=parse_subnets(options.get("address_subnets") or ()),
        ),
    )


AnyContext = TypeVar("AnyContext", bound="RunContext[Any]")


@dataclass(frozen=True)
class RunContext(Generic[AnyDesired]):
    """The context that one run passes through its stages."""

    client: Client
    desired: AnyDesired
    settings: TaskSettings
    check_mode: bool
    cluster_view: ClusterView
    choice: NodeChoice | None = None  # the node of the guest, and the reasons
    unverified: tuple[str, ...] = ()  # warnings about names that only the server can judge
    total: SiteQuota | None = None  # the quota of its tenant over several sites

    def with_desired(self: AnyContext, desired: Any) -> AnyContext:
        """Return the context with another desired guest."""
        return replace(self, desired=desired)

    def direct(self: AnyContext) -> AnyContext:
        """Return the context with a client that does not reuse answers."""
        return replace(self, client=self.client.direct())

    @property
    def guest(self) -> Guest:
        """The desired guest without its hardware."""
        return self.desired.guest
