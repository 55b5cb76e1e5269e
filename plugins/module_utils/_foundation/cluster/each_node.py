# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One request to a node, or to every node of the cluster, and the nodes without an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..api.interface import Api
from ..core import validate
from ..core.errors import FleetError, NodeUnreachable
from ..core.parallel import side_by_side
from ..core.result import Result

# A node that does not answer must not delay the others for long.
_TRIES = 2


def read_each_node(
    client: Api, name: str | None, part: str, *rest: str, params: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the answer of each node to a GET of `rest`, or its FleetError.

    `part` names the answer in errors. One request for each online node, and one for the list of
    nodes unless `name` is given.
    """
    if name:
        states = {validate.node(name): "online"}
    else:
        rows = client.get("nodes", attempted="Could not list the nodes") or []
        states = {str(row["node"]): str(row.get("status")) for row in rows}
    online = [node for node, state in states.items() if state == "online"]
    answers = read_nodes(client, online, part, *rest, params=params)
    for node in states.keys() - answers.keys():
        answers[node] = NodeUnreachable(
            f"{_attempted(node, part)}: node {node} is not online",
            f"Check node {node}",
            "node unreachable",
        )
    return {node: answers[node] for node in sorted(answers)}


def read_nodes(
    client: Api,
    nodes: Iterable[str],
    part: str,
    *rest: str,
    params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the same as `read_each_node` for these nodes; one request each, in parallel."""
    names = sorted(nodes)

    def read_node(node: str) -> Any:
        path, attempted = ("nodes", node, *rest), _attempted(node, part)
        try:
            return client.get(*path, params=params, attempted=attempted, tries=_TRIES)
        except FleetError as error:
            return error

    return dict(zip(names, side_by_side(read_node, names), strict=True))


def _attempted(node: str, part: str) -> str:
    return f"Could not read the {part} of node {node}"


def answered(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers without the errors (pure)."""
    return {node: one for node, one in answers.items() if not isinstance(one, FleetError)}


def failed(answers: Mapping[str, Any]) -> dict[str, FleetError]:
    """Return the errors without the answers, sorted by node (pure)."""
    errors = {node: one for node, one in answers.items() if isinstance(one, FleetError)}
    return {node: errors[node] for node in sorted(errors)}


def missing_row(key: str, name: str, error: FleetError) -> dict[str, Any]:
    """Return an entry of C(missing): a node or another part that could not be read (pure)."""
    return {key: name, "category": error.category, "reason": error.message}


def missing_nodes(answers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes that could not be read, with the reasons (pure).

    Raises the first error if all failed.
    """
    errors = failed(answers)
    if errors and len(errors) == len(answers):
        raise errors[min(errors)]
    return [missing_row("node", node, error) for node, error in errors.items()]


def result_of_nodes(answers: Mapping[str, Any], name: str, found: list[Any]) -> Result:
    """Return a result with the value `name`, the missing nodes, and warnings about these (pure).
    Raises the first error if all failed.
    """
    missing = missing_nodes(answers)
    warnings = tuple(row["reason"] for row in missing)
    return Result(False, {name: found, "missing": missing}, warnings=warnings)
