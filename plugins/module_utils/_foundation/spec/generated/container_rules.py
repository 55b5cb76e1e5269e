# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the options of a container become options and sub-keys of Proxmox VE. Data only.

Written by `make options` from container.yml: do not edit. Each table is by place first: an empty
text for the guest itself, else the option that holds these. Options in none of the tables have a
rule in code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCALARS: Mapping[str, Mapping[str, str]] = {
    "": {
        "unprivileged": "unprivileged",
        "cores": "cores",
        "cpulimit": "cpulimit",
        "cpuunits": "cpuunits",
        "nameservers": "nameserver",
        "search_domain": "searchdomain",
        "ostype": "ostype",
        "arch": "arch",
        "timezone": "timezone",
        "console": "console",
        "tty": "tty",
        "cmode": "cmode",
        "entrypoint": "entrypoint",
        "hookscript": "hookscript",
        "debug": "debug",
        "onboot": "onboot",
        "protection": "protection",
    },
    "rootfs": {
        "readonly": "ro",
        "acl": "acl",
        "quota": "quota",
        "replicate": "replicate",
        "shared": "shared",
        "mount_options": "mountoptions",
    },
    "mounts": {
        "path": "mp",
        "readonly": "ro",
        "backup": "backup",
        "acl": "acl",
        "quota": "quota",
        "replicate": "replicate",
        "shared": "shared",
        "mount_options": "mountoptions",
    },
    "nics": {
        "interface": "name",
        "bridge": "bridge",
        "vlan": "tag",
        "trunks": "trunks",
        "mac": "hwaddr",
        "firewall": "firewall",
        "link_down": "link_down",
        "mtu": "mtu",
        "rate": "rate",
        "host_managed": "host-managed",
    },
    "features": {
        "nesting": "nesting",
        "keyctl": "keyctl",
        "fuse": "fuse",
        "mknod": "mknod",
        "mount": "mount",
        "force_rw_sys": "force_rw_sys",
    },
    "devices": {
        "path": "path",
        "mode": "mode",
        "uid": "uid",
        "gid": "gid",
        "deny_write": "deny-write",
    },
}
PROPERTY_STRINGS: Mapping[str, Mapping[str, str]] = {"": {"startup": "startup"}}
# Words of our own for values of Proxmox VE.
WORDS: Mapping[str, Mapping[str, Mapping[Any, str]]] = {"nics": {"vlan": {0: ""}}}
# Options that an empty text removes; if the key is empty, its own rule does so.
EMPTY_REMOVES: Mapping[str, Mapping[str, str]] = {
    "": {
        "pool": "",
        "cores": "cores",
        "nameservers": "nameserver",
        "search_domain": "searchdomain",
        "timezone": "timezone",
        "cmode": "cmode",
        "entrypoint": "entrypoint",
        "hookscript": "hookscript",
        "startup": "startup",
        "description": "",
    },
    "rootfs": {"mount_options": "mountoptions"},
    "mounts": {"mount_options": "mountoptions"},
    "nics": {"ip": "ip", "gateway": "gw", "ip6": "ip6", "gateway6": "gw6"},
    "features": {"mount": "mount"},
}
# The checks of options (_guests/guest/container/desired/parse.py), and the ranges of numbers.
CHECKS: Mapping[str, Mapping[str, str]] = {
    "": {
        "name": "dns_name",
        "vmid": "vmid",
        "node": "node",
        "pool": "pool",
        "source": "source",
        "ssh_keys": "public_keys",
        "nameservers": "addresses",
        "tags": "tags",
        "default_storage": "storage",
        "placement": "placement",
    },
    "rootfs": {"size": "disk_size", "storage": "storage", "mount_options": "words"},
    "mounts": {"size": "disk_size", "storage": "storage", "mount_options": "words"},
    "nics": {
        "bridge": "bridge",
        "trunks": "vlans",
        "mac": "mac",
        "ip": "ipv4",
        "gateway": "gateway",
        "ip6": "ipv6",
        "gateway6": "gateway6",
    },
    "features": {"mount": "words"},
}
# The options of a container in the order in which a person reads them.
ORDER: tuple[str, ...] = tuple(
    (
        "quota_sites site_quotas name vmid tenant tenant_prefix adopt "
        "create pool node state source snapshot full unprivileged "
        "root_password ssh_keys wait_for wait_timeout cores cpulimit "
        "cpuunits memory swap rootfs mounts mounts_exact nics "
        "nics_exact nameservers search_domain features devices ostype "
        "arch timezone console tty cmode entrypoint environment "
        "hookscript debug onboot startup protection tags tags_exact "
        "description options networks storage_classes default_storage "
        "vmid_choice vmid_range vmid_bands placement rebalance "
        "shared_sources quota quotas allowed allow_privileged migrate "
        "reboot graceful force shutdown_timeout task_timeout "
        "addresses address_family address_nics address_subnets"
    ).split()
)
RANGES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "rootfs": {"bwlimit": (0, 1000000000)},
    "mounts": {"bwlimit": (0, 1000000000), "target_vmid": (100, 999999999)},
    "": {"tty": (0, 6), "shutdown_timeout": (0, 86400), "task_timeout": (1, 1000000)},
}
