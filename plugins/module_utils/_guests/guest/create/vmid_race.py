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

from ...._foundation.cluster.find.visible import is_in_use
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.errors import Conflict, PermissionDenied, VmidTaken
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

    @property
    def skipped(self) -> frozenset[int]:
        """The VMIDs of guests that this login may not see: one of them can be the desired guest,
        which another login is creating.
        """
        return frozenset(self._lost & self._hidden)

    def next_vmid(self, vmid: int, node: str, cluster_view: ClusterView, error: Conflict) -> int:
        """Return the VMID to try next after PVE refused `vmid` on `node` with `error`.

        Raises AlreadyCreated if the desired guest has `vmid`, and `error` if no other VMID may be
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
            self._require_other_name(vmid)
        if self._tries >= _VMID_TRIES:
            raise error
        if found is Match.GONE and not self._is_hidden(vmid):
            return vmid
        if desired.vmid is not None:
            raise error
        self._lost.add(vmid)
        vmids = desired.vmids
        # If VMIDs follow from names, only VMIDs of guests that were read are left out: a new guest
        # may be the desired one.
        taken = self._taken if vmids.by_name else cluster_view.now().taken
        return vmids.free_after(taken | self._lost, len(self._lost), self._rng)

    def _require_other_name(self, vmid: int) -> None:
        """Raise Conflict if another run has just created a guest of the other kind with the name:
        the VMID follows from the name, so both runs tried the same VMID.
        """
        row = read_other_kind(self._client, self._desired, vmid, self._timeout)
        if row is not None:
            require_name_free(self._desired, [row])

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


def is_vmid_lost(error: Conflict) -> bool:
    """Return whether another guest has the VMID and nothing was created."""
    return isinstance(error, VmidTaken) and not error.details.get("done")
