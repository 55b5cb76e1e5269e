# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the image that replaces the system disk of a VM."""

from __future__ import annotations

from functools import partial

from ..._cluster.state import ClusterState
from ..._guest.model import Actual
from ..._guest.plan.older_image import find_newer_copy
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
    copy = find_newer_copy(desired.guest, actual, cluster, partial(read_templates, reads))
    return desired if copy is None else replaced(desired, actual, copy)
