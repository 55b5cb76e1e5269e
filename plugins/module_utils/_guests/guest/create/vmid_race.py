# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The VMID that a new guest tries next, after PVE refused its VMID as taken
(docs/decisions/0014-one-number-for-one-name.md).
"""

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from ...._foundation.cluster.find.visible import is_in_use, sees_tasks
from ...._foundation.cluster.state import node_of
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import Conflict, PermissionDenied, VmidTaken
from ...._foundation.core.failures.classify import node_in
from ...kinds.model import Guest
from ..live.creation import Match, match_desired, read_other_kind, with_hidden_creations
from ..plan.refusals import require_name_free

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# How many VMIDs are tried if other runs take them first.
_VMID_TRIES = 50


class AlreadyCreated(Exception):
    """Another run has created the guest, or is creating it."""


class VmidRace:
    """The VMIDs that a new guest has tried, and their owners.

    PVE decides this race itself: it refuses a taken VMID before it creates anything. So no guest is
    removed, unlike in `resolve_race`. `taken` are the VMIDs that belonged to other guests when the
    plan was made.
    """

    def __init__(
        self,
        client: Client,
        desired: Guest,
        timeout: int,
        taken: AbstractSet[int],
        rng: random.Random,
    ) -> None:
        self._client = client
        self._desired = desired
        self._timeout = timeout
        self._taken = taken
        self._rng = rng
        self._lost: set[int] = set()
        self._hidden: set[int] = set()  # VMIDs that were once in use without a visible guest
        self._tries = 0
        # Skipped VMIDs of guests that this login may not see: one of them can be the desired guest,
        # which another login is creating. None if VMIDs follow from names.
        self.skipped: frozenset[int] = frozenset()

    def next_vmid(self, vmid: int, node: str, cluster_view: ClusterView, error: Conflict) -> int:
        """Return the VMID to try next after PVE refused `vmid` on `node` with `error`.

        Raises AlreadyCreated if the desired guest has `vmid`, `error` if no other VMID may be
        tried.
        """
        self._tries += 1
        desired = self._desired
        try:
            found = match_desired(self._client, desired, vmid, node, self._timeout)
        except PermissionDenied:
            found = self._match_hidden(vmid, cluster_view)
        if found is Match.DESIRED:
            raise AlreadyCreated
        if found is Match.OTHER:
            # If VMIDs follow from names, a run that creates a guest of the other kind with this
            # name has tried the same VMID.
            row = read_other_kind(self._client, self._desired, vmid, self._timeout)
            if row is not None:
                require_name_free(self._desired, [row])
        if self._tries >= _VMID_TRIES:
            raise error
        if found is Match.GONE and not self._is_hidden(vmid):
            return vmid
        if desired.vmid is not None:
            raise error
        is_unknown = found is Match.GONE and not self._is_of_others(error, cluster_view)
        if is_unknown and self._becomes_visible(vmid):
            return vmid
        self._lost.add(vmid)
        vmids = desired.vmids
        # If VMIDs follow from names, only VMIDs of guests that were read are left out: a new guest
        # may be the desired one.
        taken = self._taken if vmids.by_name else cluster_view.now().taken
        return vmids.free_after(taken | self._lost, len(self._lost), self._rng)

    def _match_hidden(self, vmid: int, cluster_view: ClusterView) -> Match:
        """Return the match of a guest that the caller may not see: the login is creating it, or it
        counts as gone.
        """
        kind = self._desired.kind
        cluster = with_hidden_creations(self._client, kind, cluster_view.now(), vmid)
        row = cluster.vms.get(vmid)
        if row is None:
            return Match.GONE
        try:
            return match_desired(self._client, self._desired, vmid, row.node, self._timeout)
        except PermissionDenied:
            return Match.GONE

    def _is_hidden(self, vmid: int) -> bool:
        """Return whether the caller may not see the guest with this VMID. If it was removed, the
        VMID is tried again: another run may have created the desired guest with it since then.
        """
        if not is_in_use(self._client, vmid):
            return False
        if vmid in self._hidden:
            return True
        self._hidden.add(vmid)
        return False

    def _is_of_others(self, error: Conflict, cluster_view: ClusterView) -> bool:
        """Return whether a hidden guest is not the desired one: the caller sees all tasks of its
        node, and none creates it.
        """
        node = node_in(error)
        return sees_tasks(self._client, [node] if node else cluster_view.now().nodes)

    def _becomes_visible(self, vmid: int) -> bool:
        """Wait until the guest with the VMID is visible or gone: a tenant sees a guest of its pool
        once it is complete. Return whether that happens before a creation would have timed out; if
        it does not, the guest counts as that of another user.

        If VMIDs do not follow from names, the VMID is skipped at once, and awaited later.
        """
        if not self._desired.vmids.by_name:
            self.skipped |= {vmid}
            return False
        client = self._client
        for _remaining in poll(client.clock, self._timeout, longest=5.0):
            if node_of(client, vmid) is not None or not is_in_use(client, vmid):
                return True
        return False


def is_vmid_lost(error: Conflict) -> bool:
    """Return whether another guest has the VMID and nothing was created."""
    return isinstance(error, VmidTaken) and not error.details.get("done")
