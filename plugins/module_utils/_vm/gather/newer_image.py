# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the image that replaces the system disk of a VM."""

from __future__ import annotations

from dataclasses import replace

from ..._cluster.state import ClusterState
from ..._guest.model import Actual
from ..._guest.plan.copies import choose_copy, cloneable, place_of, require_alike
from ..._guest.plan.older_image import find_older_image
from ..model import DesiredVm
from ..plan.replacement import replaced
from .reads import Reads
from .source import read_templates


def with_newer_image(
    reads: Reads, desired: DesiredVm, actual: Actual, cluster: ClusterState
) -> DesiredVm:
    """Return the desired VM with the system disk of the image that its source means now.

    Unchanged if the task does not ask for it, or if the VM comes from that image.
    """
    source = desired.guest.source
    if not desired.guest.replace_image or source is None or not source.name:
        return desired
    if find_older_image(source, actual, cluster) is None:
        return desired
    rows = cloneable(desired.guest, source, cluster)
    copies = read_templates(reads, rows)
    require_alike(source.name, copies)
    shared = cluster.shared_storages
    guest = replace(desired.guest, node=actual.node)
    copy, _nodes = choose_copy(copies, guest, "", shared, lambda one: place_of(one, shared))
    return replaced(desired, actual, copy)
