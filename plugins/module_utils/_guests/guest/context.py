# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The context that the run of one guest passes through its stages. Data only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..._foundation.cluster.placement import NodeChoice
from ..._foundation.cluster.view import ClusterView
from ..kinds.hardware import AnyDesired
from ..kinds.model import Guest
from .settings import TaskSettings

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


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
