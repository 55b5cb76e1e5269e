# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Full user data: PVE's API cannot upload a snippet, so it is written where the storage is mounted
here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._cluster.placement import require_storage
from ..._cluster.state import ClusterState
from ..._core.errors import ConfigurationError, PermissionDenied
from ..._core.poll import poll
from ..._core.propstring import parse
from ..._core.shown import first_of
from ..._resource.plan import Plan, Step
from ..._schema.formats import sub_keys_of
from ..model import Actual, Snippet
from ..plan.steps import mark, regenerate, unmark

if TYPE_CHECKING:
    from ..._api.client import Client

# Seconds after which a node sees a new file on a storage that others mount too (nfs: acdirmin is
# 30).
_APPEARANCE = 40.0
_SET_DIRECTORY = (
    "Set snippet_directory to where the snippets of that storage are mounted on the machine where"
    " the task runs"
)

# What writes the cloud-init drive of a running VM again, or leads to a start that does.
_RENEWING = frozenset(("reboot", "shutdown", "stop"))


def current_content(snippet: Snippet | None) -> str | None:
    """Return what the snippet's file holds now, or None.

    Raises ConfigurationError where it cannot be read.
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


def check_snippets(
    client: Client,
    cluster: ClusterState,
    node: str,
    config: Mapping[str, str],
    snippet: Snippet | None,
    now: str | None,
) -> tuple[str, ...]:
    """Return what could not be checked of the snippets that a VM on `node` is going to have, in
    words.

    `config` is its new configuration, `now` what the file of the user data holds. One request a
    storage. Raises ConfigurationError for a snippet that the node would not see: the VM would not
    start any more.
    """
    snippets = parse(config.get("cicustom", ""), sub_keys_of("cicustom"))
    volumes = set(filter(None, snippets.values()))
    unknown: list[str] = []
    for volume in sorted(volumes):
        storage, _colon, path = volume.partition(":")
        _folder, _slash, name = path.rpartition("/")
        written = None
        if snippet is not None and snippet.volume == volume:
            written = snippet
        before = _files_beside(written)
        listed = _listed(client, cluster, node, storage)
        if listed is not None and written is None:
            if name not in listed:
                raise _invisible(volume, f"node {node} does not have it", written)
        elif listed is not None:
            why = _why_elsewhere(name, before, listed, _files_beside(written))
            if why is not None:
                raise _invisible(volume, why, written)
        elif written is not None:
            unknown.append(volume)
    needed = "that needs Datastore.Allocate on its storage"
    return tuple(f"Whether a node sees {one} could not be checked: {needed}" for one in unknown)


def _files_beside(snippet: Snippet | None) -> frozenset[str]:
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


def _listed(
    client: Client, cluster: ClusterState, node: str, storage: str
) -> frozenset[str] | None:
    """Return the names of the snippets that a node has on a storage, or None where the caller may
    not see them.

    Only who has Datastore.Allocate sees snippets (pve-storage: Storage.pm, check_volume_access);
    the list is empty for anybody else.
    """
    known = {row.storage for row in cluster.storages}
    if storage not in known:
        return None
    require_storage(cluster, storage, node, "snippets")
    return _ask(client, node, storage)


def _ask(client: Client, node: str, storage: str) -> frozenset[str] | None:
    rows = client.get(
        "nodes",
        node,
        "storage",
        storage,
        "content",
        content="snippets",
    )
    if rows:
        return frozenset(str(row["volid"]).rpartition("/")[2] for row in rows)
    path = f"/storage/{storage}"
    permissions = client.get("access", "permissions", path=path) or {}
    privileges = permissions.get(path) or {}
    if "Datastore.Allocate" in privileges:
        return frozenset()
    return None


def _why_elsewhere(
    name: str, before: AbstractSet[str], listed: AbstractSet[str], after: AbstractSet[str]
) -> str | None:
    """Return why a directory cannot be the one of a storage's snippets, or None where it can be
    (pure).

    `before` and `after` are its files right before and after `listed` was read: others may write
    some in between.
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


def _invisible(volume: str, why: str, written: Snippet | None) -> ConfigurationError:
    step = "Upload it to that storage, or correct cloud_init.snippets"
    if written is not None:
        step = _SET_DIRECTORY
    return ConfigurationError(
        attempted=f"Snippet {volume} could not be used",
        answer=why,
        next_step=step,
        reason="snippet not visible",
    )


def write_snippet(client: Client, snippet: Snippet | None, now: str | None, node: str) -> list[str]:
    """Write the file where it does not hold the content already, and return what was done, in
    words.
    """
    if snippet is None or snippet.content == now:
        return []
    step = _write_step(snippet, now, node)
    put_snippet(client, step)
    return [step.summary]


def put_snippet(client: Client, step: Step) -> None:
    """Write the file of a step.

    A new one is taken back, and ConfigurationError raised, where the node does not see it.

    A storage on the network shows a new file after some time, so that is waited for.
    """
    file = str(step.path[0])
    volume = str(step.data["volume"])
    node = str(step.data["node"])
    write_content(file, step.data["content"])
    is_new = step.data["new"]
    if not is_new or _appears(client, volume, node):
        return
    with contextlib.suppress(OSError):
        os.unlink(file)
    raise ConfigurationError(
        attempted=f"Snippet {volume} could not be used",
        answer=(
            f"node {node} does not see the file that was written to {os.path.dirname(file)}; it was"
            " removed again"
        ),
        next_step=_SET_DIRECTORY,
        reason="snippet not visible",
    )


def _appears(client: Client, volume: str, node: str) -> bool:
    """Return whether a node sees a new snippet, in time.

    Also where the caller may not see any snippet.
    """
    storage, _colon, path = volume.partition(":")
    _folder, _slash, name = path.rpartition("/")
    for _left in poll(client.clock, _APPEARANCE, first=0.2, longest=5.0):
        try:
            listed = _ask(client, node, storage)
        except PermissionDenied:
            return True
        if listed is None or name in listed:
            return True
    return False


def _write_step(snippet: Snippet, now: str | None, node: str) -> Step:
    data = {
        "content": snippet.content,
        "volume": snippet.volume,
        "node": node,
        "new": now is None,
    }
    return Step(
        "snippet",
        f"Write user data to {snippet.file}",
        "FILE",
        (snippet.file,),
        data,
        is_task=False,
    )


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


def with_snippet(
    plan: Plan, snippet: Snippet | None, now: str | None, actual: Actual | None, node: str
) -> Plan:
    """Return the plan with the file written first, where it does not hold the content already
    (pure).

    `node` is where the VM will be. The cloud-init drive of a running VM is written again, that of
    any other when it starts.
    """
    if snippet is None or snippet.content == now:
        return plan
    steps = [_write_step(snippet, now, node)]
    actions = [step.action for step in plan.steps]
    renewed_first = _RENEWING.intersection(actions[:1])
    is_renewed = "cloudinit" in actions or bool(renewed_first)
    runs = actual is not None and actual.running
    if actual is not None and runs and not is_renewed:
        # The mark is there before the file changes: a run that ends in between is made up for by
        # the next one.
        steps = [
            mark(actual),
            *steps,
            regenerate(actual),
            replace(unmark(actual), reread=bool(plan.steps)),
        ]
    steps += plan.steps
    before = dict(plan.before)
    if actual is not None:
        before["user_data"] = fingerprint(now)
    after = {**plan.after, "user_data": fingerprint(snippet.content)}
    return replace(
        plan,
        steps=tuple(steps),
        before=before,
        after=after,
    )


def fingerprint(content: str | None) -> str | None:
    """Return what a diff shows of user data, which may hold secrets."""
    if content is None:
        return None
    digest = hashlib.sha256(content.encode())
    return f"sha256:{digest.hexdigest()[:16]}"


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
