# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of requests as templates: equal to those of the API's schema, whatever the names are."""

from __future__ import annotations

import ast
import gzip
import json
import re
from pathlib import Path

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.answers.generated.answers import (
    READS,
    WRITES,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.path_templates import (
    _NAMED,
    _WORDS,
    OTHER,
    count_requests,
    template_of,
)

REPO = Path(__file__).parents[4]
SCHEMA = json.loads(
    gzip.decompress((REPO / "tests/simulator/data/schema-9.2.json.gz").read_bytes())
)
# Placeholders that the schema names in another way for the same thing.
ALIKE = {"{group}": "{groupid}", "{pci-id-or-mapping}": "{id}"}
KNOWN = [
    path
    for path in SCHEMA["paths"]
    if all(word in _WORDS or word.startswith("{") for word in path.split("/")[1:])
]
HOSTILE = ("pve1", "qemu", "config", 'a"b\nc\\d', "{node}", "100", "ünï", " ")


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_templates_are_those_of_the_schema(name: str) -> None:
    assert len(KNOWN) > 80
    differing: dict[str, str] = {}
    for path in KNOWN:
        found = template_of(re.sub(r"\{[^}]+\}", lambda _found: name, path))
        parts = path.split("/")
        wanted = "/".join(ALIKE.get(part, part) for part in parts)
        if found != wanted:
            differing[path] = found
    assert differing == {}


def test_every_read_has_a_template() -> None:
    for path in (*READS, *WRITES):
        found = template_of("/" + path.replace("*", "some-name"))
        expected = len(path.split("/"))
        if path.endswith("agent/*"):
            continue
        assert len(found.split("/")) - 1 == expected, path
        assert OTHER not in found, path


def test_every_word_of_a_request_is_known() -> None:
    """The words of paths in the code, as far as they are written as arguments of a request."""
    words = {word for path in SCHEMA["paths"] for word in path.split("/") if "{" not in word}
    unknown: dict[str, str] = {}
    for file in (REPO / "plugins" / "module_utils").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in ("get", "write", "task"):
                continue
            texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            if not {"access", "cluster", "nodes", "pools", "storage"} & set(texts):
                continue
            for text in texts:
                if text in words - _WORDS - {""}:
                    unknown[str(text)] = str(file)
    assert unknown == {}


def test_a_volume_is_one_name_whatever_it_holds() -> None:
    path = "/nodes/pve1/storage/local/content/local:iso/x/config.iso"
    assert template_of(path) == "/nodes/{node}/storage/{storage}/content/{volume}"


def test_unknown_words_never_get_into_a_template() -> None:
    assert template_of("/nodes/pve1/secret/100") == f"/nodes/{{node}}/{OTHER}"
    assert template_of("/secret") == f"/{OTHER}"
    assert template_of("") == "/"


def test_names_of_the_schema() -> None:
    placeholders = {part for path in SCHEMA["paths"] for part in path.split("/") if "{" in part}
    assert {part for name in _NAMED.values() for part in name.split("/")} <= placeholders


def test_requests_are_counted() -> None:
    rows = [
        ("GET", "/nodes/pve1/qemu/100/config", 200, 3.0, 1),
        ("GET", "/nodes/pve2/qemu/101/config", 200, 3.0, 1),
        ("GET", "/version", 0, 3.0, 1),
        ("PUT", "/nodes/pve2/qemu/101/config", 403, 3.0, 1),
    ]
    config = "/nodes/{node}/qemu/{vmid}/config"
    assert count_requests(rows) == [
        {"method": "GET", "endpoint": config, "status": "200", "count": 2},
        {"method": "GET", "endpoint": "/version", "status": "none", "count": 1},
        {"method": "PUT", "endpoint": config, "status": "403", "count": 1},
    ]
