"""The schema that is packed beside the simulator is the official one without its prose."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.simulator.schema.definition import DATA, load_paths
from tests.tools.facts import pack_schema


def test_the_packed_schema_is_fresh() -> None:
    fresh = gzip.decompress(pack_schema.packed(pack_schema.VERSION))
    # zlib's bytes differ between its versions
    assert gzip.decompress(pack_schema.TARGET.read_bytes()) == fresh


def test_the_packed_schema_has_every_fact_in_its_order() -> None:
    raw = pack_schema.without_prose(pack_schema.raw_paths(pack_schema.VERSION))
    packed = load_paths(pack_schema.VERSION)
    assert list(packed) == list(raw)
    newer = json.loads(gzip.decompress((DATA / "vm-9.2.json.gz").read_bytes()))["paths"]
    same = [path for path in raw if path not in newer]
    assert len(same) > 350
    assert {path: packed[path] for path in same} == {path: raw[path] for path in same}


def test_prose_is_left_out_but_not_an_option_of_its_name() -> None:
    option: dict[str, Any] = {
        "type": "string",
        "description": "What it is for.",
        "typetext": "<text>",
    }
    facts = pack_schema.without_prose({"params": {"description": option}})
    assert facts == {"params": {"description": {"type": "string"}}}
