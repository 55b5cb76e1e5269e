# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from container.yml: do not edit.
"""The options of a container."""


class ModuleDocFragment:
    GUEST = r"""
options:
  addresses:
    description: Whether to return the addresses of a running container, without loopback and
      link-local ones.
    type: bool
    default: false
  address_family:
    description: Address family of RV(ignore:address).
    type: str
    choices: [ipv4, ipv6, any]
    default: ipv4
  address_nics:
    description:
      - Interfaces from which RV(ignore:address) is selected, in order of preference, each by PVE's
        name (V(net0)), the guest's name or the MAC address.
    type: list
    elements: str
    default: []
  address_subnets:
    description: Subnets from which RV(ignore:address) is selected, in order of preference, such as
      V(10.0.0.0/24).
    type: list
    elements: str
    default: []
"""
