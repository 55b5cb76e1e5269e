# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the facts that only plans of VMs need: images, snippets, snapshots, PVE's answer about a
migration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ....._foundation.cluster.snippets.visible import list_snippets
from ....kinds.hardware import Snippet
from ....kinds.model import Actual
from ....kinds.vm.config.actual import drives
from ....kinds.vm.model import DesiredVm
from ...flow.facts import DiskImage, Facts, Release, SeenSnippet
from ...flow.reads import GuestReads
from ...live.snippets import files_beside
from ..plan.decide import VmIntent, new_volumes, options_of, snippets_to_check
from ..plan.refusals.disks import converts, image_sizes, lost_volumes, volumes_used
from ..plan.refusals.options import uncertain_options, unknown_names
from .source import DISKS, IMAGES

if TYPE_CHECKING:
    from ....._foundation.api.client import Client


def read_vm_facts(reads: GuestReads, intent: VmIntent, facts: Facts) -> Facts:
    """Return the facts with those that only VMs need; each is read only if the change needs it."""
    start, node = intent.start, intent.node
    if uncertain_options(options_of(intent)):
        facts = replace(facts, release=reads.client.release())
    new = new_volumes(intent)
    images = _images(reads, new, start.node or node)
    facts = replace(facts, images=images, sizes=image_sizes(new, images))
    if intent.source is None:
        lost = lost_volumes(start, intent.change)
        if converts(intent.desired, start) or lost:
            snapshots = _snapshots(reads, start, with_volumes=bool(lost))
            facts = replace(facts, snapshots=snapshots)
    return replace(facts, snippets=tuple(_snippets(reads, intent, facts)))


def _images(reads: GuestReads, desired: DesiredVm, node: str) -> dict[str, DiskImage]:
    """Return the ISOs and images that disks use, as a node has them, by volume.

    One request a storage, and one for each image that is imported.
    """
    found: dict[str, DiskImage] = {}
    for disk, volume in volumes_used(desired):
        if disk.image_size:  # the disk of a template, which a storage may not list
            found[volume] = DiskImage(volume, exists=True, size=disk.image_size)
            continue
        image = found.get(volume) or _image(reads, volume, node)
        if image.exists and disk.import_from and not image.size:
            image = _measured(reads, image, node)
        found[volume] = image
    return found


def _image(reads: GuestReads, volume: str, node: str) -> DiskImage:
    rows = reads.contents(node, volume.partition(":")[0])
    others: list[str] = []
    for row in rows:
        if row["volid"] == volume:
            size = row.get("size") if row.get("content") in DISKS else None
            return DiskImage(volume, exists=True, size=int(size or 0))
        if row.get("content") in IMAGES:
            others.append(row["volid"])
    return DiskImage(volume, exists=False, others=tuple(sorted(others)))


def _measured(reads: GuestReads, image: DiskImage, node: str) -> DiskImage:
    storage, _colon, _name = image.volume.partition(":")
    answer = reads.client.get("nodes", node, "storage", storage, "content", image.volume)
    return DiskImage(image.volume, exists=True, size=int(answer.get("size") or 0))


def _snapshots(
    reads: GuestReads, actual: Actual, *, with_volumes: bool
) -> dict[str, frozenset[str]]:
    """Return the snapshots of a VM, with their volumes for one more request each."""
    found: dict[str, frozenset[str]] = {}
    for name in sorted(reads.snapshot_names(actual)):
        found[name] = frozenset()
        if with_volumes:
            found[name] = frozenset(_volumes_of(reads, actual, name))
    return found


def _volumes_of(reads: GuestReads, actual: Actual, snapshot: str) -> Iterator[str]:
    """Yield the volumes of the drives in a snapshot; one request."""
    config = reads.client.get(*actual.path, "config", snapshot=snapshot)
    texts = {key: str(text) for key, text in config.items()}
    for drive in drives(texts).values():
        if "file" in drive:
            yield drive["file"]


def _snippets(reads: GuestReads, intent: VmIntent, facts: Facts) -> Iterator[SeenSnippet]:
    """Yield the snippets as the node sees them; one request for each on a listed storage."""
    known = {row.storage for row in facts.cluster.storages}
    for volume in sorted(snippets_to_check(intent)):
        storage, _colon, _path = volume.partition(":")
        written = _written_to(volume, intent.desired.hardware.snippet)
        before = files_beside(written)
        listed = list_snippets(reads.client, intent.node, storage) if storage in known else None
        yield SeenSnippet(volume, written, before, listed, files_beside(written))


def _written_to(volume: str, snippet: Snippet | None) -> Snippet | None:
    """Return the user data that the task writes to a volume."""
    if snippet is None or snippet.volume != volume:
        return None
    return snippet


def release_for_names(client: Client, desired: DesiredVm) -> Release | None:
    """Return the version of PVE if an option or sub-key is missing from the schema, else None."""
    return client.release() if any(unknown_names(desired)) else None
