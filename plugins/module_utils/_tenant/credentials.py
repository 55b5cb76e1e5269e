# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The login of a tenant, as a file that all modules and the inventory read (sites_file)."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any

from .._api.settings import Connection
from .._core.errors import ConfigurationError, Conflict
from .._core.result import Result

_MODE = 0o600
_HEAD = "# Login of tenant {name}, written by pve.fleet.tenant. Use it as sites_file."
_FIRST_LINE = re.compile(r"# Login of tenant (?P<name>\S+), written by pve\.fleet\.tenant\b")


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
    found = _FIRST_LINE.match(head)
    try:
        site = json.loads(body)["sites"][0] if found and found["name"] == name else None
        if site is not None:
            return str(site["token_id"]), str(site["token_secret"])
    except (ValueError, LookupError, TypeError):
        pass
    raise Conflict(
        attempted=f"credentials_file {path} was not used",
        answer=f"the file exists and is not the login of tenant {name}",
        next_step="Choose another file, or move this one away",
        reason="another file",
    )


def require_writable(path: str) -> None:
    """Raise ConfigurationError where the file cannot be written; nothing is written for that."""
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        raise _unusable(path, f"there is no directory {directory}")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise _unusable(path, f"this user cannot write to {directory}")


def write(path: str, name: str, content: Mapping[str, Any]) -> None:
    """Replace the file at once by the login of a tenant, readable for its owner only from the first
    moment.
    """
    text = json.dumps(content, indent=2, sort_keys=True)
    directory = os.path.dirname(os.path.abspath(path))
    beside = ""
    try:
        number, beside = tempfile.mkstemp(prefix=".pve-fleet-", dir=directory)
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), _MODE)
            stream.write(f"{_HEAD.format(name=name)}\n{text}\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
        beside = ""
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    finally:
        if beside:
            os.unlink(beside)


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
