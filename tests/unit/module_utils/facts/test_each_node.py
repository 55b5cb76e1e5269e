# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One question to every node, with the nodes that do not answer."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.each_node import (
    missing_nodes,
    read_each_node,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    AuthenticationError,
    FleetError,
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.partial_read import (
    PartialRead,
)
from tests.fake_api import FakeApi

NODES = [{"node": "pve1", "status": "online"}, {"node": "pve3", "status": "offline"}]
NODES += [{"node": "pve2", "status": "online"}]


def api_with(error: type[FleetError]) -> FakeApi:
    """Return an API in which node pve2 refuses."""

    def answer(request: Request) -> Any:
        if request.segments == ("nodes",):
            return NODES
        if "pve2" in request.segments:
            return error(answer="no", next_step="Ask")
        return [] if "apt" in request.segments else {"uptime": 1}

    return FakeApi(answer)


def test_nodes_without_an_answer_are_missing() -> None:
    api = api_with(PermissionDenied)
    answers = read_each_node(api.client(), None, "pending updates", "apt", "update")
    assert list(answers) == ["pve1", "pve2", "pve3"]
    pve2, pve3 = missing_nodes(answers)
    assert (pve2["node"], pve2["category"]) == ("pve2", "PermissionDenied")
    assert pve2["reason"].startswith("Could not read the pending updates of node pve2: no")
    assert "node pve3 is not online" in pve3["reason"]


def test_parts_of_nodes_have_the_same_reasons() -> None:
    read = PartialRead(api_with(PermissionDenied).client())
    found = read.each("status", ["pve2", "pve1"], "status")
    assert found == {"pve1": {"uptime": 1}, "pve2": None}
    (missing,) = read.missing
    assert missing["part"] == "status of pve2"
    assert read.reasons("status") == {"pve2": missing["reason"]}
    assert missing["reason"].startswith("Could not read the status of node pve2: no")


def test_rejected_credentials_are_an_error() -> None:
    read = PartialRead(api_with(AuthenticationError).client())
    with pytest.raises(AuthenticationError):
        read.each("status", ["pve1", "pve2"], "status")
    assert read.missing == []
