# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vm.yml: do not edit.
"""The options of a VM, shared by every module that creates or changes one."""

from ..environment import limit
from ..form import Spec


def identity_spec() -> Spec:
    """Return the options that identify a VM."""
    return {
        "quota_sites": {"type": "list", "elements": "str"},
        "site_quotas": {"type": "dict"},
        "name": {"type": "str"},
        "vmid": {"type": "int"},
    }


def owner_spec() -> Spec:
    """Return the options for the node of a VM and its tenant."""
    return {
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "node": {"type": "str"},
    }


def life_spec() -> Spec:
    """Return the options for the source of a VM and its state."""
    return {
        "adopt": {"type": "bool", "default": False},
        "create": {"type": "bool", "default": True},
        "blank": {"type": "bool", "default": False},
        "pool": {"type": "str"},
        "state": {
            "type": "str",
            "choices": (
                "present started stopped restarted reset paused hibernated resumed template absent"
            ).split(),
            "default": "present",
        },
        "source": {"type": "str"},
        "replace_image": {"type": "bool", "default": False},
        "full": {"type": "bool"},
        "wait_for": {"type": "str", "choices": ["none", "agent", "address"], "default": "none"},
        "wait_timeout": limit(300, "PROXMOX_WAIT_TIMEOUT"),
    }


def hardware_spec() -> Spec:
    """Return the options that describe the VM itself. A class can also have them."""
    return {
        "cores": {"type": "int"},
        "sockets": {"type": "int"},
        "vcpus": {"type": "int"},
        "memory": {"type": "raw"},
        "balloon": {"type": "raw"},
        "cpu": {"type": "str"},
        "cpulimit": {"type": "float"},
        "cpuunits": {"type": "int"},
        "numa": {"type": "bool"},
        "bios": {"type": "str", "choices": ["", "seabios", "ovmf", "bios", "uefi"]},
        "machine": {"type": "str"},
        "ostype": {"type": "str"},
        "scsihw": {"type": "str"},
        "agent": {"type": "raw"},
        "vga": {"type": "str"},
        "serial_console": {"type": "bool"},
        "boot": {"type": "list", "elements": "str"},
        "onboot": {"type": "bool"},
        "startup": {"type": "str"},
        "protection": {"type": "bool"},
        "hotplug": {"type": "str"},
        "tags": {"type": "list", "elements": "str"},
        "tags_exact": {"type": "bool", "default": False},
        "description": {"type": "str"},
        "disks": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str"},
                "bus": {"type": "str", "choices": ["ide", "sata", "scsi", "virtio"]},
                "size": {"type": "raw"},
                "storage": {"type": "str"},
                "bwlimit": {"type": "int"},
                "storage_class": {"type": "str"},
                "format": {"type": "str", "choices": ["raw", "qcow2", "vmdk"]},
                "import_from": {"type": "str"},
                "volume": {"type": "str"},
                "iso": {"type": "str"},
                "cache": {
                    "type": "str",
                    "choices": ["", "none", "writethrough", "writeback", "directsync", "unsafe"],
                },
                "ssd": {"type": "bool"},
                "discard": {"type": "bool"},
                "iothread": {"type": "bool"},
                "backup": {"type": "bool"},
                "replicate": {"type": "bool"},
                "readonly": {"type": "bool"},
                "serial": {"type": "str"},
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
        "disks_exact": {"type": "bool", "default": False},
        "nics": {
            "type": "list",
            "elements": "dict",
            "options": {
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
            },
        },
        "nics_exact": {"type": "bool", "default": False},
        "cloud_init": {
            "type": "dict",
            "options": {
                "storage": {"type": "str"},
                "drive": {"type": "str"},
                "type": {"type": "str", "choices": ["", "configdrive2", "nocloud", "opennebula"]},
                "user": {"type": "str"},
                "password": {"type": "str", "no_log": True},
                "update_password": {
                    "type": "str",
                    "choices": ["always", "on_create"],
                    "default": "on_create",
                    "no_log": False,
                },
                "ssh_keys": {"type": "list", "elements": "str", "no_log": False},
                "upgrade": {"type": "bool"},
                "nameservers": {"type": "list", "elements": "str"},
                "search_domain": {"type": "str"},
                "user_data": {"type": "str", "no_log": True},
                "snippet_directory": {"type": "path"},
                "snippets": {
                    "type": "dict",
                    "options": {
                        "user": {"type": "str"},
                        "network": {"type": "str"},
                        "meta": {"type": "str"},
                        "vendor": {"type": "str"},
                    },
                },
            },
        },
        "options": {"type": "dict"},
    }


def presets_spec() -> Spec:
    """Return the options that give names to sizes, networks and storages."""
    return {
        "class": {"type": "str"},
        "classes": {"type": "dict", "default": {}},
        "storage_classes": {"type": "dict", "default": {}},
        "networks": {"type": "dict", "default": {}},
        "default_storage": {"type": "str", "default": "local-lvm"},
        "memory_floor": {"type": "raw", "default": "64M"},
    }


def place_spec() -> Spec:
    """Return the options for the node and the VMID of a VM, and for the quota of its tenant."""
    return {
        "vmid_choice": {"type": "str", "choices": ["by_name", "lowest"], "default": "by_name"},
        "vmid_range": {"type": "list", "elements": "int", "default": [10000, 99999]},
        "vmid_bands": {
            "type": "dict",
            "options": {
                "template": {"type": "list", "elements": "int"},
                "manual": {"type": "list", "elements": "int"},
                "reserved": {"type": "list", "elements": "int"},
            },
        },
        "placement": {
            "type": "dict",
            "options": {
                "nodes": {"type": "list", "elements": "str"},
                "exclude": {"type": "list", "elements": "str"},
                "strategy": {
                    "type": "str",
                    "choices": ["least_used", "round_robin", "first", "random"],
                    "default": "least_used",
                },
                "seed": {"type": "str"},
                "max_vms_per_node": {"type": "raw"},
                "min_free_memory": {"type": "raw"},
                "cpu_overcommit": {"type": "float"},
                "memory_overcommit": {"type": "float"},
                "storage_overcommit": {"type": "float", "default": 10.0},
                "affinity": {"type": "list", "elements": "str"},
                "anti_affinity": {"type": "list", "elements": "str"},
                "affinity_policy": {
                    "type": "str",
                    "choices": ["required", "preferred"],
                    "default": "required",
                },
                "keep": {"type": "bool"},
            },
        },
        "rebalance": {"type": "bool", "default": False},
        "shared_sources": {"type": "list", "elements": "str"},
        "quota": {
            "type": "dict",
            "options": {
                "vms": {"type": "int"},
                "cores": {"type": "int"},
                "memory": {"type": "raw"},
                "disk": {"type": "raw"},
            },
        },
        "quotas": {"type": "dict", "default": {}},
        "allowed": {
            "type": "dict",
            "options": {
                "storages": {"type": "list", "elements": "str"},
                "networks": {"type": "list", "elements": "str"},
                "cpu_types": {"type": "list", "elements": "str"},
                "classes": {"type": "list", "elements": "str"},
            },
        },
    }


def behaviour_spec() -> Spec:
    """Return the options for how a change is made."""
    return {
        "migrate": {"type": "bool", "default": True},
        "reboot": {"type": "str", "choices": ["never", "if_needed", "always"], "default": "never"},
        "graceful": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "shutdown_timeout": limit(60, "PROXMOX_SHUTDOWN_TIMEOUT"),
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
    }


def guest_spec() -> Spec:
    """Return the options that choose an address of the guest."""
    return {
        "addresses": {"type": "bool", "default": False},
        "address_family": {"type": "str", "choices": ["ipv4", "ipv6", "any"], "default": "ipv4"},
        "address_nics": {"type": "list", "elements": "str", "default": []},
        "address_subnets": {"type": "list", "elements": "str", "default": []},
    }
