# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module power.

Written by `make options` from power.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(stopped) shuts down the guests that run, in the reverse of their start order. V(started)
        starts guests in their start order.
    type: str
    required: true
    choices: [started, stopped]
  tenants:
    description: Tenants whose guests are started or stopped. Guests of others, and guests without
      a tenant, are never changed.
    type: list
    elements: str
    required: true
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  exclude:
    description: Names or VMIDs of guests that stay as they are, such as the VM on which the
      task runs.
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
      - File on the controller in which V(stopped) records the guests that it stops, before
        the first one stops. V(started) then starts the recorded guests only, and removes the
        file when all of them run.
      - Without it, nothing is recorded. The directory must exist.
    type: path
  unresponsive:
    description:
      - What happens if a guest does not reach the state in time, or cannot be planned. With
        V(fail), the run stops before the next tier, and the error names the guest. V(leave)
        names it in a warning and continues. V(force) stops it by force after O(shutdown_timeout),
        and is V(fail) for V(started).
    type: str
    choices: [fail, leave, force]
    default: fail
  wait_for:
    description:
      - Health check after the start of each tier. The next tier starts when the guest agent
        of each VM answers (V(agent)), or each VM has an address (V(address)). Containers are
        waited for until they have an address.
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
      - Seconds that a guest may take to shut down; C(down) in its option C(startup) replaces
        it in a bulk action.
      - Environment variable E(PROXMOX_SHUTDOWN_TIMEOUT).
    type: int
    default: 180
  task_timeout:
    description:
      - Seconds that the start of a tier may take.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 3600
"""
