# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from storage.yml: do not edit.
"""The options of modules storage and storage_info."""

from ..form import Spec


def storage_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "type": {
            "type": "str",
            "choices": (
                "btrfs cephfs cifs dir esxi iscsi iscsidirect lvm lvmthin nfs pbs rbd zfs zfspool"
            ).split(),
        },
        "content": {"type": "list", "elements": "str"},
        "nodes": {"type": "list", "elements": "str"},
        "disable": {"type": "bool"},
        "shared": {"type": "bool"},
        "path": {"type": "str"},
        "content_dirs": {"type": "dict"},
        "prune_backups": {
            "type": "dict",
            "options": {
                "keep_all": {"type": "bool"},
                "keep_last": {"type": "int"},
                "keep_hourly": {"type": "int"},
                "keep_daily": {"type": "int"},
                "keep_weekly": {"type": "int"},
                "keep_monthly": {"type": "int"},
                "keep_yearly": {"type": "int"},
            },
        },
        "max_protected_backups": {"type": "str"},
        "format": {"type": "str", "choices": ["", "qcow2", "raw", "subvol", "vmdk"]},
        "preallocation": {"type": "str", "choices": ["", "off", "metadata", "falloc", "full"]},
        "create_base_path": {"type": "bool"},
        "create_subdirs": {"type": "bool"},
        "is_mountpoint": {"type": "str"},
        "nocow": {"type": "bool"},
        "server": {"type": "str"},
        "server_port": {"type": "str"},
        "export": {"type": "str"},
        "share": {"type": "str"},
        "subdir": {"type": "str"},
        "options": {"type": "str"},
        "username": {"type": "str"},
        "server_password": {"type": "str", "no_log": True},
        "keyring": {"type": "str", "no_log": True},
        "encryption_key": {"type": "str", "no_log": True},
        "master_pubkey": {"type": "str", "no_log": True},
        "update_secrets": {
            "type": "str",
            "choices": ["on_create", "always"],
            "default": "on_create",
            "no_log": False,
        },
        "domain": {"type": "str"},
        "smbversion": {"type": "str", "choices": ["", "default", "2.0", "2.1", "3", "3.0", "3.11"]},
        "skip_cert_verification": {"type": "bool"},
        "datastore": {"type": "str"},
        "namespace": {"type": "str"},
        "fingerprint": {"type": "str"},
        "vgname": {"type": "str"},
        "thinpool": {"type": "str"},
        "base": {"type": "str"},
        "saferemove": {"type": "bool"},
        "saferemove_stepsize": {"type": "str", "choices": ["", "1", "2", "4", "8", "16", "32"]},
        "saferemove_throughput": {"type": "str"},
        "tagged_only": {"type": "bool"},
        "snapshot_as_volume_chain": {"type": "bool"},
        "pool": {"type": "str"},
        "blocksize": {"type": "str"},
        "sparse": {"type": "bool"},
        "mountpoint": {"type": "str"},
        "portal": {"type": "str"},
        "target": {"type": "str"},
        "iscsiprovider": {"type": "str", "choices": ["comstar", "istgt", "iet", "LIO"]},
        "nowritecache": {"type": "bool"},
        "comstar_hg": {"type": "str"},
        "comstar_tg": {"type": "str"},
        "lio_tpg": {"type": "str"},
        "zfs_base_path": {"type": "str"},
        "monhost": {"type": "list", "elements": "str"},
        "data_pool": {"type": "str"},
        "krbd": {"type": "bool"},
        "fuse": {"type": "bool"},
        "fs_name": {"type": "str"},
        "bwlimit": {
            "type": "dict",
            "options": {
                "clone": {"type": "str"},
                "default": {"type": "str"},
                "migration": {"type": "str"},
                "move": {"type": "str"},
                "restore": {"type": "str"},
            },
        },
        "force": {"type": "bool", "default": False},
    }


def storage_info_spec() -> Spec:
    return {"name": {"type": "str"}}
