# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module node_info.

Written by `make options` from node_info.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  node:
    description: Only this node. It is an error if the cluster does
      not have it.
    type: str
  details:
    description:
      - Whether to query each node for its CPU model, load, kernel and
        version, and for current usage. Usage from the listing can be
        ten seconds old.
      - By default, only O(node) is queried.
    type: bool
  cpu_overcommit:
    description:
      - Overcommit factor for the cores of a node.
      - This and the next three options have the same meaning as in
        O(pve.fleet.vm#module:placement).
    type: float
    default: 4.0
  memory_overcommit:
    description: Overcommit factor for the memory of a node.
    type: float
    default: 1.0
  min_free_memory:
    description: Memory that must stay free on a node, such as V(4G).
      A bare number is MiB.
    type: raw
  max_vms_per_node:
    description: Maximum number of VMs on a node, as one number or as
      a dictionary by node.
    type: raw
  memory_warn:
    description: Memory usage in percent from which a node gets a warning.
    type: int
    default: 90
  storage_warn:
    description: Usage in percent from which a storage or root file
      system gets a warning.
    type: int
    default: 90
"""
