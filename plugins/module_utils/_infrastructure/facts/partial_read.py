# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read facts part by part. A part that cannot be read is reported, and the others are returned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..._foundation.cluster.each_node import answered, failed, missing_row, read_nodes
from ..._foundation.core.errors import AuthenticationError, FleetError
from .nodes import Row, dictionary

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

Answer = TypeVar("Answer")


class PartialRead:
    """A reader that notes the parts that could not be read in `missing`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self.missing: list[dict[str, Any]] = []

    def read(self, part: str, *segments: str | int, **query: Any) -> Any:
        """Return the answer of PVE, or None if the request fails; `missing` gets the reason.

        Raises AuthenticationError for rejected credentials.
        """
        attempted = f"Could not read the {part}"
        try:
            return self._client.get(*segments, attempted=attempted, **query)
        except AuthenticationError:
            raise
        except FleetError as error:
            self.add(part, error)
            return None

    def attempt(self, part: str, read: Callable[[], Answer]) -> Answer | None:
        """Return the answer of a function, or None if it fails; `missing` gets the reason."""
        try:
            return read()
        except FleetError as error:
            self.add(part, error)
            return None

    def add(self, part: str, error: FleetError) -> None:
        """Note why a part could not be read."""
        with self._lock:
            self.missing.append(missing_row("part", part, error))

    def rows(self, part: str, *segments: str) -> list[Row]:
        """Return the rows of a listing, none if it cannot be read."""
        answer = self.read(part, *segments)
        return answer or []

    def version(self) -> str | None:
        """Return the version of PVE. Raises FleetError: all other requests would fail too."""
        attempted = "Could not read the version"
        answer = self._client.get("version", attempted=attempted) or {}
        return answer.get("version")

    def each(self, part: str, nodes: Iterable[str], *rest: str, **query: Any) -> dict[str, Any]:
        """Return the answer of each node, None if it fails; one request each, in parallel."""
        answers = read_nodes(self._client, nodes, part, *rest, params=query)
        for node, error in failed(answers).items():
            if isinstance(error, AuthenticationError):
                raise error
            self.add(f"{part} of {node}", error)
        return {**dict.fromkeys(answers), **answered(answers)}

    def reasons(self, part: str) -> dict[str, str]:
        """Return the reasons why `each` could not read a part, by node."""
        start = f"{part} of "
        found: dict[str, str] = {}
        for entry in self.missing:
            if entry["part"].startswith(start):
                node = entry["part"].removeprefix(start)
                found[node] = entry["reason"]
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each part that is missing."""
        entries = sorted(self.missing, key=lambda entry: entry["part"])
        return tuple(entry["reason"] for entry in entries)


def standing(rows: Iterable[Row] | None) -> dict[str, Any]:
    """Return `name`, `quorate` and `members` from C(/cluster/status) (pure).

    A single node is always quorate. If there is no answer (`rows` is None), name and quorum are
    None.
    """
    if rows is None:
        return {"name": None, "quorate": None, "members": {}}
    name: str | None = None
    quorate = True
    members: dict[str, dict[str, Any]] = {}
    for row in rows:
        kind = row.get("type")
        if kind == "cluster":
            name = row.get("name")
            quorate = bool(row.get("quorate"))
        elif kind == "node":
            members[row["name"]] = {
                "online": bool(row.get("online")),
                "ip": row.get("ip"),
                "nodeid": row.get("nodeid"),
                "local": bool(row.get("local")),
            }
    return {"name": name, "quorate": quorate, "members": members}


def listed_states(rows: Iterable[Row]) -> dict[str, str]:
    """Return the HA state of each node; C(/cluster/resources) contains it since 8.3 (pure)."""
    states: dict[str, str] = {}
    for row in rows:
        state = row.get("hastate")
        if row.get("type") == "node" and state:
            states[str(row["node"])] = str(state)
    return states


def node_states(manager: Row | None, rows: Iterable[Row] = ()) -> dict[str, str]:
    """Return the state of each node in the HA manager (pure).

    States are online, maintenance, unknown, fence and gone. The manager knows no nodes before a
    guest is an HA resource. A requested maintenance counts even if it is still in progress. If the
    manager's status cannot be read, for lack of a privilege, the states of the listing (`rows`) are
    returned.
    """
    if not manager:
        return listed_states(rows)
    states: dict[str, str] = {}
    status = dictionary(manager, "manager_status")
    known = dictionary(status, "node_status")
    for node, state in known.items():
        states[str(node)] = str(state)
    for node, local in dictionary(manager, "lrm_status").items():
        if isinstance(local, Mapping) and local.get("mode") == "maintenance":
            states[str(node)] = "maintenance"
    return states
