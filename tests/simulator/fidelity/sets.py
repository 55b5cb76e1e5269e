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
# Written by `python -m tests.tools.facts.pack_recordings`.
PACKED = Path(__file__).parents[1] / "data" / "recordings.json.gz"

Line = dict[str, Any]


# The stories around virtual machines start from a cluster file of their own, apart from these.
FROM_THE_FIRST_CLUSTER = frozenset({"storage"})


@dataclass(frozen=True, slots=True)
class RecordedSet:
    """Recordings and verdicts on parameters, with the clusters that the recordings start from."""

    name: str
    cluster: str
    """The text of a cluster file."""
    cluster_around: str
    """The text of the cluster file that most stories around virtual machines start from."""
    machines: list[list[Line]]
    """Recordings of virtual machines, which are replayed one after another on the same server."""
    around: dict[str, list[Line]]
    """Recordings of other things, by the names of their files, each replayed on its own server."""
    vectors: list[dict[str, Any]]

    def cluster_of(self, story: str) -> str:
        """Return the cluster file that a story around virtual machines starts from."""
        return self.cluster if story in FROM_THE_FIRST_CLUSTER else self.cluster_around


def _lines(path: Path) -> list[Line]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load_shared(directory: Path = SHARED) -> RecordedSet | None:
    """The set beside the repository, or None."""
    recordings = sorted((directory / "recordings").glob("*.jsonl"))
    if not recordings:
        return None
    around = directory / "around"
    return RecordedSet(
        name="the recordings in ../shared",
        cluster=(directory / "cluster.yml").read_text(encoding="utf-8"),
        cluster_around=(around / "cluster.yml").read_text(encoding="utf-8"),
        machines=[_lines(path) for path in recordings],
        around={path.stem: _lines(path) for path in sorted(around.glob("*.jsonl"))},
        vectors=json.loads((directory / "vectors.json").read_text(encoding="utf-8")),
    )


def load_packed(file: Path = PACKED) -> RecordedSet | None:
    """The redacted set of this repository, or None."""
    if not file.is_file():
        return None
    packed = json.loads(gzip.decompress(file.read_bytes()))
    return RecordedSet(
        name="the redacted recordings of this repository",
        cluster=packed["cluster"],
        cluster_around=packed["cluster_around"],
        machines=packed["machines"],
        around=packed["around"],
        vectors=packed["vectors"],
    )
