# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of a VM, shared by every module that makes or changes one."""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]

CACHES = ["none", "writethrough", "writeback", "directsync", "unsafe"]
FORMATS = ["raw", "qcow2", "vmdk"]
STATES = [
    "present",
    "started",
    "stopped",
    "restarted",
    "reset",
    "paused",
    "hibernated",
    "resumed",
    "template",
    "absent",
]


def disk_spec() -> Spec:
    """Return the options of one item of O(disks)."""
    return {
        "name": {"type": "str"},
        "bus": {"type": "str", "choices": ["ide", "sata", "scsi", "virtio"]},
        "size": {"type": "raw"},
        "storage": {"type": "str"},
        "storage_class": {"type": "str"},
        "format": {"type": "str", "choices": FORMATS},
        "import_from": {"type": "str"},
        "iso": {"type": "str"},
        "cache": {"type": "str", "choices": CACHES},
        "ssd": {"type": "bool"},
        "discard": {"type": "bool"},
        "iothread": {"type": "bool"},
        "backup": {"type": "bool"},
        "replicate": {"type": "bool"},
        "readonly": {"type": "bool"},
        "serial": {"type": "str"},
        "options": {"type": "dict"},
        "state": {"type": "str", "choices": ["present", "detached", "absent"], "default": "present"},
    }


def nic_spec() -> Spec:
    """Return the options of one item of O(nics)."""
    return {
        "name": {"type": "str"},
        "model": {"type": "str"},
        "network": {"type": "str"},
        "bridge": {"type": "str"},
        "vlan": {"type": "int"},
        "trunks": {"type": "list", "elements": "str"},
        "mac": {"type": "str"},
        "firewall": {"type": "bool"},
        "link_down": {"type": "bool"},
        "mtu": {"type": "int"},
        "rate": {"type": "float"},
        "queues": {"type": "int"},
        "ip": {"type": "str"},
        "gateway": {"type": "str"},
        "ip6": {"type": "str"},
        "gateway6": {"type": "str"},
        "options": {"type": "dict"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }


def cloud_init_spec() -> Spec:
    """Return the options of O(cloud_init)."""
    return {
        "storage": {"type": "str"},
        "drive": {"type": "str", "default": "ide2"},
        "type": {"type": "str", "choices": ["configdrive2", "nocloud", "opennebula"]},
        "user": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "update_password": {"type": "str", "choices": ["always", "on_create"], "default": "on_create", "no_log": False},
        "ssh_keys": {"type": "list", "elements": "str", "no_log": False},
        "upgrade": {"type": "bool"},
        "nameservers": {"type": "list", "elements": "str"},
        "search_domain": {"type": "str"},
        "user_data": {"type": "str", "no_log": True},
        "snippet_directory": {"type": "path"},
        "snippets": {
            "type": "dict",
            "options": {name: {"type": "str"} for name in ("user", "network", "meta", "vendor")},
        },
    }


def identity_spec() -> Spec:
    """Return the options that say which VM is meant and whose it is."""
    return {
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "node": {"type": "str"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
    }


def hardware_spec() -> Spec:
    """Return the options that describe the VM itself."""
    plain: Spec = {
        "cores": {"type": "int"},
        "sockets": {"type": "int"},
        "vcpus": {"type": "int"},
        "cpu": {"type": "str"},
        "cpulimit": {"type": "float"},
        "cpuunits": {"type": "int"},
        "numa": {"type": "bool"},
        "memory": {"type": "raw"},
        "balloon": {"type": "raw"},
        "bios": {"type": "str", "choices": ["seabios", "ovmf", "bios", "uefi"]},
        "machine": {"type": "str"},
        "ostype": {"type": "str"},
        "scsihw": {"type": "str"},
        "boot": {"type": "list", "elements": "str"},
        "agent": {"type": "raw"},
        "onboot": {"type": "bool"},
        "startup": {"type": "str"},
        "protection": {"type": "bool"},
        "hotplug": {"type": "str"},
        "vga": {"type": "str"},
        "serial_console": {"type": "bool"},
        "description": {"type": "str"},
        "tags": {"type": "list", "elements": "str"},
        "tags_exact": {"type": "bool", "default": False},
        "options": {"type": "dict"},
    }
    return plain | {
        "disks": {"type": "list", "elements": "dict", "options": disk_spec()},
        "disks_exact": {"type": "bool", "default": False},
        "nics": {"type": "list", "elements": "dict", "options": nic_spec()},
        "nics_exact": {"type": "bool", "default": False},
        "cloud_init": {"type": "dict", "options": cloud_init_spec()},
    }


def placement_spec() -> Spec:
    """Return the options of O(placement)."""
    return {
        "nodes": {"type": "list", "elements": "str"},
        "exclude": {"type": "list", "elements": "str"},
        "strategy": {
            "type": "str",
            "choices": ["least_used", "round_robin", "first", "random"],
            "default": "least_used",
        },
        "seed": {"type": "str"},
        "max_vms_per_node": {"type": "int"},
        "min_free_memory": {"type": "raw"},
        "cpu_overcommit": {"type": "float"},
        "memory_overcommit": {"type": "float"},
        "affinity": {"type": "list", "elements": "str"},
        "anti_affinity": {"type": "list", "elements": "str"},
        "affinity_policy": {"type": "str", "choices": ["required", "preferred"], "default": "required"},
    }


def quota_spec() -> Spec:
    """Return the options of O(quota)."""
    return {"vms": {"type": "int"}, "cores": {"type": "int"}, "memory": {"type": "raw"}, "disk": {"type": "raw"}}


def place_spec() -> Spec:
    """Return the options that say where a VM goes, which number it gets, and how much a tenant may have."""
    bands = {name: {"type": "list", "elements": "int"} for name in ("template", "manual", "reserved")}
    return {
        "vmid_range": {"type": "list", "elements": "int", "default": [10000, 99999]},
        "vmid_bands": {"type": "dict", "options": bands},
        "placement": {"type": "dict", "options": placement_spec()},
        "rebalance": {"type": "bool", "default": False},
        "shared_sources": {"type": "list", "elements": "str"},
        "quota": {"type": "dict", "options": quota_spec()},
        "quotas": {"type": "dict", "default": {}},
    }


def estate_spec() -> Spec:
    """Return the options that give names to sizes, networks and storages."""
    return {
        "class": {"type": "str"},
        "classes": {"type": "dict", "default": {}},
        "networks": {"type": "dict", "default": {}},
        "storage_classes": {"type": "dict", "default": {}},
        "memory_floor": {"type": "raw", "default": "64M"},
        "default_storage": {"type": "str", "default": "local-lvm"},
    }


def guest_spec() -> Spec:
    """Return the options that say which of a guest's addresses are wanted."""
    return {
        "addresses": {"type": "bool", "default": False},
        "address_family": {"type": "str", "choices": ["ipv4", "ipv6", "any"], "default": "ipv4"},
        "address_nics": {"type": "list", "elements": "str", "default": []},
        "address_subnets": {"type": "list", "elements": "str", "default": []},
    }


def behaviour_spec() -> Spec:
    """Return the options that say how a change is carried out."""
    return {
        "migrate": {"type": "bool", "default": True},
        "reboot": {"type": "str", "choices": ["never", "if_needed", "always"], "default": "never"},
        "graceful": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "shutdown_timeout": {"type": "int", "default": 60},
        "task_timeout": {"type": "int", "default": 300},
    }


def vm_spec() -> Spec:
    """Return the argument specification of the module vm, without the connection."""
    return {
        **identity_spec(),
        "state": {"type": "str", "choices": STATES, "default": "present"},
        "pool": {"type": "str"},
        "adopt": {"type": "bool", "default": False},
        "source": {"type": "str"},
        "full": {"type": "bool"},
        **hardware_spec(),
        **estate_spec(),
        **place_spec(),
        **behaviour_spec(),
        **guest_spec(),
        "wait_for": {"type": "str", "choices": ["none", "agent", "address"], "default": "none"},
        "wait_timeout": {"type": "int", "default": 300},
    }


def vm_info_spec() -> Spec:
    """Return the argument specification of the module vm_info, without the connection."""
    return {
        **identity_spec(),
        "tags": {"type": "list", "elements": "str"},
        "pool": {"type": "str"},
        "template": {"type": "bool"},
        "config": {"type": "bool", "default": False},
        **guest_spec(),
    }
