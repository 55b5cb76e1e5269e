# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the run of one VM carries through its stages. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._cluster.placement import Choice
from .._cluster.view import ClusterView
from .desired.settings import Settings
from .model import Desired

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class RunContext:
    """What one run carries through its stages."""

    client: Client
    desired: Desired
    settings: Settings
    check_mode: bool
    cluster_view: ClusterView
    snippet_now: str | None = None  # what the file of the desired user data holds
    choice: Choice | None = None  # where the VM goes, and why
    doubts: tuple[str, ...] = ()  # what only the server can judge

    @property
    def writes_snippet(self) -> bool:
        """Whether the file of the user data has to be written."""
        return self.desired.snippet is not None and self.desired.snippet.content != self.snippet_now
