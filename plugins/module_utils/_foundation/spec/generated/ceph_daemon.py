# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_daemon.yml: do not edit.
"""The options of modules ceph_mon, ceph_mgr and ceph_mds."""

from ..form import Spec


def ceph_mon_spec() -> Spec:
    """Return the options of module ceph_mon."""
    return {
        "node": {"type": "str", "required": True},
        "name": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "mon_address": {"type": "list", "elements": "str"},
    }


def ceph_mgr_spec() -> Spec:
    """Return the options of module ceph_mgr."""
    return {
        "node": {"type": "str", "required": True},
        "name": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "force": {"type": "bool", "default": False},
    }


def ceph_mds_spec() -> Spec:
    """Return the options of module ceph_mds."""
    return {
        "node": {"type": "str", "required": True},
        "name": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "force": {"type": "bool", "default": False},
    }
