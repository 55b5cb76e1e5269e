# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declarations of the modules, for tests that hold for each of them."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tests.tools.declarations import load
from tests.tools.make_modules import modules_of

_DECLARED = modules_of(load())
MODULES = tuple(_DECLARED)


# Their tasks fail on the demo cluster, which is Proxmox VE 9 without Ceph and without archives, and
# where no task ran. A move needs a second site.
UNSUPPORTED = frozenset(
    "ha_group ha_group_info ceph_flag ceph_info ceph_mds ceph_mgr ceph_mon ceph_osd ceph_pool"
    " ceph_pool_info task relocate failover".split()
)


def entry_of(name: str) -> Any:
    """Return the entry of a module."""
    return importlib.import_module(f"ansible_collections.pve.fleet.plugins.modules.{name}").ENTRY


def module_sample() -> tuple[str, ...]:
    """Return the first module of each kind of entry. A kind is the set of fields of `ModuleEntry`
    that the module sets, so that a module which uses the entry in a new way is in the sample.
    """
    found: dict[tuple[str, ...], str] = {}
    for name in MODULES:
        if name in UNSUPPORTED:
            continue
        entry = entry_of(name)
        used = (one.name for one in fields(entry) if one.name not in ("run", "spec", "name"))
        found.setdefault(tuple(one for one in used if getattr(entry, one)), name)
    return tuple(found.values())


def minimal_tasks() -> Mapping[str, dict[str, Any]]:
    """Return for each module the options of a task that works on the demo cluster, or
    that it does not support.
    """
    return {name: copy.deepcopy(module["task"]) for name, (_file, module) in _DECLARED.items()}
