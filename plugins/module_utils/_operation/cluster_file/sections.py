# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sections of a cluster file, in the order in which they are applied (data)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.core.arguments.options import Spec
from ..._foundation.core.result import Result
from ..._foundation.resource.run import run
from ..._foundation.resource.table import Table, Values
from ..._foundation.spec.firewall import firewall_spec
from ..._foundation.spec.generated.acl import acl_spec
from ..._foundation.spec.generated.acme_account import acme_account_spec
from ..._foundation.spec.generated.acme_plugin import acme_plugin_spec
from ..._foundation.spec.generated.apt_repository import apt_repository_spec
from ..._foundation.spec.generated.backup_job import backup_job_spec
from ..._foundation.spec.generated.ceph_pool import ceph_pool_spec
from ..._foundation.spec.generated.cluster_options import cluster_options_spec
from ..._foundation.spec.generated.cpu_model import cpu_model_spec
from ..._foundation.spec.generated.group import group_spec
from ..._foundation.spec.generated.ha_group import ha_group_spec
from ..._foundation.spec.generated.ha_resource import ha_resource_spec
from ..._foundation.spec.generated.ha_rule import ha_rule_spec
from ..._foundation.spec.generated.mapping import mapping_spec
from ..._foundation.spec.generated.metric_server import metric_server_spec
from ..._foundation.spec.generated.node import node_spec
from ..._foundation.spec.generated.node_certificate import node_certificate_spec
from ..._foundation.spec.generated.node_network import node_network_spec
from ..._foundation.spec.generated.notify_endpoint import notification_endpoint_spec
from ..._foundation.spec.generated.notify_matcher import notification_matcher_spec
from ..._foundation.spec.generated.pool import pool_spec
from ..._foundation.spec.generated.realm_config import realm_spec
from ..._foundation.spec.generated.replication import replication_spec
from ..._foundation.spec.generated.role import role_spec
from ..._foundation.spec.generated.sdn import sdn_spec
from ..._foundation.spec.generated.storage import storage_spec
from ..._foundation.spec.generated.subscription import subscription_spec
from ..._foundation.spec.generated.token import token_spec
from ..._foundation.spec.generated.user import user_spec
from ..._foundation.spec.generated.volume import volume_spec
from ..._infrastructure.datacenter.cpu_model import CPU_MODEL
from ..._infrastructure.datacenter.ha.group import HA_GROUP
from ..._infrastructure.datacenter.ha.placement import marked_tenant
from ..._infrastructure.datacenter.ha.resource import HA_RESOURCE
from ..._infrastructure.datacenter.ha.rule import HA_RULE
from ..._infrastructure.datacenter.ha.run import run_resource, run_rule
from ..._infrastructure.datacenter.mapping import MAPPING
from ..._infrastructure.datacenter.metric_server import METRIC_SERVER
from ..._infrastructure.datacenter.notification.endpoint import ENDPOINT, TYPES, run_endpoint
from ..._infrastructure.datacenter.notification.matcher import MATCHER
from ..._infrastructure.datacenter.replication import REPLICATION, run_replication
from ..._infrastructure.datacenter.table import CLUSTER_OPTIONS
from ..._infrastructure.node.apt.run import run as run_apt
from ..._infrastructure.node.identity.acme_account import ACME_ACCOUNT
from ..._infrastructure.node.identity.acme_plugin import ACME_PLUGIN
from ..._infrastructure.node.identity.certificate import run_certificate
from ..._infrastructure.node.identity.subscription import SUBSCRIPTION
from ..._infrastructure.node.network.run import run as run_network
from ..._infrastructure.node.settings.run import run as run_node
from ..._infrastructure.sdn.run import run as run_sdn
from ..._infrastructure.storage.ceph.run import run_pool
from ..._infrastructure.storage.table import STORAGE
from ..._infrastructure.storage.volume.run import run_volume
from ..._protection.backup.job.declared import is_marked
from ..._protection.backup.job.table import BACKUP_JOB
from ..._tenants.access.acl import ACL
from ..._tenants.access.group import GROUP
from ..._tenants.access.login.token import run_declared
from ..._tenants.access.pool import POOL
from ..._tenants.access.realms.realm_config import REALM_CONFIG
from ..._tenants.access.role import ROLE, is_built_in
from ..._tenants.access.run_user import run_user
from ..._tenants.access.token import TOKEN
from ..._tenants.access.user import USER
from ..._tenants.firewall.run import run as run_firewall
from .networks import arrange_firewall, edits_of_firewall, edits_of_interfaces, edits_of_sdn
from .planned import RowEdit

Run = Callable[[dict[str, Any], Client, bool], Result]
Keys = Mapping[str, str]
Options = Mapping[str, Any]


def as_declared(items: Iterable[Options]) -> list[tuple[str, Options]]:
    """Return each item as a whole, in the order of the file."""
    return [("", item) for item in items]


def edits_of_account(item: Options) -> list[RowEdit]:
    """Return the edit for an ACME account, which the settings of a node can name."""
    row: dict[str, Any] | None = None if item.get("state") == "absent" else {}
    return [RowEdit(("cluster", "acme", "account"), {"name": str(item["name"])}, row)]


def no_edits(_item: Options) -> list[RowEdit]:
    """Return no edits: the item changes nothing that the checks of other items read."""
    return []


@dataclass(frozen=True, eq=False)
class Section:
    """Resources of one kind: an item has the options of the module, and `run` is its work.

    `keys` are the options that name a resource. With a `table` the resources are listed, with one
    request for each of `groups`; without a table each item is read. `listed` are the options in an
    incomplete listing. A `built_in` resource is not removed. A resource that is declared
    `elsewhere`, for example in an estate, is neither exported nor removed. `secret` is the name of
    a secret of each resource that Proxmox VE returns only once.
    """

    name: str
    spec: Callable[[], Spec]
    run: Run
    keys: tuple[str, ...]
    table: Table | None = None
    groups: tuple[Keys, ...] = ({},)
    listed: frozenset[str] = frozenset()
    built_in: Callable[[Keys], bool] = lambda _keys: False
    fixed: bool = False  # whether built-in resources cannot be changed
    elsewhere: Callable[[Values], bool] = lambda _values: False
    secret: str = ""
    arranged: Callable[[Iterable[Options]], list[tuple[str, Options]]] = as_declared
    edits: Callable[[Options], list[RowEdit]] = no_edits

    @property
    def can_be_exact(self) -> bool:
        """Whether resources that are not declared can be removed."""
        return self.table is not None and not self.table.permanent


def _of(name: str, table: Table, spec: Callable[[], Spec], run: Run, **more: Any) -> Section:
    keys = tuple(key.option for key in table.keys)
    return Section(name, spec, run, keys, table, **more)


def _simple(name: str, table: Table, spec: Callable[[], Spec], **more: Any) -> Section:
    return _of(name, table, spec, partial(run, table), **more)


def _named(*names: str) -> Callable[[Keys], bool]:
    """Return whether a resource has one of these names."""
    return lambda keys: keys["name"] in names


def _is_placement(values: Values) -> bool:
    """Return whether an estate has created a rule or an HA resource to keep its placement."""
    return marked_tenant(values["comment"]) is not None


def _types(*types: str) -> tuple[Keys, ...]:
    return tuple({"type": one} for one in types)


# The options that identify a volume; a task sets some of them.
VOLUME_KEYS = ("volume", "storage", "filename", "template", "image", "src", "source_url", "node")

# A resource follows the resources that it refers to: users after realms, SDN after networks,
# backup jobs after storages. Removals have the reverse order.
SECTIONS: tuple[Section, ...] = (
    Section("options", cluster_options_spec, partial(run, CLUSTER_OPTIONS), ()),
    _simple("realms", REALM_CONFIG, realm_spec, built_in=_named("pam", "pve")),
    _simple("roles", ROLE, role_spec, built_in=lambda keys: is_built_in(keys["name"]), fixed=True),
    _simple("groups", GROUP, group_spec),
    _of("users", USER, user_spec, run_user, built_in=_named("root@pam")),
    _of("tokens", TOKEN, token_spec, run_declared, secret="secret"),
    # This section has no table, because only root@pam may read each account.
    Section(
        "acme_accounts",
        acme_account_spec,
        partial(run, ACME_ACCOUNT),
        ("name",),
        edits=edits_of_account,
    ),
    _simple("acme_plugins", ACME_PLUGIN, acme_plugin_spec, built_in=_named("standalone")),
    Section("nodes", node_spec, run_node, ("node",)),
    Section("certificates", node_certificate_spec, run_certificate, ("node",)),
    Section("subscriptions", subscription_spec, partial(run, SUBSCRIPTION), ("node",)),
    Section("apt_repositories", apt_repository_spec, run_apt, ("node", "handle")),
    Section("networks", node_network_spec, run_network, ("node",), edits=edits_of_interfaces),
    Section("sdn", sdn_spec, run_sdn, (), edits=edits_of_sdn),
    Section(
        "firewall",
        firewall_spec,
        run_firewall,
        ("scope", "node", "vnet", "group", "name", "vmid"),
        arranged=arrange_firewall,
        edits=edits_of_firewall,
    ),
    Section("ceph_pools", ceph_pool_spec, run_pool, ("name",)),
    _simple("storages", STORAGE, storage_spec, built_in=_named("local")),
    Section("volumes", volume_spec, run_volume, VOLUME_KEYS),
    _simple("mappings", MAPPING, mapping_spec, groups=_types("pci", "usb", "dir")),
    _simple("cpu_models", CPU_MODEL, cpu_model_spec),
    _simple("pools", POOL, pool_spec, listed=frozenset(("name", "comment"))),
    _simple("acls", ACL, acl_spec),
    _simple("metric_servers", METRIC_SERVER, metric_server_spec),
    _of(
        "notification_endpoints",
        ENDPOINT,
        notification_endpoint_spec,
        run_endpoint,
        groups=_types(*TYPES),
        built_in=_named("mail-to-root"),
    ),
    _simple(
        "notification_matchers",
        MATCHER,
        notification_matcher_spec,
        built_in=_named("default-matcher"),
    ),
    _simple("ha_groups", HA_GROUP, ha_group_spec),
    _of("ha_resources", HA_RESOURCE, ha_resource_spec, run_resource, elsewhere=_is_placement),
    _of("ha_rules", HA_RULE, ha_rule_spec, run_rule, elsewhere=_is_placement),
    _of("replications", REPLICATION, replication_spec, run_replication),
    _simple("backup_jobs", BACKUP_JOB, backup_job_spec, elsewhere=is_marked),
)
