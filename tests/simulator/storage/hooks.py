"""Secrets of storages, which are not in their definition, and the additions of a kind to its
definition.

Source: pve-storage, on_add_hook and on_update_hook of the plugins.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from ..core.api import Ctx
from ..errors import PveError

# Options that are kept elsewhere, by kind (plugindata, sensitive-properties).
SECRETS: dict[str, tuple[str, ...]] = {
    "cifs": ("password",),
    "esxi": ("password",),
    "pbs": ("encryption-key", "master-pubkey", "password"),
    "rbd": ("keyring",),
    "cephfs": ("keyring",),
}
_BASE_PATHS = {
    "comstar": "/dev/zvol/rdsk",
    "istgt": "/dev/zvol",
    "iet": "/dev/zvol",
    "LIO": "/dev/zvol",
}


def take_secrets(kind: str, params: dict[str, Any], delete: list[str]) -> dict[str, Any]:
    """Take the secrets out of the parameters; None means that a secret is removed."""
    names = SECRETS.get(kind, ())
    secrets: dict[str, Any] = {name: None for name in names if name in delete}
    secrets.update({name: params.pop(name) for name in names if params.get(name) is not None})
    return secrets


def added(
    ctx: Ctx, kind: str, config: dict[str, str], secrets: dict[str, Any]
) -> dict[str, Any] | None:
    """Complete a new definition; returns the answer's `config`. Raises PveError."""
    if kind == "esxi" and secrets.get("password") is None:
        raise PveError("missing password")
    if kind == "zfs":
        _set_base_path(ctx, config)
    if kind != "pbs":
        return None
    if secrets.get("master-pubkey") and not secrets.get("encryption-key"):
        raise PveError("'master-pubkey' can only be used together with 'encryption-key'")
    return _keys(ctx, config, secrets)


def updated(
    ctx: Ctx, kind: str, config: dict[str, str], secrets: dict[str, Any]
) -> dict[str, Any] | None:
    """Complete a changed definition; returns the answer's `config`."""
    return _keys(ctx, config, secrets) if kind == "pbs" else None


def _keys(ctx: Ctx, config: dict[str, str], secrets: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    key = secrets.get("encryption-key")
    if key is not None:
        text = _new_key(ctx) if key == "autogen" else str(key)
        config["encryption-key"] = _fingerprint(text)
        answer["encryption-key"] = text
    if secrets.get("master-pubkey") is not None:
        config["master-pubkey"] = "1"
    return answer


def _new_key(ctx: Ctx) -> str:
    random = ctx.cluster.random
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ctx.cluster.now()))
    fingerprint = ":".join(f"{random.getrandbits(8):02x}" for _dummy in range(32))
    data = base64.b64encode(random.randbytes(32)).decode()
    key = {"kdf": None, "created": now, "modified": now, "data": data, "fingerprint": fingerprint}
    return json.dumps(key)


def _fingerprint(text: str) -> str:
    try:
        key = json.loads(text)
    except ValueError:
        key = None
    if not isinstance(key, dict) or "data" not in key:
        raise PveError("Value does not seems like a valid, JSON formatted encryption key!")
    return str(key.get("fingerprint") or 1)


def _set_base_path(ctx: Ctx, config: dict[str, str]) -> None:
    method = ctx.sim.schema.methods[("POST", "/storage")]
    if "zfs-base-path" not in method.props or config.get("zfs-base-path"):
        return
    provider = config["iscsiprovider"]
    if provider not in _BASE_PATHS:
        raise PveError(f"{provider}: unknown iscsi provider. Available [comstar, istgt, iet, LIO]")
    config["zfs-base-path"] = _BASE_PATHS[provider]
