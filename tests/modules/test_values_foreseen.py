# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For every option with a value of its own: check mode refuses the value if the run would.

The tasks below set nearly every option that the API schema gives a format, a pattern, a length or
a range. Each test replaces one value with others, some of them valid.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import cases
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import writes_of

ROOT = {"user": "root@pam", "password": "fleetpw123", "token_id": "", "token_secret": ""}
BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "backup_job": (
        "backup_job",
        {
            "name": "nightly",
            "schedule": "02:30",
            "vms": [9000],
            "node": "pve1",
            "storage": "local",
            "prune_backups": {"keep_last": 3},
            "notes_template": "{{guestname}}",
            "fleecing": {"enabled": True, "storage": "local"},
            "bwlimit": 1000,
            "ionice": 5,
            "zstd": 1,
            "performance": {"max_workers": 4, "pbs_entries_max": 1000},
            "exclude_path": ["/tmp/?*"],
            "mailto": ["ops@example.com"],
            "pigz": 1,
            "lockwait": 60,
            "stopwait": 5,
            "tmpdir": "/var/tmp",
            "script": "/usr/local/bin/hook",
            "comment": "every night",
            **ROOT,
        },
    ),
    "storage nfs": (
        "storage",
        {
            "name": "share",
            "disable": True,
            "type": "nfs",
            "content": ["images"],
            "nodes": ["pve1"],
            "content_dirs": {"images": "disks"},
            "server": "nas.example.com",
            "export": "/srv/share",
            "options": "vers=4.2",
            "bwlimit": {"clone": "100"},
        },
    ),
    "storage pbs": (
        "storage",
        {
            "name": "vault",
            "disable": True,
            "type": "pbs",
            "server": "pbs.example.com",
            "server_port": "8007",
            "datastore": "main",
            "namespace": "acme/web",
            "username": "backup@pbs",
            "server_password": "hush-hush-1",
            "fingerprint": ":".join(["ab"] * 32),
            "max_protected_backups": "5",
        },
    ),
    "storage cifs": (
        "storage",
        {
            "name": "office",
            "disable": True,
            "type": "cifs",
            "server": "nas.example.com",
            "share": "files",
            "subdir": "/pve",
            "username": "svc",
            "domain": "OFFICE",
        },
    ),
    "storage rbd": (
        "storage",
        {"name": "far", "type": "rbd", "pool": "vms", "monhost": ["10.0.0.1", "10.0.0.2:6789"]},
    ),
    "storage lvmthin": (
        "storage",
        {"name": "thin", "type": "lvmthin", "vgname": "pve", "thinpool": "data"},
    ),
    "storage zfspool": (
        "storage",
        {"name": "tank", "type": "zfspool", "pool": "tank/vms", "blocksize": "16k"},
    ),
    "realm ldap": (
        "realm",
        {
            "name": "corp",
            "type": "ldap",
            "base_dn": "dc=example,dc=com",
            "user_attr": "uid",
            "server1": "ldap1.example.com",
            "server2": "ldap2.example.com",
            "server_port": 636,
            "mode": "ldaps",
            "comment": "Staff",
            "filter": "(active=1)",
            "group_filter": "(kind=team)",
            "group_classes": "groupOfNames",
            "user_classes": "person",
            "group_name_attr": "cn",
            "sync_attributes": "email=mail",
            "sync_defaults_options": "scope=both",
        },
    ),
    "realm openid": (
        "realm",
        {
            "name": "sso",
            "type": "openid",
            "issuer_url": "https://id.example.com",
            "client_id": "pve",
            "prompt": "login",
            "acr_values": "gold",
            "groups_claim": "groups",
            "scopes": "email profile",
        },
    ),
    "sdn": (
        "sdn",
        {
            "zones": [
                {"name": "plain", "type": "simple", "nodes": ["pve1"], "mtu": 1450, "ipam": "pve"},
                {"name": "wide", "type": "vxlan", "peers": ["10.0.0.1"], "vxlan_port": 4789},
                {
                    "name": "fabric",
                    "type": "evpn",
                    "controller": "ctl",
                    "vrf_vxlan": 5000,
                    "exitnodes": ["pve1"],
                    "exitnodes_primary": "pve1",
                    "rt_import": "65000:1",
                    "mac": "BC:24:11:00:00:01",
                },
                {"name": "tagged", "type": "vlan", "bridge": "vmbr0"},
            ],
            "controllers": [
                {"name": "ctl", "type": "evpn", "asn": 65000, "peers": ["10.0.0.1", "10.0.0.2"]}
            ],
            "vnets": [{"name": "front", "zone": "plain", "alias": "Front office"}],
            "subnets": [
                {
                    "cidr": "10.9.0.0/24",
                    "vnet": "front",
                    "gateway": "10.9.0.1",
                    "dhcp_dns_server": "10.9.0.2",
                    "dhcp_ranges": [{"start_address": "10.9.0.10", "end_address": "10.9.0.20"}],
                }
            ],
            "fabrics": [
                {
                    "name": "under",
                    "protocol": "openfabric",
                    "ip_prefix": "10.8.0.0/24",
                    "hello_interval": 3,
                    "csnp_interval": 10,
                }
            ],
            "fabric_nodes": [{"fabric": "under", "node": "pve1", "ip": "10.8.0.1"}],
        },
    ),
    "firewall": (
        "firewall",
        {
            "scope": "cluster",
            "rules": [
                {
                    "type": "in",
                    "action": "ACCEPT",
                    "proto": "tcp",
                    "source": "10.0.0.0/24",
                    "dest": "10.1.0.1",
                    "dport": "80,443",
                    "sport": "1024:65535",
                    "iface": "net0",
                    "log": "info",
                    "comment": "web",
                },
                {"type": "in", "action": "ACCEPT", "proto": "icmp", "icmp_type": "echo-request"},
                {"type": "in", "action": "ACCEPT", "macro": "SSH"},
            ],
            "aliases": [{"name": "office", "cidr": "10.2.0.0/24", "comment": "main"}],
            "ip_sets": [{"name": "admins", "members": [{"cidr": "10.3.0.0/24"}]}],
        },
    ),
    "metric_server graphite": (
        "metric_server",
        {
            "name": "graphs",
            "type": "graphite",
            "server": "10.99.0.50",
            "server_port": 2003,
            "mtu": 1500,
            "path": "proxmox",
            "timeout_seconds": 1,
        },
    ),
    "metric_server influxdb": (
        "metric_server",
        {
            "name": "influx",
            "type": "influxdb",
            "server": "10.99.0.50",
            "server_port": 8086,
            "influxdb_proto": "udp",
            "mtu": 1400,
        },
    ),
    "notification_endpoint": (
        "notification_endpoint",
        {
            "type": "smtp",
            "name": "mail",
            "server": "smtp.example.com",
            "server_port": 25,
            "mailto": ["ops@example.com"],
            "mailto_user": ["root@pam"],
            "from_address": "pve@example.com",
            "comment": "alerts",
        },
    ),
    "notification_matcher": (
        "notification_matcher",
        {
            "name": "calls",
            "target": ["mail-to-root"],
            "match_severity": ["error"],
            "match_field": ["exact:type=vzdump"],
            "match_calendar": ["mon..fri 8-17"],
            "comment": "alerts",
        },
    ),
    "node": (
        "node",
        {
            "node": "pve1",
            "description": "Rack 4",
            "startall_onboot_delay": 10,
            "ballooning_target": 80,
            "wakeonlan": {"mac": "BC:24:11:00:00:01", "broadcast_address": "10.0.0.255"},
            "location": {"latitude": "48.1", "longitude": "11.5", "name": "Munich"},
            "dns": {"search": "example.com", "servers": ["10.0.0.1"]},
            "timezone": "Europe/Berlin",
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
                    "cidr": "10.7.0.1/24",
                    "cidr6": "fd00::1/64",
                    "mtu": 1500,
                    "bridge_vlan_aware": True,
                    "bridge_vids": ["2-4094"],
                    "comments": "lab",
                },
                {"name": "vmbr7.5", "type": "vlan", "vlan_raw_device": "vmbr7", "vlan_id": 5},
            ],
        },
    ),
    "cluster_options": (
        "cluster_options",
        {
            "registered_tags": ["one"],
            "tag_style": {"color_map": {"one": "ff0000"}},
            "user_tag_access": {"user_allow": "list", "user_allow_list": ["two"]},
            "crs": {"ha_auto_rebalance": True, "ha_auto_rebalance_threshold": "30"},
            "mac_prefix": "BC:24:11",
            "bwlimit": {"clone": "100"},
            "migration": {"network": "10.0.0.0/24"},
            "next_id": {"lower": "200", "upper": "300"},
            "description": "Munich",
            "email_from": "pve@example.com",
            "http_proxy": "http://proxy.example.com:3128",
            "max_workers": 4,
            "consent_text": "Staff only",
            "location": {"latitude": "48.1", "longitude": "11.5", "name": "Munich"},
            "webauthn": {"rp": "example.com", "origin": "https://pve.example.com", "id": "pve"},
        },
    ),
    "mapping": (
        "mapping",
        {
            "type": "usb",
            "name": "stick",
            "description": "Licence",
            "map": [{"node": "pve1", "id": "0529:0001"}],
        },
    ),
    "cpu_model": (
        "cpu_model",
        {
            "name": "fast",
            "reported_model": "host",
            "flags": ["+aes"],
            "hv_vendor_id": "fleet",
            "phys_bits": "40",
            "guest_phys_bits": "40",
        },
    ),
    "acme_plugin": (
        "acme_plugin",
        {
            "name": "zone",
            "type": "dns",
            "api": "cf",
            "data": {"CF_Token": "hush-hush-1"},
            "validation_delay": 30,
            "nodes": ["pve1"],
        },
    ),
    "user": (
        "user",
        {
            "name": "carol@pve",
            "expire": "2030-01-01",
            "firstname": "Carol",
            "lastname": "Lang",
            "email": "carol@example.com",
            "comment": "Operations",
            "user_password": "hush-hush-1",
        },
    ),
    "token": ("token", {"owner": "ops@pve", "name": "auto", "comment": "both"}),
    "pool": ("pool", {"name": "both-pool", "comment": "both"}),
    "group": ("group", {"name": "both-group", "comment": "both"}),
    "role": ("role", {"name": "both-role", "privileges": ["VM.Audit"]}),
    "container": (
        "container",
        {
            "name": "both-container",
            "node": "pve1",
            "source": "debian-13-standard",
            "nameservers": ["10.0.0.1"],
            "search_domain": "example.com",
            "options": {"timezone": "Europe/Berlin"},
        },
    ),
}
TEXTS = (
    "no such value!",
    "-",
    "a,b",
    "Größe",
    "x" * 3000,
    "0",
    "a.b_c",
    "Europe/Kiev2",
    "10.0.0.1",
)
NUMBERS = (-5, 0, 3, 10**9)
# The request of a module is not made from these options alone.
NOT_VALUES = ("user", "password", "token_id", "token_secret", "state", "scope", "type")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of texts and numbers in a task."""
    if isinstance(value, dict):
        for name, item in value.items():
            if path or name not in NOT_VALUES:
                yield from leaves(item, (*path, name))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    elif not isinstance(value, bool):
        yield path


def with_value(task: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(task)
    holder: Any = changed
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    return changed


def value_at(task: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        task = task[name]
    return task


# The comment - of a rule, and members of IP sets that name an alias, are tested with the firewall.
ELSEWHERE = (("rules", 0, "comment"), ("ip_sets", 0, "members", 0, "cidr"))
PLACES = [
    (base, path)
    for base, (_module, task) in BASES.items()
    for path in leaves(task)
    if path not in ELSEWHERE
]


@pytest.mark.parametrize("base", BASES)
def test_the_task_itself_works(unused: Lab, base: str) -> None:
    module, task = BASES[base]
    result = unused.run(module, **task)
    assert not result.get("failed"), result["msg"]
    assert not unused.run(module, **task)["changed"]


@pytest.mark.parametrize(
    ("base", "path"), PLACES, ids=[f"{base}: {'.'.join(map(str, path))}" for base, path in PLACES]
)
def test_check_mode_refuses_the_values_that_the_run_refuses(
    unused: Lab, base: str, path: tuple[Any, ...]
) -> None:
    """The simulator checks requests with the API schema and the formats of pve-common."""
    module, task = BASES[base]
    values: tuple[Any, ...] = TEXTS
    if isinstance(value_at(task, path), int):
        values = NUMBERS
    for value in cases(full=values, short=values[PLACES.index((base, path)) % 3 :: 3]):
        changed = with_value(task, path, value)
        unused.simulator.reset()
        foreseen = unused.run(module, check=True, **changed)
        assert "exception" not in foreseen, foreseen["msg"]
        assert writes_of(unused) == []
        if foreseen.get("failed"):
            assert foreseen["error"]["category"] != "ApiError", foreseen["msg"]
            continue
        done = unused.run(module, **changed)
        if done.get("failed") and done["error"]["category"] == "ConfigurationError":
            continue  # the node lacks the named object, such as a volume group
        assert not done.get("failed"), (value, done["msg"])
        again = unused.run(module, **changed)
        assert not again.get("changed"), (value, again.get("diff"))


# An empty text is removed from the request, and PVE requires the property (pve-common:
# SectionConfig.pm, check_config and delete_from_config).
REQUIRED = (
    ("acme_plugin", "api"),
    ("cpu_model", "reported_model"),
    ("metric_server graphite", "server"),
    ("metric_server influxdb", "server"),
    ("notification_endpoint", "from_address"),
    ("notification_endpoint", "server"),
    ("realm ldap", "base_dn"),
    ("realm openid", "client_id"),
    ("storage nfs", "export"),
)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(("base", "option"), REQUIRED)
def test_an_empty_value_of_a_required_option_is_refused(
    unused: Lab, base: str, option: str, there: bool
) -> None:
    module, task = BASES[base]
    if there:
        assert unused.run(module, **task)["changed"]
    unused.simulator.reset_log()
    results = [unused.run(module, check=check, **{**task, option: ""}) for check in (True, False)]
    assert all(result.get("failed") for result in results), results
    assert option in results[1]["msg"]
    assert writes_of(unused) == []


@pytest.mark.parametrize(
    ("base", "option"), [("backup_job", "lockwait"), ("metric_server graphite", "timeout_seconds")]
)
def test_a_number_beyond_64_bits_is_refused(unused: Lab, base: str, option: str) -> None:
    """Perl has integers of 64 bits (perlnumber), and the number could not be read again."""
    module, task = BASES[base]
    unused.simulator.reset_log()
    for check in (True, False):
        result = unused.run(module, check=check, **{**task, option: 2**63})
        assert result["error"]["category"] == "ValidationFailed", result
        assert f"{option} was refused: '{2**63}' is out of range" in result["msg"]
    assert writes_of(unused) == []
    assert not unused.run(module, check=True, **{**task, option: 2**40}).get("failed")
