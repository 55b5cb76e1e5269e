# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the parts of an estate. A part that cannot be read leaves a reason and not a failure."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._core.errors import AuthenticationError, FleetError
from .._core.parallel import side_by_side

if TYPE_CHECKING:
    from .._api.client import Client

_WORKERS = 8
# A node that does not answer shall not hold up the others for long.
_TRIES = 2


class Parts:
    """What was read so far, and what could not be."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self.missing: list[dict[str, Any]] = []

    def read(self, part: str, *segments: str | int, vital: bool = False, tries: int | None = None, **query: Any) -> Any:
        """Return what PVE answers, or None after noting why the part is missing.

        Raises for credentials that are not accepted, and for whatever goes wrong with a `vital` part.
        """
        try:
            return self._client.get(*segments, attempted=f"Could not read the {part}", tries=tries, **query)
        except FleetError as error:
            if vital or isinstance(error, AuthenticationError):
                raise
            with self._lock:
                self.missing.append({"part": part, "category": error.category, "reason": error.message})
            return None

    def each(self, part: str, nodes: Iterable[str], *rest: str, **query: Any) -> dict[str, Any]:
        """Return what each node answers, or None for one that does not; one request a node, several at once."""
        wanted = sorted(nodes)
        found = side_by_side(
            lambda node: self.read(f"{part} of {node}", "nodes", node, *rest, tries=_TRIES, **query), wanted, _WORKERS
        )
        return dict(zip(wanted, found, strict=True))

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each part that is missing."""
        return tuple(row["reason"] for row in sorted(self.missing, key=lambda row: row["part"]))


def standing(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return name, quorum and members that C(/cluster/status) tells (pure); a single node is always quorate."""
    if rows is None:
        return {"name": None, "quorate": None, "members": {}}
    listed = list(rows)
    head = next((row for row in listed if row.get("type") == "cluster"), None)
    members = {
        row["name"]: {
            "online": bool(row.get("online")),
            "ip": row.get("ip"),
            "nodeid": row.get("nodeid"),
            "local": bool(row.get("local")),
        }
        for row in listed
        if row.get("type") == "node"
    }
    return {
        "name": head.get("name") if head else None,
        "quorate": bool(head.get("quorate")) if head else True,
        "members": members,
    }


def listed_states(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return what the HA manager thinks of each node, as C(/cluster/resources) tells it since 8.3 (pure)."""
    return {str(row["node"]): str(row["hastate"]) for row in rows if row.get("type") == "node" and row.get("hastate")}


def node_states(manager: Mapping[str, Any] | None, rows: Iterable[Mapping[str, Any]] = ()) -> dict[str, str]:
    """Return what the HA manager thinks of each node: online, maintenance, unknown, fence, gone (pure).

    It knows the nodes only once something is under HA. A maintenance that was asked for and is under way counts.
    A caller who may not see the manager's status gets what the listing (`rows`) says.
    """
    if not manager:
        return listed_states(rows)
    states = dict((manager.get("manager_status") or {}).get("node_status") or {})
    for node, local in (manager.get("lrm_status") or {}).items():
        if isinstance(local, Mapping) and local.get("mode") == "maintenance":
            states[node] = "maintenance"
    return {str(node): str(state) for node, state in states.items()}
