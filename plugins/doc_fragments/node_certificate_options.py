# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules node_certificate and node_certificate_info.

Written by `make options` from node_certificate.yml: do not edit.
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
    description: V(present) uploads the certificate or replaces another one, V(absent) removes
      the own certificate and its key, so that the node uses the one of the cluster again.
    type: str
    choices: [present, absent]
    default: present
  certificates:
    description: The certificate and the chain below it in PEM format, without a private key.
      Required for a new one. The first certificate is compared. By default, it is not changed.
    type: str
  private_key:
    description:
      - The private key in PEM format, without a password. It is never returned.
      - It is written together with another certificate. Without it, Proxmox VE keeps the key
        that the node has.
    type: str
  update_secrets:
    description: When O(private_key) is written although the certificate is the same. Proxmox
      VE never returns it, so it cannot be compared. V(on_create) does not write it then, V(always)
      in each run.
    type: str
    choices: [on_create, always]
    default: on_create
  restart:
    description:
      - Whether the web server of the node restarts after a change, so that it uses the certificate.
        Connections that are open stay.
      - This task itself must be able to verify the new certificate, see O(ca_path).
    type: bool
    default: true
"""

    INFO = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
"""
