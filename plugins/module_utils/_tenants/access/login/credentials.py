# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The login of a tenant or of a token, as a file that modules and the inventory read (sites_file).

Proxmox VE returns the secret of a token only once. So the file is reserved with a mark before the
token is created. If the run ends in between, the next run finds the mark and knows that the secret
is lost. The comment of a tenant's token contains the same mark.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.core import vaulted
from ...._foundation.core.errors import ConfigurationError, Conflict, FleetError, ValidationFailed
from ...._foundation.core.files import (
    directory_lock,
    kind_of,
    read_regular,
    replace_file,
    require_space,
    why_not_writable,
)
from ...._foundation.core.result import Result

_MODE = 0o600
_MORE_THAN_MODE = 0o177
_OF_OTHERS = 0o077
_SECRET = "00000000-0000-0000-0000-000000000000"  # as long as the secret of a token
_MARK_BYTES = 6


@dataclass(frozen=True)
class LoginFile:
    """The file for a login, encrypted with ansible-vault if there is a password.

    `name` is the name of the site in the file. `noun` and `subject` name the owner of the login.
    """

    path: str
    name: str
    password: str = field(default="", repr=False)
    noun: str = "tenant"
    subject: str = ""

    @property
    def label(self) -> str:
        """The owner of the login, as in messages and in the first line."""
        return f"{self.noun} {self.subject or self.name}"

    @property
    def first_line(self) -> str:
        """The beginning of the first line of the file."""
        return f"# Login of {self.label}, written by pve.fleet.{self.noun}."


@dataclass(frozen=True)
class StoredLogin:
    """The content of a file: a token ID with its secret, or the mark of a reservation.

    `data` is None if there is no file. `mode` contains the permissions of the file.
    """

    data: bytes | None = field(default=None, repr=False)
    mode: int = _MODE
    token: str | None = None
    secret: str | None = field(default=None, repr=False)
    mark: str | None = None


def site_of(
    name: str, connection: ConnectionSettings, token_id: str, secret: str
) -> dict[str, Any]:
    """Return a login for the Proxmox VE of the task, in the form of a sites_file."""
    site: dict[str, Any] = {
        "name": name,
        "default": True,
        "host": str(connection.endpoint),
        "token_id": token_id,
        "token_secret": secret,
    }
    if connection.ca and not connection.fingerprint:
        site["ca_path"] = connection.ca
    if connection.fingerprint:
        site["fingerprint"] = connection.fingerprint
    if connection.others:
        site["other_hosts"] = [str(server) for server in connection.others]
    if not connection.validate_certs:
        site["validate_certs"] = False
    return {"sites": [site]}


def place_of(
    params: Mapping[str, Any], name: str, noun: str = "tenant", subject: str = ""
) -> LoginFile | None:
    """Return the file in which a task keeps a login, or None. Raises ValidationFailed."""
    path, password = params.get("credentials_file"), params.get("vault_password")
    if password is not None and not password:
        raise ValidationFailed(
            "vault_password was refused: it is empty, so the login would not be encrypted",
            "Set it to the password of the vault, or leave it out",
            "vault_password",
        )
    if not path:
        return None
    return LoginFile(str(path), name, password or "", noun, subject)


def read(place: LoginFile, *, damaged: bool = False) -> StoredLogin:
    """Return the content of a file; with `damaged`, it is enough if the file names the owner.

    Raises Conflict for any other file, so it is never overwritten, and ConfigurationError if the
    file cannot be read or decrypted.
    """
    try:
        content = read_regular(place.path)
        if content is None:
            return StoredLogin()
        text = _plain(place, content.data).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(place.path, error) from error
    body = _body_of(place, text, is_vaulted=_is_vaulted(content.data))
    if body is not None:
        token, secret, mark = _parse(body)
        if token or mark or damaged:
            return StoredLogin(content.data, content.mode, token, secret, mark)
    raise Conflict(
        f"credentials_file {place.path} was not used: the file exists and is not the login of "
        f"{place.label}",
        "Choose another file, or move this one away",
        "another file",
    )


def _is_vaulted(data: bytes) -> bool:
    return data.startswith(vaulted.HEADER)


def _plain(place: LoginFile, data: bytes) -> bytes:
    """Return the data, decrypted if they are encrypted. Raises ConfigurationError."""
    if not _is_vaulted(data):
        return data
    if not place.password:
        raise _locked(place, "it is encrypted with ansible-vault, and no password is given")
    try:
        return vaulted.decrypt(data, place.password)
    except ValueError as error:
        raise _locked(place, str(error)) from error
    except ImportError as error:
        raise _no_library() from error


def _body_of(place: LoginFile, text: str, *, is_vaulted: bool) -> str | None:
    """Return the JSON of a file of this owner, or None for another file.

    An encrypted file has no first line: its JSON contains the name.
    """
    if not is_vaulted:
        head, _newline, body = text.partition("\n")
        return body if head.startswith(place.first_line) else None
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        content = json.loads(text)
        named = content.get("name") or content["sites"][0]["name"]
        return text if named == place.name else None
    return None


def _parse(body: str) -> tuple[str | None, str | None, str | None]:
    """Return the token, secret and mark in the JSON of a file, each None if it is missing."""
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        content = json.loads(body)
        if content.get("reserved"):
            return None, None, str(content["reserved"])
        site = content["sites"][0]
        return str(site["token_id"]), str(site["token_secret"]), None
    return None, None, None


def require_writable(place: LoginFile) -> None:
    """Raise ConfigurationError if the file cannot be written; nothing is written for this check."""
    why = why_not_writable(place.path)
    if why:
        raise _unusable(place.path, OSError(why))
    if place.password:
        _encode(place, {})


def _encode(place: LoginFile, content: Mapping[str, Any]) -> str:
    """Return the text of the file. Raises ConfigurationError."""
    text = json.dumps(content, indent=2, sort_keys=True)
    if not place.password:
        return f"{place.first_line} Use it as sites_file.\n{text}\n"
    try:
        return vaulted.encrypt(text.encode("utf-8"), place.password)
    except ImportError as error:
        raise _no_library() from error


def write(place: LoginFile, before: StoredLogin, content: Mapping[str, Any]) -> None:
    """Replace the file atomically; from the first moment only its owner can read it.

    Raises Conflict if it changed since it was read, and ConfigurationError if it cannot be written.
    """
    text = _encode(place, content)
    try:
        with directory_lock(place.path):
            _require_unchanged(place, before)
            replace_file(place.path, text, _MODE)
    except OSError as error:
        raise _unusable(place.path, error) from error


def remove(place: LoginFile, before: StoredLogin) -> None:
    """Remove the file. Raises as `write` does."""
    try:
        with directory_lock(place.path):
            _require_unchanged(place, before)
            os.unlink(place.path)
    except OSError as error:
        raise _unusable(place.path, error) from error


def _require_unchanged(place: LoginFile, before: StoredLogin) -> None:
    content = read_regular(place.path)
    if (content and content.data) == before.data:
        return
    raise Conflict(
        f"The login of {place.label} was not written to {place.path}: another run has changed the "
        "file since this one began, and Proxmox VE returns a secret only once",
        "Use the login in the file, and set state=rotated if it does not work",
        "changed since",
    )


@dataclass(frozen=True)
class LoginFileRepair:
    """Repair of a file that contains the right login; `before` and `after` show it in a diff."""

    summary: str
    warnings: tuple[str, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class LoginKeeper:
    """Keeps a login in its file, from the reservation on. Does nothing without a place."""

    def __init__(self, place: LoginFile | None, stored: StoredLogin) -> None:
        self.place = place
        self.stored = stored
        self._created_reservation = False

    @classmethod
    def open(
        cls, params: Mapping[str, Any], name: str, noun: str = "tenant", subject: str = ""
    ) -> LoginKeeper:
        """Return the keeper for a task; its file is read. Raises as `place_of` and `read` do."""
        place = place_of(params, name, noun, subject)
        return cls(place, read(place) if place else StoredLogin())

    @classmethod
    def open_for_removal(
        cls, params: Mapping[str, Any], tenant: str
    ) -> tuple[LoginKeeper, list[str]]:
        """Return the keeper for a removal, and a warning about a file that stays.

        Raises as `open` does, except for a file of another owner.
        """
        place = place_of(params, tenant)
        if place is None:
            return cls(None, StoredLogin()), []
        kind = kind_of(place.path)
        if kind:
            return cls(None, StoredLogin()), [f"{place.path} stays: it is {kind}"]
        try:
            return cls(place, read(place, damaged=True)), []
        except Conflict:
            return cls(None, StoredLogin()), [
                f"{place.path} stays: it is not the login of tenant {tenant}"
            ]

    @property
    def login(self) -> tuple[str, str] | None:
        """The token and secret in the file, or None if they are missing."""
        if self.stored.token is None or self.stored.secret is None:
            return None
        return self.stored.token, self.stored.secret

    @property
    def summary_of_removal(self) -> list[str]:
        """The step that removes the file, for a plan; empty without a file."""
        if self.place is None or self.stored.data is None:
            return []
        return [f"Remove the login {self.place.path}"]

    def remove(self) -> Result:
        """Remove the file and return the step as a result."""
        if self.place is not None and self.stored.data is not None:
            remove(self.place, self.stored)
        return Result(True, {"done": self.summary_of_removal})

    @property
    def label(self) -> str:
        """The name of the file in a diff."""
        return f"file {self.place.path}" if self.place else ""

    def find_repair(self) -> LoginFileRepair | None:
        """Return the repair of the mode or the encryption of a file with a login, or None."""
        place, stored = self.place, self.stored
        if place is None or stored.data is None or stored.token is None:
            return None
        is_vaulted = _is_vaulted(stored.data)
        parts: list[str] = []
        if stored.mode & _MORE_THAN_MODE:
            parts.append(f"Set the mode of {place.path} from {stored.mode:04o} to {_MODE:04o}")
        if place.password and not is_vaulted:
            parts.append(f"Encrypt {place.path}")
        if not parts:
            return None
        warnings: list[str] = []
        if stored.mode & _OF_OTHERS:
            text = (
                f"{place.path} had mode {stored.mode:04o}: if someone else may have read it, set"
                " state=rotated to give the tenant another token"
            )
            warnings.append(text)
        return LoginFileRepair(
            "; ".join(parts),
            tuple(warnings),
            {"mode": f"{stored.mode:04o}", "encrypted": is_vaulted},
            {"mode": f"{_MODE:04o}", "encrypted": bool(place.password)},
        )

    def repair(self, found: LoginFileRepair) -> Result:
        """Write the same content again, with the right mode and encryption."""
        if self.place is None or self.stored.data is None:
            return Result()
        text = _plain(self.place, self.stored.data).decode("utf-8")
        if not _is_vaulted(self.stored.data):
            text = text.partition("\n")[2]
        self._write(self.place, json.loads(text))
        return Result(True, {"done": [found.summary]})

    def reserve(self, connection: ConnectionSettings, *, again: bool) -> Result:
        """Reserve the file, and check that there is room for the login.

        `again` makes the reservation of another run void. Raises ConfigurationError and Conflict.
        """
        if self.place is None:
            return Result()
        if again or not self.stored.mark:
            mark = secrets.token_hex(_MARK_BYTES)
            content = {"name": self.place.name, "reserved": mark}
            self._created_reservation = self.stored.data is None
            self._write(self.place, content)
        return self.require_room(connection)

    def require_room(self, connection: ConnectionSettings) -> Result:
        """Raise ConfigurationError if the disk has no room for the login."""
        if self.place is None:
            return Result()
        login = site_of(self.place.name, connection, "x" * 128, _SECRET)
        try:
            require_space(self.place.path, len(_encode(self.place, login)))
        except OSError as error:
            raise _unusable(self.place.path, error) from error
        return Result()

    def keep(self, content: Mapping[str, Any]) -> Result:
        """Write the login and return the step as a result.

        Raises ConfigurationError with a next step: the token already exists.
        """
        if self.place is None:
            return Result()
        try:
            self._write(self.place, content)
        except ConfigurationError as error:
            step = f"{error.next_step}; then run this again, which replaces the token"
            raise error.on(next_step=step) from error
        return Result(True, {"done": [f"Write the login to {self.place.path}"]})

    def _write(self, place: LoginFile, content: Mapping[str, Any]) -> None:
        write(place, self.stored, content)
        self.stored = read(place)

    def require_unchanged(self) -> Result:
        """Raise Conflict if another run has changed the file since this one read or wrote it."""
        if self.place is not None:
            _require_unchanged(self.place, self.stored)
        return Result()

    def release(self) -> None:
        """Remove the reservation of this run, unless the file has changed since."""
        if self.place is None or not self._created_reservation or not self.stored.mark:
            return
        with suppress(FleetError):
            remove(self.place, self.stored)


def _locked(place: LoginFile, why: str) -> ConfigurationError:
    role = " (in the role: tenant_vault_password)" if place.noun == "tenant" else ""
    return ConfigurationError(
        f"credentials_file {place.path} could not be decrypted, and nothing was changed: {why}",
        f"Set vault_password{role} to the password with which it was encrypted",
        "vault password",
    )


def _no_library() -> ConfigurationError:
    return ConfigurationError(
        "The login could not be encrypted, and nothing was changed: the Python library "
        "cryptography is missing",
        "Install it on the host that runs the task",
        "missing library cryptography",
    )


def _unusable(path: str, error: OSError | UnicodeDecodeError) -> ConfigurationError:
    cause = error.strerror if isinstance(error, OSError) else None
    return ConfigurationError(
        f"credentials_file {path} could not be used: {cause or error}",
        "Name a regular file in a directory that this user can write to, on a disk with room",
        "credentials_file",
    )
