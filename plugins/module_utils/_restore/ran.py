# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a guest ran before an interrupted restore, which must start it at its end.

The restore notes in the guest that it runs, before it stops the guest. The archive of the state
before the restore contains the note too: it is read if the restore has left the guest empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .._backup.archive import Archive, newest_first
from .._cluster.restoring import is_bare
from .._core.errors import FleetError
from .._guest.flow.reads import read_archive
from .._guest.kind import Kind
from .._guest.marker import split_notes
from .._guest.model import Actual
from .._tasks.query import TaskQuery
from .._tasks.read import read_tasks
from .._tasks.row import OK, WARNING
from .choose import is_state_before

if TYPE_CHECKING:
    from .._api.client import Client

_STARTS = 10  # tasks to read


def find_ran(client: Client, actual: Actual, archives: Iterable[Archive]) -> int | None:
    """Return the last start of a guest that runs, or ran before an interrupted restore; None if it
    was off. Up to two requests.
    """
    if actual.running:
        return _last_start(client, actual.kind, actual.vmid, actual.node)
    config: Mapping[str, str] = actual.live
    if is_bare(actual.live):
        config = read_state_before(client, actual.vmid, archives)
    return find_noted(client, actual.kind, actual.vmid, actual.node, config)


def read_state_before(client: Client, vmid: int, archives: Iterable[Archive]) -> Mapping[str, str]:
    """Return the configuration in the newest archive of a guest's state before a restore."""
    own = [one for one in archives if one.vmid == vmid and is_state_before(one)]
    if not own:
        return {}
    newest = min(own, key=newest_first)
    return read_archive(client, newest.volume, newest.node)


def find_noted(
    client: Client, kind: Kind, vmid: int, node: str, config: Mapping[str, str]
) -> int | None:
    """Return the start in the note of a configuration; None without a note, or if the guest was
    started again since.
    """
    ran = split_notes(config.get("description"))[1].ran
    if ran is None or _last_start(client, kind, vmid, node) > ran:
        return None
    return ran


def _last_start(client: Client, kind: Kind, vmid: int, node: str) -> int:
    """Return the time of the last start in the tasks of the node, 1 if they have none. Starts that
    have failed are ignored.
    """
    types = frozenset((f"{kind.task_prefix}start",))
    tasks = read_tasks(client, [node], TaskQuery(limit=_STARTS, vmid=vmid, types=types))[node]
    if isinstance(tasks, FleetError):
        return 1
    return max((task.started for task in tasks if task.status in (OK, WARNING)), default=1)
