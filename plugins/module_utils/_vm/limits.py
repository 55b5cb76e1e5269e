# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant's quota around one VM: checked before the first write, and looked at again once the VM is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._cluster.picture import Picture, ask_nodes, fill_names, read_picture, read_volumes
from .._cluster.quota import Figures, beyond, excess, figures_by_vm, growth, total
from .._cluster.tenant import parse_tags, tenants_of
from .._core.errors import FleetError
from .._core.quantities import read_size
from .actual import drives, is_disk
from .model import Actual, Desired
from .placing import cores_of, memory_of

if TYPE_CHECKING:
    from .._api.client import Client

# Seconds for which a VM waits until those with higher numbers have given way to it.
PATIENCE = 10.0


def figures_of(
    config: Mapping[str, str], images: Mapping[str, int] | None = None, *, template: bool = False
) -> Figures:
    """Return what a VM of that configuration counts; `images` are bytes of what is imported, by slot."""
    disk = 0
    for slot, drive in drives(config).items():
        if is_disk(drive):
            disk += read_size(drive.get("size")) or (images or {}).get(slot, 0)
    return Figures(disk=disk) if template else Figures(1, cores_of(config), memory_of(config), disk)


def read_usage(client: Client, desired: Desired, picture: Picture) -> dict[int, Figures]:
    """Return what each VM of the tenant counts; one request more a node or storage where the listing will not do."""
    tag, limits = desired.tenant_tag or "", desired.limits or {}
    if limits.keys() - {"vms"}:
        picture = fill_names(client, picture)
    volumes = read_volumes(client, picture) if "disk" in limits else None
    return figures_by_vm(picture, tag, desired.tenant_prefix, volumes)


def read_usage_now(client: Client, desired: Desired) -> dict[int, Figures]:
    """Return the same from a fresh look: tags from the cluster's configuration, figures from the nodes themselves."""
    picture = read_picture(client)
    tag = desired.tenant_tag or ""
    if (desired.limits or {}).keys() - {"vms"}:
        own = (row for row in picture.vms.values() if tuple(tenants_of(row.tags, desired.tenant_prefix)) == (tag,))
        picture = ask_nodes(client, picture, {row.node for row in own})
    return read_usage(client, desired, picture)


def check_quota(
    client: Client, desired: Desired, label: str, picture: Picture, *, vmid: int | None, before: Figures, after: Figures
) -> frozenset[int]:
    """Raise QuotaExceeded where the VM would grow beyond the tenant's quota; return the VMIDs the tenant has.

    `before` is what the VM counts already. What does not grow is no error, whatever the quota says.
    """
    if desired.limits is None:
        return frozenset()
    more = growth(before, after)
    if not any(getattr(more, kind) for kind in desired.limits):
        return frozenset()
    usage = read_usage(client, desired, picture)
    mine = {vmid: before} if vmid is not None else {}
    over = excess(desired.limits, total({**usage, **mine}.values()), more)
    if over:
        raise beyond(
            desired.tenant or "",
            over,
            f"{label} was left alone",
            "Remove or shrink VMs of this tenant, ask for less, or raise the quota",
        )
    return frozenset(usage)


@dataclass(frozen=True)
class Growth:
    """What a VM counts before an update, and by how much the update lets it grow."""

    before: Figures
    more: Figures


def grow_within(
    client: Client, desired: Desired, actual: Actual, config: Mapping[str, str], picture: Picture
) -> Growth:
    """Return by how much a VM grows that becomes `config`; raise QuotaExceeded where its tenant's quota has no room.

    A VM that is not the tenant's yet counts as new.
    """
    owners = tenants_of(parse_tags(actual.target.get("tags")), desired.tenant_prefix)
    before = figures_of(actual.target, template=actual.template) if desired.tenant_tag in owners else Figures()
    after = figures_of(config, template=actual.template)
    check_quota(client, desired, actual.label, picture, vmid=actual.vmid, before=before, after=after)
    return Growth(before, growth(before, after))


def check_grown(client: Client, desired: Desired, actual: Actual, grown: Growth) -> None:
    """Raise QuotaExceeded where others have taken the room meanwhile into which a VM has grown."""
    if desired.limits is None or not any(getattr(grown.more, kind) for kind in desired.limits):
        return
    usage = read_usage_now(client, desired)
    rest = total(figures for vmid, figures in usage.items() if vmid != actual.vmid) + grown.before
    over = excess(desired.limits, rest, grown.more)
    if over:
        raise beyond(
            desired.tenant or "",
            over,
            f"{actual.label} has grown",
            "Another run took the rest of the quota meanwhile: shrink one of the two VMs, or raise the quota",
        )


def settle(
    client: Client,
    desired: Desired,
    label: str,
    vmid: int,
    own: Figures,
    old: frozenset[int],
    remove: Callable[[], None],
) -> None:
    """Return when the tenant is within its quota although others made VMs at the same time.

    Where it is not, the VM with the highest number gives way: if that is this one, `remove` is called and QuotaExceeded
    raised. Else the others are waited for, and this one gives way too when they do not. `old` are the VMs that were
    there when this run began; they never give way.
    """
    limits = desired.limits
    if limits is None:
        return
    deadline = client.clock.monotonic() + PATIENCE
    pause = 0.25
    while True:
        usage = {**read_usage_now(client, desired), vmid: own}
        others = {other: figures for other, figures in usage.items() if other != vmid}
        if not excess(limits, total(others.values()), own):
            return
        ahead = total(figures for other, figures in others.items() if other in old or other < vmid)
        over = excess(limits, ahead, own)
        if over or client.clock.monotonic() > deadline:
            break
        client.clock.sleep(pause)
        pause = min(2.0, pause * 1.5)
    over = over or excess(limits, total(others.values()), own)
    error: FleetError = beyond(
        desired.tenant or "",
        over,
        f"{label} was removed again",
        "Another run took the rest of the quota meanwhile: run again when there is room, or raise the quota",
        removed=vmid,
    )
    try:
        remove()
    except FleetError as failure:
        raise error.on(
            attempted=f"{label} could not be removed again ({failure.message})",
            next_step="Remove it by hand: another run took the rest of the quota meanwhile",
            details={**error.details, "removed": None},
        ) from failure
    raise error
