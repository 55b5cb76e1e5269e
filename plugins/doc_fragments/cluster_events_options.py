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
        ansible-rulebook. Its directory must exist and survive a restart. Files with the suffixes
        C(.delivered) and C(.lock) are written beside it.
      - Each source needs its own file. If the file is missing, the source starts from the
        beginning, without events about earlier changes.
    type: str
    required: true
  interval:
    description: Seconds between two readings of a site.
    type: float
    default: 30
  slow_interval:
    description: Seconds between two readings of backups, disks and drift.
    type: float
    default: 3600
  longest_pause:
    description: Maximum length in seconds of the growing pause while a site does not answer.
    type: float
    default: 600
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  storage_limit:
    description: Usage in percent from which a storage is reported as too full. The alarm ends two
      points below.
    type: float
    default: 90
  quota_limit:
    description: Usage in percent of a quota from which it is reported. The alarm ends two points
      below.
    type: float
    default: 90
  quotas:
    description:
      - Quotas by tenant, each a dictionary like O(pve.fleet.vm#module:quota). By default, no quota
        is watched.
      - The use of V(vms), V(cores) and V(memory) is checked at each reading, the use of V(disk) at
        O(slow_interval).
    type: dict
  backup_max_age:
    description:
      - Maximum age of the newest backup of a guest, in hours. An older or missing backup is
        reported as missing.
      - By default, the ages of backups are not checked. Failed backups are always reported.
    type: float
  drift:
    description:
      - Options of module M(pve.fleet.drift_info), such as V(vms) and V(defaults), in a dictionary.
        These guests are compared with the cluster at O(slow_interval).
      - By default, drift is not checked.
    type: dict
"""
