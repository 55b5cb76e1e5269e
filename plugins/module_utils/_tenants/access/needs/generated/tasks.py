# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which privileges which task needs, on which kind of object. Data only.

Written by `make options` from the declarations and tasks.yml: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..need import RequiredPrivileges

TASKS: Mapping[str, tuple[RequiredPrivileges, ...]] = {
    "acl": (RequiredPrivileges("pool", ("Permissions.Modify", "Pool.Allocate"), any_of=True),),
    "acl_info": (RequiredPrivileges("access", ("Sys.Audit",)),),
    "acme_account": (),
    "acme_account_info": (),
    "acme_certificate": (
        RequiredPrivileges("node", ("Sys.Modify",)),
        RequiredPrivileges("datacenter", ("Sys.Audit",)),
    ),
    "acme_plugin": (RequiredPrivileges("datacenter", ("Sys.Modify",)),),
    "acme_plugin_info": (RequiredPrivileges("datacenter", ("Sys.Modify",)),),
    "apt_repository": (RequiredPrivileges("node", ("Sys.Modify",)),),
    "apt_repository_info": (RequiredPrivileges("node", ("Sys.Audit",)),),
    "audit_info": (
        RequiredPrivileges("datacenter", ("Sys.Audit", "VM.Audit")),
        RequiredPrivileges("vm", ("VM.Config.Disk",)),
        RequiredPrivileges("all storages", ("Datastore.Audit",)),
    ),
    "backup": (
        RequiredPrivileges("vm", ("VM.Audit", "VM.Backup")),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "backup_info": (
        RequiredPrivileges("vm", ("VM.Audit", "VM.Backup")),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "backup_job": (
        RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),
        RequiredPrivileges("storage", ("Datastore.Allocate",)),
    ),
    "backup_job_info": (
        RequiredPrivileges("datacenter", ("Sys.Audit",)),
        RequiredPrivileges("vm", ("VM.Audit",)),
    ),
    "ceph_flag": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "ceph_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "ceph_mds": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "ceph_mgr": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "ceph_mon": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "ceph_osd": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "ceph_pool": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "ceph_pool_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "cluster_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "cluster_join_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "cluster_options": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "cluster_options_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "container_clone": (
        RequiredPrivileges("template", ("VM.Clone", "VM.Audit")),
        RequiredPrivileges(
            "new VM",
            (
                "VM.Allocate",
                "VM.Audit",
                "VM.Config.CPU",
                "VM.Config.Disk",
                "VM.Config.Memory",
                "VM.Config.Network",
                "VM.Config.Options",
            ),
        ),
        RequiredPrivileges("storage", ("Datastore.AllocateSpace",)),
        RequiredPrivileges("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "container_create": (
        RequiredPrivileges(
            "template storage", ("Datastore.Audit", "Datastore.AllocateSpace"), any_of=True
        ),
        RequiredPrivileges(
            "new VM",
            (
                "VM.Allocate",
                "VM.Audit",
                "VM.Config.CPU",
                "VM.Config.Disk",
                "VM.Config.Memory",
                "VM.Config.Network",
                "VM.Config.Options",
            ),
        ),
        RequiredPrivileges("storage", ("Datastore.AllocateSpace",)),
        RequiredPrivileges("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "container_info": (RequiredPrivileges("vm", ("VM.Audit",)),),
    "container_update": (
        RequiredPrivileges(
            "vm",
            (
                "VM.Audit",
                "VM.Config.CPU",
                "VM.Config.Disk",
                "VM.Config.Memory",
                "VM.Config.Network",
                "VM.Config.Options",
            ),
        ),
        RequiredPrivileges("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "cpu_model": (RequiredPrivileges("mappings", ("Mapping.Modify",)),),
    "cpu_model_info": (
        RequiredPrivileges(
            "mappings", ("Mapping.Audit", "Mapping.Use", "Mapping.Modify"), any_of=True
        ),
    ),
    "disk": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "disk_info": (RequiredPrivileges("node", ("Sys.Audit",)),),
    "disk_storage": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "disk_storage_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "drill": (
        RequiredPrivileges(
            "vm",
            (
                "VM.Audit",
                "VM.Backup",
                "VM.Allocate",
                "VM.PowerMgmt",
                "VM.Config.Options",
                "VM.Config.Network",
            ),
        ),
        RequiredPrivileges(
            "vm", ("VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"), any_of=True, since=(9, 0)
        ),
        RequiredPrivileges("vm", ("VM.Monitor",), until=(9, 0)),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "drill_info": (
        RequiredPrivileges("vm", ("VM.Audit", "VM.Backup")),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "evacuation_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "evacuation_node": (
        RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),
        RequiredPrivileges("node", ("Sys.Audit",)),
        RequiredPrivileges("all storages", ("Datastore.Audit",)),
    ),
    "failover": (
        RequiredPrivileges(
            "vm",
            (
                "VM.Audit",
                "VM.Backup",
                "VM.Allocate",
                "VM.PowerMgmt",
                "VM.Config.Options",
                "VM.Config.Network",
            ),
        ),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
        RequiredPrivileges("pool", ("Pool.Audit",)),
    ),
    "firewall": (RequiredPrivileges("vm", ("VM.Audit", "VM.Config.Network")),),
    "firewall_check": (RequiredPrivileges("vm", ("VM.Audit",)),),
    "firewall_info": (RequiredPrivileges("vm", ("VM.Audit",)),),
    "group": (RequiredPrivileges("groups", ("Group.Allocate",)),),
    "group_info": (RequiredPrivileges("groups", ("Sys.Audit", "Group.Allocate"), any_of=True),),
    "ha": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Console")),),
    "ha_group": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Console"), until=(9, 0)),),
    "ha_group_info": (RequiredPrivileges("datacenter", ("Sys.Audit",), until=(9, 0)),),
    "ha_resource": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Console")),),
    "ha_resource_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "ha_rule": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Console")),),
    "ha_rule_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "ha_state": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Console"), since=(9, 2)),),
    "ha_state_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "hardware_info": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify"), any_of=True),),
    "image_download": (
        RequiredPrivileges("image storage", ("Datastore.AllocateTemplate", "Datastore.Audit")),
        RequiredPrivileges("node", ("Sys.AccessNetwork",), instead=("Sys.Audit", "Sys.Modify")),
    ),
    "image_upload": (
        RequiredPrivileges("image storage", ("Datastore.AllocateTemplate", "Datastore.Audit")),
    ),
    "mapping": (RequiredPrivileges("mappings", ("Mapping.Modify",)),),
    "mapping_info": (
        RequiredPrivileges(
            "mappings", ("Mapping.Audit", "Mapping.Use", "Mapping.Modify"), any_of=True
        ),
    ),
    "metric_server": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "metric_server_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "metrics": (
        RequiredPrivileges("datacenter", ("Sys.Audit",)),
        RequiredPrivileges("vm", ("VM.Audit", "VM.Backup", "VM.Config.Disk")),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "network": (RequiredPrivileges("node", ("Sys.Audit", "Sys.Modify")),),
    "node": (
        RequiredPrivileges("node", ("Sys.Modify",)),
        RequiredPrivileges("datacenter", ("Sys.Modify",)),
    ),
    "node_certificate": (RequiredPrivileges("node", ("Sys.Modify",)),),
    "node_certificate_info": (),
    "node_info": (RequiredPrivileges("node", ("Sys.Audit",)),),
    "node_network": (RequiredPrivileges("node", ("Sys.Modify",)),),
    "node_network_info": (),
    "node_service": (RequiredPrivileges("node", ("Sys.Audit", "Sys.Modify")),),
    "node_service_info": (RequiredPrivileges("node", ("Sys.Audit",)),),
    "node_settings_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "node_update_info": (RequiredPrivileges("node", ("Sys.Modify",)),),
    "notification_endpoint": (RequiredPrivileges("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "notification_endpoint_info": (RequiredPrivileges("mappings", ("Mapping.Audit",)),),
    "notification_matcher": (RequiredPrivileges("mappings", ("Mapping.Audit", "Mapping.Modify")),),
    "notification_matcher_info": (RequiredPrivileges("mappings", ("Mapping.Audit",)),),
    "pool": (RequiredPrivileges("pool", ("Pool.Allocate", "Pool.Audit")),),
    "pool_info": (RequiredPrivileges("pool", ("Pool.Audit",)),),
    "pool_members": (
        RequiredPrivileges("pool", ("Pool.Allocate", "Pool.Audit")),
        RequiredPrivileges("vm", ("VM.Allocate", "Permissions.Modify"), any_of=True),
    ),
    "realm": (RequiredPrivileges("realms", ("Realm.Allocate",)),),
    "realm_info": (),
    "realm_sync": (
        RequiredPrivileges("realms", ("Realm.AllocateUser",)),
        RequiredPrivileges("groups", ("User.Modify",)),
    ),
    "realm_sync_job": (
        RequiredPrivileges("datacenter", ("Sys.Audit",)),
        RequiredPrivileges("realms", ("Realm.AllocateUser",)),
        RequiredPrivileges("groups", ("User.Modify",)),
    ),
    "realm_sync_job_info": (RequiredPrivileges("datacenter", ("Sys.Audit",)),),
    "relocate": (
        RequiredPrivileges(
            "vm", ("VM.Audit", "VM.Migrate", "VM.Allocate", "VM.PowerMgmt", "VM.Config.Options")
        ),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
        RequiredPrivileges("pool", ("Pool.Audit",)),
    ),
    "replication": (RequiredPrivileges("vm", ("VM.Audit", "VM.Replicate")),),
    "replication_info": (RequiredPrivileges("vm", ("VM.Audit",)),),
    "restore": (
        RequiredPrivileges("vm", ("VM.Audit", "VM.Backup", "VM.Allocate", "VM.Config.Options")),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "role": (RequiredPrivileges("access", ("Sys.Modify",)),),
    "role_info": (),
    "rollback": (
        RequiredPrivileges("vm", ("VM.Snapshot", "VM.Snapshot.Rollback"), any_of=True),
        RequiredPrivileges("vm", ("VM.Audit", "VM.PowerMgmt")),
    ),
    "sdn": (
        RequiredPrivileges("networks", ("SDN.Allocate",)),
        RequiredPrivileges("datacenter", ("Sys.Audit",)),
    ),
    "sdn_fabric_nodes": (
        RequiredPrivileges("networks", ("SDN.Allocate",), since=(9, 0)),
        RequiredPrivileges("node", ("Sys.Modify",), since=(9, 0)),
    ),
    "sdn_info": (
        RequiredPrivileges("networks", ("SDN.Audit",)),
        RequiredPrivileges("datacenter", ("Sys.Audit",)),
    ),
    "snapshot": (RequiredPrivileges("vm", ("VM.Audit", "VM.Snapshot")),),
    "storage": (RequiredPrivileges("all storages", ("Datastore.Allocate",)),),
    "storage_info": (RequiredPrivileges("storage", ("Datastore.Audit",)),),
    "storage_scan_info": (RequiredPrivileges("all storages", ("Datastore.Allocate",)),),
    "subscription": (RequiredPrivileges("node", ("Sys.Audit", "Sys.Modify")),),
    "subscription_info": (RequiredPrivileges("node", ("Sys.Audit",)),),
    "task": (RequiredPrivileges("node", ("Sys.Audit", "Sys.Modify")),),
    "task_info": (RequiredPrivileges("node", ("Sys.Audit",)),),
    "tenant": (
        RequiredPrivileges("access", ("Sys.Modify", "Permissions.Modify", "Realm.AllocateUser")),
        RequiredPrivileges("groups", ("User.Modify",)),
        RequiredPrivileges("pool", ("Pool.Allocate", "Permissions.Modify")),
        RequiredPrivileges("datacenter", ("Sys.Modify",)),
    ),
    "tenant_info": (
        RequiredPrivileges("access", ("Sys.Audit",)),
        RequiredPrivileges("groups", ("User.Modify", "Sys.Audit"), any_of=True),
    ),
    "tfa_info": (RequiredPrivileges("groups", ("Sys.Audit", "User.Modify"), any_of=True),),
    "token": (RequiredPrivileges("groups", ("User.Modify",)),),
    "token_info": (RequiredPrivileges("groups", ("User.Modify", "Sys.Audit"), any_of=True),),
    "usage": (
        RequiredPrivileges("datacenter", ("Sys.Audit",)),
        RequiredPrivileges("vm", ("VM.Audit", "VM.Backup", "VM.Config.Disk")),
        RequiredPrivileges("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "user": (
        RequiredPrivileges("groups", ("User.Modify",)),
        RequiredPrivileges("realms", ("Realm.AllocateUser",)),
    ),
    "user_info": (RequiredPrivileges("groups", ("User.Modify", "Sys.Audit"), any_of=True),),
    "vm_agent": (
        RequiredPrivileges(
            "vm", ("VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"), any_of=True, since=(9, 0)
        ),
        RequiredPrivileges("vm", ("VM.Monitor",), until=(9, 0)),
    ),
    "vm_clone": (
        RequiredPrivileges("template", ("VM.Clone", "VM.Audit")),
        RequiredPrivileges(
            "new VM",
            (
                "VM.Allocate",
                "VM.Audit",
                "VM.Config.CPU",
                "VM.Config.Memory",
                "VM.Config.Disk",
                "VM.Config.CDROM",
                "VM.Config.Network",
                "VM.Config.HWType",
                "VM.Config.Options",
                "VM.Config.Cloudinit",
            ),
        ),
        RequiredPrivileges("storage", ("Datastore.AllocateSpace",)),
        RequiredPrivileges("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "vm_console": (RequiredPrivileges("vm", ("VM.Console",)),),
    "vm_cpu_model": (
        RequiredPrivileges("vm", ("VM.Audit", "VM.Config.CPU")),
        RequiredPrivileges("mappings", ("Mapping.Use",), since=(9, 2)),
    ),
    "vm_create": (
        RequiredPrivileges(
            "new VM",
            (
                "VM.Allocate",
                "VM.Audit",
                "VM.Config.CPU",
                "VM.Config.Memory",
                "VM.Config.Disk",
                "VM.Config.CDROM",
                "VM.Config.Network",
                "VM.Config.HWType",
                "VM.Config.Options",
                "VM.Config.Cloudinit",
            ),
        ),
        RequiredPrivileges("storage", ("Datastore.AllocateSpace",)),
        RequiredPrivileges("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "vm_delete": (RequiredPrivileges("vm", ("VM.Audit", "VM.Allocate", "VM.PowerMgmt")),),
    "vm_disks": (
        RequiredPrivileges("vm", ("VM.Audit", "VM.Config.Disk")),
        RequiredPrivileges("storage", ("Datastore.AllocateSpace",)),
    ),
    "vm_info": (RequiredPrivileges("vm", ("VM.Audit",)),),
    "vm_mapping": (
        RequiredPrivileges("vm", ("VM.Audit", "VM.Config.HWType")),
        RequiredPrivileges("mappings", ("Mapping.Use",), since=(8, 0)),
    ),
    "vm_migrate": (RequiredPrivileges("vm", ("VM.Audit", "VM.Migrate")),),
    "vm_power": (RequiredPrivileges("vm", ("VM.Audit", "VM.PowerMgmt")),),
    "vm_startup": (
        RequiredPrivileges("vm", ("VM.Audit", "VM.Config.Options")),
        RequiredPrivileges("datacenter", ("Sys.Modify",)),
    ),
    "vm_template": (RequiredPrivileges("vm", ("VM.Audit", "VM.Allocate")),),
    "vm_update": (
        RequiredPrivileges(
            "vm",
            (
                "VM.Audit",
                "VM.Config.CPU",
                "VM.Config.Memory",
                "VM.Config.Disk",
                "VM.Config.CDROM",
                "VM.Config.Network",
                "VM.Config.HWType",
                "VM.Config.Options",
                "VM.Config.Cloudinit",
            ),
        ),
        RequiredPrivileges("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "volume_info": (RequiredPrivileges("storage", ("Datastore.Audit",)),),
}

# The tasks above that a module consists of, unless it is a task itself.
MODULES: Mapping[str, tuple[str, ...]] = {
    "clone": ("vm_clone", "vm_update", "vm_disks", "vm_power"),
    "cluster": (
        "cluster_options",
        "realm",
        "realm_sync_job",
        "role",
        "group",
        "user",
        "token",
        "acme_account",
        "acme_plugin",
        "node",
        "node_certificate",
        "subscription",
        "apt_repository",
        "node_network",
        "sdn",
        "firewall",
        "ceph_pool",
        "storage",
        "image_download",
        "mapping",
        "cpu_model",
        "pool",
        "acl",
        "metric_server",
        "notification_endpoint",
        "notification_matcher",
        "ha_group",
        "ha_resource",
        "ha_rule",
        "replication",
        "backup_job",
    ),
    "cluster_export_info": ("storage", "realm", "role", "group", "user", "acl", "pool"),
    "container": ("container_create", "container_update", "vm_disks", "vm_power", "vm_delete"),
    "container_image": ("container_clone", "container_update", "vm_disks", "vm_delete"),
    "drift_info": ("vm_info",),
    "estate_info": ("vm_info",),
    "evacuation": ("vm_migrate", "vm_power", "evacuation_node"),
    "metrics_info": ("metrics",),
    "power": ("vm_power",),
    "rebalance": ("vm_migrate", "evacuation_node"),
    "report_info": ("metrics",),
    "snapshot_info": ("vm_info",),
    "storage_download": ("image_download",),
    "tidy": ("vm_info", "vm_delete"),
    "vm": ("vm_create", "vm_update", "vm_disks", "vm_power", "vm_delete"),
    "vms": ("vm_create", "vm_update", "vm_disks", "vm_power", "vm_delete"),
    "volume": ("image_download",),
}
