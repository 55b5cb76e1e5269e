# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from storage_scan_info.yml: do not edit.
"""The options of module storage_scan_info."""

from ..form import Spec


def storage_scan_info_spec() -> Spec:
    """Return the options of module storage_scan_info."""
    return {
        "node": {"type": "str", "required": True},
        "type": {
            "type": "str",
            "required": True,
            "choices": ["cifs", "iscsi", "lvm", "lvmthin", "nfs", "pbs", "zfspool"],
        },
        "server": {"type": "str"},
        "portal": {"type": "str"},
        "vgname": {"type": "str"},
        "username": {"type": "str"},
        "server_password": {"type": "str", "no_log": True},
        "domain": {"type": "str"},
        "server_port": {"type": "int"},
        "fingerprint": {"type": "str"},
    }
