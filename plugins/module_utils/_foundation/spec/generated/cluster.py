# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster.yml: do not edit.
"""The options of modules cluster and cluster_export_info."""

from ..form import Spec


def cluster_spec() -> Spec:
    return {
        "options": {"type": "dict"},
        "realms": {"type": "list", "elements": "dict"},
        "realm_sync_jobs": {"type": "list", "elements": "dict"},
        "roles": {"type": "list", "elements": "dict"},
        "groups": {"type": "list", "elements": "dict"},
        "users": {"type": "list", "elements": "dict"},
        "tokens": {"type": "list", "elements": "dict", "no_log": False},
        "acme_accounts": {"type": "list", "elements": "dict"},
        "acme_plugins": {"type": "list", "elements": "dict"},
        "nodes": {"type": "list", "elements": "dict"},
        "certificates": {"type": "list", "elements": "dict"},
        "subscriptions": {"type": "list", "elements": "dict"},
        "apt_repositories": {"type": "list", "elements": "dict"},
        "networks": {"type": "list", "elements": "dict"},
        "sdn": {"type": "dict"},
        "firewall": {"type": "list", "elements": "dict"},
        "ceph_pools": {"type": "list", "elements": "dict"},
        "storages": {"type": "list", "elements": "dict"},
        "volumes": {"type": "list", "elements": "dict"},
        "mappings": {"type": "list", "elements": "dict"},
        "cpu_models": {"type": "list", "elements": "dict"},
        "pools": {"type": "list", "elements": "dict"},
        "acls": {"type": "list", "elements": "dict"},
        "metric_servers": {"type": "list", "elements": "dict"},
        "notification_endpoints": {"type": "list", "elements": "dict"},
        "notification_matchers": {"type": "list", "elements": "dict"},
        "ha_groups": {"type": "list", "elements": "dict"},
        "ha_resources": {"type": "list", "elements": "dict"},
        "ha_rules": {"type": "list", "elements": "dict"},
        "replications": {"type": "list", "elements": "dict"},
        "backup_jobs": {"type": "list", "elements": "dict"},
        "exact": {
            "type": "list",
            "elements": "str",
            "choices": (
                "realms realm_sync_jobs roles groups users tokens "
                "acme_plugins storages mappings cpu_models pools "
                "metric_servers notification_endpoints notification_matchers "
                "ha_groups ha_resources ha_rules replications backup_jobs"
            ).split(),
        },
    }


def cluster_export_info_spec() -> Spec:
    return {
        "sections": {
            "type": "list",
            "elements": "str",
            "choices": (
                "options realms realm_sync_jobs roles groups users tokens "
                "acme_accounts acme_plugins nodes certificates subscriptions "
                "apt_repositories networks sdn firewall ceph_pools storages "
                "mappings cpu_models pools acls metric_servers "
                "notification_endpoints notification_matchers ha_groups "
                "ha_resources ha_rules replications backup_jobs"
            ).split(),
        }
    }
