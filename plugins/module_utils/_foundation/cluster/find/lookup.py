# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the VM of a name or VMID, in the listing and, if that lags, on the nodes, and check that the
caller may touch it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...core.errors import Conflict, ForeignTenant, NotFound
from ...core.quantities import whole_number
from ..state import ClusterState, VmRow, query_nodes, with_names
from ..storages.images import version_of
from ..tenant import PREFIX, is_of_others, owns, tenants_of

if TYPE_CHECKING:
    from ...api.client import Client


# The names of a VM's disks: vm-100-disk-0, base-100-disk-0, 100/vm-100-disk-0.qcow2, .../vm-100-...
_BY_VMID = attrgetter("vmid")
_SHARE = "list this one in shared_sources"
_WITHOUT_OWNER = ("iso/", "import/", "vztmpl/", "snippets/", "backup/")
_OWNER_DIRECTORY = re.compile(r"(?:^|/)(\d+)/[^/]+\Z")
_OWNED_FILE = re.compile(r"(?:^|/)(?:vm|base|subvol|basevol)-(\d+)-[^/]*\Z")


def find_vm(
    cluster: ClusterState,
    *,
    vmid: int | None,
    name: str | None,
    tenant_tag: str | None = None,
    prefix: str = "tenant_",
    noun: str = "Guest",
) -> VmRow | None:
    """Return the VM with that VMID, or else with that exact name; None if it does not exist.

    With a tenant, a name matches the tenant's own VM first, then a VM without another tenant. VMs
    of other tenants neither match nor conflict. A VM wins over a template. Raises Conflict if
    several VMs have the name; `noun` is the word for the VM in it.
    """
    if vmid is not None:
        return cluster.vms.get(vmid)
    same = namesakes(cluster, name, tenant_tag, prefix)
    if len(same) > 1:
        raise Conflict(
            f"{noun} '{name}' could not be chosen: {len(same)} guests have that name: "
            f"{_places(same)}",
            "Name the one you mean by vmid",
            "ambiguous name",
        )
    if not same:
        return None
    return same[0]


def namesakes(
    cluster: ClusterState, name: str | None, tenant_tag: str | None, prefix: str
) -> list[VmRow]:
    """Return the VMs that a name can mean, for a tenant or, without a tenant, for all (pure)."""
    named = [row for row in cluster.vms.values() if row.name == name]
    if tenant_tag is not None:  # its own VMs, or else those that no other tenant has alone
        own = [row for row in named if owns(tenant_tag, row.tags, prefix)]
        named = own or [row for row in named if not is_of_others(tenant_tag, row.tags, prefix)]
    machines = [row for row in named if not row.template]
    return machines or named


def require_own_guest(
    label: str,
    tags: Iterable[str],
    tenant_tag: str | None,
    prefix: str,
    *,
    unnamed: str,
    adopt: bool = False,
) -> None:
    """Raise Conflict unless the guest's tags show that it belongs to this tenant alone.

    Without a tenant the caller acts for all, and nothing is refused. `adopt` accepts a guest
    without a tenant. The error about another tenant's guest uses `unnamed`, such as C(VM 100).
    """
    owners = tenants_of(tags, prefix)
    if owns(tenant_tag, owners, prefix):
        return
    if adopt and not owners:
        return
    if not owners:
        answer = f"it has no tenant tag, so it does not belong to {tenant_tag}"
        step = (
            "Run this again if another run is creating it; else take it over with adopt=true of"
            " module vm or container, or give it the tag by hand"
        )
    elif not is_of_others(tenant_tag, owners, prefix):
        answer = f"it has the tags of several tenants: {', '.join(owners)}"
        step = "Remove the wrong tag first"
    else:
        label = unnamed
        answer = f"it belongs to another tenant, not to {tenant_tag}"
        step = "Check name, vmid and tenant; nothing was changed"
    raise ForeignTenant(f"{label} was refused: {answer}", step, "foreign tenant")


def require_unowned(label: str, tags: Iterable[str], prefix: str) -> None:
    """Raise Conflict if a VM belongs to a tenant: the task must then name the tenant."""
    if not tenants_of(tags, prefix):
        return
    raise Conflict(
        f"{label} was refused: it has the tag of a tenant, the task has no tenant, and "
        "require_tenant is set",
        "Set tenant, or choose another name or vmid",
        "require_tenant",
    )


def require_own_source(
    row: VmRow,
    tags: Iterable[str],
    tenant_tag: str | None,
    prefix: str,
    shared: Collection[str] = (),
) -> None:
    """Raise Conflict unless a tenant may clone this guest.

    It may clone its own guests, templates without a tenant, and the guests in `shared`, a set of
    names and VMIDs as text. `tags` are the guest's current tags. Without a tenant nothing is
    refused. The error about another tenant's guest contains only its VMID.
    """
    owners = tenants_of(tags, prefix)
    if owns(tenant_tag, owners, prefix):
        return
    names = {str(row.vmid), row.name}
    if not names.isdisjoint(shared):
        return
    if row.template and not owners:
        return
    label = f"'{row.name}' ({row.vmid})"
    answer = f"it is not a template, and does not have the tag {tenant_tag}"
    if owners:
        label = str(row.vmid)
        answer = f"it belongs to another tenant, not to {tenant_tag}"
    raise ForeignTenant(
        f"Source {label} was not cloned: {answer}",
        f"Choose a template of this tenant or one without a tenant, or {_SHARE}",
        "foreign tenant",
    )


def require_own_volume(
    volume: str,
    cluster: ClusterState,
    tenant_tag: str | None,
    prefix: str,
    shared: Collection[str] = (),
) -> None:
    """Raise Conflict for a disk of a VM that the tenant may not clone, see `require_own_source`."""
    owner = volume_owner(volume)
    if tenant_tag is None or owner is None:
        return
    row = cluster.guest(owner)
    if row is not None:
        require_own_source(row, row.tags, tenant_tag, prefix, shared)
    elif str(owner) not in shared:
        raise ForeignTenant(
            f"Volume {volume} was refused: it is a disk of VM {owner}, which is not known to be "
            f"{tenant_tag}'s",
            "Choose an image, or list the VM in shared_sources",
            "foreign tenant",
        )


def volume_owner(volume: str) -> int | None:
    """Return the VMID in a volume's name, or None if it has none, such as an image or an ISO.

    On a storage of files, the directory counts, not the file (pve-storage: Plugin.pm,
    parse_volname). A path of a node, such as C(/dev/pve/vm-100-disk-0), can also have a VMID.
    """
    is_path = volume.startswith("/")
    path = volume if is_path else volume.partition(":")[2]
    if path.startswith(_WITHOUT_OWNER):
        return None
    in_directory = None if is_path else _OWNER_DIRECTORY.search(path)
    found = in_directory or _OWNED_FILE.search(path)
    if found is None:
        return None
    return int(found.group(1))


def is_file(volume: str) -> bool:
    """Return whether a volume is a file that no guest owns, such as an ISO."""
    return volume.partition(":")[2].startswith(_WITHOUT_OWNER)


def find_template(
    cluster: ClusterState, *, vmid: int | None = None, name: str | None = None
) -> VmRow | None:
    """Return the template with that VMID or exact name, or None.

    If several nodes have copies, the copy with the lowest VMID is returned. Raises Conflict if a
    node has several templates of that name and version.
    """
    if vmid is not None:
        return cluster.vms.get(vmid)
    same = templates_named(cluster, name)
    places = {(row.node, version_of(row.tags)) for row in same}
    if len(places) < len(same):
        raise Conflict(
            f"Template '{name}' could not be chosen: {len(same)} templates have that name: "
            f"{_places(same)}",
            "Name the one you mean by its VMID",
            "ambiguous template",
        )
    if not same:
        return None
    return same[0]


def templates_named(cluster: ClusterState, name: str | None) -> list[VmRow]:
    """Return the templates of that exact name, by VMID."""
    same = [row for row in cluster.vms.values() if row.template and row.name == name]
    return sorted(same, key=_BY_VMID)


def templates_for(cluster: ClusterState, tenant_tag: str | None, prefix: str) -> list[str]:
    """Return the templates that a message may show to a tenant: its own templates, and templates
    without a tenant (pure).
    """
    labels: list[str] = []
    for row in cluster.vms.values():
        if not row.template:
            continue
        owners = tenants_of(row.tags, prefix)
        if not owners or owns(tenant_tag, owners, prefix):
            labels.append(f"{row.name} ({row.vmid})")
    return sorted(labels)


def require_template(found: VmRow | None, source: str, names: list[str]) -> VmRow:
    """Return the source VM, or raise NotFound with the names of the existing templates."""
    if found is not None:
        return found
    what = "template or image of that name"
    if whole_number(source) is not None:
        what = "VM of that number"
    listed = ", ".join(names) or "none"
    raise NotFound(
        f"Template {source} could not be cloned: no {what} is visible; templates are {listed}",
        "Check the spelling, and that the token has VM.Audit and VM.Clone on it",
        "template missing",
    )


def _places(rows: Iterable[VmRow]) -> str:
    ordered = sorted(rows, key=_BY_VMID)
    return ", ".join(f"{row.vmid} on {row.node}" for row in ordered)


def locate(
    client: Client,
    cluster: ClusterState,
    *,
    vmid: int | None = None,
    name: str | None = None,
    tenant_tag: str | None = None,
    prefix: str = PREFIX,
) -> tuple[VmRow | None, ClusterState]:
    """Return the row of a VM, None if it does not exist, and the cluster state that was searched.

    If the listing lacks the name, or shows it more than once, the nodes are asked: the listing can
    show a VM under the name of a removed VM. Raises Conflict if several VMs have the name.
    """

    def search(state: ClusterState) -> VmRow | None:
        return find_vm(state, vmid=vmid, name=name, tenant_tag=tenant_tag, prefix=prefix)

    try:
        row = search(cluster)
    except Conflict:
        row = None
    if row is not None or vmid is not None:
        return row, cluster
    cluster = with_names(client, cluster)
    return search(cluster), cluster


def locate_by_name(
    client: Client, cluster: ClusterState, name: str, tenant_tag: str | None, prefix: str
) -> tuple[VmRow | None, ClusterState]:
    """Return the same for a name, after the node of the VM has confirmed it.

    For callers that do not read the configuration of the VM before they act. If the VM has been
    given to another tenant since the listing, its row is returned, and the caller refuses it.
    """
    chosen: dict[str, Any] = {"name": name, "tenant_tag": tenant_tag, "prefix": prefix}
    row, cluster = locate(client, cluster, **chosen)
    if row is None or row.node in cluster.queried_nodes:
        return row, cluster
    cluster = query_nodes(client, cluster, {row.node})
    confirmed = cluster.vms.get(row.vmid)
    if confirmed is not None and confirmed.name == name:
        return confirmed, cluster
    return locate(client, cluster, **chosen)
