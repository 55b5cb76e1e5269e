# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists the snippets that a node sees, and writes new snippets, which the node must see; checks
whether a directory contains the snippets of a storage.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NoReturn

from ...api.client import Client
from ...core.clock import poll
from ...core.errors import ConfigurationError, PermissionDenied
from ...core.formatting import first_of
from .files import SnippetDirectory

# Seconds until a node sees a new file on a network storage (nfs: acdirmin is 30).
_APPEARANCE = 40.0


def list_snippets(client: Client, node: str, storage: str) -> frozenset[str] | None:
    """Return the names of the snippets that a node has on a storage, None if the caller may not see
    them.

    Only a user with Datastore.Allocate sees snippets (pve-storage: Storage.pm,
    check_volume_access); for any other user the list is empty. One request, and a second one for
    an empty list.
    """
    rows = client.get("nodes", node, "storage", storage, "content", content="snippets")
    if rows:
        return frozenset(str(row["volid"]).rpartition("/")[2] for row in rows)
    path = f"/storage/{storage}"
    permissions = client.get("access", "permissions", path=path) or {}
    privileges = permissions.get(path) or {}
    if "Datastore.Allocate" in privileges:
        return frozenset()
    return None


def put_snippet(
    client: Client, files: SnippetDirectory, volume: str, node: str, data: bytes, *, is_new: bool
) -> None:
    """Write the file of a snippet.

    Waits until the node sees a new file, because a network storage shows it after some time.
    Removes the file and raises ConfigurationError if the node does not see it.
    """
    name = volume.rpartition("/")[2]
    files.write(name, data)
    if is_new and not _appears(client, volume, node):
        files.remove(name)
        _raise_unseen(volume, node)


def _raise_unseen(volume: str, node: str) -> NoReturn:
    """Raise ConfigurationError for a new snippet that the node does not see (pure)."""
    raise ConfigurationError(
        f"Snippet {volume} could not be used: node {node} does not see the file that was written; "
        "it was removed again",
        SET_DIRECTORY,
        "snippet not visible",
    )


def _appears(client: Client, volume: str, node: str) -> bool:
    """Return whether a node sees a new snippet before the time is over.

    Also returns True if the caller may not see snippets.
    """
    storage, _colon, path = volume.partition(":")
    _folder, _slash, name = path.rpartition("/")
    for _remaining in poll(client.clock, _APPEARANCE, first=0.2, longest=5.0):
        try:
            listed = list_snippets(client, node, storage)
        except PermissionDenied:
            return True
        if listed is None or name in listed:
            return True
    return False


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
