# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules role and role_info.

Written by `make options` from role.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the role. Names that begin with C(PVE) are kept for the roles of Proxmox
      VE.
    type: str
    required: true
  state:
    description:
      - V(present) creates the role if it does not exist, and changes what differs.
      - V(absent) deletes it. A role that is held by anybody is only deleted with O(force).
    type: str
    choices: [present, absent]
    default: present
  privileges:
    description:
      - Privileges of the role, such as V(VM.Audit). By default, they are not changed.
      - V(agent_read) stands for reading from the guest agent, which is V(VM.GuestAgent.Audit)
        since Proxmox VE 9.0 and V(VM.Monitor) before. V(agent) stands for everything that the
        guest agent can do, which is all of V(VM.GuestAgent.*) since 9.0 and V(VM.Monitor) before.
      - A privilege that this version of Proxmox VE does not have is an error.
    type: list
    elements: str
  append:
    description: Whether privileges that O(privileges) does not list stay. Without it, they are
      taken out of the role.
    type: bool
    default: false
  force:
    description: Whether O(state=absent) also deletes a role that is held by anybody, who then
      loses its privileges.
    type: bool
    default: false
  allow_self:
    description: Whether the change or deletion may take privileges away from the login of the
      task itself. Without it, this is refused before the first write, and the message names the
      privileges.
    type: bool
    default: false
"""

    INFO = r"""
options:
  name:
    description: Name of one role. By default, all roles are returned.
    type: str
"""
