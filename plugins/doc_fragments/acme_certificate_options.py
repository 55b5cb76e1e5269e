# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module acme_certificate.

Written by `make options` from acme_certificate.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
  state:
    description: V(present) orders a certificate if the node needs one, V(absent) revokes and
      removes it.
    type: str
    choices: [present, absent]
    default: present
  renew_days:
    description: Days of validity below which the certificate is ordered again. V(0) waits until
      it has expired.
    type: int
    default: 30
"""
