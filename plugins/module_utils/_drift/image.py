# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a VM comes from the template that its source names now (pure)."""

from __future__ import annotations

import re

from .._cluster.lookup import templates_named
from .._cluster.state import ClusterState
from .._guest.model import Actual, Source
from .model import SOURCE, Difference

# A volume based on a volume of a template: store:base-9000-disk-0/vm-101-disk-0, and in directories
# store:9000/base-9000-disk-0.qcow2/101/vm-101-disk-0.qcow2 (pve-storage: PVE/Storage/Plugin.pm,
# RBDPlugin.pm and ZFSPoolPlugin.pm, parse_volname). LVM-thin names no base.
_BASE = re.compile(r"[:/]base-(\d+)-[^/]+/")


def find_newer_image(
    source: Source | None, actual: Actual, cluster: ClusterState
) -> Difference | None:
    """Return the VMIDs of the templates if the VM was cloned from another template, else None.

    None also if that is unknown: for a VM that was created from an image, for a full clone of
    another tool, and if no template with the name is visible.
    """
    if source is None:
        return None
    origin = origin_of(actual)
    wanted = _templates(source, cluster)
    if origin is None or not wanted or origin in wanted:
        return None
    formatted: int | list[int] = wanted
    if len(wanted) == 1:
        formatted = wanted[0]
    return Difference(SOURCE, wanted=formatted, actual=origin, pending=None)


def origin_of(actual: Actual) -> int | None:
    """Return the VMID that a VM was cloned from: from its marker, or from a linked volume."""
    if actual.marker.origin is not None:
        return actual.marker.origin
    bases: set[int] = set()
    for drive in actual.kind.disks_in(actual.target).values():
        found = _BASE.search(drive.get("file", ""))
        if found is not None:
            bases.add(int(found[1]))
    if len(bases) != 1:
        return None
    return bases.pop()


def _templates(source: Source, cluster: ClusterState) -> list[int]:
    """Return the VMIDs of the source: several if copies of one template exist."""
    if source.vmid is not None:
        return [source.vmid]
    return [row.vmid for row in templates_named(cluster, source.name)]
