# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module evacuation, read (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._foundation.cluster.rules import read_rules, require_not_kept
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import parse_options
from ..._foundation.spec.vm import vm_spec
from .model import MaintenanceOptions
from .times.windows import read_windows

_MIB = 1024 * 1024
_LONGEST = 7 * 24 * 3600


def read_options(params: Mapping[str, Any], check_mode: bool) -> MaintenanceOptions:
    """Return the options. Raises ValidationFailed."""
    next_node = params.get("next_node")
    return replace(
        read_moves(params, check_mode),
        node=validate.node(params["node"]),
        state=params["state"],
        unmovable=params["unmovable"],
        ha_maintenance=params["ha_maintenance"],
        extra_votes=validate.number(params["extra_votes"], 0, 100, "extra_votes"),
        next_node=validate.node(next_node, "next_node") if next_node else "",
        version=params.get("expected_version") or "",
        ceph_noout=params["ceph_noout"],
        rebooted=params["rebooted"],
        wait_timeout=_seconds(params, "wait_timeout"),
        shutdown_timeout=_seconds(params, "shutdown_timeout"),
    )


def read_moves(params: Mapping[str, Any], check_mode: bool) -> MaintenanceOptions:
    """Return the options about moves, without a node. Raises ValidationFailed."""
    rate = validate.number(params["transfer_rate"], 1, 100_000, "transfer_rate")
    windows = params.get("tenant_windows") or {}
    return MaintenanceOptions(
        node="",
        state="",
        check_mode=check_mode,
        move_stopped=params["move_stopped"],
        restart_containers=params["restart_containers"],
        placement=read_placement(params.get("placement"), "placement"),
        tenant_prefix=params["tenant_prefix"],
        parallel=validate.number(params["parallel"], 1, 100, "parallel"),
        rate=float(rate * _MIB),
        windows=read_windows(params.get("windows") or (), "windows"),
        tenant_windows={
            str(tenant).lower(): read_windows(_texts(given), f"tenant_windows.{tenant}")
            for tenant, given in windows.items()
        },
        task_timeout=_seconds(params, "task_timeout"),
    )


def read_placement(given: Mapping[str, Any] | None, option: str) -> Mapping[str, Any]:
    """Return the placement rules in the form of module vm. Raises ValidationFailed."""
    options: Mapping[str, Any] = parse_options(
        vm_spec()["placement"]["options"], given or {}, option
    )
    require_not_kept(read_rules(options), "an evacuation")
    return options


def _seconds(params: Mapping[str, Any], option: str) -> int:
    return validate.number(params[option], 1, _LONGEST, option)


def _texts(given: Any) -> list[str]:
    """Return one window or several as a list."""
    if isinstance(given, str):
        return [given]
    return [str(one) for one in given]
