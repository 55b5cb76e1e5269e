# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The differences of the kinds of guests in an export (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.cluster.state import ClusterState
from ...._foundation.resource.plan import Step
from ...kinds.model import Actual
from .settings import Config, SettingGroup


@dataclass(frozen=True)
class ClusterContext:
    """The data of the cluster that the plan of a guest depends on: `bases` are the storages on
    which the disks of a template become base volumes.
    """

    cluster: ClusterState
    bases: Collection[str] = ()


class Exporter(Protocol):
    """How guests of one kind become items of module vms.

    `spec` has all options of such an item with their defaults.
    """

    spec: Mapping[str, Any]

    def settings(self, config: Config) -> Iterator[SettingGroup]:
        """Yield the settings of a configuration that only this kind of guests has."""

    def secrets(self, config: Config) -> tuple[str, ...]:
        """Return the options whose values PVE does not return."""

    def figures(self, actual: Actual) -> QuotaFigures:
        """Return the figures of a guest for a quota, from its configuration."""

    def steps(
        self, given: Mapping[str, Any], actual: Actual, around: ClusterContext
    ) -> tuple[Step, ...] | str:
        """Return the steps of a run with these options, or why it is refused. Raises FleetError."""
