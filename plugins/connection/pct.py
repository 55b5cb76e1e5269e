# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection plugin `pve.fleet.pct`: tasks in a container by way of its node."""

from __future__ import annotations

DOCUMENTATION = r"""
name: pct
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Run tasks in a container through SSH to its node
description:
  - Finds the node of the container through the API, connects to the node by SSH, and runs commands
    and moves files with C(pct exec). The container needs no network and no SSH.
  - If the container was moved to another node, the connection follows it.
  - Settings of SSH in C(ansible.cfg), section C([ssh_connection]), hold for the node.
  - The login of the API needs VM.Audit on the container. Without Sys.Audit on C(/), set
    O(node_addresses), or let the names of the nodes be known to the controller.
notes:
  - Whoever may log in to a node as root controls all of its guests. Give this connection to
    administrators only; the check of the tenant prevents mistakes, and no attack.
  - C(become) works without a password.
extends_documentation_fragment:
  - pve.fleet.connection.variables
  - pve.fleet.connection
  - pve.fleet.connection_guest
  - ansible.builtin.connection_pipelining
options:
  node_addresses:
    description:
      - The address for SSH to each node, by its name.
      - The default is the address of the node in the cluster, and its name if the login may not
        read that.
    type: dict
    default: {}
    vars: [{name: ansible_pct_node_addresses}]
  node_user:
    description: The user on the node.
    type: str
    default: root
    vars: [{name: ansible_pct_node_user}]
  node_become:
    description: Whether the user on the node runs C(pct) with C(sudo), without a password.
    type: bool
    default: false
    vars: [{name: ansible_pct_node_become}]
  node_port:
    description: The port of SSH on the node.
    type: int
    vars: [{name: ansible_pct_node_port}]
  node_password:
    description: The password of the user on the node. It needs C(sshpass) on the controller.
    type: str
    vars: [{name: ansible_pct_node_password}]
  node_private_key_file:
    description: The private key for the node.
    type: path
    vars: [{name: ansible_pct_node_private_key_file}]
  node_ssh_args:
    description: More arguments for C(ssh).
    type: str
    vars: [{name: ansible_pct_node_ssh_args}]
  node_ssh_executable:
    description: The program for SSH.
    type: str
    vars: [{name: ansible_pct_node_ssh_executable}]
seealso:
  - plugin: pve.fleet.agent
    plugin_type: connection
  - plugin: pve.fleet.proxmox
    plugin_type: inventory
"""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase
from ansible.plugins.loader import connection_loader

from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.core.formatting import printable
from ..module_utils._foundation.core.texts.shell import (
    CHUNK,
    append,
    begin_file,
    limited,
    read_chunk,
    was_killed,
)
from ..module_utils._foundation.entry.connection.pct import address_of, enter, is_stopped, was_moved
from ..module_utils._foundation.entry.connection.place import GuestPlace
from ..module_utils._guests.kinds.container.kind import CONTAINER
from ..module_utils._guests.kinds.kind import Kind
from ..plugin_utils._guest_connection import (
    GuestConnection,
    blocks_of,
    mode_of,
    require_success,
    save,
    text_of,
)

# Option of this plugin -> option of Ansible's own plugin for SSH.
_SSH_OPTIONS = {
    "node_user": "remote_user",
    "node_port": "port",
    "node_password": "password",
    "node_private_key_file": "private_key_file",
    "node_ssh_args": "ssh_common_args",
    "node_ssh_executable": "ssh_executable",
}


class Connection(GuestConnection):
    """A connection to a container through SSH to its node."""

    transport = "pve.fleet.pct"
    kind: ClassVar[Kind] = CONTAINER
    _place: GuestPlace
    _ssh: ConnectionBase

    def _connect(self) -> Connection:
        if not self._connected:
            with self.reported():
                self._place = self.find()
                address = self._address()
            self._ssh = self._open(address)
            self._connected = True
        return self

    def _address(self) -> str:
        given = self.get_option("node_addresses")
        rows: list[Any] = []
        if not given.get(self._place.node):
            try:
                rows = self.client.get("cluster", "status")
            except FleetError:
                rows = []  # the login may not read it: the name of the node is tried
        return address_of(self._place.node, given, rows)

    def _open(self, address: str) -> ConnectionBase:
        ssh = connection_loader.get("ansible.builtin.ssh", self._play_context, "/dev/null")
        options = {"host": address}
        for own, name in _SSH_OPTIONS.items():
            value = self.get_option(own)
            if value is not None:
                options[name] = value
        ssh.set_options(direct=options)
        return ssh

    def exec_command(
        self, cmd: str, in_data: bytes | None = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a command in the container, and return its exit status and both outputs."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return self._run(cmd, in_data)

    def _run(self, command: str, stdin: bytes | None = None) -> tuple[int, bytes, bytes]:
        seconds = math.ceil(self.get_option("command_timeout"))
        script = limited(command, seconds)
        status, out, err = self._on_node(script, stdin)
        if was_moved(status, err):
            self.reset()
            status, out, err = self._on_node(script, stdin)
        if was_killed(status, err):
            raise AnsibleConnectionFailure(
                f"Could not run a command in container {self._place.vmid} '{self._place.name}': it"
                f" did not end within {seconds} seconds and was killed. Raise"
                " ansible_pve_command_timeout, or run the task with async."
            )
        if was_moved(status, err) or is_stopped(status, err):
            cause = printable(err.decode(errors="replace").strip())
            raise AnsibleConnectionFailure(
                f"Could not connect to container {self._place.vmid} '{self._place.name}' on node"
                f" {self._place.node}: {cause}"
            )
        return status, out, err

    def _on_node(self, command: str, stdin: bytes | None) -> tuple[int, bytes, bytes]:
        line = enter(self._place.vmid, command, become=self.get_option("node_become"))
        try:
            ended: tuple[int, bytes, bytes] = self._ssh.exec_command(
                line, in_data=stdin, sudoable=False
            )
        except AnsibleConnectionFailure as error:
            # Perl ends with 255 if nothing else is known, which SSH takes for a failure of its own.
            err = str(error).encode()
            if was_moved(255, err) or is_stopped(255, err):
                return 255, b"", err
            raise
        return ended

    def put_file(self, in_path: Any, out_path: Any) -> None:
        """Copy a local file to the container, with its permissions."""
        super().put_file(in_path, out_path)
        source, target = text_of(in_path), text_of(out_path)
        attempted = f"Could not write {target} in the container"
        status, _out, err = self._run(begin_file(target, mode_of(source)))
        require_success(attempted, status, err)
        for block in blocks_of(source):
            status, _out, err = self._run(append(target), block)
            require_success(attempted, status, err)

    def fetch_file(self, in_path: Any, out_path: Any) -> None:
        """Copy a file of the container to the controller."""
        super().fetch_file(in_path, out_path)
        save(text_of(out_path), self._chunks(text_of(in_path)))

    def _chunks(self, path: str) -> Iterator[bytes]:
        number = 0
        while True:
            status, out, err = self._run(read_chunk(path, number))
            require_success(f"Could not read {path} in the container", status, err)
            yield out
            if len(out) < CHUNK:
                return
            number += 1

    def close(self) -> None:
        """Close the connections to the API and to the node."""
        if self._connected:
            self._ssh.close()
        super().close()
