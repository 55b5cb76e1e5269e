# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules cluster and cluster_export_info.

Written by `make options` from cluster.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  options:
    description:
      - Options of the cluster, as the options of M(pve.fleet.cluster_options).
      - By default, nothing is changed.
    type: dict
  realms:
    description:
      - Realms, each with the options of M(pve.fleet.realm).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  roles:
    description:
      - Roles, each with the options of M(pve.fleet.role).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  groups:
    description:
      - Groups, each with the options of M(pve.fleet.group).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  users:
    description:
      - Users, each with the options of M(pve.fleet.user).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  acme_plugins:
    description:
      - Plugins of ACME, each with the options of M(pve.fleet.acme_plugin).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  nodes:
    description:
      - Settings of nodes, each with the options of M(pve.fleet.node).
      - By default, nothing is changed.
    type: list
    elements: dict
  certificates:
    description:
      - Own certificates of nodes, each with the options of M(pve.fleet.node_certificate).
      - By default, nothing is changed.
    type: list
    elements: dict
  subscriptions:
    description:
      - Subscriptions of nodes, each with the options of M(pve.fleet.subscription).
      - By default, nothing is changed.
    type: list
    elements: dict
  apt_repositories:
    description:
      - Standard package repositories of nodes, each with the options of
        M(pve.fleet.apt_repository).
      - By default, nothing is changed.
    type: list
    elements: dict
  networks:
    description:
      - Networks of nodes, each with the options of M(pve.fleet.node_network).
      - By default, nothing is changed.
    type: list
    elements: dict
  sdn:
    description:
      - Zones, VNets, subnets and controllers of SDN, as the options of
        M(pve.fleet.sdn). Its option C(exact) names the sections of which
        everything else is removed.
      - By default, nothing is changed.
    type: dict
  firewall:
    description:
      - Firewalls of the cluster, nodes, VNets and security groups, each
        with the options of M(pve.fleet.firewall).
      - Aliases and IP sets of the cluster are written before security groups,
        and groups before rules that name them.
      - By default, nothing is changed.
    type: list
    elements: dict
  storages:
    description:
      - Storages, each with the options of M(pve.fleet.storage).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  volumes:
    description:
      - Files and volumes on storages, each with the options of M(pve.fleet.volume).
      - By default, nothing is changed.
    type: list
    elements: dict
  mappings:
    description:
      - Mappings of devices and directories, each with the options of M(pve.fleet.mapping).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  cpu_models:
    description:
      - CPU models, each with the options of M(pve.fleet.cpu_model).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  pools:
    description:
      - Pools, each with the options of M(pve.fleet.pool).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  acls:
    description:
      - Rights, each with the options of M(pve.fleet.acl).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  metric_servers:
    description:
      - Metric servers, each with the options of M(pve.fleet.metric_server).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  notification_endpoints:
    description:
      - Targets of notifications, each with the options of M(pve.fleet.notification_endpoint).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  notification_matchers:
    description:
      - Rules for notifications, each with the options of M(pve.fleet.notification_matcher).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  ha_resources:
    description:
      - HA resources, each with the options of M(pve.fleet.ha_resource).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  ha_rules:
    description:
      - HA rules, each with the options of M(pve.fleet.ha_rule).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  replications:
    description:
      - Replication jobs, each with the options of M(pve.fleet.replication).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  backup_jobs:
    description:
      - Backup jobs, each with the options of M(pve.fleet.backup_job).
      - By default, and if the list is empty, nothing is changed, unless
        O(exact) names the section.
    type: list
    elements: dict
  exact:
    description:
      - Sections of which everything is removed that the file does not declare.
        A section in this list must be declared; an empty list removes all
        of it.
      - What Proxmox VE has by itself stays, such as the realms V(pam) and
        V(pve), the roles of Proxmox VE, user V(root@pam), storage V(local),
        endpoint V(mail-to-root) and matcher V(default-matcher).
      - A resource that is in use is not removed, and the whole task is
        refused.
    type: list
    elements: str
    choices:
      - realms
      - roles
      - groups
      - users
      - acme_plugins
      - storages
      - mappings
      - cpu_models
      - pools
      - metric_servers
      - notification_endpoints
      - notification_matchers
      - ha_resources
      - ha_rules
      - replications
      - backup_jobs
"""

    EXPORT = r"""
options:
  sections:
    description: The sections to return. By default, all are returned.
    type: list
    elements: str
    choices:
      - options
      - realms
      - roles
      - groups
      - users
      - acme_plugins
      - nodes
      - certificates
      - subscriptions
      - apt_repositories
      - networks
      - sdn
      - firewall
      - storages
      - mappings
      - cpu_models
      - pools
      - acls
      - metric_servers
      - notification_endpoints
      - notification_matchers
      - ha_resources
      - ha_rules
      - replications
      - backup_jobs
"""
