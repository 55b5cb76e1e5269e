# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of guests that a drill restores: how they are marked and recognized (pure).

A copy has no tenant's tag, so it does not count for any quota or tenant. Its own tag is not enough:
a guest is only removed as a copy if its name, its notes and its marker also show that it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.times import iso, seconds
from ..state import ClusterState
from ..tenant import parse_tags, tenants_of

TAG = "fleet-drill"
OWNER_PREFIX = "fleet-drill-of-"
_NAME = "drill-{vmid}-{rest}"
_RUN = 6  # characters of the run in a name
_LONGEST = 63
_NOTES = re.compile(r"Copy of a drill, run ([0-9a-f]+), made ([0-9TZ:+.-]+)\.")


@dataclass(frozen=True)
class CopyNotes:
    """The drill in the notes of a copy: its run, and its start in seconds since the epoch."""

    run: str
    began: int


def is_marked(tags: Iterable[str]) -> bool:
    """Return whether a guest with these tags counts as a copy of a drill. A copy has no other tags,
    so the tag cannot hide a tenant's guest.
    """
    lowered = {tag.lower() for tag in tags}
    rest = {tag for tag in lowered if not tag.startswith(OWNER_PREFIX)}
    return rest == {TAG}


def copy_tags(tenant: str | None) -> list[str]:
    """Return the tags of a copy; the second tag names the tenant of the guest in the archive."""
    if tenant is None:
        return [TAG]
    return [TAG, f"{OWNER_PREFIX}{tenant}".lower()]


def tenant_tags(tags: Iterable[str], prefix: str) -> tuple[str, ...]:
    """Return the tags, with that prefix, of the tenants of the original guest of a copy."""
    owners = tenants_of(tags, OWNER_PREFIX)
    return tuple(f"{prefix}{owner[len(OWNER_PREFIX) :]}".lower() for owner in owners)


def copy_name(vmid: int, name: str, run: str) -> str:
    """Return the name of the copy of a guest: a DNS name of at most 63 characters. Copies of
    several drills have different names.
    """
    label = name.partition(".")[0]
    text = _NAME.format(vmid=vmid, rest=f"{run[:_RUN]}-{label}")
    return text[:_LONGEST].rstrip("-")


def copy_notes(run: str, now: float) -> str:
    """Return the notes of a copy."""
    return (
        f"Copy of a drill, run {run}, made {iso(int(now))}. It is removed at the end of the drill."
    )


def read_notes(text: str) -> CopyNotes | None:
    """Return the drill in the notes of a copy, None for any other notes."""
    found = _NOTES.match(text)
    if found is None:
        return None
    began = seconds(found.group(2))
    if began is None:
        return None
    return CopyNotes(found.group(1), began)


def find_copy(
    config: Mapping[str, Any], name: str, notes: str, origin: int | None
) -> CopyNotes | None:
    """Return the drill of a guest if its whole configuration shows that it is a copy.

    `notes` and `origin` are the notes without the marker, and the VMID of the archive in it.
    """
    if not is_marked(parse_tags(config.get("tags"))) or origin is None:
        return None
    if not name.startswith(_NAME.format(vmid=origin, rest="")):
        return None
    return read_notes(notes)


def without_copies(cluster: ClusterState) -> ClusterState:
    """Return the cluster state without guests marked as copies; their VMIDs stay taken."""
    kept = {vmid: row for vmid, row in cluster.vms.items() if not is_marked(row.tags)}
    others = {vmid: row for vmid, row in cluster.others.items() if not is_marked(row.tags)}
    return replace(cluster, vms=kept, others=others)
