# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The common part of the connection plugins: the client, the guest, and errors of Ansible."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

from ansible.errors import AnsibleConnectionFailure, AnsibleError, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase
from ansible.utils.display import Display

from ..module_utils._foundation.api.client import Client, connect
from ..module_utils._foundation.cluster.tenant import blank_owner, is_blank
from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.core.formatting import printable
from ..module_utils._foundation.entry.connection.place import (
    ConnectionGuest,
    GuestPlace,
    find_place,
)
from ..module_utils._foundation.entry.sites_file import read_sites_file
from ..module_utils._foundation.spec.generated.connection import connection_spec
from ..module_utils._guests.kinds.kind import Kind

display = Display()
BLOCK = 1024 * 1024


class GuestConnection(ConnectionBase):
    """A connection to a guest that is found through the API."""

    has_pipelining = True
    has_tty = False
    kind: ClassVar[Kind]

    @cached_property
    def client(self) -> Client:
        """The client of the API. Raises FleetError."""
        options = {name: self.get_option(name) for name in connection_spec()}
        client = connect(options, os.environ, read_file=read_sites_file)
        for warning in client.connection.warnings:
            display.warning(warning)
        return client

    def find(self) -> GuestPlace:
        """Return the guest and its present node. Raises FleetError."""
        return find_place(self.client, self._wanted())

    def _wanted(self) -> ConnectionGuest:
        vmid = self.get_option("vmid")
        name = self.get_option("guest_name") or ""
        for option in ("tenant", "tenant_prefix"):
            value = self.get_option(option)
            if value is not None and is_blank(value):
                raise blank_owner(option)
        if vmid is None and not name:
            name = str(self._play_context.remote_addr or "")
        return ConnectionGuest(
            kind=self.kind,
            vmid=vmid,
            name=str(name),
            node=str(self.get_option("node") or ""),
            tenant=str(self.get_option("tenant") or "").strip(),
            prefix=str(self.get_option("tenant_prefix")),
        )

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Turn a failure of the collection into Ansible's error for an unreachable host."""
        try:
            yield
        except FleetError as error:
            text = f"{error.message} ({error.category})"
            raise AnsibleConnectionFailure(text) from None

    def reset(self) -> None:
        """Find the guest again."""
        self.close()
        self._connect()

    def close(self) -> None:
        """Close the connections to the API."""
        client = self.__dict__.pop("client", None)
        if client is not None:
            client.close()
        self._connected = False


def blocks_of(path: str) -> Iterator[bytes]:
    """Yield the content of a local file in blocks. Raises AnsibleFileNotFound."""
    try:
        with open(path, "rb") as stream:
            while block := stream.read(BLOCK):
                yield block
    except FileNotFoundError:
        raise AnsibleFileNotFound(f"There is no file {path} to be copied") from None


def mode_of(path: str) -> int:
    """Return the permissions of a local file. Raises AnsibleFileNotFound."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        raise AnsibleFileNotFound(f"There is no file {path} to be copied") from None


def require_success(attempted: str, status: int, err: bytes) -> None:
    """Raise AnsibleError if a command that moves a file failed."""
    if status:
        cause = err.decode(errors="replace").strip() or f"exit status {status}"
        raise AnsibleError(printable(f"{attempted}: {cause}"))


def save(path: str, chunks: Iterator[bytes]) -> None:
    """Write a local file chunk by chunk; only its owner can read it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as stream:
        for chunk in chunks:
            stream.write(chunk)


def text_of(path: Any) -> str:
    """Return a path as text; Ansible passes text or bytes."""
    return os.fsdecode(path)
