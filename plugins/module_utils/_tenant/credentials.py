# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The login of a tenant, as a file that all modules and the inventory read (sites_file)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .._api.settings import Connection
from .._core.errors import ConfigurationError, Conflict
from .._core.files import replace_file, why_not_writable
from .._core.result import Result

_MODE = 0o600
_FIRST_LINE = "# Login of tenant {name}, written by pve.fleet.tenant."
_HEAD = f"{_FIRST_LINE} Use it as sites_file."


def site_of(name: str, connection: Connection, token_id: str, secret: str) -> dict[str, Any]:
    """Return the login of a tenant at the Proxmox VE of the task, as sites of a connection."""
    site: dict[str, Any] = {
        "name": name,
        "default": True,
        "host": str(connection.endpoint),
        "token_id": token_id,
        "token_secret": secret,
    }
    if connection.ca:
        site["ca_path"] = connection.ca
    if not connection.validate_certs:
        site["validate_certs"] = False
    return {"sites": [site]}


def read_token(path: str, name: str) -> tuple[str, str] | None:
    """Return token and secret of a tenant's file, or None where there is no file.

    Raises Conflict for another file, so that it is never overwritten.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, str(error)) from error
    head, _newline, body = text.partition("\n")
    if head.startswith(_FIRST_LINE.format(name=name)):
        with suppress(ValueError, LookupError, TypeError):
            site = json.loads(body)["sites"][0]
            return str(site["token_id"]), str(site["token_secret"])
    raise Conflict(
        attempted=f"credentials_file {path} was not used",
        answer=f"the file exists and is not the login of tenant {name}",
        next_step="Choose another file, or move this one away",
        reason="another file",
    )


def require_writable(path: str) -> None:
    """Raise ConfigurationError where the file cannot be written; nothing is written for that."""
    why = why_not_writable(path)
    if why:
        raise _unusable(path, why)


def write(path: str, name: str, content: Mapping[str, Any]) -> None:
    """Replace the file at once by the login of a tenant, readable for its owner only from the first
    moment.
    """
    text = json.dumps(content, indent=2, sort_keys=True)
    try:
        replace_file(path, f"{_HEAD.format(name=name)}\n{text}\n", _MODE)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error


def keep(path: str, name: str, content: Mapping[str, Any]) -> Result:
    """Write the file and return that as a result of its own.

    Raises ConfigurationError with the way out: the token exists by then.
    """
    try:
        write(path, name, content)
    except ConfigurationError as error:
        step = f"{error.next_step}; then set state=rotated, because the secret is lost"
        raise error.on(next_step=step) from error
    return Result(True, {"done": [f"Write the login to {path}"]})


def _unusable(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        attempted=f"credentials_file {path} could not be used",
        answer=why,
        next_step="Name a file in a directory that this user can write to",
        reason="credentials_file",
        dispatched=False,
    )
