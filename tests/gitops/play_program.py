# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program ansible-playbook of the recipes' tests: the process of the tests runs the command, because
it starts Ansible quickly.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.parse
import urllib.request


def main() -> None:
    command = {"arguments": sys.argv[1:], "directory": os.getcwd(), "environment": dict(os.environ)}
    data = urllib.parse.urlencode({"command": json.dumps(command)}).encode()
    with urllib.request.urlopen(f"{os.environ['FORGE']}/ansible-playbook", data) as answer:
        ended = json.load(answer)
    sys.stdout.write(ended["output"])
    sys.exit(ended["status"])


if __name__ == "__main__":
    main()
