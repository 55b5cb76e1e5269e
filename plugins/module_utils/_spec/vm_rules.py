# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the options of a VM become options and sub-keys of Proxmox VE. Data only.

Written by `make options` from vm.yml: do not edit. Each table is by place first: an empty text for
the VM itself, else the option that holds these. What is in none of the tables has a rule in code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCALARS: Mapping[str, Mapping[str, str]] = {
    "": {
        "sockets": "sockets",
        "vcpus": "vcpus",
        "cpulimit": "cpulimit",
        "cpuunits": "cpuunits",
        "numa": "numa",
        "bios": "bios",
        "ostype": "ostype",
        "scsihw": "scsihw",
        "onboot": "onboot",
        "protection": "protection",
        "hotplug": "hotplug",
    },
    "disks": {
        "cache": "cache",
        "ssd": "ssd",
        "discard": "discard",
        "iothread": "iothread",
        "backup": "backup",
        "replicate": "replicate",
        "readonly": "ro",
        "serial": "serial",
    },
    "nics": {
        "model": "model",
        "bridge": "bridge",
        "vlan": "tag",
        "trunks": "trunks",
        "mac": "macaddr",
        "firewall": "firewall",
        "link_down": "link_down",
        "mtu": "mtu",
        "rate": "rate",
        "queues": "queues",
    },
    "cloud_init": {
        "type": "citype",
        "user": "ciuser",
        "upgrade": "ciupgrade",
        "nameservers": "nameserver",
        "search_domain": "searchdomain",
    },
}
PROPERTY_STRINGS: Mapping[str, Mapping[str, str]] = {
    "": {"cpu": "cpu", "machine": "machine", "startup": "startup", "vga": "vga"}
}
# Words of our own for values of Proxmox VE.
WORDS: Mapping[str, Mapping[str, Mapping[Any, str]]] = {
    "": {
        "bios": {"uefi": "ovmf", "bios": "seabios"},
        "machine": {"i440fx": "pc"},
        "ostype": {"linux": "l26", "windows": "win11"},
    },
    "nics": {"vlan": {0: ""}},
}
# Options that an empty text removes; where the key is empty, its own rule does so.
EMPTY_REMOVES: Mapping[str, Mapping[str, str]] = {
    "": {
        "pool": "",
        "cpu": "cpu",
        "balloon": "balloon",
        "bios": "bios",
        "machine": "machine",
        "ostype": "ostype",
        "scsihw": "scsihw",
        "boot": "boot",
        "agent": "agent",
        "startup": "startup",
        "hotplug": "hotplug",
        "vga": "vga",
        "description": "",
    },
    "disks": {"cache": "cache", "serial": "serial"},
    "nics": {"ip": "", "gateway": "", "ip6": "", "gateway6": ""},
    "cloud_init": {
        "type": "citype",
        "user": "ciuser",
        "password": "cipassword",
        "search_domain": "searchdomain",
    },
    "cloud_init.snippets": {"user": "", "network": "", "meta": "", "vendor": ""},
}
# The checks of options (_vm/desired/values.py has each), and the ranges of numbers.
CHECKS: Mapping[str, Mapping[str, str]] = {
    "": {
        "name": "dns_name",
        "vmid": "vmid",
        "pool": "pool",
        "source": "source",
        "node": "node",
        "balloon": "balloon",
        "boot": "boot_order",
        "agent": "agent",
        "tags": "tags",
        "default_storage": "storage",
        "placement": "placement",
    },
    "disks": {
        "size": "disk_size",
        "storage": "storage",
        "import_from": "volume",
        "iso": "iso",
        "discard": "discard",
    },
    "nics": {
        "bridge": "bridge",
        "trunks": "vlans",
        "mac": "mac",
        "ip": "ipv4",
        "gateway": "gateway",
        "ip6": "ipv6",
        "gateway6": "gateway6",
    },
    "cloud_init": {
        "storage": "storage",
        "drive": "cloud_init_drive",
        "ssh_keys": "public_keys",
        "nameservers": "addresses",
        "search_domain": "dns_name",
    },
    "cloud_init.snippets": {
        "user": "volume",
        "network": "volume",
        "meta": "volume",
        "vendor": "volume",
    },
}
RANGES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "": {"cores": (1, 1024), "shutdown_timeout": (0, 86400), "task_timeout": (1, 1000000)}
}
