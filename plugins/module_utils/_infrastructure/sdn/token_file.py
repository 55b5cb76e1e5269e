# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The token of the SDN lock, kept in a file while a run holds the lock.

Proxmox VE shows neither the token nor its holder. The next run of the same user on this computer
recognises an interrupted run by this file. An active run holds an operating-system lock on the
file, which ends with the process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


class TokenFile:
    """The file with the token of one cluster and login."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None  # open while this run holds the lock of SDN

    def read(self) -> str:
        """Return the token; empty if no run of this user was interrupted.

        The token of an active run is not returned.
        """
        try:
            with open(self.path, encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return file.read().strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def write(self, token: str) -> None:
        """Write the token to the file, which only this user can read. Raises OSError."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.remove()
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(handle, "w", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._file.write(token)
        self._file.flush()

    def remove(self) -> None:
        """Remove the file with the token."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.close()

    def close(self) -> None:
        """Release the lock on the file, as the end of the process would."""
        if self._file is not None:
            self._file.close()
            self._file = None


def token_file(client: Client) -> TokenFile:
    """Return the file of the cluster and login of a client."""
    subject = f"{client.connection.endpoint} {client.login}"
    name = hashlib.sha256(subject.encode()).hexdigest()[:24]
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local/state")
    return TokenFile(Path(base) / "pve.fleet" / f"sdn-lock-{name}")
