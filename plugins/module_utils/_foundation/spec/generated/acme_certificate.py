# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acme_certificate.yml: do not edit.
"""The options of module acme_certificate."""

from ..form import Spec


def acme_certificate_spec() -> Spec:
    return {
        "node": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "renew_days": {"type": "int", "default": 30},
    }
