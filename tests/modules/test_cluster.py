# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules cluster and cluster_export_info against the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.certificates import some_certificate
from tests.modules.access_lab import do, limited
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import RIGHTS, state_of

_PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"
CARD = {
    "node": "pve1",
    "path": "0000:01:00.0",
    "id": "10de:2204",
    "iommugroup": 1,
    "subsystem_id": "10de:1467",
}
# At least one resource of each section; each refers to others that the file itself creates.
FILE: dict[str, Any] = {
    "options": {
        "registered_tags": ["tenant_globex"],
        "bwlimit": {"clone": "1000"},
        "description": "two\nlines",
        "max_workers": 3,
        "consent_text": "Authorized users only",
        "notify": {"fencing": "never"},
        "replication": {"type": "insecure"},
        "webauthn": {"rp": "pve", "allow_subdomains": False},
    },
    "realms": [
        {
            "name": "company",
            "type": "ldap",
            "server1": "ldap.example.com",
            "base_dn": "dc=example,dc=com",
            "user_attr": "uid",
            "bind_password": "hush-hush-1",
        }
    ],
    "realm_sync_jobs": [
        {"name": "directory", "realm": "company", "scope": "both", "schedule": "02:30"}
    ],
    "roles": [{"name": "media-user", "privileges": ["Datastore.Audit", "VM.Audit"]}],
    "groups": [{"name": "editors", "comment": "Editors"}],
    "users": [{"name": "alice@company", "groups": ["editors"], "email": "alice@example.com"}],
    "tokens": [{"owner": "alice@company", "name": "deploy", "comment": "Deployments"}],
    "certificates": [
        {"node": "pve2", "certificates": some_certificate(), "private_key": _PRIVATE_KEY}
    ],
    "subscriptions": [{"node": "pve1", "key": "pve2c-0123456789"}],
    "acme_plugins": [{"name": "cloudflare", "type": "dns", "api": "cf", "data": {"CF_Token": "x"}}],
    "nodes": [{"node": "pve1", "timezone": "Europe/Vienna", "description": "first"}],
    "apt_repositories": [{"node": "pve1", "handle": "no-subscription", "state": "enabled"}],
    "networks": [{"node": "pve1", "interfaces": [{"name": "vmbr5", "type": "bridge"}]}],
    "sdn": {
        "zones": [{"name": "teams", "type": "vlan", "bridge": "vmbr5", "nodes": ["pve1"]}],
        "vnets": [{"name": "web", "zone": "teams", "tag": 40}],
        "subnets": [{"cidr": "10.40.0.0/24", "vnet": "web", "gateway": "10.40.0.1"}],
        "fabrics": [{"name": "under", "protocol": "openfabric", "ip_prefix": "10.99.1.0/24"}],
        "fabric_nodes": [
            {
                "fabric": "under",
                "node": "pve1",
                "ip": "10.99.1.1",
                "interfaces": [{"name": "vmbr5"}],
            }
        ],
    },
    "firewall": [
        {
            "scope": "cluster",
            "options": {"policy_forward": "DROP"},
            "rules": [{"type": "group", "action": "web"}],
            "aliases": [{"name": "office", "cidr": "192.0.2.0/24"}],
            "ip_sets": [{"name": "admins", "members": [{"cidr": "192.0.2.7"}]}],
        },
        {
            "scope": "group",
            "group": "web",
            "comment": "Web servers",
            "rules": [
                {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "443", "source": one}
                for one in ("dc/office", "+dc/admins")
            ],
        },
        {"scope": "node", "node": "pve1", "options": {"tcpflags": True}},
        {
            "scope": "vnet",
            "vnet": "web",
            "options": {"enable": True, "policy_forward": "DROP"},
            "rules": [{"type": "forward", "action": "ACCEPT", "source": "dc/office"}],
        },
        {
            "scope": "guest",
            "vmid": 300,
            "options": {"dhcp": True},
            "rules": [
                {"type": "group", "action": "web"},
                {"type": "in", "action": "ACCEPT", "source": "guest/desk"},
            ],
            "aliases": [{"name": "desk", "cidr": "192.0.2.9"}],
            "ip_sets": [{"name": "ops", "members": [{"cidr": "192.0.2.10"}]}],
        },
    ],
    "storages": [
        {"name": "media", "type": "dir", "path": "/srv/media", "content": ["backup", "iso"]}
    ],
    "mappings": [
        {"type": "pci", "name": "gpu", "map": [CARD]},
        {"type": "dir", "name": "data", "map": [{"node": "pve2", "path": "/srv/data"}]},
    ],
    "cpu_models": [{"name": "common", "reported_model": "host", "flags": ["+aes"]}],
    "pools": [
        {"name": "studio", "comment": "Studio", "storages": ["media"]},
        {"name": "studio/web"},
    ],
    "acls": [
        {"path": "/pool/studio", "grants": [{"group": "editors", "role": "media-user"}]},
        {"path": "/storage/media", "grants": [{"user": "alice@company", "role": "media-user"}]},
    ],
    "metric_servers": [
        {"name": "influx", "type": "influxdb", "server": "10.99.0.51", "server_port": 8086}
    ],
    "notification_endpoints": [{"type": "sendmail", "name": "ops", "mailto": ["ops@example.com"]}],
    "notification_matchers": [{"name": "failures", "target": ["ops"], "match_severity": ["error"]}],
    "ha_resources": [
        {"sid": "vm:300", "request_state": "stopped"},
        {"sid": "vm:301", "request_state": "stopped"},
    ],
    "ha_rules": [
        {
            "name": "apart",
            "type": "resource-affinity",
            "affinity": "negative",
            "resources": ["vm:300", "vm:301"],
        },
        {
            "name": "away",
            "type": "node-affinity",
            "affinity": "negative",
            "nodes": ["pve3"],
            "resources": ["vm:300"],
        },
    ],
    "replications": [{"id": "300-0", "target": "pve2", "schedule": "*/30"}],
    "backup_jobs": [{"name": "nightly", "schedule": "02:30", "all": True, "storage": "media"}],
}


@pytest.fixture
def lab(unused: Lab, fast: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A cluster with two VMs on one node, whose disks are on ZFS."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setitem(FILE["tokens"][0], "credentials_file", str(tmp_path / "deploy.sites.yml"))
    tank = {"storage": "tank", "type": "zfspool", "pool": "tank", "content": "images"}
    unused.client.write("POST", "storage", data=tank)
    disks = [{"size": 1, "storage": "tank"}]
    for vmid in (300, 301):
        unused.vm(name=f"c-{vmid}", vmid=vmid, node="pve1", memory="128M", disks=disks)
    unused.simulator.reset_log()
    return unused


def applied(lab: Lab, **options: Any) -> dict[str, Any]:
    """Preview and apply a file: the preview writes nothing and has the same steps."""
    lab.simulator.reset_log()
    foreseen = lab.run("cluster", check=True, **options)
    assert not foreseen.get("failed"), foreseen
    assert lab.simulator.writes() == []
    assert foreseen["done"] == []
    made = lab.run("cluster", **options)
    assert not made.get("failed"), made
    assert (foreseen["plan"], foreseen["diff"]) == (made["plan"], made["diff"])
    assert foreseen["resources"] == made["resources"]
    return made


def test_a_file_is_applied_and_then_changes_nothing(lab: Lab) -> None:
    made = applied(lab, **FILE)
    assert "hush-hush-1" not in str(made)
    assert all(one["changed"] for one in made["resources"])
    names = [one for one in made["resources"] if one["name"] == "cluster/names"]
    assert len(made["resources"]) - len(names) == sum(
        1 if isinstance(items, dict) else len(items) for items in FILE.values()
    )
    lab.simulator.reset_log()
    again = lab.run("cluster", **FILE)
    assert (again["changed"], again["plan"]) == (False, [])
    assert lab.simulator.writes() == []


def test_an_export_of_every_section_changes_nothing(lab: Lab) -> None:
    applied(lab, **FILE)
    lab.simulator.reset_log()
    found = lab.run("cluster_export_info")
    assert lab.simulator.writes() == []
    assert found.get("missing") == [], found
    assert yaml.safe_load(found["text"]) == found["cluster"]
    exported = {name.removeprefix("cluster_"): value for name, value in found["cluster"].items()}
    assert exported.keys() == FILE.keys()
    assert {"section": "realms", "secret": "company: bind_password"} in found["secrets"]
    lab.simulator.reset_log()
    again = lab.run("cluster", **exported)
    assert not again.get("failed"), again
    assert (again["changed"], again["plan"]) == (False, [])
    assert lab.simulator.writes() == []
    assert lab.run("cluster_export_info")["text"] == found["text"]


def test_the_direction_of_a_node_rule_is_exported_and_compared(lab: Lab) -> None:
    """Since Proxmox VE 9.2.6, a rule keeps guests away from its nodes with affinity=negative
    (pve-ha-manager: PVE/HA/Rules/NodeAffinity.pm).
    """
    applied(lab, **FILE)
    exported = lab.run("cluster_export_info")["cluster"]["cluster_ha_rules"]
    assert {row["name"]: row["affinity"] for row in exported}["away"] == "negative"
    lab.run("ha_rule", name="away", affinity="positive")
    again = applied(lab, **FILE)
    assert again["plan"] == ["Set affinity of HA rule 'away'"]
    assert not lab.run("cluster", **FILE)["changed"]


def test_the_secret_of_a_token_goes_to_its_file(lab: Lab, tmp_path: Path) -> None:
    token = {"owner": "root@pam", "name": "deploy"}
    result = refused(lab, tokens=[token])
    assert result["error"]["reason"] == "credentials_file"
    assert refused(lab, tokens=[{**token, "state": "rotated"}])["error"]["reason"] == "state"
    file = tmp_path / "own.sites.yml"
    made = applied(lab, tokens=[{**token, "credentials_file": str(file)}])
    assert made["done"] == ["Create token 'root@pam!deploy'", f"Write the login to {file}"]
    login = yaml.safe_load(file.read_text())["sites"][0]
    assert login["token_secret"] not in str(made)
    assert file.stat().st_mode & 0o777 == 0o600
    found = lab.run("cluster_export_info", sections=["tokens"])
    assert {"section": "tokens", "secret": "root@pam/deploy: secret"} in found["secrets"]
    assert not lab.run("cluster", tokens=found["cluster"]["cluster_tokens"])["changed"]


def test_a_group_goes_after_the_rules_that_use_it(lab: Lab) -> None:
    applied(lab, networks=FILE["networks"], firewall=FILE["firewall"][:3])
    gone = [
        {"scope": "group", "group": "web", "state": "absent"},
        {"scope": "cluster", "rules": []},
    ]
    made = applied(lab, firewall=gone)
    assert [one["name"] for one in made["resources"]] == ["cluster", "group/web"]


def test_an_export_leaves_the_networks_of_tenants_to_the_estate(lab: Lab) -> None:
    front = {"zone": "teams", "tag": 50, "subnet": "10.1.0.0/24"}
    teams = {"sdn": FILE["sdn"], "networks": FILE["networks"]}
    applied(lab, **teams, firewall=[{"scope": "cluster", "options": {"enable": True}}])
    before = lab.run("cluster_export_info", sections=["sdn", "firewall"])
    do(lab, "tenant", name="acme", **RIGHTS, networks={"front": front})
    assert lab.run("cluster_export_info", sections=["sdn", "firewall"])["text"] == before["text"]
    nics = [{"network": "front", "ip": "10.1.0.7/24"}]
    own: dict[str, Any] = {"name": "app1", "tenant": "acme", "nics": nics}
    do(lab, "vm", **own, source="debian-13")
    assert lab.run("cluster_export_info", sections=["sdn", "firewall"])["text"] == before["text"]
    ssh = [{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22"}]
    do(lab, "firewall", scope="guest", name="app1", rules=ssh)
    vmid = vmid_of(lab, "app1")
    found = lab.run("cluster_export_info", sections=["firewall"])["cluster"]["cluster_firewall"]
    enabled = [{**rule, "enable": True} for rule in ssh]
    assert found[-1] == {"scope": "guest", "vmid": vmid, "rules": enabled}
    again = lab.run("cluster", firewall=found)
    assert (again["changed"], again["plan"]) == (False, [])
    assert not do(lab, "vm", **own)["changed"]


def test_a_pending_vnet_does_not_make_an_export_incomplete(lab: Lab) -> None:
    """It has no firewall: 500 "invalid vnet specified" (pve-firewall: API2/Firewall/Helpers.pm,
    check_vnet_access, which reads the running configuration).
    """
    applied(lab, sdn=FILE["sdn"], networks=FILE["networks"])
    before = lab.run("cluster_export_info", sections=["sdn", "firewall"])
    data = {"vnet": "new", "zone": "teams", "tag": 77}
    lab.client.write("POST", "cluster", "sdn", "vnets", data=data)
    found = lab.run("cluster_export_info", sections=["sdn", "firewall"])
    assert found["complete"], found["missing"]
    assert found["cluster"] == before["cluster"]
    assert "# - the firewall of VNet new: the VNet is pending" in found["text"]
    assert not lab.run("firewall", scope="cluster", aliases=[], exact=True).get("failed")


def test_an_exact_file_leaves_the_tenants_after_its_export_alone(lab: Lab) -> None:
    """Pools, groups, users, tokens, roles and rights of a tenant that the file does not know."""
    do(lab, "role", name="own", privileges=["VM.Audit"])
    do(lab, "group", name="own")
    do(lab, "user", name="own@pve")
    do(lab, "token", owner="own@pve", name="own")
    sections = ["roles", "groups", "users", "tokens", "pools", "acls"]
    exported = lab.run("cluster_export_info", sections=sections)["cluster"]
    options = {name.removeprefix("cluster_"): value for name, value in exported.items()}
    exact = [name for name in sections if name != "acls"]
    assert not set(exact) - options.keys()
    do(lab, "tenant", name="initech", **RIGHTS)
    do(lab, "group", name="late")
    before = state_of(lab)
    for check in (True, False):
        result = lab.run("cluster", **options, exact=exact, check=check)
        assert not result.get("failed"), result["msg"]
        assert result["plan"] == ["Delete group 'late'"]
    after = state_of(lab)
    before["groups"] = [row for row in before["groups"] if row["groupid"] != "late"]
    assert after == before


def vmid_of(lab: Lab, name: str) -> int:
    rows = lab.client.get("cluster", "resources")
    return next(int(row["vmid"]) for row in rows if row.get("name") == name)


def test_a_volume_is_uploaded_to_a_storage_of_the_same_file(lab: Lab, tmp_path: Path) -> None:
    """Proxmox VE does not record the source of a volume, so an export has none."""
    source = tmp_path / "tools.iso"
    source.write_bytes(b"\0" * 4096)
    file = {
        "storages": FILE["storages"],
        "volumes": [{"storage": "media", "node": "pve1", "src": str(source)}],
    }
    made = applied(lab, **file)
    assert made["done"] == [
        "Create storage 'media'",
        f"Upload {source} to media:iso/tools.iso on node pve1",
    ]
    assert not lab.run("cluster", **file)["changed"]
    assert "cluster_volumes" not in lab.run("cluster_export_info")["cluster"]


def test_a_certificate_that_a_node_orders_is_not_exported(lab: Lab) -> None:
    lab.run("node", node="pve1", acme={"domains": [{"domain": "pve1.example.com"}]})
    lab.run("acme_certificate", node="pve1")
    found = lab.run("cluster_export_info", sections=["certificates", "nodes"])["cluster"]
    assert "cluster_certificates" not in found
    assert found["cluster_nodes"][0]["acme"]["domains"][0]["domain"] == "pve1.example.com"


def test_an_unchanged_file_of_120_resources_takes_at_most_30_requests(lab: Lab) -> None:
    many: dict[str, Any] = {
        **{name: items for name, items in FILE.items() if name not in ("sdn", "firewall")},
        "storages": [
            {"name": f"dir{number}", "type": "dir", "path": f"/srv/{number}", "content": ["backup"]}
            for number in range(30)
        ]
        + FILE["storages"],
        "groups": [{"name": f"group{number}"} for number in range(30)] + FILE["groups"],
        "backup_jobs": [
            {"name": f"job{number}", "schedule": "02:30", "all": True, "storage": f"dir{number}"}
            for number in range(30)
        ],
        "roles": [{"name": f"role{number}", "privileges": ["VM.Audit"]} for number in range(10)]
        + FILE["roles"],
        "pools": [{"name": f"pool{number}", "comment": "A pool"} for number in range(10)],
        "acls": [],
    }
    made = applied(lab, **many)
    assert len(made["resources"]) >= 120
    lab.simulator.reset_log()
    assert not lab.run("cluster", **many)["changed"]
    paths = [one["path"] for one in lab.simulator.log()]
    assert paths.count("/pools") == 1
    assert len(paths) <= 26
    networks = {name: FILE[name] for name in ("sdn", "firewall")}
    lab.run("cluster", **networks)
    lab.simulator.reset_log()
    assert not lab.run("cluster", **networks)["changed"]
    assert len(lab.simulator.log()) <= 27


def test_exact_removes_what_is_not_declared(lab: Lab) -> None:
    applied(lab, **FILE)
    made = applied(
        lab,
        storages=FILE["storages"],
        ha_resources=[],
        ha_rules=[],
        notification_matchers=[],
        notification_endpoints=[],
        roles=[],
        acls=[
            {"path": "/pool/studio", "grants": [], "exact": True},
            {"path": "/storage/media", "grants": [], "exact": True},
        ],
        exact=[
            "ha_resources",
            "ha_rules",
            "notification_matchers",
            "notification_endpoints",
            "roles",
        ],
    )
    removed = [(one["section"], one["name"]) for one in made["resources"] if one["changed"]]
    assert removed == [
        ("acls", "/pool/studio"),
        ("acls", "/storage/media"),
        ("ha_rules", "away"),
        ("ha_rules", "apart"),
        ("ha_resources", "vm:301"),
        ("ha_resources", "vm:300"),
        ("notification_matchers", "failures"),
        ("notification_endpoints", "sendmail/ops"),
        ("roles", "media-user"),
    ]
    names = [one["name"] for one in lab.run("notification_endpoint_info")["notification_endpoints"]]
    assert names == ["mail-to-root"]


def test_a_resource_can_be_declared_absent(lab: Lab) -> None:
    applied(lab, groups=[{"name": "one"}, {"name": "two"}])
    made = applied(lab, groups=[{"name": "one", "state": "absent"}, {"name": "two"}])
    assert made["plan"] == ["Delete group 'one'"]
    assert not lab.run("cluster", groups=[{"name": "one", "state": "absent"}])["changed"]


def test_a_storage_in_use_is_not_removed(lab: Lab) -> None:
    result = refused(lab, groups=[{"name": "new"}], storages=[], exact=["storages"])
    assert result["error"]["reason"] == "in use"


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"groups": [{"name": "a"}, {"name": "a"}]}, "declared twice", "a is declared twice"),
    ({"groups": [{"name": "a", "coment": "x"}]}, "unknown option", "groups[0] was refused"),
    ({"roles": [{}]}, "missing option", "roles[0] was refused: option 'name' is missing"),
    ({"options": {"mac_prefiks": "x"}}, "unknown option", "options was refused"),
    ({"exact": ["storages"]}, "exact", "everything of it would be removed"),
    (
        {"groups": [{"name": "a"}], "users": [{"name": "a@nowhere"}]},
        "unknown realm",
        "realm 'nowhere'",
    ),
    (
        {"groups": [{"name": "a"}], "backup_jobs": [{"name": "bb", "all": True, "storage": "x"}]},
        "schedule",
        "schedule is required",
    ),
    (
        {"acls": [{"path": "/pool/acme", "grants": [{"group": "strangers", "role": "PVEVMUser"}]}]},
        "unknown user, group or token",
        "strangers",
    ),
]


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the failure of a file, which is the same in check mode and made no write."""
    lab.simulator.reset_log()
    failures = [lab.run("cluster", check=check, **options) for check in (True, False)]
    assert all(failure.get("failed") for failure in failures), failures
    assert failures[0]["msg"] == failures[1]["msg"]
    assert lab.simulator.writes() == []
    return failures[1]


@pytest.mark.parametrize(("options", "reason", "word"), REFUSED, ids=str)
def test_a_file_is_refused_as_a_whole(
    lab: Lab, options: dict[str, Any], reason: str, word: str
) -> None:
    result = refused(lab, **options)
    assert result["error"]["reason"] == reason
    assert word in result["msg"]


def test_an_interrupted_file_names_its_steps_and_is_completed(lab: Lab) -> None:
    """PVE finds only when it creates a metric server that it does not answer (pve-manager:
    PVE/Status/Graphite.pm).
    """
    server = {"name": "far", "type": "graphite", "server": "10.99.0.50", "server_port": 2003}
    groups = [{"name": "early"}]
    failed = lab.run("cluster", groups=groups, metric_servers=[{**server, "proto": "tcp"}])
    assert failed["failed"]
    assert failed["changed"]
    assert failed["error"]["done"] == ["Create group 'early'"]
    made = applied(lab, groups=groups, metric_servers=[server])
    assert made["done"] == ["Create metric server 'far'"]


def test_an_export_names_what_cannot_be_read(lab: Lab) -> None:
    login = limited(lab, "reader", {"/storage/local": "PVEDatastoreUser"})
    found = lab.run("cluster_export_info", sections=["acls", "nodes", "storages"], **login)
    assert not found["complete"]
    assert [one["section"] for one in found["missing"]] == ["nodes"]
    assert "# - nodes: Could not read" in found["text"]
    assert "cluster_exact" in found["text"]
