# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the missing templates for a version of an image, and old templates to prune (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import validate
from ...core.arguments.options import did_you_mean
from ...core.errors import ConfigurationError
from .images import ImageVersion, parse_version, version_key, version_of

Row = Mapping[str, Any]
CONTENTS = {"vm": "images", "container": "rootdir"}
"""The content type of a storage for the disks of each kind of guest."""


@dataclass(frozen=True)
class TemplatePlace:
    """A template that a version of an image needs: on a local storage of a node, or on a shared
    storage for several nodes.
    """

    node: str
    storage: str
    serves: tuple[str, ...]
    candidate: str  # the name of the template until it is published
    vmid: int | None = None  # of the published template, or of its candidate
    published: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the place as plain data."""
        return {**vars(self), "serves": list(self.serves)}


@dataclass(frozen=True)
class ImageRequest:
    """The version of an image, and the nodes and storages for its templates.

    Without nodes, all online nodes count. A node uses the first of the storages that it has.
    """

    image: ImageVersion
    nodes: tuple[str, ...]
    storages: tuple[str, ...]
    content: str


def wanted_of(
    name: str, version: str, nodes: Iterable[str], storages: Iterable[str], kind: str = "vm"
) -> ImageRequest:
    """Return the checked options. Raises ValidationFailed."""
    if kind not in CONTENTS:
        raise validate.refused("kind", kind, "is not a kind of guest", "Use vm or container")
    image = ImageVersion(
        validate.dns_name(name, "image_name"), parse_version(version, "image_version")
    )
    validate.dns_name(candidate_name(image, ""), "image_name")
    return ImageRequest(image, tuple(nodes), tuple(storages), CONTENTS[kind])


def candidate_name(image: ImageVersion, node: str) -> str:
    """Return the name of the template of an image on a node until it is published."""
    return "-".join(filter(None, ("candidate", image.name, image.version, node)))


def places_of(wanted: ImageRequest, cluster: Row, guests: Sequence[Row]) -> list[TemplatePlace]:
    """Return the places of a version; a shared storage is one place.

    `cluster` is the result of module cluster_info, `guests` are the guests of the cluster. Raises
    ConfigurationError for a storage that does not exist, and for a node that is unknown or offline,
    or that has none of the storages.
    """
    storages = {row["storage"] for row in cluster["storages"]}
    for name in wanted.storages:
        if name not in storages:
            hint = did_you_mean(name, storages)
            raise _misplaced(wanted.image, f"there is no storage '{name}'{hint}")
    by_place: dict[tuple[str, str], list[str]] = {}
    for node in _nodes(wanted, cluster):
        storage = _storage_on(node, wanted, cluster)
        place = "" if storage["shared"] else node
        by_place.setdefault((storage["storage"], place), []).append(node)
    found: list[TemplatePlace] = []
    for (name, _place_of), nodes in by_place.items():
        found += _places(wanted.image, name, nodes, guests)
    return found


def _nodes(wanted: ImageRequest, cluster: Row) -> list[str]:
    online = [row["node"] for row in cluster["nodes"] if row["status"] == "online"]
    for node in wanted.nodes:
        if node not in online:
            known = ", ".join(online)
            raise _misplaced(wanted.image, f"node {node} is unknown or offline; online are {known}")
    return list(wanted.nodes or online)


def _storage_on(node: str, wanted: ImageRequest, cluster: Row) -> Row:
    """Return the first storage that the node has and that accepts disks of this kind of guest."""
    rows = {row["storage"]: row for row in cluster["storages"]}
    for name in wanted.storages:
        row = rows.get(name)
        if row is None or wanted.content not in row["content"]:
            continue
        if node in row["nodes"] and node not in row["unavailable_on"]:
            return row
    names = ", ".join(wanted.storages)
    raise _misplaced(
        wanted.image, f"node {node} has none of the storages {names} with content {wanted.content}"
    )


def _misplaced(image: ImageVersion, answer: str) -> ConfigurationError:
    return ConfigurationError(
        f"Image {image.label} was not published: {answer}",
        "Correct image_nodes and image_storages",
        "image place",
    )


def _places(
    image: ImageVersion, storage: str, nodes: Sequence[str], guests: Sequence[Row]
) -> list[TemplatePlace]:
    """Return the places of the nodes with a storage, each with its template if there is one.

    A node with a template on another storage gets a place of its own: that template serves no other
    node, and a second template of the version would be ambiguous on this node.
    """
    published = [row for row in _templates(image, guests) if row["node"] in nodes]
    on_storage = [row for row in published if _is_on(row, storage)]
    if on_storage:
        return [_published(image, storage, nodes, on_storage[0])]
    found: list[TemplatePlace] = []
    for row in published:
        found.append(_published(image, storage, [row["node"]], row))
    served = [place.node for place in found]
    rest = [node for node in nodes if node not in served]
    return [*found, _missing(image, storage, rest, guests)] if rest else found


def _is_on(row: Row, storage: str) -> bool:
    """Return whether a template has a disk on a storage; True if its disks are not known."""
    storages: set[str] = set()
    for value in (row.get("config") or {}).values():
        if not isinstance(value, Mapping) or value.get("cloudinit"):
            continue
        volume = str(value.get("volume") or "")
        storages.add(str(value.get("storage") or volume.partition(":")[0]))
    storages.discard("")
    return not storages or storage in storages


def _published(image: ImageVersion, storage: str, nodes: Sequence[str], row: Row) -> TemplatePlace:
    name = candidate_name(image, row["node"])
    return TemplatePlace(row["node"], storage, tuple(nodes), name, row["vmid"], published=True)


def _missing(
    image: ImageVersion, storage: str, nodes: Sequence[str], guests: Sequence[Row]
) -> TemplatePlace:
    """Return the place of a template that is not published, with its candidate if there is one."""
    names = {candidate_name(image, node): node for node in nodes}
    found = [row for row in guests if row["name"] in names and row["node"] == names[row["name"]]]
    node = found[0]["node"] if found else nodes[0]
    vmid = found[0]["vmid"] if found else None
    return TemplatePlace(node, storage, tuple(nodes), candidate_name(image, node), vmid)


def _templates(image: ImageVersion, guests: Sequence[Row]) -> list[Row]:
    """Return the templates of that version."""
    found: list[Row] = []
    for row in guests:
        is_image = row["template"] and row["name"] == image.name
        if is_image and version_of(row["tags"]) == image.version:
            found.append(row)
    return found


def prunable(
    name: str, keep: int, guests: Sequence[Row], places: Iterable[TemplatePlace]
) -> list[dict[str, Any]]:
    """Return the templates of an image to prune.

    The newest `keep` versions are kept in each place, and on each node without a place. Templates
    without a version are kept too.
    """
    nodes_of = {node: place.serves for place in places for node in place.serves}
    of_place: dict[tuple[str, ...], list[Row]] = {}
    for row in guests:
        if row["template"] and row["name"] == name and version_of(row["tags"]):
            nodes = nodes_of.get(row["node"], (row["node"],))
            of_place.setdefault(nodes, []).append(row)
    found: list[dict[str, Any]] = []
    for rows in of_place.values():
        versions = sorted({version_of(row["tags"]) for row in rows}, key=version_key)
        old = versions[:-keep]
        for row in rows:
            version = version_of(row["tags"])
            if version in old:
                label = ImageVersion(name, version).label
                found.append({"vmid": row["vmid"], "node": row["node"], "image": label})
    return sorted(found, key=lambda one: (one["node"], one["vmid"]))
