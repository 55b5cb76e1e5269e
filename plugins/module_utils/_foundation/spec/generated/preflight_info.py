# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from preflight_info.yml: do not edit.
"""The options of module preflight_info."""

from ..form import Spec


def preflight_info_spec() -> Spec:
    return {
        "tasks": {
            "type": "list",
            "elements": "str",
            "choices": (
                "acl acl_info acme_account acme_account_info acme_certificate "
                "acme_plugin acme_plugin_info apt_repository "
                "apt_repository_info audit_info backup backup_info backup_job "
                "backup_job_info ceph_flag ceph_info ceph_mds ceph_mgr "
                "ceph_mon ceph_osd ceph_pool ceph_pool_info clone cluster "
                "cluster_export_info cluster_info cluster_join_info "
                "cluster_options cluster_options_info container "
                "container_clone container_create container_image "
                "container_info container_update cpu_model cpu_model_info "
                "disk disk_info disk_storage disk_storage_info drift_info "
                "drill drill_info estate_info evacuation evacuation_info "
                "evacuation_node failover firewall firewall_check "
                "firewall_info group group_info ha ha_group ha_group_info "
                "ha_resource ha_resource_info ha_rule ha_rule_info ha_state "
                "ha_state_info hardware_info image_download image_upload "
                "mapping mapping_info metric_server metric_server_info "
                "metrics metrics_info network node node_certificate "
                "node_certificate_info node_info node_network "
                "node_network_info node_service node_service_info "
                "node_settings_info node_update_info notification_endpoint "
                "notification_endpoint_info notification_matcher "
                "notification_matcher_info pool pool_info pool_members power "
                "realm realm_info realm_sync realm_sync_job "
                "realm_sync_job_info rebalance relocate replication "
                "replication_info report_info restore role role_info rollback "
                "sdn sdn_fabric_nodes sdn_info snapshot snapshot_info storage "
                "storage_download storage_info storage_scan_info subscription "
                "subscription_info task task_info tenant tenant_info tfa_info "
                "tidy token token_info usage user user_info vm vm_agent "
                "vm_clone vm_console vm_cpu_model vm_create vm_delete "
                "vm_disks vm_info vm_mapping vm_migrate vm_power vm_startup "
                "vm_template vm_update vms volume volume_info"
            ).split(),
            "default": [],
        },
        "operations": {
            "type": "list",
            "elements": "str",
            "choices": ["read", "operate", "provision", "snapshot", "images", "backup"],
            "default": [],
        },
        "vms": {"type": "list", "elements": "str", "default": []},
        "templates": {"type": "list", "elements": "str", "default": []},
        "nodes": {"type": "list", "elements": "str", "default": []},
        "storages": {"type": "list", "elements": "dict", "default": []},
        "bridges": {"type": "list", "elements": "str", "default": []},
        "pool": {"type": "str"},
        "min_version": {"type": "str", "default": "8.0"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "estate": {"type": "dict"},
    }


def storages_item_spec() -> Spec:
    """Return the options of one item of O(storages), which the module's work checks."""
    return {
        "name": {"type": "str", "required": True},
        "content": {"type": "str", "default": "images"},
        "node": {"type": "str"},
    }
