# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection plugin `pve.fleet.agent`: tasks in a VM by way of its guest agent."""

from __future__ import annotations

DOCUMENTATION = r"""
name: agent
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Run tasks in a VM through its QEMU guest agent
description:
  - Runs commands and moves files through the API of Proxmox VE and the guest agent. The VM needs
    no network and no SSH.
  - The guest needs the package C(qemu-guest-agent) that allows guest-exec and guest-file-write, a
    POSIX shell, and Python for most modules. Commands run as the user of the agent, by default
    root.
  - The login needs VM.GuestAgent.Unrestricted on the VM, or VM.Monitor before Proxmox VE 9.
  - The VM is found through the API when the connection is opened, and its name and its tenant are
    checked there.
notes:
  - The agent passes 40 KiB of a file with each request. Use another connection for large files.
  - The agent keeps 16 MiB of the output of a command. A longer output is an error.
  - C(become) works without a password.
extends_documentation_fragment:
  - pve.fleet.connection.variables
  - pve.fleet.connection
  - pve.fleet.connection_guest
  - ansible.builtin.connection_pipelining
seealso:
  - plugin: pve.fleet.pct
    plugin_type: connection
  - plugin: pve.fleet.proxmox
    plugin_type: inventory
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from ..module_utils._foundation.core.texts.shell import CHUNK, read_chunk
from ..module_utils._foundation.entry.connection.agent import CommandResult, GuestAgent
from ..module_utils._guests.kinds.kind import Kind
from ..module_utils._guests.kinds.vm.kind import VM
from ..plugin_utils._guest_connection import (
    GuestConnection,
    blocks_of,
    mode_of,
    require_success,
    save,
    text_of,
)


class Connection(GuestConnection):
    """A connection to a VM through its guest agent."""

    transport = "pve.fleet.agent"
    kind: ClassVar[Kind] = VM
    _agent: GuestAgent

    def _connect(self) -> Connection:
        if not self._connected:
            with self.reported():
                self._agent = GuestAgent(
                    self.client, self.find(), self.get_option("command_timeout")
                )
                self._agent.ping()
            self._connected = True
        return self

    def exec_command(
        self, cmd: str, in_data: bytes | None = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a command in the guest, and return its exit status and both outputs."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        ended = self._run(cmd, in_data)
        return ended.status, ended.out, ended.err

    def put_file(self, in_path: Any, out_path: Any) -> None:
        """Copy a local file to the guest, with its permissions."""
        super().put_file(in_path, out_path)
        source = text_of(in_path)
        mode = mode_of(source)
        with self.reported():
            self._agent.write_file(text_of(out_path), blocks_of(source), mode)

    def fetch_file(self, in_path: Any, out_path: Any) -> None:
        """Copy a file of the guest to the controller."""
        super().fetch_file(in_path, out_path)
        save(text_of(out_path), self._chunks(text_of(in_path)))

    def _chunks(self, path: str) -> Iterator[bytes]:
        number = 0
        while True:
            ended = self._run(read_chunk(path, number))
            require_success(f"Could not read {path} in the guest", ended.status, ended.err)
            yield ended.out
            if len(ended.out) < CHUNK:
                return
            number += 1

    def _run(self, command: str, stdin: bytes | None = None) -> CommandResult:
        with self.reported():
            return self._agent.run(command, stdin)
