# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_events.yml: do not edit.
"""The options of event source cluster_events, without the connection."""

from ..form import Spec


def cluster_events_spec() -> Spec:
    """Return the options of event source cluster_events."""
    return {
        "state_file": {"type": "str", "required": True},
        "interval": {"type": "float", "default": 30},
        "slow_interval": {"type": "float", "default": 3600},
        "longest_pause": {"type": "float", "default": 600},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "storage_limit": {"type": "float", "default": 90},
        "quota_limit": {"type": "float", "default": 90},
        "quotas": {"type": "dict"},
        "backup_max_age": {"type": "float"},
        "drift": {"type": "dict"},
    }
