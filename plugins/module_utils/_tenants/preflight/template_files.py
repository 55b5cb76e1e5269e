# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of named container templates, and the storages that contain them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..._foundation.cluster.state import StorageRow
from ..._foundation.cluster.storages.contents import StorageContents
from ..._foundation.cluster.storages.template_file import TemplateFile
from .checks import FAIL, PASS, UNKNOWN, Row, row

CONTENT = "vztmpl"
_STEP = (
    "Check the spelling, or download it with pve.fleet.storage_download; the caller needs"
    " Datastore.Audit or Datastore.AllocateSpace on its storage"
)


@dataclass(frozen=True)
class NewestTemplate:
    """A template that the user named, with its newest file: the volume, the storage, and the nodes
    with this file (None for all).
    """

    name: str
    volume: str
    storage: str
    nodes: frozenset[str] | None


def find_file(name: str, contents: StorageContents) -> NewestTemplate | None:
    """Return the newest file with a name or a volume, like module container."""
    fitting: list[tuple[TemplateFile, StorageRow]] = []
    for storage, row_of_file in contents.volumes:
        file = TemplateFile(str(row_of_file["volid"]), None if storage.shared else storage.node)
        if name == file.volume or file.has_name(name):
            fitting.append((file, storage))
    if not fitting:
        return None
    best, storage = max(fitting, key=lambda one: one[0].version)
    nodes = {file.node for file, _storage in fitting if file.volume == best.volume}
    everywhere = None in nodes
    known = frozenset(node for node in nodes if node)
    return NewestTemplate(name, best.volume, storage.storage, None if everywhere else known)


def file_rows(found: Iterable[NewestTemplate], nodes: Sequence[str]) -> list[Row]:
    """Return whether each of `nodes` has each file; without `nodes`, any node is enough."""
    rows = []
    for one in found:
        having = "all nodes" if one.nodes is None else ", ".join(sorted(one.nodes))
        detail = f"{one.volume} on {having}"
        lacking = sorted(set(nodes) - (one.nodes or set(nodes)))
        if lacking:
            step = f"Download it to {', '.join(lacking)} too, or leave these nodes out"
            rows.append(row("template", one.name, FAIL, detail, step))
        else:
            rows.append(row("template", one.name, PASS, detail))
    return rows


def missing_row(name: str, contents: StorageContents) -> Row:
    """Return the row of a template that is neither a guest nor a file."""
    if contents.unread:
        _storage, error = contents.unread[0]
        step = error.next_step or "Try again"
        return row("template", name, UNKNOWN, error.message, step)
    names = {TemplateFile(str(one["volid"]), None).name for _row, one in contents.volumes}
    listed = ", ".join(sorted(names)) or "none"
    detail = f"there is no such guest and no such file; files of templates are {listed}"
    return row("template", name, FAIL, detail, _STEP)
