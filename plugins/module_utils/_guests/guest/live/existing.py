# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An existing guest while its plan is carried out: it is read again, and its identity checked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...._foundation.cluster.state import pool_of
from ...._foundation.resource.plan import Step
from ...kinds.model import Actual, Guest
from ..plan.steps import HAND_OVER
from .find import require_own
from .read import read_wherever, require_named, require_same, require_untouched

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# Actions after which users cannot use the guest: it is read once more before them.
_ENDS = frozenset(("stop", "shutdown", "destroy"))
# Other actions that cannot be undone.
_FINAL = frozenset(("template", "resize", "remove_volume", HAND_OVER))
# Actions that interrupt a guest, move it, or change who has rights on it. PVE applies them to any
# guest with the VMID, because it compares no digest for them (qemu-server: API2/Qemu.pm).
_DISTURBS = frozenset(
    ("stop", "shutdown", "reboot", "reset", "suspend", "migrate", "move_disk", "pool")
)


def status_before_end(step: Step) -> str | None:
    """Return the status that a guest must have before it is stopped or removed, None for any other
    step. It can change while other guests are read, and while the guest is stopped for its removal.
    """
    if step.action not in _ENDS:
        return None
    return "stopped" if step.action == "destroy" else "running"


def _slot_of(step: Step) -> str:
    """Return the slot of a step that moves or grows a disk, or a volume of a container."""
    return str(step.data.get("disk") or step.data.get("volume"))


def _imported_slots(step: Step) -> set[str]:
    """Return the slots of the disks whose volumes a step replaces by images."""
    return {slot for slot, value in step.data.items() if "import-from=" in str(value)}


class ExistingGuest:
    """An existing guest while its plan is carried out.

    `actual` is the guest in the plan, `written` are the options that the plan changes.
    """

    def __init__(
        self, client: Client, desired: Guest, actual: Actual, written: Collection[str] = ()
    ) -> None:
        self._client = client
        self._desired = desired
        self._actual = actual
        self._written = set(written)
        self._moved: set[str] = set()  # slots whose disk is now another volume
        self._known = actual  # its disks are updated after a migration
        self._node = actual.node

    def read(self, done: Sequence[Step]) -> Actual:
        """Return the guest after these steps. Raises Conflict if the tenant may not touch it."""
        known = self._actual
        moved = any(step.action == "pool" for step in done)
        pool = (self._desired.pool or None) if moved else known.pool
        current = read_wherever(self._client, known.kind, known.vmid, self._node, pool=pool)
        self._node = current.node
        require_own(self._desired, current, known)
        return current

    def read_same(self, done: Sequence[Step]) -> Actual:
        """Return the guest after these steps. Raises Conflict if the VMID has been reused."""
        current = self.read(done)
        require_same(self._desired, self._known, current, self._written)
        if done and done[-1].action == "migrate":
            self._known = replace(self._known, target=current.target)
        return current

    def require_unchanged_before(self, step: Step) -> None:
        """Read the guest again before a step that disturbs it, unless PVE compares the digest."""
        self._moved.update(_imported_slots(step))
        is_removal = step.action == "config" and "force" in step.data
        is_final = is_removal or step.action in _FINAL
        is_dangerous = is_final or step.action in _DISTURBS
        if not is_dangerous or "digest" in step.data:
            return
        desired, known = self._desired, self._known
        current = read_wherever(
            self._client, known.kind, known.vmid, self._node, status=known.status
        )
        require_own(desired, current, known)
        if not is_final:
            require_named(desired, known, current, self._written)
            self._moved.add(_slot_of(step))
            return
        require_untouched(desired, known, current, self._slots_written_before(step))
        if step.action == "template":  # a base volume has another name
            slots = list(known.identity.volumes)
            if "disk" in step.data:
                slots = [step.data["disk"]]
            self._written.update(slots)

    def _slots_written_before(self, step: Step) -> set[str]:
        """Return the options that may differ from the reading for the plan: all options that the
        run writes, except a disk that only grows or that another guest gets.
        """
        slot = _slot_of(step)
        exists = slot in self._known.identity.volumes
        is_kept = step.action in ("resize", HAND_OVER)
        if not is_kept or slot in self._moved or not exists:
            return self._written
        return self._written - {slot}

    def read_untouched(self, node: str, status: str | None = None) -> Actual:
        """Return the guest. Raises Conflict if it has changed since the plan of its removal."""
        known = self._actual
        current = read_wherever(
            self._client, known.kind, known.vmid, node, status=status, pool=known.pool
        )
        require_own(self._desired, current, known)
        require_untouched(self._desired, known, current)
        return current

    def is_in_pool(self) -> bool | None:
        """Return True if the guest is in its desired pool; otherwise None: a new plan decides."""
        pool = pool_of(self._client, self._actual.vmid) or ""
        return True if pool == self._desired.pool else None
