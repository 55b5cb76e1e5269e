# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A text such as C(-e image_storages=ceph) for a variable that is a list.

Modules read it as a list, because Ansible converts their options. An expression reads its letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.filter.listed import listed
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.variables import (
    FAMILIES,
)

ROOT = Path(__file__).resolve().parents[3]
LISTS = sorted(
    name
    for family in FAMILIES.values()
    for name, rule in family.variables.items()
    if rule["type"] == "list" and rule.get("elements") != "dict"
)
# Uses for which a text is not the same as a list with this text.
_FILTERS = "map|select|reject|join|first|last|list|difference|union|product|zip|unique|sort"
_USES = (
    r"loop: \"\{{\{{ {name}\b",
    r"\b{name}(?: \| default\([^)]*\))? \| (?:{filters})\b",
    r"\b{name}\[",
    r"\b{name} \+|\+ \(?{name}\b",
    r"(?:product|zip|difference|intersect|union)\({name}\b",
    r"\bin {name} (?:else|and|or|\}}\}})",
    r"[a-z]=\(?{name}\b",
)


def _converts(line: str, name: str) -> bool:
    """Return whether an expression makes a list of a text first."""
    if name == "status_sort":
        return True  # the filter that gets it converts its arguments
    is_converted = re.search(rf"\b{name}(?: \| default\(.*\))? \| pve\.fleet\.listed", line)
    return bool(is_converted) or f"{name} is string" in line


def _wrong_uses(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for name in LISTS:
            uses = (use.format(name=name, filters=_FILTERS) for use in _USES)
            if name in line and not _converts(line, name) and any(re.search(u, line) for u in uses):
                yield f"{name}: {line.strip()}"


def _files() -> list[Path]:
    found = [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("roles/*/vars/*.yml")]
    return sorted([*found, *ROOT.glob("playbooks/**/*.yml")])


def test_no_expression_reads_the_letters_of_a_text() -> None:
    found = {
        str(file.relative_to(ROOT)): wrong
        for file in _files()
        if (wrong := list(_wrong_uses(file.read_text(encoding="utf-8"))))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("given", "items"),
    [
        ("ceph", ["ceph"]),
        ("ceph, nfs,", ["ceph", "nfs"]),
        (["a,b", ["c"], None, "", 5], ["a", "b", "c", "5"]),
        (None, []),
    ],
)
def test_a_text_becomes_the_list_that_a_module_reads(given: Any, items: list[str]) -> None:
    assert listed(given) == items
