"""Sizes and property strings as Proxmox VE reads and writes them."""

from __future__ import annotations

import math
import re
from typing import Any

from .validate import parse_bool, split_property_string

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT])?(?:iB)?\Z")
_FACTOR = {None: 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


def parse_size(text: str) -> int | None:
    """Bytes, or None when the text is not a size."""
    found = _SIZE.match(text)
    return int(float(found[1]) * _FACTOR[found[2]]) if found else None


def format_size(size: int) -> str:
    """The size in the largest unit that divides it, as it stands in a configuration."""
    for unit in ("", "K", "M", "G"):
        if size % 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}T"


def human(size: float) -> str:
    """The size as a task log gives it: `1.0 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def gib_to_kib(text: str) -> int:
    """A number of GiB in KiB, rounded up."""
    return math.ceil(float(text) * 1024 * 1024)


def parse_props(keys: dict[str, Any], text: str) -> dict[str, str]:
    """The parts of a property string that is known to be well-formed."""
    return split_property_string(keys, text)


def print_props(keys: dict[str, Any], values: dict[str, str]) -> str:
    """The property string of the values: the default key's bare, then the required ones, then the
    rest, each sorted by key (pve-common: JSONSchema.pm, print_property_string).
    """
    rest = dict(values)
    parts = []
    for name, prop in keys.items():
        key_alias = prop.get("keyAlias")
        if key_alias and rest.get(key_alias) == name:
            target = rest.pop(prop["alias"], None)
            rest.pop(key_alias)
            parts.append(name if target is None else f"{name}={target}")
            break
    default = next((name for name, prop in keys.items() if prop.get("default_key")), None)
    if default in rest:
        parts.append(rest.pop(default))
    for name in sorted(rest, key=lambda name: (bool(keys.get(name, {}).get("optional")), name)):
        value = rest[name]
        prop = keys.get(name, {})
        if prop.get("type") == "boolean":
            value = parse_bool(value)
        elif prop.get("format") == "disk-size":
            size = parse_size(value)
            value = value if size is None else format_size(size)
        parts.append(f"{name}={value}")
    return ",".join(parts)
