# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sections of a cluster file, in the order in which they are applied. Data only.

Written by `make options` from the key `section` of the declarations: do not edit.
"""

from __future__ import annotations

from functools import partial

from ...._foundation.resource.run import run
from ...._foundation.spec.firewall import firewall_spec
from ...._foundation.spec.generated.acl import acl_spec
from ...._foundation.spec.generated.acme_account import acme_account_spec
from ...._foundation.spec.generated.acme_plugin import acme_plugin_spec
from ...._foundation.spec.generated.apt_repository import apt_repository_spec
from ...._foundation.spec.generated.backup_job import backup_job_spec
from ...._foundation.spec.generated.ceph_pool import ceph_pool_spec
from ...._foundation.spec.generated.cluster_options import cluster_options_spec
from ...._foundation.spec.generated.cpu_model import cpu_model_spec
from ...._foundation.spec.generated.group import group_spec
from ...._foundation.spec.generated.ha_group import ha_group_spec
from ...._foundation.spec.generated.ha_resource import ha_resource_spec
from ...._foundation.spec.generated.ha_rule import ha_rule_spec
from ...._foundation.spec.generated.mapping import mapping_spec
from ...._foundation.spec.generated.metric_server import metric_server_spec
from ...._foundation.spec.generated.node import node_spec
from ...._foundation.spec.generated.node_certificate import node_certificate_spec
from ...._foundation.spec.generated.node_network import node_network_spec
from ...._foundation.spec.generated.notify_endpoint import notification_endpoint_spec
from ...._foundation.spec.generated.notify_matcher import notification_matcher_spec
from ...._foundation.spec.generated.pool import pool_spec
from ...._foundation.spec.generated.realm_config import realm_spec
from ...._foundation.spec.generated.realm_sync_job import realm_sync_job_spec
from ...._foundation.spec.generated.replication import replication_spec
from ...._foundation.spec.generated.role import role_spec
from ...._foundation.spec.generated.sdn import sdn_spec
from ...._foundation.spec.generated.storage import storage_spec
from ...._foundation.spec.generated.subscription import subscription_spec
from ...._foundation.spec.generated.token import token_spec
from ...._foundation.spec.generated.user import user_spec
from ...._foundation.spec.generated.volume import volume_spec
from ...._infrastructure.datacenter.cpu_model import CPU_MODEL
from ...._infrastructure.datacenter.ha.group import HA_GROUP
from ...._infrastructure.datacenter.ha.resource import HA_RESOURCE
from ...._infrastructure.datacenter.ha.rule import HA_RULE
from ...._infrastructure.datacenter.ha.run import run_resource, run_rule
from ...._infrastructure.datacenter.mapping import MAPPING
from ...._infrastructure.datacenter.metric_server import METRIC_SERVER
from ...._infrastructure.datacenter.notification import ENDPOINT, MATCHER, run_endpoint
from ...._infrastructure.datacenter.replication import REPLICATION, run_replication
from ...._infrastructure.datacenter.table import CLUSTER_OPTIONS
from ...._infrastructure.node.apt.run import run as run_apt_repository
from ...._infrastructure.node.identity.acme_account import ACME_ACCOUNT, ACME_PLUGIN
from ...._infrastructure.node.identity.certificate import run_certificate
from ...._infrastructure.node.identity.subscription import SUBSCRIPTION
from ...._infrastructure.node.network.run import run as run_node_network
from ...._infrastructure.node.settings.run import run as run_node
from ...._infrastructure.sdn.run import run as run_sdn
from ...._infrastructure.storage.ceph.run import run_pool
from ...._infrastructure.storage.table import STORAGE
from ...._infrastructure.storage.volume.run import run_volume
from ...._protection.backup.job.declared import is_marked
from ...._protection.backup.job.table import BACKUP_JOB
from ...._tenants.access.acl import ACL
from ...._tenants.access.group import GROUP
from ...._tenants.access.login.token import run_declared
from ...._tenants.access.pool import POOL
from ...._tenants.access.realms.realm import REALM_CONFIG
from ...._tenants.access.realms.sync_job import REALM_SYNC_JOB
from ...._tenants.access.role import ROLE
from ...._tenants.access.token import TOKEN
from ...._tenants.access.user import USER, run_user
from ...._tenants.firewall.run import run as run_firewall
from ..planned import arrange_firewall, edits_of_firewall, edits_of_interfaces, edits_of_sdn
from ..sections import Section, edits_of_account, is_built_in_role, is_placement, named, of_table

SECTIONS: tuple[Section, ...] = (
    Section("options", cluster_options_spec, partial(run, CLUSTER_OPTIONS), ()),
    of_table(
        "realms", realm_spec, partial(run, REALM_CONFIG), REALM_CONFIG, built_in=named("pam", "pve")
    ),
    of_table("realm_sync_jobs", realm_sync_job_spec, partial(run, REALM_SYNC_JOB), REALM_SYNC_JOB),
    of_table("roles", role_spec, partial(run, ROLE), ROLE, built_in=is_built_in_role, fixed=True),
    of_table("groups", group_spec, partial(run, GROUP), GROUP),
    of_table("users", user_spec, run_user, USER, built_in=named("root@pam")),
    of_table("tokens", token_spec, run_declared, TOKEN, secret="secret"),
    Section(
        "acme_accounts",
        acme_account_spec,
        partial(run, ACME_ACCOUNT),
        ("name",),
        edits=edits_of_account,
    ),
    of_table(
        "acme_plugins",
        acme_plugin_spec,
        partial(run, ACME_PLUGIN),
        ACME_PLUGIN,
        built_in=named("standalone"),
    ),
    Section("nodes", node_spec, run_node, ("node",)),
    Section("certificates", node_certificate_spec, run_certificate, ("node",)),
    Section("subscriptions", subscription_spec, partial(run, SUBSCRIPTION), ("node",)),
    Section("apt_repositories", apt_repository_spec, run_apt_repository, ("node", "handle")),
    Section("networks", node_network_spec, run_node_network, ("node",), edits=edits_of_interfaces),
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
    of_table("storages", storage_spec, partial(run, STORAGE), STORAGE, built_in=named("local")),
    Section(
        "volumes",
        volume_spec,
        run_volume,
        ("volume", "storage", "filename", "template", "image", "src", "source_url", "node"),
    ),
    of_table(
        "mappings",
        mapping_spec,
        partial(run, MAPPING),
        MAPPING,
        groups=({"type": "pci"}, {"type": "usb"}, {"type": "dir"}),
    ),
    of_table("cpu_models", cpu_model_spec, partial(run, CPU_MODEL), CPU_MODEL),
    of_table("pools", pool_spec, partial(run, POOL), POOL, listed=frozenset(("name", "comment"))),
    of_table("acls", acl_spec, partial(run, ACL), ACL),
    of_table("metric_servers", metric_server_spec, partial(run, METRIC_SERVER), METRIC_SERVER),
    of_table(
        "notification_endpoints",
        notification_endpoint_spec,
        run_endpoint,
        ENDPOINT,
        built_in=named("mail-to-root"),
        groups=({"type": "gotify"}, {"type": "sendmail"}, {"type": "smtp"}, {"type": "webhook"}),
    ),
    of_table(
        "notification_matchers",
        notification_matcher_spec,
        partial(run, MATCHER),
        MATCHER,
        built_in=named("default-matcher"),
    ),
    of_table("ha_groups", ha_group_spec, partial(run, HA_GROUP), HA_GROUP),
    of_table("ha_resources", ha_resource_spec, run_resource, HA_RESOURCE, elsewhere=is_placement),
    of_table("ha_rules", ha_rule_spec, run_rule, HA_RULE, elsewhere=is_placement),
    of_table("replications", replication_spec, run_replication, REPLICATION),
    of_table(
        "backup_jobs", backup_job_spec, partial(run, BACKUP_JOB), BACKUP_JOB, elsewhere=is_marked
    ),
)
