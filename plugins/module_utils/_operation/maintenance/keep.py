# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the record of a maintenance into the notes of its node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._foundation.core.errors import DigestChanged
from ..._foundation.resource.manage import Hooks, manage
from ..._foundation.resource.plan import Plan, Step
from ..._infrastructure.node.record import NodeRecord, join_record
from .read import read_notes

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

Change: TypeAlias = Callable[["NodeRecord | None"], "NodeRecord | None"]


def keep_record(
    client: Client,
    node: str,
    change: Change,
    summary: str,
    *,
    check_mode: bool = False,
    plan_digest: str = "",
) -> tuple[NodeRecord | None, Plan]:
    """Change the record in the notes of a node, and return it with the plan. Raises FleetError.

    A record that is removed is replaced by the mark of the plan with `plan_digest`, if given.

    The digest is sent with the change: if another client edits the notes first, they are read
    again, and the change is applied to the new notes.
    """

    def plan(reading: tuple[str, NodeRecord | None, str]) -> Plan:
        notes, before, digest = reading
        after = change(before)
        if after == before:
            return Plan()
        text = join_record(notes, after, plan_digest)
        data: dict[str, Any] = {"description": text} if text else {"delete": "description"}
        if digest:
            data["digest"] = digest
        path = ("nodes", node, "config")
        return Plan((Step("record", summary, "PUT", path, data, is_task=False),))

    return manage(
        client,
        partial(read_notes, client, node),
        plan,
        lambda plan, reading, _execution: (change(reading[1]), plan),
        check_mode=check_mode,
        hooks=Hooks(stale_errors=(DigestChanged,)),
    )


def recording(node: str, summary: str, notes: str = "") -> Plan:
    """Return the plan of any change of the record, which keeps the notes, for a check of the
    privileges and for an approval (pure).
    """
    data = {"description": notes}
    return Plan((Step("record", summary, "PUT", ("nodes", node, "config"), data),))
