# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for SSH to the nodes of a simulated cluster.

Commands of a node are real processes in a directory of the test. The programs of Proxmox VE and
Debian that would change a node are replaced: `ha-manager` and `reboot-node` are requests to the
control plane, as are `grep`, `zfs` and `mv`, which read and move configurations in `/etc/pve`, and
`unlock` and `set` of `qm` and `pct`, without a digest.
`apt-get` notes its arguments, and `find` shows the file `reboot-required` of the node. While the
simulated node is offline, its SSH does not answer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.simulator.process import Simulator

_SSH = """#!{python}
import os, sys
host, command = sys.argv[-2:]
host = os.path.basename(os.path.realpath(os.path.join("{nodes}", host)))
os.environ["PATH"] = "{bin}:" + os.environ["PATH"]
os.environ["NODE"] = host
os.chdir(os.path.join("{nodes}", host))
if os.path.exists("refuses-ssh") or os.system("{bin}/is-online") != 0:
    sys.exit(255)
os.execv("/bin/sh", ["sh", "-c", command])
"""
_CONTROL = """#!{python}
import json, os, re, ssl, sys, urllib.request
FOLDERS = {{"/vms": "qemu-server", "/containers": "lxc"}}
node, name = os.environ["NODE"], os.path.basename(sys.argv[0])
context = ssl.create_default_context(cafile="{ca}")
def ask(method, path, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request("{control}" + path, data=data, method=method)
    return json.load(urllib.request.urlopen(request, context=context, timeout=60))
if name == "is-online":
    sys.exit(not ask("GET", "/state")["nodes"][node])
elif name == "reboot-node":
    if os.path.exists("reboot-required"):
        os.remove("reboot-required")
    ask("PUT", "/nodes/" + node, {{"reboot": True}})
elif name == "grep":
    assert sys.argv[1] == "-rE", sys.argv
    for kind, name in FOLDERS.items():
        for one in ask("GET", kind):
            folder = "/etc/pve/nodes/" + one["node"] + "/" + name
            for key, value in one["config"].items() if folder in sys.argv else ():
                line = key + ": " + value
                if re.search(sys.argv[2], line):
                    print(folder + "/" + str(one["vmid"]) + ".conf:" + line)
elif name == "zfs":
    assert sys.argv[1:] == "list -H -t snapshot -o name".split(), sys.argv
    print("\\n".join(ask("GET", "/replicas").get(node, [])))
elif name == "mv":
    if not ask("GET", "/state")["quorate"]:
        sys.exit("mv: cannot move '" + sys.argv[2] + "': Permission denied")
    words = sys.argv[3].split("/")
    kind = next(kind for kind, name in FOLDERS.items() if name == words[5])
    ask("PUT", kind + "/" + words[-1].split(".")[0], {{"running": False, "node": words[4]}})
elif name in ("qm", "pct"):
    kind, options = "/vms/" if name == "qm" else "/containers/", sys.argv[3:]
    body = {{"lock": None}} if sys.argv[1] == "unlock" else {{}}
    for key, value in zip(options[::2], options[1::2]):
        body |= {{"--delete": {{value: None}}, "--template": {{"template": value}}}}.get(key, {{}})
    assert body, sys.argv
    ask("PUT", kind + sys.argv[2], {{"config": body}})
elif name == "ha-manager":
    assert sys.argv[1:3] == ["crm-command", "node-maintenance"], sys.argv
    ask("PUT", "/nodes/" + sys.argv[4], {{"maintenance": sys.argv[3] == "enable"}})
"""
_APT = """#!/bin/sh
echo "$*" >> calls
echo "1 upgraded, 0 newly installed, 0 to remove and 0 not upgraded."
"""
_FIND = """#!/bin/sh
test ! -e reboot-required || echo /run/reboot-required
"""


class NodeSsh:
    """The nodes as directories, and the program that stands in for `ssh`."""

    def __init__(self, simulator: Simulator, directory: Path, nodes: list[str]) -> None:
        self.nodes = directory / "nodes"
        self._bin = directory / "bin"
        for path in (self._bin, *(self.nodes / node for node in nodes)):
            path.mkdir(parents=True)
        names = {
            "python": sys.executable,
            "bin": str(self._bin),
            "nodes": str(self.nodes),
            "ca": simulator.ca,
            "control": simulator.control,
        }
        for name in ("is-online", "reboot-node", "ha-manager", "grep", "zfs", "mv", "qm", "pct"):
            self._write(name, _CONTROL.format(**names))
        self._write("ssh", _SSH.format(**names))
        self._write("apt-get", _APT)
        self._write("find", _FIND)

    def _write(self, name: str, text: str) -> None:
        file = self._bin / name
        file.write_text(text)
        file.chmod(0o755)

    @property
    def variables(self) -> dict[str, str]:
        """The variables of hosts that are nodes."""
        return {
            "ansible_connection": "ansible.builtin.ssh",
            "ansible_ssh_executable": str(self._bin / "ssh"),
            "ansible_ssh_transfer_method": "piped",
            "ansible_python_interpreter": sys.executable,
            "maintenance_reboot_command": "reboot-node",
        }

    def add_address(self, node: str, address: str) -> None:
        """Let the node answer by an address as well."""
        (self.nodes / address).symlink_to(node)

    def refuse(self, node: str) -> None:
        """Let the node, which is online, not answer by SSH."""
        (self.nodes / node / "refuses-ssh").touch()

    def require_reboot(self, node: str) -> None:
        """Let an upgrade of the node need a reboot."""
        (self.nodes / node / "reboot-required").touch()

    def calls(self, node: str) -> list[str]:
        """Return the calls of apt-get on a node."""
        file = self.nodes / node / "calls"
        return file.read_text().splitlines() if file.exists() else []
