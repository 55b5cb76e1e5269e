# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_pool.yml: do not edit.
"""The options of modules ceph_pool and ceph_pool_info."""

from ..form import Spec


def ceph_pool_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "node": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "size": {"type": "int"},
        "min_size": {"type": "int"},
        "pg_num": {"type": "int"},
        "pg_num_min": {"type": "int"},
        "pg_autoscale_mode": {"type": "str", "choices": ["on", "off", "warn"]},
        "target_size": {"type": "str"},
        "target_size_ratio": {"type": "float"},
        "crush_rule": {"type": "str"},
        "application": {"type": "str", "choices": ["rbd", "cephfs", "rgw"]},
        "erasure_coding": {
            "type": "dict",
            "options": {
                "k": {"type": "int", "required": True},
                "m": {"type": "int", "required": True},
                "failure_domain": {"type": "str"},
                "device_class": {"type": "str"},
                "profile": {"type": "str"},
            },
        },
        "add_storages": {"type": "bool"},
        "remove_storages": {"type": "bool", "default": False},
    }


def ceph_pool_info_spec() -> Spec:
    return {"name": {"type": "str"}, "node": {"type": "str"}}
