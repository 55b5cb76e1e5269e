"""Names in files of Debian that Proxmox VE compares values with."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path


@cache
def debian_names() -> dict[str, frozenset[str]]:
    """The names of protocols and services in netbase 6.4, and the time zones of zone.tab in tzdata
    2025b, as the nodes of Proxmox VE have them.
    """
    file = Path(__file__).parents[1] / "data" / "debian-names.json"
    return {kind: frozenset(names) for kind, names in json.loads(file.read_text()).items()}
