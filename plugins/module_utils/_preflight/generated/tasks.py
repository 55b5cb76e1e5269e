# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which privileges which task needs, on which kind of object. Data only.

Written by `make options` from the declarations and tasks.yml: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..need import Need

TASKS: Mapping[str, tuple[Need, ...]] = {
    "acl": (Need("pool", ("Permissions.Modify", "Pool.Allocate"), any_of=True),),
    "acl_info": (Need("access", ("Sys.Audit",)),),
    "acme_account": (),
    "acme_account_info": (),
    "acme_certificate": (Need("node", ("Sys.Modify",)), Need("datacenter", ("Sys.Audit",))),
    "acme_plugin": (Need("datacenter", ("Sys.Modify",)),),
    "acme_plugin_info": (Need("datacenter", ("Sys.Modify",)),),
    "apt_repository": (Need("node", ("Sys.Modify",)),),
    "apt_repository_info": (Need("node", ("Sys.Audit",)),),
    "audit_info": (
        Need("datacenter", ("Sys.Audit", "VM.Audit")),
        Need("vm", ("VM.Config.Disk",)),
        Need("all storages", ("Datastore.Audit",)),
    ),
    "backup": (
        Need("vm", ("VM.Audit", "VM.Backup")),
        Need("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "backup_info": (
        Need("vm", ("VM.Audit", "VM.Backup")),
        Need("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "backup_job": (
        Need("datacenter", ("Sys.Audit", "Sys.Modify")),
        Need("storage", ("Datastore.Allocate",)),
    ),
    "backup_job_info": (Need("datacenter", ("Sys.Audit",)), Need("vm", ("VM.Audit",))),
    "ceph_pool": (Need("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "ceph_pool_info": (Need("datacenter", ("Sys.Audit",)),),
    "cluster_info": (Need("datacenter", ("Sys.Audit",)),),
    "cluster_join_info": (Need("datacenter", ("Sys.Audit",)),),
    "cluster_options": (Need("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "cluster_options_info": (Need("datacenter", ("Sys.Audit",)),),
    "container_clone": (
        Need("template", ("VM.Clone", "VM.Audit")),
        Need(
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
        Need("storage", ("Datastore.AllocateSpace",)),
        Need("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "container_create": (
        Need("template storage", ("Datastore.Audit", "Datastore.AllocateSpace"), any_of=True),
        Need(
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
        Need("storage", ("Datastore.AllocateSpace",)),
        Need("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "container_info": (Need("vm", ("VM.Audit",)),),
    "container_update": (
        Need(
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
        Need("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "cpu_model": (Need("mappings", ("Mapping.Modify",)),),
    "cpu_model_info": (
        Need("mappings", ("Mapping.Audit", "Mapping.Use", "Mapping.Modify"), any_of=True),
    ),
    "disk": (Need("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "disk_info": (Need("node", ("Sys.Audit",)),),
    "disk_storage": (Need("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "disk_storage_info": (Need("datacenter", ("Sys.Audit",)),),
    "drill": (
        Need(
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
        Need(
            "vm", ("VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"), any_of=True, since=(9, 0)
        ),
        Need("vm", ("VM.Monitor",), until=(9, 0)),
        Need("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "drill_info": (
        Need("vm", ("VM.Audit", "VM.Backup")),
        Need("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "evacuation_info": (Need("datacenter", ("Sys.Audit",)),),
    "evacuation_node": (
        Need("datacenter", ("Sys.Audit", "Sys.Modify")),
        Need("node", ("Sys.Audit",)),
        Need("all storages", ("Datastore.Audit",)),
    ),
    "failover": (
        Need(
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
        Need("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
        Need("pool", ("Pool.Audit",)),
    ),
    "firewall": (Need("vm", ("VM.Audit", "VM.Config.Network")),),
    "firewall_check": (Need("vm", ("VM.Audit",)),),
    "firewall_info": (Need("vm", ("VM.Audit",)),),
    "group": (Need("groups", ("Group.Allocate",)),),
    "group_info": (Need("groups", ("Sys.Audit", "Group.Allocate"), any_of=True),),
    "ha": (Need("datacenter", ("Sys.Audit", "Sys.Console")),),
    "ha_group": (Need("datacenter", ("Sys.Audit", "Sys.Console"), until=(9, 0)),),
    "ha_group_info": (Need("datacenter", ("Sys.Audit",), until=(9, 0)),),
    "ha_resource": (Need("datacenter", ("Sys.Audit", "Sys.Console")),),
    "ha_resource_info": (Need("datacenter", ("Sys.Audit",)),),
    "ha_rule": (Need("datacenter", ("Sys.Audit", "Sys.Console")),),
    "ha_rule_info": (Need("datacenter", ("Sys.Audit",)),),
    "ha_state": (Need("datacenter", ("Sys.Audit", "Sys.Console"), since=(9, 2)),),
    "ha_state_info": (Need("datacenter", ("Sys.Audit",)),),
    "hardware_info": (Need("datacenter", ("Sys.Audit", "Sys.Modify"), any_of=True),),
    "image_download": (
        Need("image storage", ("Datastore.AllocateTemplate", "Datastore.Audit")),
        Need("node", ("Sys.AccessNetwork",), instead=("Sys.Audit", "Sys.Modify")),
    ),
    "image_upload": (Need("image storage", ("Datastore.AllocateTemplate", "Datastore.Audit")),),
    "mapping": (Need("mappings", ("Mapping.Modify",)),),
    "mapping_info": (
        Need("mappings", ("Mapping.Audit", "Mapping.Use", "Mapping.Modify"), any_of=True),
    ),
    "metric_server": (Need("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "metric_server_info": (Need("datacenter", ("Sys.Audit",)),),
    "metrics": (
        Need("datacenter", ("Sys.Audit",)),
        Need("vm", ("VM.Audit", "VM.Backup", "VM.Config.Disk")),
        Need("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "network": (Need("node", ("Sys.Audit", "Sys.Modify")),),
    "node": (Need("node", ("Sys.Modify",)), Need("datacenter", ("Sys.Modify",))),
    "node_certificate": (Need("node", ("Sys.Modify",)),),
    "node_certificate_info": (),
    "node_info": (Need("node", ("Sys.Audit",)),),
    "node_network": (Need("node", ("Sys.Modify",)),),
    "node_network_info": (),
    "node_service": (Need("node", ("Sys.Audit", "Sys.Modify")),),
    "node_service_info": (Need("node", ("Sys.Audit",)),),
    "node_settings_info": (Need("datacenter", ("Sys.Audit",)),),
    "node_update_info": (Need("node", ("Sys.Modify",)),),
    "notification_endpoint": (Need("datacenter", ("Sys.Audit", "Sys.Modify")),),
    "notification_endpoint_info": (Need("mappings", ("Mapping.Audit",)),),
    "notification_matcher": (Need("mappings", ("Mapping.Audit", "Mapping.Modify")),),
    "notification_matcher_info": (Need("mappings", ("Mapping.Audit",)),),
    "pool": (Need("pool", ("Pool.Allocate", "Pool.Audit")),),
    "pool_info": (Need("pool", ("Pool.Audit",)),),
    "pool_members": (
        Need("pool", ("Pool.Allocate", "Pool.Audit")),
        Need("vm", ("VM.Allocate", "Permissions.Modify"), any_of=True),
    ),
    "realm": (Need("realms", ("Realm.Allocate",)),),
    "realm_info": (),
    "realm_sync": (Need("realms", ("Realm.AllocateUser",)), Need("groups", ("User.Modify",))),
    "replication": (Need("vm", ("VM.Audit", "VM.Replicate")),),
    "replication_info": (Need("vm", ("VM.Audit",)),),
    "restore": (
        Need("vm", ("VM.Audit", "VM.Backup", "VM.Allocate", "VM.Config.Options")),
        Need("storage", ("Datastore.Audit", "Datastore.AllocateSpace")),
    ),
    "role": (Need("access", ("Sys.Modify",)),),
    "role_info": (),
    "rollback": (
        Need("vm", ("VM.Snapshot", "VM.Snapshot.Rollback"), any_of=True),
        Need("vm", ("VM.Audit", "VM.PowerMgmt")),
    ),
    "sdn": (Need("networks", ("SDN.Allocate",)), Need("datacenter", ("Sys.Audit",))),
    "sdn_fabric_nodes": (
        Need("networks", ("SDN.Allocate",), since=(9, 0)),
        Need("node", ("Sys.Modify",), since=(9, 0)),
    ),
    "sdn_info": (Need("networks", ("SDN.Audit",)), Need("datacenter", ("Sys.Audit",))),
    "snapshot": (Need("vm", ("VM.Audit", "VM.Snapshot")),),
    "storage": (Need("all storages", ("Datastore.Allocate",)),),
    "storage_info": (Need("storage", ("Datastore.Audit",)),),
    "storage_scan_info": (Need("all storages", ("Datastore.Allocate",)),),
    "subscription": (Need("node", ("Sys.Audit", "Sys.Modify")),),
    "subscription_info": (Need("node", ("Sys.Audit",)),),
    "task": (Need("node", ("Sys.Audit", "Sys.Modify")),),
    "task_info": (Need("node", ("Sys.Audit",)),),
    "tenant": (
        Need("access", ("Sys.Modify", "Permissions.Modify", "Realm.AllocateUser")),
        Need("groups", ("User.Modify",)),
        Need("pool", ("Pool.Allocate", "Permissions.Modify")),
        Need("datacenter", ("Sys.Modify",)),
    ),
    "tenant_info": (
        Need("access", ("Sys.Audit",)),
        Need("groups", ("User.Modify", "Sys.Audit"), any_of=True),
    ),
    "tfa_info": (Need("groups", ("Sys.Audit", "User.Modify"), any_of=True),),
    "token": (Need("groups", ("User.Modify",)),),
    "token_info": (Need("groups", ("User.Modify", "Sys.Audit"), any_of=True),),
    "user": (Need("groups", ("User.Modify",)), Need("realms", ("Realm.AllocateUser",))),
    "user_info": (Need("groups", ("User.Modify", "Sys.Audit"), any_of=True),),
    "vm_agent": (
        Need(
            "vm", ("VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"), any_of=True, since=(9, 0)
        ),
        Need("vm", ("VM.Monitor",), until=(9, 0)),
    ),
    "vm_clone": (
        Need("template", ("VM.Clone", "VM.Audit")),
        Need(
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
        Need("storage", ("Datastore.AllocateSpace",)),
        Need("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "vm_console": (Need("vm", ("VM.Console",)),),
    "vm_create": (
        Need(
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
        Need("storage", ("Datastore.AllocateSpace",)),
        Need("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "vm_delete": (Need("vm", ("VM.Audit", "VM.Allocate", "VM.PowerMgmt")),),
    "vm_disks": (
        Need("vm", ("VM.Audit", "VM.Config.Disk")),
        Need("storage", ("Datastore.AllocateSpace",)),
    ),
    "vm_info": (Need("vm", ("VM.Audit",)),),
    "vm_mapping": (
        Need("vm", ("VM.Audit", "VM.Config.HWType")),
        Need("mappings", ("Mapping.Use",), since=(8, 0)),
    ),
    "vm_migrate": (Need("vm", ("VM.Audit", "VM.Migrate")),),
    "vm_power": (Need("vm", ("VM.Audit", "VM.PowerMgmt")),),
    "vm_startup": (
        Need("vm", ("VM.Audit", "VM.Config.Options")),
        Need("datacenter", ("Sys.Modify",)),
    ),
    "vm_template": (Need("vm", ("VM.Audit", "VM.Allocate")),),
    "vm_update": (
        Need(
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
        Need("bridge", ("SDN.Use",), since=(8, 0)),
    ),
    "volume_info": (Need("storage", ("Datastore.Audit",)),),
}

# The tasks above that a module consists of, unless it is a task itself.
MODULES: Mapping[str, tuple[str, ...]] = {
    "clone": ("vm_clone", "vm_update", "vm_disks", "vm_power"),
    "cluster": ("storage", "realm", "role", "group", "user", "acl", "pool"),
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
