#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from power.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: power
short_description: Start or stop all guests of tenants in tiers
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Starts the guests of one or several tenants in start order, or stops them in the reverse
    order. The guests with the same C(order) in their option C(startup) are a tier; those without
    one are the last tier to start, and the first to stop. A tier begins when the one before
    it is complete.
  - A tier is one bulk action of the cluster if Proxmox VE has it (since 9.1), else one request
    for each guest. Guests of the HA manager have requests of their own.
  - Check mode shows the tiers. After an interruption, the same task waits for what is still
    running, and completes the rest.
extends_documentation_fragment:
  - pve.fleet.power_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.vm
  - module: pve.fleet.container
  - module: pve.fleet.evacuation
"""

EXAMPLES = r"""
- name: Show the tiers in which a tenant's guests would stop
  pve.fleet.power:
    state: stopped
    tenants: [acme]
  check_mode: true
  register: planned

- name: Print the tiers
  ansible.builtin.debug:
    var: planned.report

- name: Stop them, record which ran, and force off guests that do not shut down
  pve.fleet.power:
    state: stopped
    tenants: [acme]
    record: /tmp/acme-power.json
    unresponsive: force
    shutdown_timeout: 30

- name: Start those that ran before
  pve.fleet.power:
    state: started
    tenants: [acme]
    record: /tmp/acme-power.json
"""

RETURN = r"""
power:
  description: The tiers.
  returned: success
  type: dict
  contains:
    state: {description: State of the task., type: str, sample: stopped}
    tiers: {description: 'The tiers in the order of the run, each with C(order), null without
        a start order, and C(guests) that change, each with C(kind), C(vmid), C(name), C(node)
        and its C(status) before.', type: list, elements: dict, sample: [{order: 1, guests: [
            {kind: vm, vmid: 101, name: db1, node: pve1, status: running}]}]}
    unchanged: {description: Guests that were left because they did not reach the state.,
      type: list, elements: str, sample: []}
report:
  description: One line for each tier, for people.
  returned: success
  type: list
  elements: str
  sample: ['tier 1, guests of start order 1: start db1 (101)']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Start VM 'db1' (101) on node pve1]
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Start VM 'db1' (101) on node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: TaskTimeout
    reason: not stopped in time
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._power.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.power import power_spec

ENTRY = Entry(run, power_spec(), name="power")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
