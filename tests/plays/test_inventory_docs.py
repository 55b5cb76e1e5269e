# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every example of an inventory file in the documentation, through the real `ansible-inventory`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.inventory.proxmox import EXAMPLES
from tests.plays.inventory_helpers import Lister

ROOT = Path(__file__).resolve().parents[2]


def examples() -> list[Any]:
    """Return the files, each as its options and a name for the test."""
    page = (ROOT / "docs" / "inventory.md").read_text(encoding="utf-8")
    found = {
        f"page {number}": text
        for number, text in enumerate(re.findall(r"```yaml\n(plugin:.*?)```", page, re.S))
    }
    # One document, as older ansible-test wants it: files after the first are comments.
    first, *others = EXAMPLES.split("# In another file: ")
    found["plugin 0"] = first
    for number, text in enumerate(others, start=1):
        lines = text.splitlines()[1:]
        found[f"plugin {number}"] = "\n".join(line.removeprefix("#")[1:] for line in lines)
    found["example"] = (ROOT / "docs" / "examples" / "fleet.proxmox.yml").read_text(
        encoding="utf-8"
    )
    return [pytest.param(yaml.safe_load(text), id=name) for name, text in found.items()]


@pytest.mark.parametrize("options", examples())
def test_an_example_lists_something(
    listed: Lister, tmp_path: Path, options: dict[str, Any]
) -> None:
    """The connection is replaced, the tenant too, and the directory of the cache; nothing else."""
    assert options.pop("plugin") == "pve.fleet.proxmox"
    for name in ("host", "user", "token_id", "token_secret"):
        options.pop(name, None)
    if "sites" in options:
        options["sites"] = [
            {**listed.connection, "name": site["name"]} for site in options["sites"]
        ]
    if "tenant" in options:
        options["tenant"] = "t1"
    if "cache_connection" in options:
        options["cache_connection"] = str(tmp_path / "cache")
    found = listed(connect="sites" not in options, **options)
    assert found.code == 0, found.errors
    assert "could not be decided" not in found.errors
    assert "cache cannot" not in found.errors
    assert found.hosts or "filters" in options


def test_there_are_examples() -> None:
    assert len(examples()) >= 11
