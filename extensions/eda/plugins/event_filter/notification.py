# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The event filter: thin, everything it decides is in `module_utils/_operation/events/webhook.py`."""

from __future__ import annotations

DOCUMENTATION = r"""
name: notification
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Turn notifications of Proxmox VE into events
description:
  - Turns the notifications that Proxmox VE sends to a webhook into the events of event source
    C(pve.fleet.cluster_events). Anything else passes without a change.
  - The notification target needs the body in
    U(https://github.com/pve-fleet/pve.fleet/blob/main/docs/events.md).
options:
  site:
    description:
      - Name of the site that the notifications come from, as C(site) of the events.
      - If the body of a notification has C(site), that name is used.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Receive notifications of Proxmox VE
  hosts: localhost
  sources:
    - eda.builtin.webhook:
        port: 5000
        token: "{{ webhook_token }}"
      filters:
        - pve.fleet.notification:
            site: munich
  rules:
    - name: Report a failed backup
      condition: event.type == "backup_failed"
      action:
        debug:
          msg: "Backup on {{ event.node }}: {{ event.exitstatus }}"
"""

import runpy
from pathlib import Path
from typing import Any

runpy.run_path(str(Path(__file__).absolute().parents[1] / "find_collection.py"))

from ansible_collections.pve.fleet.plugins.module_utils._operation.events.webhook import (
    notification_event,
)


def main(event: dict[str, Any], site: str = "") -> dict[str, Any]:
    """Return the event of a notification, or the same event if it is not one."""
    found: dict[str, Any] = notification_event(event, site)
    return found
