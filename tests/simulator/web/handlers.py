"""Brings in every module that registers handlers."""

from __future__ import annotations

import importlib

MODULES = (
    "access.accounts",
    "access.acl_entries",
    "access.login",
    "access.sync",
    "access.sync_jobs",
    "cluster.apt",
    "cluster.datacenter",
    "cluster.indexes",
    "cluster.mappings",
    "cluster.metric_servers",
    "cluster.node_settings",
    "cluster.nodes",
    "cluster.notifications",
    "cluster.pools",
    "cluster.replication",
    "cluster.resources",
    "cluster.status",
    "config.disks",
    "config.vmconfig",
    "containers.clone",
    "containers.config",
    "containers.consoles",
    "containers.create",
    "containers.migrate",
    "containers.power",
    "containers.remote",
    "containers.snapshots",
    "containers.volumes",
    "guests.agent",
    "guests.backup_jobs",
    "guests.bulk",
    "guests.clone",
    "guests.cloudinit",
    "guests.console",
    "guests.create",
    "guests.migrate",
    "guests.moves",
    "guests.power",
    "guests.snapshots",
    "guests.suspend",
    "ha.groups",
    "ha.resources",
    "ha.rules",
    "ha.status",
    "identity.acme",
    "identity.certificates",
    "identity.subscription",
    "network.firewall",
    "network.interfaces",
    "sdn.lock",
    "sdn.objects",
    "sdn.subnets",
    "sdn.vnets",
    "storage.content",
    "storage.definitions",
    "storage.prune",
    "storage.templates",
    "storage.upload",
    "upkeep.ceph",
    "upkeep.reboots",
)


def load() -> None:
    """Import them all."""
    for name in MODULES:
        importlib.import_module(f"..{name}", __package__)
