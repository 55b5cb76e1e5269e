# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VM is meant, and whether the caller may touch it (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from .._core.errors import Conflict, NotFound
from .picture import Picture, VmRow
from .tenant import tenants_of

# The reason of a refusal, for those who must not tell more of such a VM than the task itself says.
FOREIGN = "foreign tenant"

# How storages name the disks of a VM: vm-100-disk-0, base-100-disk-0, 100/vm-100-disk-0.qcow2, .../vm-100-...
_NOBODYS = ("iso/", "import/", "vztmpl/", "snippets/")
_OWNED_FILE = re.compile(r"(?:^|/)(?:vm|base|subvol|basevol)-(\d+)-[^/]*$")


def find_vm(
    picture: Picture,
    *,
    vmid: int | None,
    name: str | None,
    tenant_tag: str | None = None,
    prefix: str = "tenant_",
) -> VmRow | None:
    """Return the VM with that VMID, or else the one with that exact name; None where there is none.

    With a tenant, its own VM of that name wins over those of others, and a VM over a template. Raises Conflict
    where a name means several VMs.
    """
    if vmid is not None:
        return picture.vms.get(vmid)
    named = [row for row in picture.vms.values() if row.name == name]
    same = [row for row in named if not row.template] or named
    if tenant_tag and len(same) > 1:
        own = [row for row in same if tuple(tenants_of(row.tags, prefix)) == (tenant_tag,)]
        same = own or same
    if len(same) > 1:
        raise Conflict(
            attempted=f"VM '{name}' could not be chosen",
            answer=f"{len(same)} VMs have that name: {_places(same)}",
            next_step="Name the one you mean by vmid",
            reason="ambiguous name",
        )
    return same[0] if same else None


def guard_tenant(label: str, tags: Iterable[str], tenant_tag: str | None, prefix: str, *, adopt: bool = False) -> None:
    """Raise Conflict unless the VM's tags say that it belongs to this tenant alone.

    Without a tenant the caller acts for all, and nothing is refused. `adopt` lets a VM through that has no tenant.
    """
    if tenant_tag is None:
        return
    owners = tuple(tenants_of(tags, prefix))
    if owners == (tenant_tag,) or (adopt and not owners):
        return
    if not owners:
        said = f"it bears no tenant's tag, so it is not known to be {tenant_tag}'s"
        step = "Take it over with adopt=true, or give it the tag by hand"
    elif tenant_tag in owners:
        said = f"it bears the tags of several tenants: {', '.join(owners)}"
        step = "Remove the wrong tag first"
    else:
        said = f"it belongs to another tenant, not to {tenant_tag}"
        step = "Check name, vmid and tenant; nothing was changed"
    raise Conflict(attempted=f"{label} was left alone", answer=said, next_step=step, reason=FOREIGN)


def guard_source(
    row: VmRow, tags: Iterable[str], tenant_tag: str | None, prefix: str, shared: Collection[str] = ()
) -> None:
    """Raise Conflict unless a tenant may clone this VM: its own, a template that is nobody's, or one that is shared.

    `shared` holds names and VMIDs as text; `tags` are the VM's own, read just now. Without a tenant nothing is refused.
    """
    owners = tuple(tenants_of(tags, prefix))
    if tenant_tag is None or owners == (tenant_tag,) or {str(row.vmid), row.name} & set(shared):
        return
    if row.template and not owners:
        return
    owned = (
        f"it belongs to another tenant, not to {tenant_tag}" if owners else f"it is a VM without the tag {tenant_tag}"
    )
    raise Conflict(
        attempted=f"Source '{row.name}' ({row.vmid}) was not cloned",
        answer=owned,
        next_step="Choose a template of this tenant or of nobody, or list this one in shared_sources",
        reason=FOREIGN,
    )


def guard_volume(
    volume: str,
    picture: Picture,
    tenant_tag: str | None,
    prefix: str,
    shared: Collection[str] = (),
) -> None:
    """Raise Conflict for a volume that is a disk of a VM which the tenant may not clone (see `guard_source`)."""
    owner = volume_owner(volume)
    if tenant_tag is None or owner is None:
        return
    row = picture.vms.get(owner)
    if row is not None:
        guard_source(row, row.tags, tenant_tag, prefix, shared)
    elif str(owner) not in shared:
        raise Conflict(
            attempted=f"Volume {volume} was left alone",
            answer=f"it is a disk of VM {owner}, which is not known to be {tenant_tag}'s",
            next_step="Choose an image, or list the VM in shared_sources",
            reason=FOREIGN,
        )


def volume_owner(volume: str) -> int | None:
    """Return the VMID that a volume's name says it belongs to, or None for an image, ISO and the like."""
    path = volume.partition(":")[2]
    found = None if path.startswith(_NOBODYS) else _OWNED_FILE.search(path)
    return int(found.group(1)) if found else None


def find_template(picture: Picture, *, vmid: int | None = None, name: str | None = None) -> VmRow | None:
    """Return the template with that VMID or exact name, or None. Raises Conflict where a name means several."""
    if vmid is not None:
        return picture.vms.get(vmid)
    same = [row for row in picture.vms.values() if row.template and row.name == name]
    if len(same) > 1:
        raise Conflict(
            attempted=f"Template '{name}' could not be chosen",
            answer=f"{len(same)} templates have that name: {_places(same)}",
            next_step="Name the one you mean by its VMID",
            reason="ambiguous template",
        )
    return same[0] if same else None


def require_template(found: VmRow | None, said: str, known: Mapping[int, VmRow]) -> VmRow:
    """Return the source VM, or raise NotFound with the templates there are."""
    if found is not None:
        return found
    names = sorted(f"{row.name} ({row.vmid})" for row in known.values() if row.template)
    what = "VM of that number" if said.isdigit() else "template or image of that name"
    raise NotFound(
        attempted=f"Template {said} could not be cloned",
        answer=f"no {what} is visible; templates are {', '.join(names) or 'none'}",
        next_step="Check the spelling, and that the token has VM.Audit and VM.Clone on it",
        reason="template missing",
    )


def _places(rows: Iterable[VmRow]) -> str:
    return ", ".join(f"{row.vmid} on {row.node}" for row in sorted(rows, key=lambda row: row.vmid))
