# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module power, read (pure)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...._foundation.cluster.state import VmRow
from ...._foundation.cluster.tenant import tenant_tag
from ...._foundation.core import validate
from ..guests import tenant_in
from ..model import MaintenanceOptions

STARTED, STOPPED = "started", "stopped"
RECORDED, ONBOOT, ALL = "recorded", "onboot", "all"
FAIL, LEAVE, FORCE = "fail", "leave", "force"
_LONGEST = 7 * 24 * 3600


@dataclass(frozen=True)
class PowerOptions:
    """The options of a task. `limits` contains the timeouts and the number of parallel tasks.
    `skips_unknown` is whether a tenant that does not exist is skipped with a warning.
    `unresponsive` decides about guests that do not reach the state in time. `selection` is one of
    RECORDED, ONBOOT and ALL.
    """

    state: str
    tenants: frozenset[str]
    skips_unknown: bool
    limits: MaintenanceOptions
    exclude: frozenset[str]
    selection: str
    unresponsive: str
    record: str
    wait_for: str
    wait_timeout: int

    @property
    def starts(self) -> bool:
        return self.state == STARTED

    @property
    def tags(self) -> list[str]:
        """The tags of the tenants."""
        return [tenant_tag(tenant, self.limits.tenant_prefix) for tenant in sorted(self.tenants)]

    def selects(self, row: VmRow) -> bool:
        """Return whether a guest belongs to one of the tenants."""
        return not row.template and tenant_in(row, self.limits.tenant_prefix) in self.tenants

    def excludes(self, row: VmRow) -> bool:
        """Return whether the task names this guest as excluded."""
        return not self.exclude.isdisjoint((str(row.vmid), row.own_name.lower()))


def read_options(params: Mapping[str, Any]) -> PowerOptions:
    """Return the options. Raises ValidationFailed."""
    tenants = frozenset(str(one).lower() for one in params["tenants"])
    if not tenants or "" in tenants:
        step = "Name each tenant whose guests are meant: those of others are never changed"
        raise validate.refused("tenants", params["tenants"], "names no tenant", step)
    record = _record(params)
    limits = MaintenanceOptions(
        node="",
        state="",
        tenant_prefix=params["tenant_prefix"],
        parallel=validate.number(params["parallel"], 1, 100, "parallel"),
        task_timeout=_seconds(params, "task_timeout"),
        shutdown_timeout=_seconds(params, "shutdown_timeout"),
    )
    return PowerOptions(
        state=params["state"],
        tenants=tenants,
        skips_unknown=params["unknown_tenants"] == "warn",
        limits=limits,
        exclude=frozenset(str(one).lower() for one in params.get("exclude") or ()),
        selection=_selection(params, record),
        unresponsive=params["unresponsive"],
        record=record,
        wait_for=params["wait_for"],
        wait_timeout=_seconds(params, "wait_timeout"),
    )


def _record(params: Mapping[str, Any]) -> str:
    """Return the path of the record, or an empty text. Raises ValidationFailed."""
    record = params.get("record") or ""
    if record and not os.path.isabs(record):
        step = "Write an absolute path: the start may run in another directory than the stop"
        raise validate.refused("record", record, "is a relative path", step)
    return str(record)


def _selection(params: Mapping[str, Any], record: str) -> str:
    """Return the guests that a start selects. Raises ValidationFailed."""
    selection = params.get("selection") or (RECORDED if record else ONBOOT)
    if selection == RECORDED and not record and params["state"] == STARTED:
        step = "Set record to the file of the stop, or selection to onboot or all"
        raise validate.refused("selection", RECORDED, "needs a record", step)
    return str(selection)


def _seconds(params: Mapping[str, Any], option: str) -> int:
    return validate.number(params[option], 1, _LONGEST, option)
