"""Parameter sets with Proxmox VE's own verdict: whether it takes them, and the text for each parameter if not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.simulator.errors import ParamError
from tests.simulator.schema import Schema

METHODS = {
    "create_vm": ("POST", "/nodes/{node}/qemu"),
    "update_vm": ("PUT", "/nodes/{node}/qemu/{vmid}/config"),
    "resize_vm": ("PUT", "/nodes/{node}/qemu/{vmid}/resize"),
    "snapshot": ("POST", "/nodes/{node}/qemu/{vmid}/snapshot"),
    "destroy_vm": ("DELETE", "/nodes/{node}/qemu/{vmid}"),
    "migrate_vm": ("POST", "/nodes/{node}/qemu/{vmid}/migrate"),
    "clone_vm": ("POST", "/nodes/{node}/qemu/{vmid}/clone"),
    "vm_shutdown": ("POST", "/nodes/{node}/qemu/{vmid}/status/shutdown"),
}


def verdict(schema: Schema, vector: dict[str, Any]) -> dict[str, str]:
    """The simulator's text for each parameter that it refuses."""
    method = schema.methods[METHODS[vector["method"]]]
    try:
        schema.check(method, dict(vector["params"]))
    except ParamError as error:
        return error.errors or {}
    return {}


def disagreements(path: Path) -> tuple[int, list[str]]:
    """How many vectors there are, and a line for each one that the simulator sees otherwise."""
    schema = Schema("9.2")
    vectors = json.loads(path.read_text(encoding="utf-8"))
    found = []
    for number, vector in enumerate(vectors):
        expected = vector.get("errors", {})
        actual = verdict(schema, vector)
        if actual != expected or vector["ok"] == bool(actual):
            found.append(f"vector {number} {vector['params']}: expected {expected}, got {actual}")
    return len(vectors), found
