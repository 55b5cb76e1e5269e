# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest that this run creates: how it is identified, and how it is removed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.find.lookup import require_own_guest
from ...._foundation.cluster.find.restoring import is_bare
from ...._foundation.cluster.find.visible import taken
from ...._foundation.cluster.state import CREATION_LOCKS
from ...._foundation.cluster.tenant import parse_tags
from ...._foundation.core.errors import FleetError, NotFound, TaskTimeout
from ...._foundation.core.poll import poll
from ...kinds.marker import split_notes
from ...kinds.model import Actual, Guest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


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
        """Return whether another run completes the guest because this one was too slow."""
        run = _marker_run(config)
        return run is not None and run != self.run

    def require_own(self, config: Mapping[str, Any]) -> None:
        """Raise Conflict if the configuration belongs to a guest that this run did not create."""
        if not self.is_marked(config):
            raise self._is_not_own()

    def is_created(self, client: Client, node: str, timeout: int) -> bool:
        """Wait until the guest is complete; return whether a request with a lost answer created it.

        Raises Conflict if another guest has the VMID, TaskTimeout after `timeout` seconds.
        """
        config = self._read_complete(client, node, timeout)
        if config is None:
            return False
        self._require_complete(config, timeout)
        self.require_own(config)
        return True

    def _read_complete(self, client: Client, node: str, timeout: int) -> Mapping[str, Any] | None:
        """Return the configuration of the complete guest; at the timeout the last one; None if the
        guest does not exist.
        """
        config: Mapping[str, Any] = {}
        path = self.desired.kind.path(node, self.vmid, "config")
        for _remaining in poll(client.clock, timeout, first=1.0, longest=1.0):
            try:
                config = client.get(*path)
            except NotFound:
                return None
            if not self._is_in_creation(config):
                break
        return config

    def _is_in_creation(self, config: Mapping[str, Any]) -> bool:
        """Return whether the guest may be a guest that this run is still creating.

        The configuration of a clone has only the lock at first; a VM that is being restored has
        fewer options than any other VM.
        """
        if is_bare(config):
            return True
        lock = config.get("lock")
        return bool(lock) if self.is_marked(config) else lock in CREATION_LOCKS

    def _require_complete(self, config: Mapping[str, Any], timeout: int) -> None:
        """Raise TaskTimeout for a guest that is still being created."""
        if not self._is_in_creation(config):
            return
        state = "it has neither name nor disks"
        if config.get("lock"):
            state = f"its lock ({config['lock']}) is held for more than {timeout} s"
        raise TaskTimeout(
            attempted=f"{self.label} is still being made",
            answer=state,
            next_step=(
                "Look at the task list of the node, then run this again: it continues from there"
            ),
            reason="lock",
        )

    def remove(
        self, client: Client, actual: Actual, last_read: Actual | None, timeout: int
    ) -> None:
        """Remove the guest that this run last read as `last_read`.

        Raises Conflict if the VMID has been reused.
        """
        desired = self.desired
        require_own_guest(
            actual.label,
            parse_tags(actual.target.get("tags")),
            desired.tenant_tag,
            desired.tenant_prefix,
            unnamed=actual.unnamed,
        )
        self._require_known(actual, last_read)
        if actual.running:  # a live restore has started it
            stop = (*actual.path, "status", "stop")
            attempted = f"Could not stop {actual.label}"
            client.task("POST", *stop, attempted=attempted, timeout=timeout)
        client.task(
            "DELETE",
            *actual.path,
            data={"purge": 1, "destroy-unreferenced-disks": 1},
            attempted=f"Could not remove {actual.label}",
            timeout=timeout,
        )

    def _require_known(self, actual: Actual, last_read: Actual | None) -> None:
        """Raise Conflict unless this run has seen the same guest before."""
        if last_read is None or actual.identity.uuid != last_read.identity.uuid:
            raise self._is_not_own()

    def _is_not_own(self) -> FleetError:
        return taken(f"{self.label} was not created", "another VM has that number")


def _marker_run(config: Mapping[str, Any]) -> str | None:
    return split_notes(str(config.get("description") or ""))[1].run
