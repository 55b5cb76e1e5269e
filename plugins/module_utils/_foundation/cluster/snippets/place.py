# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks whether a directory contains the snippets of a storage (pure)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ...core.formatting import first_of

SET_DIRECTORY = (
    "Set snippet_directory to where the snippets of that storage are mounted on the machine where"
    " the task runs"
)


def unchecked(volume: str) -> str:
    """Return the warning about a snippet that the caller may not see."""
    return (
        f"Whether a node sees {volume} could not be checked: that needs Datastore.Allocate on its"
        " storage"
    )


def why_elsewhere(
    name: str, before: AbstractSet[str], listed: AbstractSet[str], after: AbstractSet[str]
) -> str | None:
    """Return the reason why a directory cannot contain the snippets of a storage, or None.

    `before` and `after` are the files of the directory right before and after `listed` was read,
    because others may write files in between.
    """
    if name in before - listed:
        return f"the directory has {name}, and the storage does not"
    if name in listed - after:
        return f"the storage has {name}, and the directory does not"
    if before and not listed:
        return f"the directory has {first_of(sorted(before))}, and the storage has no snippet"
    if listed and listed.isdisjoint(after):
        files = first_of(sorted(after)) or "no file"
        return f"the storage has {first_of(sorted(listed))}, and the directory has {files}"
    return None
