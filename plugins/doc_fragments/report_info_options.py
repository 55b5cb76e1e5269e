# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module report_info.

Written by `make options` from report_info.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  of_sites:
    description:
      - Names of the sites to report on, of those in O(sites) or O(sites_file).
        The sites of the VMs in O(estate) are added.
      - By default, the report is on the site of the task.
    type: list
    elements: str
    default: []
  estate:
    description:
      - The estate to compare with what is there, as the options of M(pve.fleet.drift_info),
        such as C(vms), C(defaults), C(tenant_settings) and C(ignore). Each
        VM is read once for both.
      - Without it, RV(report.drift) is null.
    type: dict
  tenants:
    description:
      - The tenants as an estate describes them, by name, each with C(quota)
        and C(site), see O(pve.fleet.vms#module:tenant_settings). Those without
        a VM are reported too.
    type: dict
    default: {}
  tenant_prefix:
    description: Prefix of the tags of tenants.
    type: str
    default: tenant_
  placement:
    description:
      - The rules of placement under which the room of nodes is calculated.
        C(cpu_overcommit), C(memory_overcommit), C(min_free_memory) and C(max_vms_per_node)
        of O(pve.fleet.vm#module:placement) are used.
      - By default, 4 cores for each core of a node, and the memory of a node
        once.
    type: dict
  memory_warn:
    description: Memory usage in percent from which a node gets a warning.
    type: int
    default: 90
  storage_warn:
    description: Usage in percent from which a storage or root file system gets
      a warning.
    type: int
    default: 90
  snapshot_days:
    description: Days after which a snapshot is old.
    type: int
    default: 30
  backup_days:
    description: Days after which a guest whose newest backup is older needs
      attention.
    type: int
    default: 7
  drills:
    description:
      - The text of the record of drills, C(drill.json) of the role P(pve.fleet.drill#role).
        Each guest then has its last proven restore, and guests without one
        need attention.
      - Without it, C(proven) of each guest is null.
    type: str
    default: ''
  prices:
    description: Prices for a month. With at least one of them, RV(report.costs)
      has the costs of each tenant.
    type: dict
    suboptions:
      core:
        description: Price of a core, as a decimal number such as V(4.50).
        type: str
      memory:
        description: Price of one GiB of memory.
        type: str
      storage:
        description: Price of one GiB of disks.
        type: str
      currency:
        description: What is shown beside amounts, such as V(EUR).
        type: str
  history:
    description:
      - The text of the history file that RV(history) of the last report was
        written to. The growth since then is calculated from it. Empty for the
        first report.
      - If the text is not a history of this version, the report says so, and
        RV(history) is null.
    type: json
    default: ''
"""
