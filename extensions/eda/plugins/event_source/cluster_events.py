# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The event source: thin, everything it decides is in `module_utils/_operation/events`."""

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_events
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Events of Proxmox VE
description:
  - Watches one or several Proxmox VE clusters and reports new and ended tasks, guests that appear,
    disappear, move, or change their power state or tenant, nodes and quorum, storages and quotas
    above a limit, failed and missing backups, and drift.
  - With O(sites) or O(sites_file), and neither O(site) nor O(host), all sites are watched, side by
    side.
  - Each event is reported once, also over a restart. The keys of each event are in
    U(https://github.com/pve-fleet/pve.fleet/blob/main/docs/events.md).
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.cluster_events_options
"""

EXAMPLES = r"""
- name: Watch Proxmox VE
  hosts: localhost
  sources:
    - pve.fleet.cluster_events:
        state_file: /var/lib/ansible-rulebook/pve.json
        backup_max_age: 26
  rules:
    - name: Report a failed backup
      condition: event.type == "backup_failed"
      action:
        debug:
          msg: "Backup of {{ event.vmids }} on {{ event.node }}: {{ event.exitstatus }}"
"""

import runpy
from pathlib import Path
from typing import Any

runpy.run_path(str(Path(__file__).absolute().parents[1] / "find_collection.py"))

from ansible_collections.pve.fleet.plugins.module_utils._operation.events.follow import follow_sites


async def main(queue: Any, args: dict[str, Any]) -> None:
    """Put events into the queue of ansible-rulebook until it ends this source."""
    await follow_sites(queue, args)
