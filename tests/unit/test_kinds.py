# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PVE's words for kinds of guests stand in the file of the kind only.

All other code takes the word from the row of a listing or from a `Kind`, so that it serves every
kind of guests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[2] / "plugins"
# The package qemu-guest-agent is software of the guest and no kind of guests.
WORD = re.compile(r"(?<![A-Za-z])(?:qemu|lxc)(?!-guest-agent|[A-Za-z])")
EXCEPTIONS = {
    "module_utils/_guests/kinds/container/kind.py": "the kind itself",
    "module_utils/_guests/kinds/vm/kind.py": "the kind itself",
    "module_utils/_foundation/api/generated/guests.py": "generated: the words of paths in the API schema",
    "module_utils/_foundation/api/generated/rights.py": "generated: the paths of the API schema",
    "module_utils/_foundation/api/access/code_checks.py": "the paths of such checks",
    "module_utils/_foundation/api/answers/generated/answers.py": "generated: the paths of the API schema",
    "module_utils/_foundation/schema/generated/qemu.py": "generated: names of CPUs and formats of the schema",
    "module_utils/_foundation/schema/generated/lxc.py": "generated: names of formats of the schema",
    "module_utils/_infrastructure/datacenter/cpu_model.py": "a path of the API, of CPU models",
    "module_utils/_tenants/preflight/info.py": "the same path",
    "module_utils/_tenants/access/acl.py": "the same path",
    "module_utils/_foundation/cluster/bridges.py": "the guests that hold PCI devices",
    "module_utils/_foundation/cluster/state.py": "the name that PVE lists for a nameless container",
    "module_utils/_foundation/cluster/find/restoring.py": "the noun of such a guest",
    "module_utils/_foundation/schema/generated/requests.py": "generated: the paths of the API schema",
    "module_utils/_foundation/schema/formats.py": "names of formats of the schema",
    "module_utils/_foundation/schema/named.py": "the check of such a format",
    "module_utils/_protection/restore/failover/replicas/lines.py": "directories in /etc/pve, as commands print them",
    "module_utils/_protection/relocate/places.py": "paths of the API, of CPU models",
    "module_utils/_operation/inventory/compatible.py": "groups that community.proxmox creates without a host",
}


def words_in(source: str) -> Iterator[str]:
    """Yield the texts of a file with PVE's word for a kind, without docstrings."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in docstrings and WORD.search(node.value):
            yield node.value


@cache
def found_words() -> dict[str, list[str]]:
    """Return these texts of each file."""
    return {
        str(file.relative_to(PLUGINS)): list(words_in(file.read_text(encoding="utf-8")))
        for folder in ("module_utils", "plugin_utils")
        for file in sorted((PLUGINS / folder).rglob("*.py"))
    }


def test_only_a_kind_has_pves_word_for_it() -> None:
    found = found_words()
    others = found.keys() - EXCEPTIONS.keys()
    assert {name: found[name] for name in sorted(others) if found[name]} == {}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_needed(name: str) -> None:
    assert found_words()[name]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('path = ("nodes", node, "qemu", vmid)', ["qemu"]),
        ('path = f"/nodes/{node}/lxc/{vmid}"', ["/lxc/"]),
        ('groups = ["proxmox_all_qemu"]', ["proxmox_all_qemu"]),
        ('"""As qemu-server does."""', []),
        ('step = "Install qemu-guest-agent"', []),
    ],
)
def test_texts_with_the_word_are_found(source: str, found: list[str]) -> None:
    assert list(words_in(source)) == found
