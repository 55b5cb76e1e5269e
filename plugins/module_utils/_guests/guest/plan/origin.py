# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a guest comes from the source of its task, and the template that replaces it (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...._foundation.cluster.find.lookup import templates_named
from ...._foundation.cluster.state import ClusterState, StorageRow, VmRow
from ...._foundation.cluster.storages.images import ImageVersion, image_of, newest_for, with_version
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import Conflict, NotFound
from ...kinds.model import Actual, Guest, GuestSource
from ...kinds.words import VM
from .archive import archived_vmid
from .copies import choose_copy, cloneable, place_of, require_alike, require_templates


def require_origin(desired: Guest, actual: Actual, cluster: ClusterState) -> None:
    """Raise Conflict if a task with vmid and source finds a guest that it would not create.

    A guest with the desired name is updated, even if it was created from another source: its
    template may have been replaced by a newer template. If the task sets only a vmid, a guest from
    another source belongs to another task and must not be changed. A guest of another name must not
    be changed either.
    """
    if desired.vmid is None or desired.source is None:
        return
    if desired.name is not None and desired.name != actual.name:
        raise _other_origin(actual, f"it is not called '{desired.name}'")
    if desired.name is not None:
        return
    reason = _why_other(desired.source, actual.marker.origin, cluster)
    if reason is not None:
        raise _other_origin(actual, reason)


def _why_other(source: GuestSource, origin: int | None, cluster: ClusterState) -> str | None:
    """Return why the guest does not come from the source, or None."""
    if origin is None:
        # The origin of a guest that we did not clone is unknown.
        if source.volume is not None:
            return None
        return "nothing in its notes says what it was cloned from"
    if source.volume is not None and origin == archived_vmid(source.volume):
        return None  # it was restored from an archive of that guest
    if source.volume is not None:
        return f"it was cloned from {origin}, not made from {source.volume}"
    if source.vmid is not None:
        if origin == source.vmid:
            return None
        return f"it was cloned from {origin}, not from {source.vmid}"
    row = cluster.vms.get(origin)
    if row is None or row.name == source.name:
        return None  # a template of that name, or a removed template that may have had it
    return f"it was cloned from {origin}, not from '{source.name}'"


def _other_origin(actual: Actual, answer: str) -> Conflict:
    return Conflict(
        f"{actual.label} was not changed: {answer}",
        "Choose another vmid, or leave source out to change the VM that has this one",
        "other origin",
    )


# A volume based on a volume of a template: store:base-9000-disk-0/vm-101-disk-0, and in directories
# store:9000/base-9000-disk-0.qcow2/101/vm-101-disk-0.qcow2 (pve-storage: PVE/Storage/Plugin.pm,
# RBDPlugin.pm and ZFSPoolPlugin.pm, parse_volname). LVM-thin names no base.
_BASE = re.compile(r"[:/]base-(\d{1,9})-[^/]+/")


# An image, such as `debian-13@2026.11.20`, a VMID, or the VMIDs of copies of one template.
Origin: TypeAlias = "str | int | list[int]"


@dataclass(frozen=True)
class OlderImage:
    """`actual` is the origin of a guest, `wanted` is the present origin of its source."""

    wanted: Origin
    actual: Origin


def find_older_image(
    source: GuestSource | None, actual: Actual, cluster: ClusterState
) -> OlderImage | None:
    """Return the origin of a guest and the present origin of its source, None if they are equal.

    The origin of an image is its newest version on the node of the guest. None is also returned if
    an origin is unknown: for a guest that was created from a file, for a full clone of another
    tool, and if no template with the name is visible.
    """
    if source is None:
        return None
    rows = _templates(source, cluster)
    origin = origin_of(actual)
    wanted = newest_for(rows, actual.node)
    if wanted is not None:
        found = actual.marker.image or _image_of(origin, cluster) or origin
        if found is None or found == wanted:
            return None
        return OlderImage(wanted.label, found.label if isinstance(found, ImageVersion) else found)
    vmids = [source.vmid] if source.vmid is not None else [row.vmid for row in rows]
    if origin is None or not vmids or origin in vmids:
        return None
    return OlderImage(vmids[0] if len(vmids) == 1 else vmids, origin)


def find_hidden_source(
    source: GuestSource | None, actual: Actual, cluster: ClusterState
) -> str | None:
    """Return a clause about the source of an existing guest that is not visible, or None. A name of
    a container's source can be a file, which the cluster state does not contain.
    """
    if source is None:
        return None
    if source.vmid is not None:
        is_visible = source.vmid in cluster.vms
    else:
        names = {row.own_name for row in cluster.vms.values()}
        is_vm = actual.kind.type == VM.type
        is_visible = not is_vm or source.name is None or source.name in names
    if is_visible:
        return None
    templates = [row.own_name for row in cluster.vms.values() if row.template]
    label = (
        f"{source.name or source.vmid} is not visible{did_you_mean(source.name or '', templates)}"
    )
    return f"source {label}: it is misspelt, was removed, or the login may not see it"


def find_newer_copy(
    guest: Guest,
    actual: Actual,
    cluster: ClusterState,
    read: Callable[[Sequence[VmRow]], Sequence[Actual]],
) -> Actual | None:
    """Return the present template of a guest's source for its node, None if the guest comes from
    it. `read` returns the templates of rows. Raises NotFound if none can be cloned.
    """
    source = guest.source
    if source is None or find_older_image(source, actual, cluster) is None:
        return None
    rows = cloneable(guest, source, cluster)
    require_templates(source, rows)
    copies = read(rows)
    require_alike(source.name or "", copies)
    shared = cluster.shared_storages
    on_node = replace(guest, node=actual.node)
    copy, _nodes = choose_copy(copies, on_node, "", shared, lambda one: place_of(one, shared))
    return copy


def storages_with(
    contents: AbstractSet[str], node: str | None, cluster: ClusterState
) -> list[StorageRow]:
    """Return the storages of a named node for any of these contents; a shared storage once."""
    found: dict[tuple[str, str], StorageRow] = {}
    for row in cluster.storages:
        is_on_node = row.available and node in (None, "", row.node)
        if is_on_node and not contents.isdisjoint(row.content):
            found.setdefault((row.storage, row.place), row)
    return list(found.values())


def origins(value: Origin) -> str:
    """Return an origin in the form of messages."""
    return " or ".join(map(str, value)) if isinstance(value, list) else str(value)


def _image_of(origin: int | None, cluster: ClusterState) -> ImageVersion | None:
    """Return the image of the template with that VMID."""
    row = cluster.vms.get(origin or 0)
    if row is None or not image_of(row).version:
        return None
    return image_of(row)


def origin_of(actual: Actual) -> int | None:
    """Return the VMID that a VM was cloned from: from its marker, or from a linked volume. None for
    a guest from an archive.
    """
    if actual.marker.restored:
        return None
    if actual.marker.origin is not None:
        return actual.marker.origin
    bases: set[int] = set()
    for drive in actual.kind.disks_in(actual.target).values():
        found = _BASE.search(drive.get("file", ""))
        if found is not None:
            bases.add(int(found[1]))
    return bases.pop() if len(bases) == 1 else None


def _templates(source: GuestSource, cluster: ClusterState) -> Sequence[VmRow]:
    """Return the templates of a source: several if there are copies or versions."""
    if not source.name:
        return ()
    try:
        return with_version(templates_named(cluster, source.name), source.version, source.name)
    except NotFound:
        return ()
