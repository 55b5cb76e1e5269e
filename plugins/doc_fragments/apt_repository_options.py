# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules apt_repository and apt_repository_info.

Written by `make options` from apt_repository.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
  handle:
    description: Handle of a standard repository, such as V(enterprise), V(no-subscription), V(test)
      or V(ceph-squid-no-subscription). Which ones exist depends on the version of Proxmox VE.
    type: str
    required: true
  state:
    description: Whether the repository is enabled. V(enabled) adds a missing one. A missing one
      counts as V(disabled).
    type: str
    choices: [enabled, disabled]
    default: enabled
"""

    INFO = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
"""
