# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Full user data: PVE's API cannot upload a snippet, so it is written into a local mount of the
storage.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING, NoReturn

from ..._core.errors import ConfigurationError, PermissionDenied
from ..._core.poll import poll
from ..._resource.plan import Step
from ..model import Snippet
from ..plan.refusals.disks import SET_DIRECTORY
from ..plan.snippets import write_step

if TYPE_CHECKING:
    from ..._api.client import Client

# Seconds after which a node sees a new file on a storage that others mount too (nfs: acdirmin is
# 30).
_APPEARANCE = 40.0


def current_content(snippet: Snippet | None) -> str | None:
    """Return the present content of the snippet's file, or None.

    Raises ConfigurationError if it cannot be read.
    """
    if snippet is None:
        return None
    if not os.path.isdir(os.path.dirname(snippet.file)):
        raise _unusable(snippet, f"there is no directory {os.path.dirname(snippet.file)}")
    try:
        with open(snippet.file, encoding="utf-8") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(snippet, str(error)) from error


def files_beside(snippet: Snippet | None) -> frozenset[str]:
    """Return the names of the files where a snippet is written, as PVE lists them: without hidden
    ones.
    """
    if snippet is None:
        return frozenset()
    names: set[str] = set()
    with os.scandir(os.path.dirname(snippet.file)) as entries:
        for entry in entries:
            is_hidden = entry.name.startswith(".")
            if entry.is_file() and not is_hidden:
                names.add(entry.name)
    return frozenset(names)


def list_snippets(client: Client, node: str, storage: str) -> frozenset[str] | None:
    """Return the names of the snippets that a node has on a storage, None if the caller may not see
    them.

    Only a user with Datastore.Allocate sees snippets (pve-storage: Storage.pm,
    check_volume_access); for any other the list is empty. One request, and a second for an empty
    list.
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


def write_snippet(client: Client, snippet: Snippet | None, now: str | None, node: str) -> list[str]:
    """Write the file unless it already has the content, and return the finished step, in words."""
    if snippet is None or snippet.content == now:
        return []
    step = write_step(snippet, now, node)
    put_snippet(client, step)
    return [step.summary]


def put_snippet(client: Client, step: Step) -> None:
    """Write the file of a step.

    A new file is removed again, and ConfigurationError raised, if the node does not see it.

    A storage on the network shows a new file after some time, so this waits for it.
    """
    file = str(step.path[0])
    volume = str(step.data["volume"])
    node = str(step.data["node"])
    write_content(file, step.data["content"])
    is_new = step.data["new"]
    if is_new and not _appears(client, volume, node):
        with contextlib.suppress(OSError):
            os.unlink(file)
        _raise_unseen(volume, node, file)


def _raise_unseen(volume: str, node: str, file: str) -> NoReturn:
    """Raise ConfigurationError for a new snippet that the node does not see (pure)."""
    raise ConfigurationError(
        attempted=f"Snippet {volume} could not be used",
        answer=(
            f"node {node} does not see the file that was written to {os.path.dirname(file)}; it was"
            " removed again"
        ),
        next_step=SET_DIRECTORY,
        reason="snippet not visible",
    )


def _appears(client: Client, volume: str, node: str) -> bool:
    """Return whether a node sees a new snippet, in time.

    Also True if the caller may not see any snippet.
    """
    storage, _colon, path = volume.partition(":")
    _folder, _slash, name = path.rpartition("/")
    for _left in poll(client.clock, _APPEARANCE, first=0.2, longest=5.0):
        try:
            listed = list_snippets(client, node, storage)
        except PermissionDenied:
            return True
        if listed is None or name in listed:
            return True
    return False


def write_content(file: str, content: str) -> None:
    """Put the content into the file in one move, readable as PVE needs it.

    Raises ConfigurationError.
    """
    directory = os.path.dirname(file)
    name = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=directory, delete=False
        ) as stream:
            name = stream.name
            stream.write(content)
        os.chmod(name, 0o640)
        os.replace(name, file)
    except OSError as error:
        if name:
            with contextlib.suppress(OSError):
                os.unlink(name)
        raise ConfigurationError(
            attempted=f"User data could not be written to {file}",
            answer=str(error),
            next_step="Check snippet_directory and its rights on the machine where the task runs",
            reason="snippet",
        ) from error


def _unusable(snippet: Snippet, why: str) -> ConfigurationError:
    return ConfigurationError(
        attempted=f"The snippet {snippet.volume} could not be read",
        answer=why,
        next_step=(
            "Name the directory where the storage's snippets are mounted on the machine where the"
            " task runs"
        ),
        reason="snippet",
    )
