# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module cluster_info.

Written by `make options` from cluster_info.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  networks:
    description: Whether to read the network interfaces of the nodes.
    type: bool
    default: false
  failed_tasks:
    description: Maximum number of failed tasks to return.
    type: int
    default: 10
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  storage_warn:
    description: Usage in percent from which a storage gets a warning.
    type: int
    default: 90
"""
