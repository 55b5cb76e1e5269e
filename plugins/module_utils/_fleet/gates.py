# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much goes on at once: so many tasks a node, a storage and a template, and fewer while Proxmox VE struggles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import TaskTimeout

Resource = tuple[str, str]
"""What a task uses: a kind (all, node, storage, template) and which one."""

# Seconds in which several complaints about one resource are one: those at work at that moment all make theirs.
CALM = 2.0


@dataclass(frozen=True)
class Most:
    """How many tasks may go on at once; 0 sets no bound."""

    all: int = 32
    node: int = 4
    storage: int = 0
    template: int = 4


class _Gate:
    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self.busy = 0
        self.well = 0  # tasks that ended well since the limit was last changed
        self.eased_at = float("-inf")


class Gates:
    """Room for tasks. All of a task's resources are taken at once or none, so that nobody waits for each other."""

    def __init__(self, most: Most, now: Callable[[], float]) -> None:
        self._most = most
        self._now = now
        self._gates: dict[Resource, _Gate] = {}
        self._changed = threading.Condition()
        self._closed = False

    def first(self, waiting: list[tuple[Any, frozenset[Resource]]]) -> Any:
        """Take the first of those that wait and for which there is room, wait for one, or return None at the end.

        Takes it out of the list; what it uses is held until `leave`.
        """
        with self._changed:
            while waiting and not self._closed:
                for at, (one, resources) in enumerate(waiting):
                    if self._take(resources):
                        del waiting[at]
                        return one
                self._changed.wait()
            return None

    def enter(self, resources: frozenset[Resource]) -> None:
        """Wait until there is room, and take it. Raises TaskTimeout when the run is given up."""
        with self._changed:
            while not self._closed and not self._take(resources):
                self._changed.wait()
            if self._closed:
                raise TaskTimeout(attempted="No further task was begun", answer="the run was given up")

    def leave(self, resources: frozenset[Resource], *, well: bool = True) -> None:
        """Give the room back. After as many tasks that ended well as the limit allows, it may grow again by one."""
        with self._changed:
            for resource in resources:
                gate = self._gate(resource)
                gate.busy -= 1
                gate.well = gate.well + 1 if well else 0
                if gate.limit < gate.most and gate.well >= gate.limit:
                    gate.limit, gate.well = gate.limit + 1, 0
            self._changed.notify_all()

    def ease(self, resources: frozenset[Resource]) -> None:
        """Halve what may go on at once: Proxmox VE had no answer, or a lock was not free in time."""
        with self._changed:
            for resource in resources:
                gate = self._gate(resource)
                gate.well = 0
                if gate.most and self._now() - gate.eased_at > CALM:
                    gate.eased_at = self._now()
                    gate.limit = max(1, min(gate.limit, max(gate.busy, 1)) // 2)

    def limits(self) -> Mapping[Resource, int]:
        """Return how much may go on at once now, of what was used so far."""
        with self._changed:
            return {resource: gate.limit for resource, gate in self._gates.items() if gate.most}

    def close(self) -> None:
        """Let nobody in any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self, resources: frozenset[Resource]) -> bool:
        gates = [self._gate(resource) for resource in resources]
        if any(gate.most and gate.busy >= gate.limit for gate in gates):
            return False
        for gate in gates:
            gate.busy += 1
        return True

    def _gate(self, resource: Resource) -> _Gate:
        if resource not in self._gates:
            self._gates[resource] = _Gate(getattr(self._most, resource[0]))
        return self._gates[resource]


def resources_of(
    path: tuple[str | int, ...], data: Mapping[str, Any], storages: frozenset[Resource] = frozenset()
) -> frozenset[Resource]:
    """Return what a task uses, by the request that begins it; `storages` are those of a new VM's disks (pure)."""
    used: set[Resource] = {("all", "")}
    if len(path) > 1 and path[0] == "nodes":
        used.add(("node", str(path[1])))
    if path[-1:] == ("clone",):
        used |= {("template", str(path[3])), *storages}
    elif path[-1:] == ("qemu",):
        used |= storages
    elif data.get("storage"):
        used.add(("storage", str(data["storage"])))
    return frozenset(used)
