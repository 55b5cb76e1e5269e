#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from power.yml: do not edit.

DOCUMENTATION = r"""
module: power
short_description: Start or stop all guests of tenants in tiers
version_added: 0.1.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Starts the guests of one or several tenants in start order, or stops them in the reverse order.
    The guests with the same C(order) in their option C(startup) are a tier; those without one are
    the last tier to start, and the first to stop. A tier begins when the one before it is complete.
  - A tier is one bulk action of the cluster if Proxmox VE has it (since 9.1), else one request for
    each guest. Guests of the HA manager have requests of their own.
  - Check mode shows the tiers. After an interruption, the same task waits for what is still
    running, and completes the rest.
options:
  state:
    description:
      - V(stopped) shuts down the guests that run, in the reverse of their start order. V(started)
        starts guests in their start order.
    type: str
    required: true
    choices: [started, stopped]
  tenants:
    description: Tenants whose guests are started or stopped. Guests of others, and guests without a
      tenant, are never changed.
    type: list
    elements: str
    required: true
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  exclude:
    description: Names or VMIDs of guests that stay as they are, such as the VM on which the task
      runs.
    type: list
    elements: str
  selection:
    description:
      - Guests that V(started) starts without a record. V(onboot) starts those with the option
        C(onboot), as a node does when it boots; V(all) starts all.
    type: str
    choices: [onboot, all]
    default: onboot
  record:
    description:
      - File on the controller in which V(stopped) records the guests that it stops, before the
        first one stops. V(started) then starts the recorded guests only, and removes the file when
        all of them run.
      - Without it, nothing is recorded. The directory must exist.
    type: path
  unresponsive:
    description:
      - What happens if a guest does not reach the state in time, or cannot be planned. With
        V(fail), the run stops before the next tier, and the error names the guest. V(leave) names
        it in a warning and continues. V(force) stops it by force after O(shutdown_timeout), and is
        V(fail) for V(started).
    type: str
    choices: [fail, leave, force]
    default: fail
  wait_for:
    description:
      - Health check after the start of each tier. The next tier starts when the guest agent of each
        VM answers (V(agent)), or each VM has an address (V(address)). Containers are waited for
        until they have an address.
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
      - The number of guests that start or stop at the same time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  shutdown_timeout:
    description:
      - Seconds that a guest may take to shut down; C(down) in its option C(startup) replaces it in
        a bulk action.
      - Environment variable E(PROXMOX_SHUTDOWN_TIMEOUT).
    type: int
    default: 180
  task_timeout:
    description:
      - Seconds that the start of a tier may take.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 3600
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
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
    tiers: {description: 'The tiers in the order of the run, each with C(order), null without a
      start order, and C(guests) that change, each with C(kind), C(vmid), C(name), C(node) and its
      C(status) before.', type: list, elements: dict, sample: [{order: 1, guests: [{kind: vm,
      vmid: 101, name: db1, node: pve1, status: running}]}]}
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

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._power.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.power import power_spec

ENTRY = Entry(run, power_spec(), name="power")
main = ENTRY.main

if __name__ == "__main__":
    main()
