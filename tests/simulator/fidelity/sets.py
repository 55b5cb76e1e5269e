"""The sets of recordings of a real Proxmox VE: the whole one beside the repository, and the one in
it.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..process import ROOT

SHARED = ROOT.parent / "shared" / "pve"
# Written by `python -m tests.tools.pack_recordings`.
PACKED = Path(__file__).parents[1] / "data" / "recordings.json.gz"

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedSet:
    """Recordings and verdicts on parameters, with the cluster that each recording starts from."""

    name: str
    cluster: str
    """The text of a cluster file."""
    machines: list[list[Line]]
    """Recordings of virtual machines, which are replayed one after another on the same server."""
    around: list[list[Line]]
    """Recordings of what lies around virtual machines, each replayed on a server of its own."""
    vectors: list[dict[str, Any]]


def _lines(path: Path) -> list[Line]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load_shared(directory: Path = SHARED) -> RecordedSet | None:
    """The set beside the repository; None where there is none."""
    recordings = sorted((directory / "recordings").glob("*.jsonl"))
    if not recordings:
        return None
    return RecordedSet(
        name="the recordings in ../shared",
        cluster=(directory / "cluster.yml").read_text(encoding="utf-8"),
        machines=[_lines(path) for path in recordings],
        around=[_lines(path) for path in sorted((directory / "around").glob("*.jsonl"))],
        vectors=json.loads((directory / "vectors.json").read_text(encoding="utf-8")),
    )


def load_packed(file: Path = PACKED) -> RecordedSet | None:
    """The redacted set of this repository; None where there is none."""
    if not file.is_file():
        return None
    packed = json.loads(gzip.decompress(file.read_bytes()))
    return RecordedSet(
        name="the redacted recordings of this repository",
        cluster=packed["cluster"],
        machines=packed["machines"],
        around=packed["around"],
        vectors=packed["vectors"],
    )
