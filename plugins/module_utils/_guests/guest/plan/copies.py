# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guest that is cloned: a copy of a template, a version of an image, a snapshot (pure).

The copy on the node of the new guest is cloned; if it is an image, its newest version there. If no
copy without versions is there, the nearest copy is cloned whose clone can move there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ...._foundation.cluster.find.lookup import find_vm, require_own_source, templates_named
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.cluster.storages.images import (
    ImageVersion,
    VersionKey,
    version_key,
    version_of,
    with_version,
)
from ...._foundation.cluster.tenant import parse_tags
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import Conflict, NotFound, UnknownSnapshot
from ...kinds.model import Actual, Guest, GuestSource

Nodes: TypeAlias = "frozenset[str] | None"  # None for every node

# The line that the role image writes into the notes of a template.
_IMAGE_IN_NOTES = re.compile(r"^Template \S+, made from (\S+)", re.MULTILINE)


def image_of(template: Actual) -> ImageVersion:
    """Return the image of a template; its version is empty if no tag names it."""
    return ImageVersion(template.name, version_of(parse_tags(template.target.get("tags"))))


def image_of_clone(source: Actual) -> ImageVersion | None:
    """Return the image that a clone comes from, None if unknown."""
    if not source.template:
        return source.marker.image
    image = image_of(source)
    return image if image.version else None


def cloneable(guest: Guest, source: GuestSource, cluster: ClusterState) -> list[VmRow]:
    """Return the templates of the source's name and version that can be cloned for the guest.

    Their nodes are online, and the tenant may clone them. Raises NotFound if no template has the
    version.
    """
    rows: list[VmRow] = []
    for row in templates_named(cluster, source.name):
        node = cluster.nodes.get(row.node)
        if node is not None and node.online and may_clone(guest, row):
            rows.append(row)
    return with_version(rows, source.version, source.name or "")


def require_templates(source: GuestSource, rows: Sequence[VmRow]) -> None:
    """Raise NotFound if no template of an image can be cloned: their nodes may be offline."""
    if rows:
        return
    raise NotFound(
        f"Image '{source.name}' could not be used: no template of that name can be cloned",
        "Check the name, or publish it with the role pve.fleet.image",
        "image missing",
    )


def guest_of_source(
    guest: Guest, source: GuestSource | None, cluster: ClusterState
) -> VmRow | None:
    """Return the guest, not a template, that has the name of the source. Raises Conflict."""
    name = source.name if source else None
    tag = None if name in guest.shared_sources else guest.tenant_tag
    prefix = guest.tenant_prefix
    return find_vm(cluster, vmid=None, name=name, tenant_tag=tag, prefix=prefix, noun="Source")


def require_own(guest: Guest, row: VmRow, tags: Iterable[str]) -> None:
    """Raise Conflict for a guest that the tenant of the new guest may not clone."""
    require_own_source(row, tags, guest.tenant_tag, guest.tenant_prefix, guest.shared_sources)


def may_clone(guest: Guest, row: VmRow) -> bool:
    """Return whether the tenant of the new guest may clone a guest of the listing."""
    try:
        require_own(guest, row, row.tags)
    except Conflict:
        return False
    return True


def nearest(copies: Sequence[Actual], node: str | None, shared: Collection[str]) -> Actual:
    """Return the newest copy that the node can use, or else the copy whose clone is moved there.

    A node can use its own copies, and copies on shared storages. Among equally new copies, the
    node's own copy comes first, then a shared copy, then the lowest VMID.
    """

    def rank(copy: Actual) -> tuple[bool, VersionKey, bool, bool, int]:
        is_own = copy.node == node
        is_everywhere = is_shared(copy, shared)
        is_usable = is_own or is_everywhere or node is None
        newness = version_key(image_of(copy).version)
        return is_usable, newness, is_own, is_everywhere, -copy.vmid

    return max(copies, key=rank)


def is_shared(source: Actual, shared: Collection[str]) -> bool:
    """Return whether every volume of a guest is on a storage that all nodes share."""
    return set(source.kind.storages_in(source.target)) <= set(shared)


def choose_copy(
    copies: Sequence[Actual],
    guest: Guest,
    default_node: str,
    shared: Collection[str],
    nodes_of: Callable[[Actual], Nodes],
) -> tuple[Actual, Nodes]:
    """Return the copy to clone unless another node is chosen later, and the possible nodes.

    For a named node, or the default node, its own copy is preferred. `nodes_of` returns the nodes
    on which a clone of a copy can be made. Raises NotFound for a named node without the image.
    """
    node = guest.node
    if not node and not guest.rules.given:
        node = default_node or None
    copy = nearest(copies, node, shared)
    if guest.node:
        _require_on_node(copy, copies, guest.node, shared)
    nodes = nodes_of(copy)
    if nodes is None or copy.node == node:
        return copy, nodes
    return copy, _union(map(nodes_of, copies))


def _union(places: Iterable[Nodes]) -> Nodes:
    found: set[str] = set()
    for nodes in places:
        if nodes is None:
            return None
        found |= nodes
    return frozenset(found)


def place_of(copy: Actual, shared: Collection[str]) -> Nodes:
    """Return the nodes that can use a copy without moving a clone of it."""
    return None if is_shared(copy, shared) else frozenset((copy.node,))


def _require_on_node(
    copy: Actual, copies: Sequence[Actual], node: str, shared: Collection[str]
) -> None:
    """Raise NotFound if a node that the task names cannot use any version of an image.

    An image is published on each node that needs it, so no clone of it is moved silently. A clone
    of a template without a version is moved.
    """
    image = image_of(copy)
    if not image.version or copy.node == node or is_shared(copy, shared):
        return
    raise NotFound(
        f"Image '{image.name}' could not be cloned on node {node}: the node has none; there are "
        f"{_places(copies)}",
        (
            "Publish it there with image_nodes of the role pve.fleet.image, or leave node out to"
            " have a node with the image chosen"
        ),
        "image missing on node",
    )


def require_alike(name: str, copies: Sequence[Actual]) -> None:
    """Raise Conflict if templates of one name and version are not copies of each other.

    Two templates on one node are never copies. Templates on several nodes must have the same disks,
    and the same origin if both have the notes of the role image.
    """
    versions: dict[str, list[Actual]] = {}
    for copy in copies:
        versions.setdefault(image_of(copy).version, []).append(copy)
    for version, same in versions.items():
        _require_copies(ImageVersion(name, version).label, same)


def _require_copies(name: str, copies: Sequence[Actual]) -> None:
    nodes = {copy.node for copy in copies}
    if len(nodes) < len(copies):
        raise _ambiguous(name, copies, "two are on one node", _places(copies))
    images: set[str] = set()
    disks: set[str] = set()
    descriptions: list[str] = []
    having: list[str] = []
    for copy in copies:
        place = _place(copy)
        found = _IMAGE_IN_NOTES.search(copy.notes)
        image = None if found is None else found.group(1)
        images.update(filter(None, [image]))
        descriptions.append(f"{place} from {image or 'an unknown image'}")
        sizes = _disks(copy)
        disks.add(sizes)
        having.append(f"{place} has {sizes or 'none'}")
    if len(images) > 1:
        facts = ", ".join(descriptions)
        raise _ambiguous(name, copies, "they were made from different images", facts)
    if len(disks) > 1:
        facts = ", ".join(having)
        raise _ambiguous(name, copies, "their disks differ", facts)


def why_copy(chosen: Actual, copies: Sequence[Actual]) -> str:
    """Return the reason of the choice that names the cloned copy."""
    places = _places(sorted(copies, key=lambda copy: copy.vmid))
    return f"template {_place(chosen)} is cloned, of the copies {places}{_older(chosen, copies)}"


def _older(chosen: Actual, copies: Sequence[Actual]) -> str:
    """Return the remark about a newer version on other nodes, or an empty text."""
    newest = max((image_of(copy).version for copy in copies), key=version_key)
    if newest == image_of(chosen).version:
        return ""
    return f"; this node has no newer version, others have {newest}"


def _place(copy: Actual) -> str:
    version = image_of(copy).version
    suffix = f" ({version})" if version else ""
    return f"{copy.vmid}{suffix} on {copy.node}"


def _places(copies: Sequence[Actual]) -> str:
    return ", ".join(map(_place, copies))


def _disks(copy: Actual) -> str:
    texts = []
    for slot, disk in sorted(copy.kind.disks_in(copy.target).items()):
        texts.append(f"{slot} {disk.get('size', '')}".strip())
    return " ".join(texts)


def _ambiguous(name: str, copies: Sequence[Actual], why: str, facts: str) -> Conflict:
    return Conflict(
        f"Template '{name}' could not be chosen: {len(copies)} templates have that name, and "
        f"{why}: {facts}",
        "Name the one you mean by its VMID, or give them different names",
        "ambiguous template",
        details={"templates": sorted(copy.vmid for copy in copies)},
    )


# Options of a snapshot that a guest does not have.
_OF_SNAPSHOT = frozenset(
    "snaptime snapstate vmstate parent runningmachine runningcpu running-nets-host-mtu".split()
)


def in_snapshot(
    source: Actual, snapshot: str, names: Collection[str], answer: Mapping[str, Any] | None
) -> Actual:
    """Return the guest in the state of the snapshot, whose configuration is `answer`.

    Raises NotFound for a snapshot that is not among `names`, which has no configuration.
    """
    if answer is None:
        existing = ", ".join(sorted(names))
        raise UnknownSnapshot(
            f"Snapshot '{snapshot}' of {source.label} was not cloned: its snapshots are "
            f"{existing or 'none'}{did_you_mean(snapshot, names)}",
            "Check the snapshot's name",
            "unknown snapshot",
        )
    config: dict[str, str] = {}
    for key, value in answer.items():
        if key == "digest" or key in _OF_SNAPSHOT:
            continue
        config[key] = str(value).strip("\n")
    return replace(source, live=config, target=config)
