# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from storage_download.yml: do not edit.
"""The options of module storage_download."""

from ..environment import limit
from ..form import Spec


def storage_download_spec() -> Spec:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "force": {"type": "bool", "default": False},
        "storage": {"type": "str", "required": True},
        "node": {"type": "str"},
        "source_url": {"type": "str"},
        "filename": {"type": "str"},
        "content": {"type": "str", "choices": ["import", "iso", "vztmpl"]},
        "checksum": {"type": "str"},
        "checksum_algorithm": {
            "type": "str",
            "choices": ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"],
        },
        "compression": {"type": "str", "choices": ["bz2", "gz", "lzo", "zst"]},
        "verify_certificates": {"type": "bool", "default": True},
        "task_timeout": limit(1800, "PROXMOX_TASK_TIMEOUT"),
    }
