# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from container.yml: do not edit.
"""The options of a container."""

from ..environment import limit
from ..form import Spec


def life_spec() -> Spec:
    """Return the options for the source of a container and its state."""
    return {
        "adopt": {"type": "bool", "default": False},
        "create": {"type": "bool", "default": True},
        "pool": {"type": "str"},
        "state": {
            "type": "str",
            "choices": ["present", "started", "stopped", "restarted", "template", "absent"],
            "default": "present",
        },
        "source": {"type": "str"},
        "snapshot": {"type": "str"},
        "full": {"type": "bool"},
        "unprivileged": {"type": "bool"},
        "root_password": {"type": "str", "no_log": True},
        "ssh_keys": {"type": "list", "elements": "str", "no_log": False},
        "wait_for": {"type": "str", "choices": ["none", "address"], "default": "none"},
        "wait_timeout": limit(300, "PROXMOX_WAIT_TIMEOUT"),
    }


def hardware_spec() -> Spec:
    """Return the options that describe the container itself."""
    return {
        "cores": {"type": "raw"},
        "cpulimit": {"type": "float"},
        "cpuunits": {"type": "int"},
        "memory": {"type": "raw"},
        "swap": {"type": "raw"},
        "rootfs": {
            "type": "dict",
            "options": {
                "size": {"type": "raw"},
                "storage": {"type": "str"},
                "bwlimit": {"type": "int"},
                "storage_class": {"type": "str"},
                "readonly": {"type": "bool"},
                "acl": {"type": "bool"},
                "quota": {"type": "bool"},
                "replicate": {"type": "bool"},
                "shared": {"type": "bool"},
                "mount_options": {"type": "list", "elements": "str"},
                "options": {"type": "dict"},
            },
        },
        "mounts": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str"},
                "path": {"type": "str"},
                "volume": {"type": "str"},
                "size": {"type": "raw"},
                "storage": {"type": "str"},
                "bwlimit": {"type": "int"},
                "storage_class": {"type": "str"},
                "readonly": {"type": "bool"},
                "backup": {"type": "bool"},
                "acl": {"type": "bool"},
                "quota": {"type": "bool"},
                "replicate": {"type": "bool"},
                "shared": {"type": "bool"},
                "mount_options": {"type": "list", "elements": "str"},
                "options": {"type": "dict"},
                "target_vmid": {"type": "int"},
                "target_slot": {"type": "str"},
                "state": {
                    "type": "str",
                    "choices": ["present", "detached", "absent", "moved"],
                    "default": "present",
                },
            },
        },
        "mounts_exact": {"type": "bool", "default": False},
        "nics": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str"},
                "interface": {"type": "str"},
                "network": {"type": "str"},
                "bridge": {"type": "str"},
                "vlan": {"type": "int"},
                "trunks": {"type": "list", "elements": "str"},
                "mac": {"type": "str"},
                "firewall": {"type": "bool"},
                "link_down": {"type": "bool"},
                "mtu": {"type": "int"},
                "rate": {"type": "float"},
                "host_managed": {"type": "bool"},
                "ip": {"type": "str"},
                "gateway": {"type": "str"},
                "ip6": {"type": "str"},
                "gateway6": {"type": "str"},
                "options": {"type": "dict"},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            },
        },
        "nics_exact": {"type": "bool", "default": False},
        "nameservers": {"type": "list", "elements": "str"},
        "search_domain": {"type": "str"},
        "features": {
            "type": "dict",
            "options": {
                "nesting": {"type": "bool"},
                "keyctl": {"type": "bool"},
                "fuse": {"type": "bool"},
                "mknod": {"type": "bool"},
                "mount": {"type": "list", "elements": "str"},
                "force_rw_sys": {"type": "bool"},
            },
        },
        "devices": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str"},
                "path": {"type": "str"},
                "mode": {"type": "str"},
                "uid": {"type": "int"},
                "gid": {"type": "int"},
                "deny_write": {"type": "bool"},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            },
        },
        "ostype": {"type": "str"},
        "arch": {"type": "str"},
        "timezone": {"type": "str"},
        "console": {"type": "bool"},
        "tty": {"type": "int"},
        "cmode": {"type": "str"},
        "entrypoint": {"type": "str"},
        "environment": {"type": "dict"},
        "hookscript": {"type": "str"},
        "debug": {"type": "bool"},
        "onboot": {"type": "bool"},
        "startup": {"type": "str"},
        "protection": {"type": "bool"},
        "tags": {"type": "list", "elements": "str"},
        "tags_exact": {"type": "bool", "default": False},
        "description": {"type": "str"},
        "options": {"type": "dict"},
        "networks": {"type": "dict", "default": {}},
        "storage_classes": {"type": "dict", "default": {}},
        "default_storage": {"type": "str", "default": "local-lvm"},
    }


def safety_spec() -> Spec:
    """Return the option that refuses privileged containers."""
    return {"allow_privileged": {"type": "bool", "default": True}}
