# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses to change a guest that does not come from the source of the task (pure)."""

from __future__ import annotations

from ..._cluster.state import ClusterState
from ..._core.errors import Conflict
from ..model import Actual, Guest, Source
from .archive import archived_vmid


def require_origin(desired: Guest, actual: Actual, cluster: ClusterState) -> None:
    """Raise Conflict if a task with vmid and source meets a guest that it would not create.

    A guest with the desired name is updated, even if it was made from another source: its template
    may have been replaced by a newer one. With a vmid alone, a guest from another source belongs to
    another task and must not be changed; neither must a guest of another name.
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


def _why_other(source: Source, origin: int | None, cluster: ClusterState) -> str | None:
    """Return why the guest does not come from the source, or None."""
    if origin is None:
        # Nothing is known of a guest that was not cloned by us.
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
        attempted=f"{actual.label} was not changed",
        answer=answer,
        next_step="Choose another vmid, or leave source out to change the VM that has this one",
        reason="other origin",
    )
