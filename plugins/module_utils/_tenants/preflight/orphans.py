# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Unfinished VMs of a tenant, as module tidy finds them, as rows of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.state import ClusterState
from ..._foundation.cluster.tenant import tenant_tag
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError
from ..estate.tidy.run import find_orphaned_guests
from .checks import FAIL, PASS, UNKNOWN, Row, row, tenant_rows

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def find_orphans(
    params: Mapping[str, Any], client: Client, cluster: ClusterState
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Return a row of the table for each unfinished part, and these parts in the form of module
    tidy.

    No row is required: an unfinished VM does not affect other VMs.
    """
    tenant = params["tenant"]
    prefix = params["tenant_prefix"]
    tag = validate.tag(tenant_tag(tenant, prefix), "tenant")
    subject = f"tenant {tenant}"
    try:
        found = find_orphaned_guests(client, cluster, tag, prefix)
    except FleetError as error:
        step = error.next_step or "Try again"
        reason = error.answer or error.message
        return [row("unfinished", subject, UNKNOWN, reason, step, required=False)], []
    if not found:
        nothing = row("unfinished", subject, PASS, "nothing", required=False)
        return [*tenant_rows(tenant, prefix, cluster), nothing], []
    rows: list[Row] = []
    listed: list[dict[str, Any]] = []
    for vm in found:
        listed.extend(vm.rows)
        label = f"{vm.actual.name} ({vm.actual.vmid})"
        for one in vm.orphans:
            detail = f"{one.kind}: {one.detail}"
            rows.append(row("unfinished", label, FAIL, detail, one.next_step, required=False))
    return rows, listed
