# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_events.yml: do not edit.
"""The options of event source cluster_events, without the connection."""


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state_file:
    description:
      - File with the position up to which events are known, on the machine that runs
        ansible-rulebook. Its directory must exist and outlast a restart. Files with the suffixes
        C(.delivered) and C(.lock) are written beside it.
      - Each source needs a file of its own. Without the file, the source starts again, and earlier
        changes give no events.
    type: str
    required: true
  interval:
    description: Seconds from the end of one reading of a site to the next one.
    type: float
    default: 30
  slow_interval:
    description: Seconds from one reading of backups, disks and drift to the next one.
    type: float
    default: 3600
  longest_pause:
    description: Maximum of the growing pause, in seconds, while a site does not answer.
    type: float
    default: 600
  tenant_prefix:
    description: Start of the tags that name tenants.
    type: str
    default: tenant_
  storage_limit:
    description: Percentage of its size from which a storage is reported as too full. The alarm ends
      two points below.
    type: float
    default: 90
  quota_limit:
    description: Percentage of a quota from which its use is reported. The alarm ends two points
      below.
    type: float
    default: 90
  quotas:
    description:
      - Quotas by tenant, each a dictionary like O(pve.fleet.vm#module:quota). By default, no quota
        is watched.
      - The use of V(vms), V(cores) and V(memory) is checked at each reading, that of V(disk) at
        O(slow_interval).
    type: dict
  backup_max_age:
    description:
      - Age in hours that the newest backup of a guest can have. An older one, or none, is reported
        as missing.
      - By default, the ages of backups are not checked. Failed backups are always reported.
    type: float
  drift:
    description:
      - Options of module M(pve.fleet.drift_info), such as V(vms) and V(defaults), in a dictionary.
        Its guests are compared with the cluster at O(slow_interval).
      - By default, drift is not checked.
    type: dict
"""
