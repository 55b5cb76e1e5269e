# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests that a plan needs: they return the cluster's answers, and decide nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from ....._foundation.cluster.snippets.visible import list_snippets
from ....kinds.model import Actual
from ....kinds.vm.config.actual import drives
from ....kinds.vm.model import DesiredVm, Snippet
from ...flow.intent import Release
from ...flow.reads import GuestReads
from ..live.snippets import files_beside
from ..plan.facts import DiskImage, SeenSnippet
from ..plan.origin import DISKS, IMAGES
from ..plan.refusals.disks import volumes_used
from ..plan.refusals.options import uncertain_options, unknown_names

if TYPE_CHECKING:
    from ....._foundation.api.client import Client


class VmReads(GuestReads):
    """The requests of the plan of one VM."""

    def release_for(self, options: Mapping[str, str]) -> Release | None:
        """Return the version of PVE if versions differ about the options, else None."""
        return self.client.release() if uncertain_options(options) else None

    def images(self, desired: DesiredVm, node: str) -> dict[str, DiskImage]:
        """Return the ISOs and images that disks use, as a node has them, by volume.

        One request a storage, and one for each image that is imported.
        """
        found: dict[str, DiskImage] = {}
        for disk, volume in volumes_used(desired):
            if disk.image_size:  # the disk of a template, which a storage may not list
                found[volume] = DiskImage(volume, exists=True, size=disk.image_size)
                continue
            image = found.get(volume) or self._image(volume, node)
            if image.exists and disk.import_from and not image.size:
                image = self._measured(image, node)
            found[volume] = image
        return found

    def _image(self, volume: str, node: str) -> DiskImage:
        rows = self.contents(node, volume.partition(":")[0])
        others: list[str] = []
        for row in rows:
            if row["volid"] == volume:
                size = row.get("size") if row.get("content") in DISKS else None
                return DiskImage(volume, exists=True, size=int(size or 0))
            if row.get("content") in IMAGES:
                others.append(row["volid"])
        return DiskImage(volume, exists=False, others=tuple(sorted(others)))

    def _measured(self, image: DiskImage, node: str) -> DiskImage:
        storage, _colon, _name = image.volume.partition(":")
        answer = self.client.get("nodes", node, "storage", storage, "content", image.volume)
        return DiskImage(image.volume, exists=True, size=int(answer.get("size") or 0))

    def snapshots(self, actual: Actual, *, with_volumes: bool) -> dict[str, frozenset[str]]:
        """Return the snapshots of a VM, with their volumes for one more request each."""
        found: dict[str, frozenset[str]] = {}
        for name in sorted(self.snapshot_names(actual)):
            found[name] = frozenset()
            if with_volumes:
                found[name] = frozenset(self._volumes_of(actual, name))
        return found

    def _volumes_of(self, actual: Actual, snapshot: str) -> Iterator[str]:
        """Yield the volumes of the drives in a snapshot; one request."""
        config = self.client.get(*actual.path, "config", snapshot=snapshot)
        texts = {key: str(text) for key, text in config.items()}
        for drive in drives(texts).values():
            if "file" in drive:
                yield drive["file"]

    def snippets(
        self, volumes: Collection[str], node: str, known: Collection[str], snippet: Snippet | None
    ) -> tuple[SeenSnippet, ...]:
        """Return which snippets a node sees; one request for each on a `known` storage.

        `snippet` is the user data that the task writes to one of them.
        """
        return tuple(self._snippet(volume, node, known, snippet) for volume in sorted(volumes))

    def _snippet(
        self, volume: str, node: str, known: Collection[str], snippet: Snippet | None
    ) -> SeenSnippet:
        storage, _colon, _path = volume.partition(":")
        written = None
        if snippet is not None and snippet.volume == volume:
            written = snippet
        before = files_beside(written)
        listed = list_snippets(self.client, node, storage) if storage in known else None
        return SeenSnippet(volume, written, before, listed, files_beside(written))


def release_for_names(client: Client, desired: DesiredVm) -> Release | None:
    """Return the version of PVE if an option or sub-key is missing from the schema, else None."""
    return client.release() if any(unknown_names(desired)) else None
