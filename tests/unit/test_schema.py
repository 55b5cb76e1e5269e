"""The facts about VM options are those of the official API schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._schema.check import check_options
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


def test_what_pve_refuses_we_refuse_first(shared: Path) -> None:
    """PVE's own verdicts on parameter sets for creating and changing a VM are ours too."""
    vectors = json.loads((shared / "pve" / "vectors.json").read_text(encoding="utf-8"))
    judged = 0
    for vector in vectors:
        if vector["method"] not in ("create_vm", "update_vm"):
            continue
        judged += 1
        options = {key: value for key, value in vector["params"].items() if key not in ("node", "vmid", "pool")}
        refused = check_options(options)
        expected = {key for key in vector.get("errors") or {} if key not in ("vmid", "pool")}
        assert set(refused) == expected, (options, refused)
    assert judged > 100
