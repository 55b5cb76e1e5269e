# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of a task on an existing VM, and the facts that its plan needs (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....._foundation.cluster.state import ClusterState
from ....._foundation.core.propstring import parse
from ....._foundation.schema.formats import sub_keys_of
from ....kinds.config.update import applied
from ....kinds.model import Actual, Guest
from ....kinds.vm.config.changes import changes
from ....kinds.vm.config.figures import state_volume
from ....kinds.vm.kind import VM
from ....kinds.vm.model import DesiredVm
from ...create.quota_race import growth_of
from ...flow.intent import GuestIntent
from ...plan.capacity import added
from ...plan.origin import require_origin

_CPU_KEYS = frozenset(("cores", "sockets", "vcpus"))


@dataclass(frozen=True)
class VmIntent(GuestIntent[DesiredVm]):
    """The change of an existing VM, and the configuration that it leads to."""

    snippet_now: str | None = None  # the present content of the file of the user data

    @property
    def checks_migration(self) -> bool:
        """Whether PVE is asked if it can migrate the VM; the plan refuses a hibernated VM."""
        return self.moves and may_migrate(self.desired.guest, self.actual)

    @property
    def counts_cpus(self) -> bool:
        """Whether the node must have the CPUs of the VM."""
        if self.starts:
            return True
        is_concerned = self.moves or bool(self.change.keys & _CPU_KEYS)
        return self.actual.running and is_concerned

    @property
    def snippets(self) -> frozenset[str]:
        """The volumes of the snippets to check: snippets that change, or whose file is written."""
        snippet = self.desired.hardware.snippet
        is_written = snippet is not None and snippet.content != self.snippet_now
        if "cicustom" not in self.change.keys and not is_written:
            return frozenset()
        return snippets_of(self.after)

    def room(self, sizes: Mapping[str, int], cluster: ClusterState) -> dict[str, int]:
        room = super().room(sizes, cluster)
        if self.desired.guest.state == "hibernated" and self.actual.running:
            storage, size = state_volume(self.after, cluster, self.node)
            room = added(room, {storage: size})
        return room


def intent_of(
    desired: DesiredVm, actual: Actual, snippet_now: str | None, cluster: ClusterState
) -> VmIntent:
    """Return the changes from the VM to the desired VM.

    Raises FleetError for options that no change can set, and for a VM of other origin.
    """
    require_origin(desired.guest, actual, cluster)
    if actual.marker.building:
        # The VM still has the password of its source.
        desired = desired.with_hardware(update_password="always")
    change = changes(desired, actual.target)
    after = applied(change, actual.target, VM)
    growth = None
    if desired.guest.limits is not None:
        growth = growth_of(desired.guest, actual, after)
    return VmIntent(desired, actual, change, after, growth, snippet_now)


def may_migrate(desired: Guest, actual: Actual) -> bool:
    """Return whether a VM is migrated if it moves; the plan refuses a hibernated VM."""
    return desired.migrate and actual.status != "hibernated"


def snippets_of(config: Mapping[str, str]) -> frozenset[str]:
    """Return the volumes of the snippets that a configuration names."""
    snippets = parse(config.get("cicustom", ""), sub_keys_of("cicustom"))
    return frozenset(filter(None, snippets.values()))
