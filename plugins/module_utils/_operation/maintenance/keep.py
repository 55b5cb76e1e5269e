# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the record of a maintenance into the notes of its node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._foundation.core.errors import DigestChanged, FleetError
from ..._foundation.resource.engine import Resource, apply_plan
from ..._foundation.resource.execute import Execution, FailureVerdict
from ..._foundation.resource.plan import Plan, Step
from ..._infrastructure.node.record import NodeRecord, join_record
from .read import read_notes

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

Change: TypeAlias = Callable[["NodeRecord | None"], "NodeRecord | None"]


class NodeRecordResource(Resource["NodeRecord | None"]):
    """The record in the notes of a node, and its change.

    The digest is sent with the change: if another client edits the notes first, they are read
    again, and the change is applied to the new notes.
    """

    client: Client

    def __init__(self, client: Client, node: str, change: Change, summary: str) -> None:
        self.client = client
        self.node = node
        self.change = change
        self.summary = summary
        self.after: NodeRecord | None = None
        self.plan = self._planned()

    def _planned(self) -> Plan:
        notes, before, digest = read_notes(self.client, self.node)
        self.after = self.change(before)
        if self.after == before:
            return Plan()
        text = join_record(notes, self.after)
        data: dict[str, Any] = {"description": text} if text else {"delete": "description"}
        if digest:
            data["digest"] = digest
        path = ("nodes", self.node, "config")
        return Plan((Step("record", self.summary, "PUT", path, data, is_task=False),))

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return self._planned()

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check after a lost answer: the step is done if nothing is left to write."""
        return lambda: None if self._planned().changed else True

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        return FailureVerdict.UNKNOWN if isinstance(error, DigestChanged) else FailureVerdict.FAILED

    def preview(self) -> NodeRecord | None:
        return self.after

    def report(self, execution: Execution) -> NodeRecord | None:
        return self.after


def keep_record(client: Client, node: str, change: Change, summary: str) -> NodeRecord | None:
    """Change the record of a node, and return it. Raises FleetError."""
    return apply_plan(NodeRecordResource(client, node, change, summary), False)
