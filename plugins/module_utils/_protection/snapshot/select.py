# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The VMs of a task: one, a list, or every VM that matches tenant and tags."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.lookup import locate, locate_by_name
from ..._foundation.cluster.find.owner import OwnerScope, owner_of
from ..._foundation.cluster.find.restoring import require_restored, suspects, with_bare_queried
from ..._foundation.cluster.find.unread import require_readable
from ..._foundation.cluster.find.visible import probe_vmid, require_visible
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import Conflict, FleetError, UnknownVm, ValidationFailed

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class GuestTarget:
    """One VM of a task, or the error of the search. `label` is the VM as the task names it.

    `called` is the name that the VM must have when it is read: VMIDs are reused, and names change.
    """

    label: str
    row: VmRow | None = None
    error: FleetError | None = None
    called: str | None = None

    def require_row(self) -> VmRow:
        """Return the row of the VM. Raises the error of the search."""
        if self.row is None:
            raise self.error or FleetError()
        return self.row

    def require_name(self, label: str, name: str) -> None:
        """Raise Conflict if the VM does not have the name that the task gives."""
        if self.called is None or name == self.called:
            return
        raise Conflict(
            f"{label} was refused: it is not called '{self.called}', as the task says",
            "Check name and vmid, or give only one of them",
            "another name",
        )


def named(params: Mapping[str, Any]) -> list[str | int]:
    """Return the VMs that the task names, each once: a VMID as a number, a name as text."""
    wanted: dict[str | int, None] = {}
    if params.get("vmid") is not None:
        wanted[validate.vmid(params["vmid"])] = None
    elif params.get("name") is not None:  # an empty name is an error and never means all VMs
        wanted[validate.dns_name(params["name"])] = None
    for one in params.get("vms") or ():
        if str(one).isdigit():
            wanted[validate.vmid(one, "vms")] = None
        else:
            wanted[validate.dns_name(one, "vms")] = None
    return list(wanted)


def is_selection(params: Mapping[str, Any]) -> bool:
    """Return whether tenant or tags select the VMs. Raises ValidationFailed if no option does."""
    names = [params.get(key) for key in ("name", "vmid", "vms")]
    if names != [None, None, None]:
        return False
    if not params.get("tenant") and not params.get("tags"):
        raise ValidationFailed(
            "No VM was chosen: none of name, vmid, vms, tenant and tags is given",
            "Give one of them",
            "no VM",
        )
    return True


def targets(client: Client, cluster: ClusterState, params: Mapping[str, Any]) -> list[GuestTarget]:
    """Return each VM of the task once; a named VM that is not found has an error."""
    owner = owner_of(params)
    if is_selection(params):
        # Templates have no snapshots.
        rows = [row for row in with_tags(cluster, params, owner) if not row.template]
        return [GuestTarget(f"{row.name} ({row.vmid})", row) for row in rows]
    found: dict[int, GuestTarget] = {}
    lost: list[GuestTarget] = []
    for one in named(params):
        try:
            row, cluster = _find(client, cluster, one, owner)
            _require_chosen(f"Guest '{one}'", row, params, owner)
        except FleetError as error:
            lost.append(GuestTarget(str(one), error=error))
            continue
        called = params.get("name") if isinstance(one, int) else one
        found.setdefault(row.vmid, GuestTarget(str(one), row, called=called or None))
    return [*found.values(), *lost]


def _require_chosen(label: str, row: VmRow, params: Mapping[str, Any], owner: OwnerScope) -> None:
    """Raise Conflict if a named guest lacks a tag or the pool of the task (pure).

    A guest of another tenant is refused later, with its current tags.
    """
    if not owner.owns(row):
        return
    missing = {validate.tag(tag) for tag in params.get("tags") or ()}
    missing -= {tag.lower() for tag in row.tags}
    answer = f"it does not have the tag {', '.join(sorted(missing))}"
    if not missing:
        if params.get("pool") in (None, row.pool):
            return
        answer = f"it is not in pool '{params['pool']}'"
    raise Conflict(
        f"{label} was refused: {answer}",
        "Remove the guest, or the option that excludes it; nothing was changed",
        "excluded",
    )


def with_tags(cluster: ClusterState, params: Mapping[str, Any], owner: OwnerScope) -> list[VmRow]:
    """Return the guests of the tenant with all tags of the task, sorted by VMID (pure)."""
    tags = {validate.tag(tag) for tag in params.get("tags") or ()}
    found: list[VmRow] = []
    for row in cluster.vms.values():
        own_tags = {tag.lower() for tag in row.tags}
        if tags <= own_tags and owner.owns(row):
            found.append(row)
    return sorted(found, key=lambda row: row.vmid)


def restored_rows(client: Client, cluster: ClusterState, owner: OwnerScope) -> list[VmRow]:
    """Return the VMs that may belong to a selection, but have no tags because they seem to be under
    restore; one request for each node with such a VM.
    """
    cluster = with_bare_queried(client, cluster, owner.tag, owner.prefix)
    return suspects(cluster, owner.tag, owner.prefix)


def _find(
    client: Client, cluster: ClusterState, one: str | int, owner: OwnerScope
) -> tuple[VmRow, ClusterState]:
    """Return the row of a VM, and the cluster state with names that were read from the nodes.

    Raises UnknownVm with the most similar name, Conflict for an ambiguous name, NodeUnhealthy if
    the name cannot be read, BeingRestored if a restore may bring the VM back, and PermissionDenied
    for a hidden VMID.
    """
    if isinstance(one, int):
        row, cluster = locate(client, cluster, vmid=one)
        label = f"VM {one}"
        if row is None:
            require_visible(probe_vmid(client, cluster, one), one, f"{label} was left as it is")
    else:
        label = f"VM '{one}'"
        row, cluster = locate_by_name(client, cluster, one, owner.tag, owner.prefix)
        if row is None:
            require_readable(cluster, label, owner.owns)
            restored = suspects(cluster, owner.tag, owner.prefix)
            require_restored(client, restored, f"{label} could not be found")
    names = {other.own_name for other in cluster.guests if owner.owns(other)}
    return _require_found(row, label, str(one), names - {""}), cluster


def _require_found(row: VmRow | None, label: str, name: str, names: Collection[str]) -> VmRow:
    """Return the row of a VM. Raises UnknownVm with the most similar of the names (pure)."""
    if row is not None:
        return row
    raise UnknownVm(
        f"{label} was not found: no VM of that name or number is "
        f"visible{did_you_mean(name, names)}",
        "Check the spelling, and that the user or token has VM.Audit on it",
        "unknown VM",
    )
