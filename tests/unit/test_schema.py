"""The facts about VM options are those of the official API schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._core.propstring import parse
from ansible_collections.pve.fleet.plugins.module_utils._schema.check import (
    check_options,
    check_part,
    disputed,
    taken_by,
)
from ansible_collections.pve.fleet.plugins.module_utils._schema.formats import MOST, NAMED, format_of, rule_of
from ansible_collections.pve.fleet.plugins.module_utils._schema.qemu import OPTIONS
from ansible_collections.pve.fleet.plugins.module_utils._schema.versions import BY_VERSION, NEWEST, judges
from tests.tools import make_schema


def test_the_generated_files_are_fresh() -> None:
    assert make_schema.TARGET.read_text(encoding="utf-8") == make_schema.render()
    assert make_schema.OLDER_TARGET.read_text(encoding="utf-8") == make_schema.render_older()


def _facts(rules: Any) -> Any:
    """Return rules without defaults, which judge nothing."""
    if isinstance(rules, dict):
        return {key: _facts(value) for key, value in rules.items() if key != "default"}
    return rules


@pytest.mark.parametrize("version", [*make_schema.OLDER, make_schema.VERSION])
def test_the_rules_of_each_version_are_those_of_its_schema(version: str) -> None:
    major, minor = map(int, version.split("."))
    whole = make_schema.options(make_schema.OLDER.get(version, version))
    assert _facts(dict(BY_VERSION[major, minor])) == _facts(whole)


def test_the_facts_of_8_4_are_those_of_the_reference(shared: Path) -> None:
    """What the simulator serves as 8.4, and our rules come from, is the official schema."""
    text = (shared / "pve" / "schema-8.4.json").read_text(encoding="utf-8")
    reference = json.loads(text)["paths"]["/nodes/{node}/qemu"]["POST"]["params"]
    assert {name for name in BY_VERSION[8, 4] if name not in reference} <= {"skiplock"}
    assert {name for name in reference if name not in BY_VERSION[8, 4]} <= make_schema.CALL_ONLY


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (None, [(8, 4), (9, 1), (9, 2)]),
        ((7, 4), [(8, 4)]),
        ((8, 4), [(8, 4)]),
        ((9, 0), [(8, 4), (9, 1)]),
        ((9, 1), [(9, 1)]),
        ((9, 2), [(9, 2)]),
        ((10, 1), [(9, 2)]),
    ],
)
def test_a_server_is_judged_by_its_version_or_its_neighbours(server: Any, expected: list[Any]) -> None:
    assert list(judges(server)) == expected


BY_SERVER: list[tuple[str, str, set[tuple[int, int]]]] = [
    ("cores", "4", {(8, 4), (9, 1), (9, 2)}),
    ("cores", "0", set()),
    ("allow-ksm", "0", {(9, 1), (9, 2)}),
    ("allow-ksm", "perhaps", set()),
    ("intel-tdx", "type=intel-tdx", {(9, 1), (9, 2)}),
    ("machine", "q35,aw-bits=48", {(9, 1), (9, 2)}),
    ("machine", "q35,aw-bits=480", set()),
    ("agent", "1,freeze-fs=0", {(9, 1), (9, 2)}),
    ("agent", "1,freeze-fs-on-backup=0", {(8, 4), (9, 1), (9, 2)}),
    ("scsi0", "local-lvm:8,cyls=4", {(8, 4)}),
    ("scsi0", "local-lvm:8,cache=bogus", set()),
    ("efidisk0", "local-lvm:1,efitype=4m,ms-cert=2023", {(9, 1), (9, 2)}),
    ("tpmstate0", "local-lvm:1,version=v2.0,format=raw", {(9, 1), (9, 2)}),
    ("serial0", "/dev/a,b", {(8, 4), (9, 1)}),
    ("nosuch", "1", {(8, 4), (9, 1), (9, 2)}),
]


@pytest.mark.parametrize(("key", "value", "takers"), BY_SERVER, ids=lambda value: str(value)[:40])
def test_who_takes_what(key: str, value: str, takers: set[tuple[int, int]]) -> None:
    assert set(taken_by(key, value)) == takers
    assert disputed({key: value, "memory": "512"}) == ({key} if 0 < len(takers) < len(BY_VERSION) else set())
    assert bool(check_options({key: value})) == (not takers)
    for version in BY_VERSION:
        assert bool(check_options({key: value}, version)) == (version not in takers)


def test_a_version_between_two_known_ones_gets_the_benefit_of_the_doubt() -> None:
    assert not check_options({"allow-ksm": "0", "scsi0": "local-lvm:8,cyls=4"}, (9, 0))
    assert check_options({"cores": "0"}, (9, 0))


def test_a_sub_key_goes_by_the_name_that_every_version_takes() -> None:
    for text in ("1,freeze-fs=0", "1,guest-fsfreeze=0", "1,freeze-fs-on-backup=0"):
        assert parse(text, format_of("agent") or {}) == {"enabled": "1", "freeze-fs-on-backup": "0"}
    assert check_part("agent", "freeze-fs-on-backup", "0") is None
    assert check_part("scsi0", "cyls", "x")


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
        refused = check_options(options, NEWEST)
        expected = {key for key in vector.get("errors") or {} if key not in ("vmid", "pool")}
        assert set(refused) == expected, (options, refused)
    assert judged > 100
