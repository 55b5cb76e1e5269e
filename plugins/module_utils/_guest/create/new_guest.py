# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest that this run creates: how it is identified, and how it is removed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._cluster.lookup import guard_tenant
from ..._cluster.tenant import parse_tags
from ..._core.errors import FleetError, NotFound, TaskTimeout, VmidTaken
from ..._core.poll import poll
from ..live.creation import CREATION_LOCKS
from ..marker import split_notes
from ..model import Actual, Guest

if TYPE_CHECKING:
    from ..._api.client import Client


@dataclass(frozen=True)
class NewGuest:
    """A guest that this run creates.

    Its marker has the name of the `run`. Its configuration has the `uuid`, if its kind has uuids
    and this run chose it.
    """

    desired: Guest
    vmid: int
    run: str
    uuid: str

    @property
    def label(self) -> str:
        return f"{self.desired.kind.noun} {self.vmid}"

    def is_marked(self, config: Mapping[str, Any]) -> bool:
        """Return whether a configuration has the marker of this run, or the uuid."""
        if _marker_run(config) == self.run:
            return True
        identity = self.desired.kind.identity_in(config, name="", volumes={})
        return bool(identity.uuid) and identity.uuid == self.uuid.lower()

    def is_taken_over(self, config: Mapping[str, Any]) -> bool:
        """Return whether another run completes the guest because this run made no progress for too
        long.
        """
        run = _marker_run(config)
        return run is not None and run != self.run

    def require_own(self, config: Mapping[str, Any]) -> None:
        """Raise Conflict if the configuration belongs to a guest that this run did not create."""
        if not self.is_marked(config):
            raise self._is_not_own()

    def is_created(self, client: Client, node: str, timeout: int) -> bool:
        """Return whether a request to create or clone with a lost answer has created the guest,
        once the guest is complete.

        While a clone is being created, its configuration holds the lock only. Raises Conflict if
        another guest has the VMID.
        """
        lock: object = None
        path = self.desired.kind.path(node, self.vmid, "config")
        for _left in poll(client.clock, timeout, first=1.0, longest=1.0):
            try:
                config = client.get(*path)
            except NotFound:
                return False
            is_own, lock = self.is_marked(config), config.get("lock")
            if is_own and not lock:
                return True
            if not is_own and lock not in CREATION_LOCKS:
                raise self._is_not_own()
        raise TaskTimeout(
            attempted=f"{self.label} is still being made",
            answer=f"its lock ({lock}) is held for more than {timeout} s",
            next_step=(
                "Look at the task list of the node, then run this again: it continues from there"
            ),
            reason="lock",
        )

    def remove(self, client: Client, actual: Actual, seen: Actual | None, timeout: int) -> None:
        """Remove it again. Raises Conflict if the VMID has been reused.

        `seen` is the guest when this run last read it.
        """
        desired = self.desired
        guard_tenant(
            actual.label,
            parse_tags(actual.target.get("tags")),
            desired.tenant_tag,
            desired.tenant_prefix,
            number=actual.vmid,
        )
        if seen is None or actual.identity.uuid != seen.identity.uuid:
            raise self._is_not_own()
        client.task(
            "DELETE",
            *actual.path,
            data={"purge": 1, "destroy-unreferenced-disks": 1},
            attempted=f"Could not remove {actual.label}",
            timeout=timeout,
        )

    def _is_not_own(self) -> FleetError:
        return VmidTaken(
            attempted=f"{self.label} was not created",
            answer="another VM has that number",
            next_step="Choose another vmid, or leave it out",
            reason="taken vmid",
        )


def _marker_run(config: Mapping[str, Any]) -> str | None:
    return split_notes(str(config.get("description") or ""))[1].run
