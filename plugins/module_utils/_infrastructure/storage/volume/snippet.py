# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snippet whose content is set by the task, and written to the directory of its storage."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...._foundation.api.client import Client
from ...._foundation.cluster.snippets.files import SnippetDirectory
from ...._foundation.cluster.snippets.place import SET_DIRECTORY, unchecked, why_elsewhere
from ...._foundation.cluster.snippets.visible import list_snippets, put_snippet
from ...._foundation.core.errors import ConfigurationError
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import Resource
from ...._foundation.resource.execute import Execution, StepResult
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.resource.result import result_of
from .desired import DesiredVolume
from .plan import describe
from .read import find_volume


class StoredSnippet(Resource[Result]):
    """One snippet. Its file is compared and written through `files`; PVE lists it."""

    client: Client

    def __init__(
        self, client: Client, volume: DesiredVolume, data: bytes, files: SnippetDirectory
    ) -> None:
        self.client = client
        self.volume = replace(volume, size=len(data))
        self.data = data
        self.files = files
        self.found = find_volume(client, volume.file)
        self.now = files.read(volume.file.name)
        self.plan = plan_snippet(volume, self.now, data, files.path)
        if self.plan.changed or self.found is None:
            self.plan = replace(self.plan, warnings=self._require_place())

    def _require_place(self) -> tuple[str, ...]:
        """Return a warning if PVE does not list snippets to the caller.

        Raises ConfigurationError if the directory does not belong to the storage.
        """
        file = self.volume.file
        before = self.files.names()
        listed = list_snippets(self.client, str(file.node), file.storage)
        if listed is None:
            return (unchecked(self.volume.volid),)
        why = why_elsewhere(file.name, before, listed, self.files.names())
        if why:
            raise ConfigurationError(
                attempted=f"Snippet {self.volume.volid} was not written",
                answer=why,
                next_step=SET_DIRECTORY,
                reason="snippet not visible",
            )
        return ()

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        self.now = self.files.read(self.volume.file.name)
        return plan_snippet(self.volume, self.now, self.data, self.files.path)

    def send(self, step: Step) -> StepResult:
        """Write the file; no request is sent."""
        is_new = self.now is None
        volume, node = self.volume.volid, str(self.volume.file.node)
        put_snippet(self.client, self.files, volume, node, self.data, is_new=is_new)
        return StepResult()

    def preview(self) -> Result:
        return result_of(self.plan, {"volume": self._described()})

    def report(self, execution: Execution) -> Result:
        self.found = find_volume(self.client, self.volume.file)
        return result_of(self.plan, {"volume": self._described()}, execution)

    def _described(self) -> dict[str, Any]:
        return {**describe(self.volume, self.found), "size": self.volume.size}


def plan_snippet(volume: DesiredVolume, now: bytes | None, data: bytes, place: str) -> Plan:
    """Return the plan of a snippet (pure). `now` is its present content, None if it is missing.

    A diff shows checksums, because user data may contain secrets.
    """
    if now == data:
        return Plan()
    summary = f"Write {volume.volid} to {place}"
    step = Step("snippet", summary, "FILE", (place, volume.file.name), is_task=False)
    before = {} if now is None else _checksum(volume, now)
    return Plan((step,), before, _checksum(volume, data))


def _checksum(volume: DesiredVolume, data: bytes) -> dict[str, str]:
    return {"volid": volume.volid, "sha256": hashlib.sha256(data).hexdigest()}
