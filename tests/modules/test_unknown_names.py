# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option that names something refuses a name that names nothing, with the most similar name.

The options are those with `names` or `refuses` in their declarations. An option whose name suggests
that it names something has one of these keys, or a reason in `OTHERS`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.find.names import (
    given_names,
)
from tests.declared import minimal_tasks
from tests.modules.estate_lab import Lab, open_lab
from tests.tools.declarations import Options, load
from tests.tools.make_modules import declared_names, declared_options, modules_of

DECLARATIONS = load()
# The existing name that resembles the misspelt name, by kind. A cluster has no similar target.
SIMILAR = {
    "tenant": ("acmee", "acme"),
    "estate_tenant": ("acmee", "acme"),
    "node": ("pve11", "pve1"),
    "pool": ("acmee", "acme"),
    "tag": ("wbe", "web"),
    "guest": ("wbe1", "web1"),
    "storage": ("cehp", "ceph"),
    "network": ("vmbr00", "vmbr0"),
    "backup_storage": ("lcoal", "local"),
    "archive_storage": ("local-lmv", "local-lvm"),
    "archived_guest": ("wbe1", ""),
    "vnet": ("vnet11", "vnet1"),
    "zone": ("zoen1", "zone1"),
    "template": ("debian-31", "debian-13"),
    "target": ("mail-to-rot", "mail-to-root"),
    "user": ("opps@pve", ""),
    "group": ("opps", ""),
    "role": ("PVEAuditr", ""),
    "applied_vnet": ("front11", "front1"),
    "endpoint": ("mail-to-rot", "mail-to-root"),
    "acme_account": ("other", ""),
    "acme_plugin": ("standalne", "standalone"),
    "ha_rule": ("rule11", "rule1"),
}
# Proxmox VE does not read the targets of datacenter.cfg any more (pve-cluster:
# DataCenterConfig.pm).
WARNED = frozenset(("estate_tenant", "tag", "endpoint"))
NEW_DISK = [{"name": "scsi5", "size": 1}]
DISK = [{"size": 1}]
ROOT = {"storage": "ceph", "size": 4}
CONTAINER = {"name": "new", "source": "debian-13-standard", "rootfs": ROOT}
JOB = {"name": "job1", "schedule": "daily", "storage": "local", "all": True}
FAILOVER = {"storages": ["local"], "lost": True, "vms": ["gone1"], "pools": {"acme": "acme"}}
# The tables that translate names of another site, with a former name.
VALUES = {
    "drill_info.storage_map": "local-lvm",
    "drill.storage_map": "local-lvm",
    "failover.networks": "vmbr0",
    "failover.storage_map": "local-lvm",
    "failover.pools": "acme",
    "relocate.networks": "vmbr0",
    "relocate.storage_map": "local-lvm",
    "relocate.pools": "acme",
    "relocate.replication_targets": "pve1",
}
# The former names in these tables, with a misspelt name and the meant name.
FORMER: dict[str, dict[str, Any]] = {
    "drill_info.storage_map": {"lcoal-lvm": "ceph"},
    "restore.storage_map": {"lcoal-lvm": "ceph"},
    "failover.storage_map": {"lcoal-lvm": "ceph"},
    "failover.networks": {"vmbr00": "vmbr1"},
    "failover.pools": {"acmee": "acme"},
    "relocate.storage_map": {"lcoal-lvm": "ceph"},
    "relocate.networks": {"vmbr00": "vmbr1"},
    "relocate.pools": {"acmee": "acme"},
    "relocate.quotas": {"acmee": {"memory": "1T"}},
    "relocate.replication_targets": {"pve11": "pve1"},
}
# The task of an option for which the task of the declaration does not fit.
TASKS: dict[str, dict[str, Any]] = {
    "acl": {"path": "/pool/acme", "grants": [{"role": "PVEAuditor", "user": "ops@pve"}]},
    "acl.grants.group": {"path": "/pool/acme", "grants": [{"role": "PVEAuditor"}]},
    "backup": {"storage": "local"},
    "backup.storage": {"vmid": 101},
    "backup.fleecing.storage": {"vmid": 101, "storage": "local", "fleecing": {"enabled": True}},
    "backup_info": {},
    "backup_job": JOB,
    "backup_job.pool": {"name": "job1", "schedule": "daily", "storage": "local"},
    "backup_job.fleecing.storage": {**JOB, "fleecing": {"enabled": True}},
    "clone": {"name": "new", "source": "debian-13"},
    "clone.default_storage": {"name": "new", "source": "debian-13", "disks": NEW_DISK},
    "clone.storage": {"name": "new", "source": "debian-13", "full": True},
    "container": CONTAINER,
    "container_info": {},
    "disk_storage_info": {},
    "estate_info": {"power": False},
    "evacuation": {"node": "pve3"},
    "failover": FAILOVER,
    "failover.vms": {"storages": ["local"], "lost": True},
    "failover.tenant": {"storages": ["local"], "lost": True},
    "failover.exclude": {"storages": ["local"], "lost": True},
    "failover.lost_nodes": {"configurations": [], "replicas": {"pve2": []}, "rehearsal": True},
    "firewall": {"scope": "node", "rules": []},
    "firewall.name": {"scope": "guest", "rules": []},
    "firewall.vnet": {"scope": "vnet", "rules": []},
    "firewall_info": {"scope": "node"},
    "firewall_info.vnet": {"scope": "vnet"},
    "firewall_info.name": {"scope": "guest"},
    "firewall_check": {"source": {"address": "192.0.2.1"}, "dest": {"node": "pve1"}, "dport": 22},
    "firewall_check.source.name": {"source": {}, "dest": {"node": "pve1"}, "dport": 22},
    "firewall_check.source.node": {"source": {}, "dest": {"node": "pve1"}, "dport": 22},
    "firewall_check.dest.name": {"source": {"node": "pve1"}, "dest": {}, "dport": 22},
    "ha_rule": {"name": "rule1", "type": "node-affinity", "resources": ["vm:101"]},
    "mapping_info": {"type": "usb"},
    "metrics": {"path": "/var/metrics.prom"},
    "node.acme.domains.plugin": {
        "node": "pve1",
        "acme": {"domains": [{"domain": "a.example.com"}]},
    },
    "notification_endpoint": {"type": "sendmail", "name": "mail1", "mailto": ["a@example.com"]},
    "node_info": {},
    "replication": {"id": "101-0"},
    "restore": {"vmid": 101, "new_name": "restored"},
    "restore.name": {"new_name": "restored"},
    "sdn": {"zones": [{"name": "zone1", "type": "simple"}]},
    "sdn.vnets.zone": {
        "zones": [{"name": "zone1", "type": "simple"}],
        "vnets": [{"name": "vnet1"}],
    },
    "snapshot": {"snapshot": "before"},
    "snapshot_info": {},
    "task_info": {},
    "container.default_storage": {"name": "new", "source": "debian-13-standard"},
    "container.mounts.storage": {**CONTAINER, "mounts": [{"size": 4, "path": "/data"}]},
    "acme_plugin": {"name": "plugin1", "type": "dns", "api": "cf", "data": {"A": "b"}},
    "volume.source_node": {
        "volume": "local:iso/a.iso",
        "source_volume": "local:iso/b.iso",
        "node": "pve1",
    },
    "sdn.controllers.node": {
        "controllers": [{"name": "ctrl1", "type": "bgp", "asn": 65000, "peers": ["10.9.0.2"]}]
    },
    "sdn.fabric_nodes.node": {
        "fabrics": [{"name": "fabric1", "protocol": "openfabric", "ip_prefix": "10.9.0.0/24"}],
        "fabric_nodes": [{"fabric": "fabric1", "ip": "10.9.0.1"}],
    },
    "sdn.zones.bridge": {"zones": [{"name": "zone1", "type": "vlan"}]},
    "sdn.subnets.vnet": {
        "zones": [{"name": "zone1", "type": "simple"}],
        "vnets": [{"name": "vnet1", "zone": "zone1"}],
        "subnets": [{"cidr": "10.9.0.0/24"}],
    },
    "vm": {"name": "new", "disks": DISK},
    "vm.source": {"name": "new"},
    "vm_info": {},
}
# The last word of the name of an option that names something.
NAMING = re.compile(
    r"(?:^|[._])(?:nodes?|pools?|storages?|storage_map|bridges?|vnet|network|tenants?|tags|exclude"
    r"|vms|guests|placement|max_vms_per_node)$"
)
# Options with such a word that have neither key, as C(module.option), with the reason.
OTHERS = {
    r"(vm|vms|clone|container|restore)\.(tenant|tags)": "a new guest can have new ones",
    r"(container_image|ha_resource|ha_rule|replication)\.tenant": "compared with the guest",
    r"firewall(_info|_check)?\.(\w+\.)?tenant": "compared with the guest",
    r"\w+\.quota\.vms|report_info\.prices\.storage|\w+\.parallel_per_\w+": "a number",
    r"(vm|vms|clone|container)\.nics\.network": "a name of the option networks",
    r"\w+\.cloud_init\.snippets\.network|cluster_options\.\w+\.network": "a text, a CIDR",
    r"cluster\..*": "lists of options of other modules",
    r"cluster_options\.registered_tags": "its own object",
    r"tenant\.pool|storage\.(data_)?pool|sdn\.fabric_nodes": "created, or of Ceph or ZFS",
    r"(audit_info|report_info|metrics|metrics_info)\.tenants": "descriptions of an estate, also of later tenants",
    r"(vm|vms|clone|container)\.allowed\.storages": "the same at all sites of a tenant; an unknown name allows nothing",
    r"vms\.site_placement(\.exclude)?": "names sites of the tenant, see test_site_choice.py",
    r"preflight_info\..*": "the module returns findings",
    r"(vms|drift_info)\.(vms|tenants)": "the list itself, and the tenants of the list",
    r"backup_job\.(vms|exclude)|pool\.vms": "VMIDs, with a warning or refusal of their own",
    r"ha_group\.nodes": "Proxmox VE 8 only",
    r"drill\.guests": "a round of drill_info",
    r"power\.unknown_tenants": "a choice",
    r"node_network\.interfaces\.ovs_bridge": "declared in the same list",
}


def options() -> Iterator[tuple[str, str, str]]:
    """Yield each option that names something, with its module and kind."""
    for module in modules_of(DECLARATIONS):
        if module == "vms":  # it has the options of module vm
            continue
        for key in ("names", "refuses"):
            for option, kind in declared_names(module, DECLARATIONS, key).items():
                if (module, option) != ("clone", "cloud_init.storage"):  # its source has a drive
                    yield module, option, kind


def with_name(options: Options, task: dict[str, Any], path: list[str], name: str) -> None:
    """Set an option of a task to a name in the form that its declaration has."""
    first, *rest = path
    option = options.get(first, {})
    kind = option.get("type", "dict")
    if not rest:
        is_table = kind in ("dict", "raw") or first == "max_vms_per_node"
        task[first] = {"list": [name], "str": name}.get(kind, {name: _value_of(first)})
        assert is_table or kind in ("list", "str")
        if not options:
            task[first] = {name: 3} if first == "max_vms_per_node" else [name]
        return
    if rest[0] == "*":
        task[first] = {"acme": {}}
        with_name({}, task[first]["acme"], rest[1:], name)
        return
    inner = option.get("suboptions", {})
    if kind == "list":
        items = task.setdefault(first, [{}])
        with_name(inner, items[0], rest, name)
    else:
        with_name(inner, task.setdefault(first, {}), rest, name)


def _value_of(option: str) -> Any:
    """Return a value for the key of a table."""
    values = {"tenant_windows": "22:00-23:00", "tenant_placement": {}, "max_vms_per_node": 3}
    return values.get(option, "ceph" if option == "storage_map" else "vmbr0")


@pytest.fixture(scope="module")
def site() -> Iterator[Lab]:
    """A cluster with a guest of a tenant, its backup and a tag."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        own = {"tenant": "acme", "pool": "acme", "tags": ["web"]}
        guest: dict[str, Any] = {**own, "name": "web1", "vmid": 101}
        gone: dict[str, Any] = {**own, "name": "gone1", "vmid": 102}
        for one in (guest, gone):
            nics = [{"bridge": "vmbr0"}]
            assert not lab.run(
                "vm", disks=[{"size": 1, "storage": "local-lvm"}], nics=nics, **one
            ).get("failed")
            assert not lab.run("backup", vmid=one["vmid"], storage="local").get("failed")
        assert not lab.run("vm", **gone | {"state": "absent"}).get("failed")
        lab.run("ha_resource", sid="vm:101")
        rule: dict[str, Any] = {"name": "rule1", "type": "node-affinity", "nodes": ["pve1"]}
        assert not lab.run("ha_rule", resources=["vm:101"], **rule).get("failed")
        zones = [{"name": "zone0", "type": "simple"}]
        assert not lab.run("sdn", zones=zones, vnets=[{"name": "front1", "zone": "zone0"}]).get(
            "failed"
        )
        yield lab


@pytest.mark.parametrize(("module", "option", "kind"), list(options()), ids=str)
def test_a_name_that_names_nothing_is_refused(
    site: Lab, module: str, option: str, kind: str
) -> None:
    name, similar = SIMILAR[kind]
    by_module = TASKS.get(module, minimal_tasks()[module])
    task = copy.deepcopy(TASKS.get(f"{module}.{option}", by_module))
    with_name(declared_options(module, DECLARATIONS), task, option.split("."), name)
    if f"{module}.{option}" in VALUES:
        task[option] = {VALUES[f"{module}.{option}"]: name}
    site.simulator.reset_log()
    result = site.run(module, check=True, **task)
    assert site.simulator.writes() == []
    if kind in WARNED:
        assert not result.get("failed"), result["msg"]
        texts = " ".join(result["warnings"])
    else:
        assert result.get("failed"), (task, result)
        assert result["error"]["category"] != "InternalError"
        texts = result["msg"]
    assert name in texts
    assert re.search(rf"\b{re.escape(similar)}\b", texts.replace(name, "")), texts


@pytest.mark.parametrize("label", FORMER)
def test_a_former_name_that_names_nothing_is_refused(site: Lab, label: str) -> None:
    module, option = label.split(".")
    ((name, new),) = FORMER[label].items()
    task = copy.deepcopy(TASKS.get(label, TASKS.get(module, minimal_tasks()[module])))
    site.simulator.reset_log()
    result = site.run(module, check=True, **{**task, option: {name: new}})
    assert result.get("failed"), result
    assert site.simulator.writes() == []
    assert name in result["msg"]
    meant = {"lcoal-lvm": "local-lvm", "vmbr00": "vmbr0", "acmee": "acme", "pve11": "pve1"}
    similar = meant[name]
    assert re.search(rf"\b{similar}\b", result["msg"]), result["msg"]


@pytest.mark.parametrize("option", ["affinity", "anti_affinity"])
def test_an_entry_of_placement_that_matches_nothing_is_reported(site: Lab, option: str) -> None:
    """The VM can exist later, so nothing is refused."""
    for entries, warned in ((["wbe"], "(did you mean 'web'?)"), (["name:wbe*"], "'name:wbe*'")):
        result = site.run("vm", check=True, name="new", placement={option: entries})
        assert [text for text in result["warnings"] if f"placement.{option}" in text]
        assert warned in " ".join(result["warnings"])
    for placement, tags in (({option: ["web", "name:web*"]}, []), ({option: ["db"]}, ["db"])):
        result = site.run("vm", check=True, name="new", placement=placement, tags=tags)
        assert result["warnings"] == []


@pytest.mark.parametrize("names", [[], [""], None])
def test_an_option_without_names_needs_no_listing(names: list[str] | None) -> None:
    assert given_names({"nodes": "node"}, {"nodes": names}) == {}


def test_every_option_that_seems_to_name_something_is_declared() -> None:
    undeclared: list[str] = []
    for module in modules_of(DECLARATIONS):
        known = declared_names(module, DECLARATIONS, "names")
        known |= declared_names(module, DECLARATIONS, "refuses")
        for path, _option in walk("", declared_options(module, DECLARATIONS)):
            label = f"{module}.{path}"
            is_other = any(re.fullmatch(pattern, label) for pattern in OTHERS)
            is_known = any(f"{name}.".startswith(f"{path}.") for name in known)
            if NAMING.search(label) and not is_known and not is_other:
                undeclared.append(label)
    assert undeclared == []


def walk(place: str, options: Options) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, option in options.items():
        path = f"{place}.{name}".lstrip(".")
        if option["type"] not in ("bool", "int"):
            yield path, option
        yield from walk(path, option.get("suboptions", {}))
