# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The position and the events that were not delivered, as the data of a file (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .event import Event
from .model import KnownGuest, NodeTasks, SitePosition

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


def delivered_text(delivered: Mapping[str, tuple[int, int]]) -> str:
    """Return the text of the file about deliveries: the batch and its delivered events, by site."""
    return json.dumps({name: list(pair) for name, pair in delivered.items()}) + "\n"


def delivered_in(text: str) -> dict[str, tuple[int, int]]:
    """Return the deliveries in a text, by site. Raises ValueError for another form."""
    try:
        return {name: (int(one[0]), int(one[1])) for name, one in json.loads(text).items()}
    except (TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"it has not the form of deliveries ({error})") from None
