# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The administrative modules, which need no tenant, each with its subject. Data only.

Written by `make options` from the declarations: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping

ADMINISTRATIVE: Mapping[str, str] = {
    "acl": "rights of users and groups",
    "acme_account": "accounts of ACME",
    "acme_certificate": "certificates of nodes by ACME",
    "acme_plugin": "plugins of ACME",
    "apt_repository": "repositories of nodes",
    "backup_job": "backup jobs",
    "ceph_flag": "flags of Ceph",
    "ceph_mds": "daemons of Ceph",
    "ceph_mgr": "daemons of Ceph",
    "ceph_mon": "daemons of Ceph",
    "ceph_osd": "OSDs of Ceph",
    "ceph_pool": "pools of Ceph",
    "cluster": "resources of the cluster",
    "cluster_options": "options of the cluster",
    "cpu_model": "CPU models",
    "disk": "disks of nodes",
    "disk_storage": "storages on disks of nodes",
    "drill": "drills",
    "evacuation": "guests of a node",
    "failover": "guests of another site",
    "group": "groups of users",
    "ha_group": "groups of the HA manager",
    "ha_resource": "resources of the HA manager",
    "ha_rule": "rules of the HA manager",
    "ha_state": "the state of the HA manager",
    "mapping": "mappings",
    "metric_server": "metric servers",
    "node": "settings of nodes",
    "node_certificate": "certificates of nodes",
    "node_network": "networks of nodes",
    "node_service": "services of nodes",
    "notification_endpoint": "targets of notifications",
    "notification_matcher": "rules for notifications",
    "pool": "pools",
    "power": "power of tenants",
    "realm": "realms",
    "realm_sync": "users of a directory",
    "realm_sync_job": "jobs that synchronize realms",
    "rebalance": "guests of all nodes",
    "relocate": "guests of two sites",
    "role": "roles",
    "sdn": "networks of the cluster",
    "storage": "storages of the cluster",
    "storage_download": "images and ISOs, which have no tenant",
    "subscription": "subscriptions of nodes",
    "task": "tasks of nodes",
    "tenant": "the tenant itself, which the option name says",
    "token": "tokens",
    "user": "users",
    "volume": "images, ISOs and backups, which have no tenant",
}
