# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the position: locked by one source, and replaced as a whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from typing import TypeVar

from ..._foundation.core.errors import ConfigurationError, Conflict
from ..._foundation.core.files import replace_file, why_not_writable
from .document import SiteState, delivered_in, delivered_text, states_in, text_of
from .event import Event
from .model import SitePosition

_MODE = 0o600
_DELIVERED, _LOCK = ".delivered", ".lock"
_ATTEMPTED = "Could not use the position of the events"

Data = TypeVar("Data")


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
            self._states = _read(self._path, states_in) or {}
            self._delivered = _read(self._path + _DELIVERED, delivered_in) or {}
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
        _write(self._path + _DELIVERED, delivered_text(self._delivered))

    def _locked(self) -> int:
        number = os.open(self._path + _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
            raise Conflict(
                attempted=_ATTEMPTED,
                answer=f"another event source uses {self._path}",
                next_step="Give each source a state_file of its own",
                reason="state_file in use",
                dispatched=False,
            ) from None
        return number


def _read(path: str, parse: Callable[[str], Data]) -> Data | None:
    """Return the data of a file, None without a file. Raises ConfigurationError."""
    try:
        with open(path, encoding="utf-8") as stream:
            return parse(stream.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unusable(path, str(error)) from None


def _write(path: str, text: str) -> None:
    try:
        replace_file(path, text, _MODE)
    except OSError as error:
        raise _unusable(path, str(error)) from None


def _unusable(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        attempted=_ATTEMPTED,
        answer=f"{path}: {why}",
        next_step="Repair it; without the file the source starts again, and earlier changes give"
        " no events",
        reason="unusable state_file",
        dispatched=False,
    )
