"""latest.json: the named keys at its top, then the parts with all that was measured."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.figures import Measured
from tests.bench.keys import KEYS

HERE = Path(__file__).resolve().parent
LATEST = HERE / "results" / "latest.json"

Results = dict[str, Any]
"""The content of latest.json."""


def load(file: Path = LATEST) -> Results:
    """Return what was measured before; nothing where there is no file yet."""
    if not file.exists():
        return {}
    found: Results = json.loads(file.read_text(encoding="utf-8"))
    return found


def merged(
    old: Mapping[str, Any], part: str, measured: Measured, conditions: Mapping[str, Any]
) -> Results:
    """Return the results with this part measured again.

    What other parts found stays as it is (pure).
    """
    parts = {
        **old.get("parts", {}),
        part: {
            "conditions": dict(conditions),
            "rows": [row.as_dict() for row in measured.rows],
            "keys": {name: figure.as_dict() for name, figure in measured.keys.items()},
            "notes": list(measured.notes),
        },
    }
    return arranged(parts)


def arranged(parts: Mapping[str, Any]) -> Results:
    """Return the file's content for these parts: every key that was measured at the top, in the
    order of `KEYS`.
    """
    found = {name: figure for part in parts.values() for name, figure in part["keys"].items()}
    top: Results = {name: _plain(found[name]["median"]) for name in KEYS if name in found}
    reached = {name: KEYS[name].reached(top[name]) for name in top if KEYS[name].limit is not None}
    return {**top, "reached": reached, "parts": dict(parts)}


def _plain(value: float) -> float | int:
    return int(value) if float(value).is_integer() else round(value, 3)


def save(results: Results, file: Path = LATEST) -> None:
    """Write the file in one step, so that a run that is stopped leaves the old or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    os.replace(fresh, file)
