"""Write the recordings of a real Proxmox VE to tests/simulator/data, without details of the
recorded hosts.

`make fidelity` compares the simulator with them if ../shared is absent. Run `python -m
tests.tools.facts.pack_recordings` when the recordings in ../shared have changed; a test fails while
the file is stale. Left out:

- tickets, secrets, certificates, and every other value that the comparison looks at by its type
  alone, such as versions of the kernel, models of processors, loads, sizes and times;
- secrets of tokens and other UUIDs, which are compared as such alone;
- the lines of task logs, which are not compared;
- the places of errors in PVE's source;
- exchanges that are not replayed, and remarks of their author.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from typing import Any

from tests.simulator.fidelity.likeness import IDENTITY, VOLATILE
from tests.simulator.fidelity.sets import PACKED, RecordedSet, load_shared

# Keys of a line that the replay needs.
KEPT = (
    "control",
    "auth",
    "method",
    "path",
    "params",
    "json_body",
    "raw_request_body",
    "status",
    "reason",
    "body",
    "loose",
    "delay_before",
    "note",
)
# The one remark that the replay reads.
READ_NOTE = "running task"

# Values that later requests repeat, or that identify elements of a list, are needed although they
# are not compared.
BLANKED = VOLATILE - {"upid", "digest", "vmstate", "hardware-address", *IDENTITY}

_SOURCE = re.compile(r" at /\S+ line \d+[^\n]*")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NO_UUID = "00000000-0000-4000-8000-000000000000"


def redacted(value: Any) -> Any:
    """A copy of an answer; values that are not compared are blank, of the same type."""
    if isinstance(value, dict):
        return {
            key: blank(item) if key in BLANKED else redacted(item) for key, item in value.items()
        }
    if isinstance(value, list):
        return [redacted(item) for item in value]
    return without_source(value)


def without_source(value: Any) -> Any:
    """A copy of a refusal or a text without places in PVE's source and without UUIDs."""
    if isinstance(value, dict):
        return {key: without_source(item) for key, item in value.items()}
    if isinstance(value, str):
        return _UUID.sub(_NO_UUID, _SOURCE.sub("", value))
    return value


def blank(value: Any) -> Any:
    """The empty value of the same type."""
    return None if value is None else type(value)()


def redacted_line(line: dict[str, Any]) -> dict[str, Any]:
    """A copy of a recorded exchange with the data for the comparison."""
    kept = {key: line[key] for key in KEPT if line.get(key) is not None}
    if kept.get("note") != READ_NOTE:
        kept.pop("note", None)
    if "control" in kept:
        return kept
    kept["reason"] = without_source(line["reason"])
    if line["status"] >= 400:
        kept["body"] = without_source(line["body"])
    elif line["path"].endswith("/log"):
        kept["body"] = {"data": blank(line["body"]["data"])}
    else:
        kept["body"] = redacted(line["body"])
    return kept


def redacted_story(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The exchanges of a recording that are replayed."""
    return [redacted_line(line) for line in lines if line.get("replay") is not False]


def without_comments(cluster: str) -> str:
    """Return a cluster file without its comments."""
    lines = [line.partition(" #")[0].rstrip() for line in cluster.splitlines()]
    kept = [line for line in lines if not line.startswith("#")]
    return "\n".join([*kept, ""])


def document(recorded: RecordedSet) -> dict[str, Any]:
    """The content of the file."""
    return {
        "cluster": without_comments(recorded.cluster),
        "cluster_around": without_comments(recorded.cluster_around),
        "machines": [redacted_story(story) for story in recorded.machines],
        "around": {name: redacted_story(story) for name, story in recorded.around.items()},
        "vectors": recorded.vectors,
    }


def main() -> int:
    """Write the file."""
    recorded = load_shared()
    if recorded is None:
        print("there are no recordings in ../shared", file=sys.stderr)
        return 1
    text = json.dumps(document(recorded), separators=(",", ":"), sort_keys=True)
    PACKED.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{PACKED.name}: {PACKED.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
