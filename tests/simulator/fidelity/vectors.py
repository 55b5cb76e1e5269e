"""Parameter sets with Proxmox VE's own verdict: whether it takes them, and the text for each
parameter if not.
"""

from __future__ import annotations

from typing import Any

from ..errors import ParamError
from ..schema.definition import Schema

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


def disagreements(vectors: list[dict[str, Any]]) -> list[str]:
    """A line for each vector that the simulator judges otherwise."""
    schema = Schema("9.2")
    found = []
    for number, vector in enumerate(vectors):
        expected = vector.get("errors", {})
        actual = verdict(schema, vector)
        if actual != expected or vector["ok"] == bool(actual):
            found.append(f"vector {number} {vector['params']}: expected {expected}, got {actual}")
    return found
