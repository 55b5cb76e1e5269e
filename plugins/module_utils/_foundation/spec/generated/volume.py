# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from volume.yml: do not edit.
"""The options of modules volume and volume_info."""

from ..environment import limit
from ..form import Spec


def volume_spec() -> Spec:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "volume": {"type": "str"},
        "storage": {"type": "str"},
        "node": {"type": "str"},
        "src": {"type": "path"},
        "text": {"type": "str", "no_log": True},
        "snippet_directory": {"type": "path"},
        "ssh": {
            "type": "dict",
            "options": {
                "address": {"type": "str"},
                "user": {"type": "str", "default": "root"},
                "become": {"type": "bool", "default": False},
                "port": {"type": "int"},
                "private_key_file": {"type": "path"},
                "args": {"type": "str"},
                "executable": {"type": "str", "default": "ssh"},
            },
        },
        "source_url": {"type": "str"},
        "source_volume": {"type": "str"},
        "source_node": {"type": "str"},
        "template": {"type": "str"},
        "image": {"type": "str"},
        "filename": {"type": "str"},
        "content": {"type": "str", "choices": ["import", "iso", "snippets", "vztmpl"]},
        "checksum": {"type": "str"},
        "checksum_algorithm": {
            "type": "str",
            "choices": ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"],
        },
        "compression": {"type": "str", "choices": ["bz2", "gz", "lzo", "zst"]},
        "verify_certificates": {"type": "bool", "default": True},
        "size": {"type": "str"},
        "vmid": {"type": "int"},
        "format": {"type": "str", "choices": ["qcow2", "raw", "subvol", "vmdk"]},
        "notes": {"type": "str"},
        "protected": {"type": "bool"},
        "force": {"type": "bool", "default": False},
        "task_timeout": limit(1800, "PROXMOX_TASK_TIMEOUT"),
    }


def volume_info_spec() -> Spec:
    return {
        "storage": {"type": "str", "required": True},
        "node": {"type": "str"},
        "content": {
            "type": "str",
            "choices": ["backup", "images", "import", "iso", "rootdir", "snippets", "vztmpl"],
        },
        "vmid": {"type": "int"},
    }
