# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of docs/settings.md has the values of the example files, and the page about Terraform
names options that exist.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec

DOCS = Path(__file__).resolve().parents[2] / "docs"
ENVIRONMENTS = ("development", "staging", "production")
NOT_SET = ("", "none", "set", "unlimited")


def settings(environment: str) -> dict[str, Any]:
    """Return the settings of an example file by the names that the table has."""
    text = (DOCS / "examples" / "settings" / f"{environment}.yml").read_text(encoding="utf-8")
    given: dict[str, Any] = yaml.safe_load(text)
    connection = given.pop("provision_connection")
    overrides = given.pop("provision_overrides")
    placement = overrides.pop("placement")
    return {**connection, **overrides, **given} | {
        f"placement.{name}": value for name, value in placement.items()
    }


def rows() -> list[list[str]]:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    table = text.partition("| setting |")[2].partition("\n\n")[0]
    lines = re.findall(r"^\| (`.*) \|$", table, re.M)
    return [[cell.strip().replace("`", "") for cell in line.split(" | ")] for line in lines]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_table_has_the_values_of_the_file(environment: str) -> None:
    given = settings(environment)
    column = 2 + ENVIRONMENTS.index(environment)
    for row in rows():
        name, default, shown = row[0], row[1], row[column]
        if name not in given:
            assert shown == default or shown in NOT_SET, row
        elif name != "quotas":
            value = given.pop(name)
            assert shown.split(" ")[0] == str(yaml.safe_dump(value)).partition("\n")[0], row
    assert not set(given) - {"quotas"}


def test_options_that_replace_those_of_terraform_exist() -> None:
    text = (DOCS / "moving-from-terraform.md").read_text(encoding="utf-8")
    of_options = text.partition("## Every resource")[0]
    named = re.findall(r"^\| `[^|]+ \| `([\w.\[\]]+)` \|", of_options, re.M)
    assert len(named) > 30
    for path in named:
        options: Any = vm_spec()
        for part in path.replace("[]", "").split("."):
            assert part in options, path
            options = options[part].get("options", {})
