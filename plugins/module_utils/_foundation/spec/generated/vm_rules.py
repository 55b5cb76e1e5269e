# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the options of a VM become options and sub-keys of Proxmox VE. Data only.

Written by `make options` from vm.yml: do not edit. Each table is by place first: an empty
text for the guest itself, else the option that holds these. Options in none of the tables have a
rule in code.
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
    "": {"cpu": "cpu", "machine": "machine", "vga": "vga", "startup": "startup"}
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
# Options that an empty text removes; if the key is empty, its own rule does so.
EMPTY_REMOVES: Mapping[str, Mapping[str, str]] = {
    "": {
        "pool": "",
        "balloon": "balloon",
        "cpu": "cpu",
        "bios": "bios",
        "machine": "machine",
        "ostype": "ostype",
        "scsihw": "scsihw",
        "agent": "agent",
        "vga": "vga",
        "boot": "boot",
        "startup": "startup",
        "hotplug": "hotplug",
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
# The checks of options (_guests/guest/vm/desired/parse.py), and the ranges of numbers.
CHECKS: Mapping[str, Mapping[str, str]] = {
    "": {
        "name": "dns_name",
        "vmid": "vmid",
        "node": "node",
        "pool": "pool",
        "source": "source",
        "balloon": "balloon",
        "agent": "agent",
        "boot": "boot_order",
        "tags": "tags",
        "default_storage": "storage",
        "placement": "placement",
    },
    "disks": {
        "size": "disk_size",
        "storage": "storage",
        "import_from": "volume",
        "volume": "volume",
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
# The options of a VM in the order in which a person reads them.
ORDER: tuple[str, ...] = tuple(
    (
        "quota_sites site_quotas name vmid tenant tenant_prefix adopt "
        "create blank pool node state source class replace_image full "
        "wait_for wait_timeout cores sockets vcpus memory "
        "memory_floor balloon cpu cpulimit cpuunits numa bios machine "
        "ostype scsihw agent vga serial_console boot onboot startup "
        "protection hotplug tags tags_exact description disks "
        "disks_exact nics nics_exact cloud_init options classes "
        "storage_classes networks default_storage vmid_choice "
        "vmid_range vmid_bands placement rebalance shared_sources "
        "quota quotas allowed migrate reboot graceful force "
        "shutdown_timeout task_timeout addresses address_family "
        "address_nics address_subnets"
    ).split()
)
RANGES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "": {"cores": (1, 1024), "shutdown_timeout": (0, 86400), "task_timeout": (1, 1000000)},
    "disks": {"bwlimit": (0, 1000000000), "target_vmid": (100, 999999999)},
}
