# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of a run's context that is about its guest. Data only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .._cluster.view import ClusterView
from .model import Guest
from .settings import Settings

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class GuestContext:
    """The guest that a task means, and how the run looks for it."""

    client: Client
    guest: Guest
    settings: Settings
    check_mode: bool
    cluster_view: ClusterView

    def direct(self) -> GuestContext:
        """Return it with a client that uses no answer again."""
        return replace(self, client=self.client.direct())
