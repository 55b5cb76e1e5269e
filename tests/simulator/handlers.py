"""Brings in every module that registers handlers."""

from __future__ import annotations

import importlib

MODULES = (
    "access", "access_acl", "agent", "bulk", "clone", "cloudinit", "cluster", "console", "create", "disks",
    "firewall", "ha", "ha_rules", "ha_status", "indexes", "login", "migrate", "moves", "network", "nodes", "pools",
    "power", "resources", "snapshots", "status", "storage_content", "storage_defs", "storage_upload", "suspend",
    "vmconfig",
)  # fmt: skip


def load() -> None:
    """Import them all."""
    for name in MODULES:
        importlib.import_module(f".{name}", __package__)
