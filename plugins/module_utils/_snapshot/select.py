# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VMs a task is about: one, a list, or all that match tenant and tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._cluster.lookup import FOREIGN, find_vm, guard_tenant
from .._cluster.picture import Picture, VmRow, fill_names
from .._cluster.tenant import PREFIX, tenant_tag, tenants_of
from .._core import validate
from .._core.errors import Conflict, FleetError, NotFound, ValidationFailed

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class Owner:
    """Whose VMs may be touched; without a tag everybody's."""

    tag: str | None
    prefix: str

    def guard(self, label: str, tags: Sequence[str]) -> None:
        """Raise Conflict for a VM of somebody else."""
        guard_tenant(label, tags, self.tag, self.prefix)

    def may_see(self, row: VmRow, error: FleetError) -> bool:
        """Return whether what the listing says of a VM that failed with this error may be told."""
        if error.reason == FOREIGN:
            return False
        return self.tag is None or tuple(tenants_of(row.tags, self.prefix)) == (self.tag,)


@dataclass(frozen=True)
class Target:
    """One VM that is meant, or why it is not clear which. `said` is how the task called it.

    `called` is the name that a VM which is found by its number must have, because numbers are used again.
    """

    said: str
    row: VmRow | None = None
    error: FleetError | None = None
    called: str | None = None

    def check(self, label: str, name: str) -> None:
        """Raise Conflict for a VM that has the number and not the name."""
        if self.called is not None and name != self.called:
            raise Conflict(
                attempted=f"{label} was left alone",
                answer=f"it is not called '{self.called}', as the task says",
                next_step="Check name and vmid, or give only one of them",
                reason="another name",
            )


def owner_of(params: Mapping[str, Any]) -> Owner:
    """Return whose VMs the task may touch."""
    prefix = params.get("tenant_prefix") or PREFIX
    tenant = params.get("tenant")
    return Owner(tenant_tag(tenant, prefix) if tenant else None, prefix)


def named(params: Mapping[str, Any]) -> list[str | int]:
    """Return the VMs that the task names, each once: a VMID as a number, a name as text."""
    wanted: list[str | int] = []
    if params.get("vmid") is not None:
        wanted.append(validate.vmid(params["vmid"]))
    elif params.get("name") is not None:  # an empty name is a mistake, and never all VMs
        wanted.append(validate.dns_name(params["name"]))
    for one in params.get("vms") or ():
        wanted.append(validate.vmid(one, "vms") if str(one).isdigit() else validate.dns_name(one, "vms"))
    return list(dict.fromkeys(wanted))


def is_selection(params: Mapping[str, Any]) -> bool:
    """Tell whether VMs are chosen by tenant and tags, and none is named. Raises ValidationFailed for no choice."""
    if any(params.get(key) is not None for key in ("name", "vmid", "vms")):
        return False
    if not params.get("tenant") and not params.get("tags"):
        raise ValidationFailed(
            attempted="No VM was chosen",
            answer="none of name, vmid, vms, tenant and tags is given",
            next_step="Give one of them",
            reason="no VM",
        )
    return True


def targets(client: Client, picture: Picture, params: Mapping[str, Any]) -> list[Target]:
    """Return the VMs that are meant, each once; one that is named and not found comes with its error."""
    owner = owner_of(params)
    if is_selection(params):
        return [Target(f"{row.name} ({row.vmid})", row) for row in _selected(picture, params, owner)]
    found: dict[int, Target] = {}
    lost: list[Target] = []
    for one in named(params):
        said = str(one)
        try:
            row, picture = _find(client, picture, one, owner)
            if row is None:
                raise _unknown(one)
            called = params.get("name") if params.get("vmid") is not None else None
            found.setdefault(row.vmid, Target(said, row, called=called or None))
        except FleetError as error:
            lost.append(Target(said, error=error))
    return [*found.values(), *lost]


def _selected(picture: Picture, params: Mapping[str, Any], owner: Owner) -> list[VmRow]:
    """Return the VMs that bear the tenant's tag alone and all of the tags; templates have no snapshots."""
    tags = {validate.tag(tag) for tag in params.get("tags") or ()}
    rows = [row for row in picture.vms.values() if not row.template and tags <= {tag.lower() for tag in row.tags}]
    if owner.tag is not None:
        rows = [row for row in rows if tuple(tenants_of(row.tags, owner.prefix)) == (owner.tag,)]
    return sorted(rows, key=lambda row: row.vmid)


def _find(client: Client, picture: Picture, one: str | int, owner: Owner) -> tuple[VmRow | None, Picture]:
    """Return the row of a VM and the picture, which then knows the names of new VMs too where that was needed."""
    if isinstance(one, int):
        return find_vm(picture, vmid=one, name=None), picture
    row = find_vm(picture, vmid=None, name=one, tenant_tag=owner.tag, prefix=owner.prefix)
    if row is None and any(not other.name for other in picture.vms.values()):
        picture = fill_names(client, picture)
        row = find_vm(picture, vmid=None, name=one, tenant_tag=owner.tag, prefix=owner.prefix)
    return row, picture


def _unknown(one: str | int) -> NotFound:
    said = f"VM {one}" if isinstance(one, int) else f"VM '{one}'"
    return NotFound(
        attempted=f"{said} was not found",
        answer="no VM of that name or number is visible",
        next_step="Check the spelling, and that the user or token has VM.Audit on it",
        reason="unknown VM",
    )
