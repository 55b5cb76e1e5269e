# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm_info: list, filter, and read the configuration of what is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._cluster.picture import VmRow, fill_names, read_picture
from .._cluster.tenant import parse_tags, tenant_tag, tenants_of
from .._core import validate
from .._core.errors import FleetError, NotFound
from .._core.result import Result
from .describe import conditions, describe, describe_row
from .guest import NOTHING_TOLD, read_addresses, read_guest_wish, told
from .model import Plan
from .moving import read_wherever

if TYPE_CHECKING:
    from .._api.client import Client


def gather(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the VMs that match all filters, sorted by VMID. Nothing is written, in check mode or out of it."""
    wanted = matcher(params)
    prefix = params.get("tenant_prefix") or "tenant_"
    picture = fill_names(client, read_picture(client))
    wish = read_guest_wish(params)
    url = client.connection.endpoint.web
    rows = [row for row in picture.vms.values() if wanted(row)]
    vms: list[dict[str, Any]] = []
    warnings: list[str] = []
    for row in sorted(rows, key=lambda row: row.vmid):
        if not params.get("config") and not wish.asks:
            vms.append(_row(row, prefix, url))
            continue
        try:
            actual = read_wherever(client, row.vmid, row.node, pool=row.pool)
            tags = parse_tags(actual.target.get("tags"))
            if not wanted(replace(row, name=actual.name, tags=tags)):
                continue  # given away or renamed since the listing was made
            guest = told(actual, *read_addresses(client, actual), wish.rule) if wish.asks else NOTHING_TOLD
            told_of = describe(actual, prefix=prefix, url=url, guest=guest)
            waiting = Plan(pending=tuple(told_of["pending"]))
            vms.append({**told_of, "conditions": conditions(actual, waiting, applied=True)})
        except NotFound:
            continue  # removed since the listing was made
        except FleetError as error:  # a node that is down hides only its own VMs
            if params.get("vmid") is not None or params.get("name"):
                raise error.on(attempted=f"Could not read VM '{row.name}' ({row.vmid}) on node {row.node}") from error
            vms.append(_row(row, prefix, url))
            warnings.append(f"VM '{row.name}' ({row.vmid}) on node {row.node}: {error.message}")
    return Result(False, {"vms": vms}, warnings=tuple(warnings))


def _row(row: VmRow, prefix: str, url: str) -> dict[str, Any]:
    return {**describe_row(row, prefix=prefix, url=url), "conditions": None}


def matcher(params: Mapping[str, Any]) -> Callable[[VmRow], bool]:
    """Return whether a VM of the listing matches every filter that is given (pure). An unknown tag matches nothing."""
    prefix = params.get("tenant_prefix") or "tenant_"
    tenant = params.get("tenant")
    owner = tenant_tag(tenant, prefix) if tenant else None
    tags = {validate.tag(tag) for tag in params.get("tags") or ()}
    exact = {key: params[key] for key in ("name", "vmid", "node", "pool", "template") if params.get(key) is not None}

    def matches(row: VmRow) -> bool:
        if any(getattr(row, key) != value for key, value in exact.items()):
            return False
        if owner is not None and tuple(tenants_of(row.tags, prefix)) != (owner,):
            return False
        return tags <= {tag.lower() for tag in row.tags}

    return matches
