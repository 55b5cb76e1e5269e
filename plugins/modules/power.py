#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from power.yml: do not edit.

DOCUMENTATION = r"""
module: power
short_description: Start or stop all guests of tenants in tiers
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Starts the guests of one or several tenants in start order, or stops them in the reverse order.
    The guests with the same C(order) in their option C(startup) are a tier. Guests without an order
    are the last tier to start, and the first to stop. A tier begins when the previous tier is
    complete.
  - A tier is one bulk action of the cluster if Proxmox VE supports it (since 9.1), otherwise one
    request for each guest. Guests of the HA manager always have their own requests.
  - Check mode shows the tiers. After an interruption, the same task waits for tasks that are still
    running, and completes the rest.
options:
  state:
    description:
      - V(stopped) shuts down running guests in reverse start order. V(started) starts guests in
        their start order.
    type: str
    required: true
    choices: [started, stopped]
  tenants:
    description: Tenants whose guests are started or stopped. Guests of other tenants, and guests
      without a tenant, are never changed.
    type: list
    elements: str
    required: true
  unknown_tenants:
    description:
      - What happens if the login sees neither a guest nor a pool of a tenant. V(fail) refuses the
        task. V(warn) names the tenant in a warning, for the tenants of an estate that are created
        later. The task is refused if no tenant exists.
    type: str
    choices: [fail, warn]
    default: fail
    version_added: 1.0.0
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  exclude:
    description: Names or VMIDs of guests that are not changed, such as the VM on which the task
      runs. A guest that does not exist is refused.
    type: list
    elements: str
  selection:
    description:
      - Guests that V(started) starts. V(recorded) starts the guests in O(record), and fails if
        there is no such file.
      - V(onboot) and V(all) are for a start without a record. V(onboot) starts the guests with the
        option C(onboot), as a node does when it boots. V(all) starts all guests. If O(record)
        exists, only the recorded guests start.
      - The default is V(recorded) if O(record) is set, otherwise V(onboot).
    type: str
    choices: [recorded, onboot, all]
  record:
    description:
      - File on the controller in which V(stopped) records the guests to stop, before it stops the
        first one. V(started) then starts only the recorded guests, and empties the record when all
        of them run.
      - The path must be absolute, and its directory must exist. By default, nothing is recorded.
    type: path
  unresponsive:
    description:
      - What happens if a guest does not reach the state in time, or cannot be planned. With
        V(fail), the run stops before the next tier, and the error names the guest. V(leave) names
        it in a warning and continues. V(force) stops it by force after O(shutdown_timeout). For
        V(started), it is the same as V(fail).
    type: str
    choices: [fail, leave, force]
    default: fail
  wait_for:
    description:
      - Health check after the start of each tier. The next tier starts when the guest agent of each
        VM answers (V(agent)), or each VM has an address (V(address)). For containers, the task
        waits until they have an address.
    type: str
    choices: [none, agent, address]
    default: none
  wait_timeout:
    description:
      - Seconds to wait for O(wait_for).
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
  parallel:
    description:
      - Number of guests that start or stop at the same time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  shutdown_timeout:
    description:
      - Seconds that a guest may take to shut down. In a bulk action, C(down) in the guest's option
        C(startup) overrides it.
      - Environment variable E(PROXMOX_SHUTDOWN_TIMEOUT).
    type: int
    default: 180
  task_timeout:
    description:
      - Seconds that the start of a tier may take.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 3600
extends_documentation_fragment:
  - pve.fleet.plan_options
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

- name: Stop them, record which ones were running, and force off guests that do not shut down
  pve.fleet.power:
    state: stopped
    tenants: [acme]
    record: /tmp/acme-power.json
    unresponsive: force
    shutdown_timeout: 30

- name: Start the guests that were running before
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
    tiers: {description: 'The tiers in the order of the run, each with C(order), null without a
      start order, and C(guests) that change, each with C(kind), C(vmid), C(name), C(node) and its
      C(status) before.', type: list, elements: dict, sample: [{order: 1, guests: [{kind: vm,
      vmid: 101, name: db1, node: pve1, status: running}]}]}
    unchanged: {description: Guests that did not reach the state and were left as they are.,
      type: list, elements: str, sample: []}
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: ['~ acme/db1  start in tier 1, guests of start order 1', 'Plan: 1 to change']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Start VM 'db1' (101) on node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: TaskTimeout, reason: not stopped in time, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.power import (
    power_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.power.run import run

ENTRY = ModuleEntry(run, power_spec(), plans=True, name="power")
main = ENTRY.main

if __name__ == "__main__":
    main()
