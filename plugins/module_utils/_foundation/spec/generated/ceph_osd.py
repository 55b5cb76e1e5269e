# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_osd.yml: do not edit.
"""The options of module ceph_osd."""

from ..form import Spec


def ceph_osd_spec() -> Spec:
    """Return the options of module ceph_osd."""
    return {
        "node": {"type": "str", "required": True},
        "dev": {"type": "str"},
        "osdid": {"type": "int"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "in": {"type": "bool"},
        "running": {"type": "bool"},
        "db_dev": {"type": "str"},
        "db_dev_size": {"type": "float"},
        "wal_dev": {"type": "str"},
        "wal_dev_size": {"type": "float"},
        "encrypted": {"type": "bool", "default": False},
        "crush_device_class": {"type": "str"},
        "cleanup": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
    }
