"""The facts about VM options are those of the official API schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._schema.formats import MOST, NAMED, format_of, rule_of
from ansible_collections.pve.fleet.plugins.module_utils._schema.qemu import OPTIONS
from tests.tools import make_schema


def test_the_generated_file_is_fresh() -> None:
    assert make_schema.TARGET.read_text(encoding="utf-8") == make_schema.render()


def test_every_named_format_that_we_describe_is_one_of_the_schema() -> None:
    named = {rule["format"] for rule in OPTIONS.values() if isinstance(rule.get("format"), str)}
    assert set(NAMED) <= named


def test_devices_are_counted_as_in_the_schema(shared: Path) -> None:
    schema: dict[str, Any] = json.loads((shared / "pve" / "schema-9.2.json").read_text(encoding="utf-8"))
    families = {name.removesuffix("[n]") for name in OPTIONS if name.endswith("[n]")}
    assert families == set(MOST)
    text = json.dumps(schema)
    for family in ("scsi", "virtio", "sata", "ide"):  # the disks of resize are listed by name
        assert f'"{family}{MOST[family] - 1}"' in text
        assert f'"{family}{MOST[family]}"' not in text


@pytest.mark.parametrize("key", ["net0", "scsi3", "cpu", "ipconfig7", "agent"])
def test_a_numbered_option_has_the_rule_of_its_family(key: str) -> None:
    assert rule_of(key)
    assert format_of(key)
