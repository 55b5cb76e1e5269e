# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the position and of the undelivered events: locked by one source, replaced as a whole."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..._foundation.core.errors import ConfigurationError, Conflict
from ..._foundation.core.files import read_parsed, replace_file, why_not_writable
from .event import Event
from .model import KnownGuest, NodeTasks, SitePosition

_MODE = 0o600
_DELIVERED, _LOCK = ".delivered", ".lock"
_ATTEMPTED = "Could not use the position of the events"


class PositionStore:
    """The positions of all sites in a file.

    New events are written together with the next position, and only then delivered. A small second
    file counts the delivered events: each delivery is one small write.
    """

    def __init__(self, path: str) -> None:
        """Open the files. Raises ConfigurationError, and Conflict if another source has them."""
        self._path = os.path.abspath(os.path.expanduser(path))
        why = why_not_writable(self._path)
        if why:
            raise _unusable(self._path, why)
        self._lock = self._locked()
        try:
            self._states = read_parsed(self._path, states_in, _unusable) or {}
            self._delivered = read_parsed(self._path + _DELIVERED, delivered_in, _unusable) or {}
        except ConfigurationError:
            self.close()
            raise

    def close(self) -> None:
        """Release the files for another source."""
        os.close(self._lock)

    def position(self, site: str) -> SitePosition:
        """Return the position of a site, a new one if it was never read."""
        state = self._states.get(site)
        return state.position if state is not None else SitePosition()

    def undelivered(self, site: str) -> list[tuple[int, Event]]:
        """Return the events that were written but not delivered, each with its place."""
        state = self._states.get(site)
        if state is None:
            return []
        batch, count = self._delivered.get(site, (state.batch, 0))
        if batch != state.batch:
            count = 0
        return list(enumerate(state.events))[count:]

    def save(self, site: str, position: SitePosition, events: list[Event]) -> None:
        """Write a position with its events, after the events that were not delivered yet.

        Raises ConfigurationError.
        """
        state = self._states.get(site)
        number = state.batch + 1 if state is not None else 1
        earlier = [event for _place, event in self.undelivered(site)]
        self._states[site] = SiteState(position, number, (*earlier, *events))
        _write(self._path, text_of(self._states))

    def mark_delivered(self, site: str, place: int) -> None:
        """Note that the events up to this place were delivered. Raises ConfigurationError."""
        self._delivered[site] = (self._states[site].batch, place + 1)
        # By site: the batch, and the number of its delivered events.
        _write(self._path + _DELIVERED, json.dumps(self._delivered) + "\n")

    def _locked(self) -> int:
        number = os.open(self._path + _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
            raise Conflict(
                f"{_ATTEMPTED}: another event source uses {self._path}",
                "Give each source a state_file of its own",
                "state_file in use",
            ) from None
        return number


def _write(path: str, text: str) -> None:
    try:
        replace_file(path, text, _MODE)
    except OSError as error:
        raise _unusable(path, str(error)) from None


def _unusable(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{_ATTEMPTED}: {path}: {why}",
        "Repair it; without the file the source starts again, and earlier changes give no events",
        "unusable state_file",
    )


VERSION = 1


@dataclass(frozen=True)
class SiteState:
    """The position of a site, and its last batch of events with the number of the batch."""

    position: SitePosition
    batch: int = 0
    events: tuple[Event, ...] = ()


def text_of(states: Mapping[str, SiteState]) -> str:
    """Return the text of the file."""
    sites = {name: asdict(state) for name, state in states.items()}
    return json.dumps({"version": VERSION, "sites": sites}, separators=(",", ":")) + "\n"


def states_in(text: str) -> dict[str, SiteState]:
    """Return the states in the text of a file, by site.

    Raises ValueError for anything that `text_of` does not write.
    """
    try:
        data = json.loads(text)
        if data["version"] != VERSION:
            raise ValueError(f"its version is {data['version']}, not {VERSION}")
        return {name: _state_of(site) for name, site in data["sites"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it has not the form of a position ({error})") from None


def _state_of(data: Mapping[str, Any]) -> SiteState:
    position = dict(data["position"])
    tasks = {name: NodeTasks(**node) for name, node in position.pop("tasks").items()}
    guests = {int(vmid): KnownGuest(**guest) for vmid, guest in position.pop("guests").items()}
    nodes = tuple(position.pop("nodes"))
    removed = {int(vmid): when for vmid, when in position.pop("removed").items()}
    return SiteState(
        position=SitePosition(**position, nodes=nodes, tasks=tasks, guests=guests, removed=removed),
        batch=int(data["batch"]),
        events=tuple(data["events"]),
    )


def delivered_in(text: str) -> dict[str, tuple[int, int]]:
    """Return the deliveries in a text, by site. Raises ValueError for another form."""
    try:
        return {name: (int(one[0]), int(one[1])) for name, one in json.loads(text).items()}
    except (TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"it has not the form of deliveries ({error})") from None
