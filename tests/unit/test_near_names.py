# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A refusal that lists the names that exist also names the one that was probably meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import resolve
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    NotFound,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.refusals import (
    require_bridges,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.service import (
    find_service,
)

# IDs that are all alike, such as vm:100.
OTHERS = {"require_managed"}


def refusals(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the function and the answer of each refusal of an unknown name that lists names."""
    tree = ast.parse(path.read_text("utf-8"))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            if not isinstance(call, ast.Call):
                continue
            given = {word.arg: ast.unparse(word.value) for word in call.keywords}
            listed = "sorted(" in given.get("answer", "") or "{names}" in given.get("answer", "")
            if "unknown" in given.get("reason", "") and listed:
                yield function.name, given["answer"]


def test_a_refusal_that_lists_names_has_the_nearest(repo: Path) -> None:
    found = [
        (path.name, name)
        for path in sorted((repo / "plugins" / "module_utils").rglob("*.py"))
        for name, answer in refusals(path)
        if "did_you_mean" not in answer and name not in OTHERS
    ]
    assert found == []


def test_the_nearest_name_is_in_the_answer() -> None:
    rows = [{"service": "postfix", "unit-state": "enabled"}, {"service": "cron"}]
    with pytest.raises(NotFound, match=r"the node has cron, postfix \(did you mean 'postfix'\?\)"):
        find_service(rows, "pve1", "postfx")


def test_a_network_of_a_tenant_is_named_as_it_was_written() -> None:
    """The ID of its VNet is computed, and no one has written it."""
    given = {"host": "pve", "token_id": "ops@pve!fleet", "token_secret": "c"}
    with pytest.raises(ConfigurationError) as caught:
        require_bridges(
            ["t2np2hwm"], frozenset(["vmbr0"]), "pve1", resolve(given, {}), {"t2np2hwm": "frontt"}
        )
    assert "Network 'frontt' could not be used on node pve1" in caught.value.message
