"""Brings in every module that registers handlers."""

from __future__ import annotations

import importlib

MODULES = (
    "access.accounts",
    "access.acl_entries",
    "access.login",
    "access.sync",
    "access.sync_jobs",
    "cluster.datacenter",
    "cluster.indexes",
    "cluster.nodes",
    "cluster.pools",
    "cluster.resources",
    "cluster.status",
    "config.disks",
    "config.vmconfig",
    "guests.agent",
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
    "ha.resources",
    "ha.rules",
    "ha.status",
    "network.firewall",
    "network.interfaces",
    "storage.content",
    "storage.definitions",
    "storage.upload",
)


def load() -> None:
    """Import them all."""
    for name in MODULES:
        importlib.import_module(f"..{name}", __package__)
