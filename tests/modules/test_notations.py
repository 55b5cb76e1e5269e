# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value in another notation changes nothing: lists in any order, addresses, MAC addresses,
fingerprints and host names in any notation, property strings with their keys in any order.

The tasks are those of `test_values_foreseen.py`, and more with options that have such values; each
value is replaced by every other notation of it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import validate
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import writes_of
from tests.modules.test_values_foreseen import BASES, ROOT, value_at, with_value

MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2})+")
HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "container options": (
        "container",
        {
            "name": "both-container",
            "node": "pve1",
            "source": "debian-13-standard",
            "nameservers": ["fd00::35", "10.0.0.1"],
            "environment": {"A": "one ", "B": "two"},
            "rootfs": {"size": 4, "mount_options": ["discard", "noatime"]},
            "mounts": [
                {"size": 1, "path": "/srv", "mount_options": ["nosuid", "nodev"], "backup": True}
            ],
            "nics": [
                {
                    "bridge": "vmbr0",
                    "trunks": [10, 20],
                    "ip": "10.0.0.9/24",
                    "ip6": "fd00::9/64",
                    "gateway6": "fd00::1",
                    "mac": "BC:24:11:00:00:09",
                }
            ],
            **ROOT,
        },
    ),
    "vm options": (
        "vm",
        {
            "name": "both-vm",
            "node": "pve1",
            "disks": [{"size": 1}],
            "nics": [
                {
                    "bridge": "vmbr0",
                    "trunks": ["10", "20-30"],
                    "mac": "BC:24:11:00:00:08",
                    "ip6": "fd00::8/64",
                    "gateway6": "fd00::1",
                }
            ],
            "cloud_init": {"nameservers": ["fd00::35"]},
            "options": {"affinity": "0,2-3"},
            **ROOT,
        },
    ),
    "realm of a directory": (
        "realm",
        {
            "name": "corp",
            "type": "ldap",
            "base_dn": "dc=example,dc=com",
            "user_attr": "uid",
            "server1": "fd00::1",
            "user_classes": "person,user",
            "group_classes": "group,team",
            "sync_attributes": "email=mail,firstname=gn",
            "sync_defaults_options": "remove-vanished=acl;entry,scope=both",
            "tfa": "digits=6,type=oath",
        },
    ),
    "realm of a provider": (
        "realm",
        {
            "name": "sso",
            "type": "openid",
            "issuer_url": "https://id.example.com",
            "client_id": "pve",
            "audiences": "one,two",
            "scopes": "email profile",
        },
    ),
    "sdn in IPv6": (
        "sdn",
        {
            "zones": [
                {
                    "name": "six",
                    "type": "evpn",
                    "controller": "ctl",
                    "vrf_vxlan": 5000,
                    "exitnodes": ["pve1", "pve2"],
                    "rt_import": "65000:1,65000:2",
                    "mac": "BC:24:11:00:00:01",
                },
                {"name": "plain", "type": "simple"},
            ],
            "controllers": [
                {"name": "ctl", "type": "evpn", "asn": 65000, "peers": ["10.0.0.1", "fd00::2"]}
            ],
            "vnets": [{"name": "front", "zone": "plain"}],
            "subnets": [
                {
                    "cidr": "fd01::/64",
                    "vnet": "front",
                    "gateway": "fd01::1",
                    "dhcp_dns_server": "fd01::2",
                    "dhcp_ranges": [{"start_address": "fd01::10", "end_address": "fd01::20"}],
                }
            ],
        },
    ),
    "storage nfs": (
        "storage",
        {
            "name": "share",
            "disable": True,
            "type": "nfs",
            "content": ["images", "iso"],
            "nodes": ["pve1", "pve2"],
            "server": "fd00::3",
            "export": "/srv/share",
            "options": "soft,vers=4.2",
        },
    ),
    "backup_job": (
        "backup_job",
        {
            "name": "lists",
            "schedule": "02:30",
            "vms": [9000, 9001],
            "storage": "local",
            "mailto": ["a@example.com", "b@example.com"],
            "prune_backups": {"keep_last": 3, "keep_daily": 7},
        },
    ),
    "firewall": (
        "firewall",
        {"scope": "cluster", "options": {"log_ratelimit": "burst=7,enable=1,rate=2/second"}},
    ),
    "node in IPv6": (
        "node",
        {
            "node": "pve1",
            "wakeonlan": {"mac": "BC:24:11:00:00:01", "broadcast_address": "10.0.0.255"},
            "acme": {
                "account": "default",
                "domains": [
                    {"domain": "pve1.example.com"},
                    {"domain": "www.example.com", "plugin": "standalone", "alias": "a.example.org"},
                ],
            },
            "dns": {"search": "example.com", "servers": ["fd00::35"]},
        },
    ),
    "node_network": (
        "node_network",
        {
            "node": "pve1",
            "interfaces": [
                {
                    "name": "vmbr7",
                    "type": "bridge",
                    "cidr6": "fd00::1/64",
                    "bridge_vlan_aware": True,
                    "bridge_vids": ["10", "20-30"],
                }
            ],
        },
    ),
    "cluster_options": (
        "cluster_options",
        {
            "registered_tags": ["one", "two"],
            "user_tag_access": {"user_allow": "list", "user_allow_list": ["one", "two"]},
            "tag_style": {"color_map": {"one": "ff00aa"}, "ordering": "config"},
            "bwlimit": {"clone": "100", "move": "200"},
            "notify": {"fencing": "always", "package_updates": "never"},
            "replication": {"type": "insecure", "network": "fd00::/64"},
            "u2f": {"appid": "https://pve.example.com", "origin": "https://pve.example.com"},
            "mac_prefix": "BC:24:11",
            "migration": {"network": "fd00::/64"},
        },
    ),
    "notification_matcher": (
        "notification_matcher",
        {
            "name": "calls",
            "target": ["mail-to-root"],
            "match_severity": ["error", "warning"],
            "match_field": ["exact:type=vzdump", "exact:hostname=pve1"],
        },
    ),
    "notification_endpoint": (
        "notification_endpoint",
        {
            "type": "sendmail",
            "name": "mail",
            "mailto": ["a@example.com", "b@example.com"],
            "mailto_user": ["ops@pve", "root@pam"],
        },
    ),
    "cpu_model": (
        "cpu_model",
        {"name": "fast", "reported_model": "host", "flags": ["+aes", "-pcid"]},
    ),
}
TASKS = {**BASES, **{f"{name} (lists)": row for name, row in MORE.items()}}
# Values whose order or case has a meaning.
ORDERED = ("exclude_path", "nameservers", "servers")
TEXTS = ("dport", "sport", "comment", "description", "base_dn", "name")


def notations(name: str, value: Any) -> Iterator[Any]:
    """Yield other notations of the same value."""
    if isinstance(value, list):
        if len(value) > 1 and name not in ORDERED and not isinstance(value[0], dict):
            yield value[::-1]
        return
    if not isinstance(value, str):
        return
    if MAC.fullmatch(value):
        yield from (value.lower(), value.upper())
    elif validate.is_address(value.partition("/")[0], 6):
        address, slash, prefix = value.partition("/")
        yield from (ipaddress.ip_address(address).exploded + slash + prefix, value.upper())
    elif name.startswith("server") and HOST.fullmatch(value):
        yield value.upper()
    separator = "," if "," in value else ";"
    if separator in value:
        yield separator.join(value.split(separator)[::-1])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all values in a task."""
    yield path
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for name, item in items:
        yield from places(item, (*path, name))


def other_notations(task: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in places(task):
        names = [name for name in path if isinstance(name, str)]
        if not names or names[-1] in TEXTS:
            continue
        for value in notations(names[-1], value_at(task, path)):
            yield ".".join(map(str, path)), with_value(task, path, value)


WITH_OTHERS = [name for name, (_module, task) in TASKS.items() if any(other_notations(task))]


@pytest.mark.parametrize("base", WITH_OTHERS)
def test_another_notation_changes_nothing(unused: Lab, base: str) -> None:
    module, task = TASKS[base]
    first = unused.run(module, **task)
    assert not first.get("failed"), first["msg"]
    unused.simulator.reset_log()
    found = {"": unused.run(module, check=True, **task)["diff"]}
    for place, other in other_notations(task):
        again = unused.run(module, **other)
        assert not again.get("failed"), (place, again["msg"])
        found[f"{place}: {len(found)}"] = again["diff"] if again["changed"] else {}
        if again["changed"]:
            unused.run(module, **task)
    differing = {place: diff for place, diff in found.items() if diff and place}
    assert differing == {}
    assert writes_of(unused) == []
