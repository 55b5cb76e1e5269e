# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from disk_storage.yml: do not edit.
"""The options of modules disk_storage and disk_storage_info."""

from ..form import Spec


def disk_storage_spec() -> Spec:
    """Return the options of module disk_storage."""
    return {
        "node": {"type": "str", "required": True},
        "type": {
            "type": "str",
            "required": True,
            "choices": ["zfs", "lvm", "lvmthin", "directory"],
        },
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "disks": {"type": "list", "elements": "str"},
        "raidlevel": {
            "type": "str",
            "choices": "single mirror raid10 raidz raidz2 raidz3 draid draid2 draid3".split(),
        },
        "draid": {"type": "dict", "options": {"data": {"type": "int"}, "spares": {"type": "int"}}},
        "ashift": {"type": "int"},
        "compression": {
            "type": "str",
            "choices": ["on", "off", "gzip", "lz4", "lzjb", "zle", "zstd"],
        },
        "filesystem": {"type": "str", "choices": ["ext4", "xfs"]},
        "volume_group": {"type": "str"},
        "add_storage": {"type": "bool", "default": False},
        "cleanup_config": {"type": "bool", "default": False},
        "cleanup_disks": {"type": "bool", "default": False},
        "confirm": {"type": "str"},
    }


def disk_storage_info_spec() -> Spec:
    """Return the options of module disk_storage_info."""
    return {"node": {"type": "str"}}
