# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from firewall.yml: do not edit.
"""The options of modules firewall, firewall_info and firewall_check."""

from ..form import Spec


def scope_spec() -> Spec:
    """Return the options that select the scope."""
    return {
        "scope": {
            "type": "str",
            "required": True,
            "choices": ["cluster", "node", "guest", "vnet", "group"],
        },
        "node": {"type": "str"},
        "vnet": {"type": "str"},
        "group": {"type": "str"},
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
    }


def firewall_spec() -> Spec:
    """Return the options of module firewall without the choice of the scope."""
    like_log_level_in = {
        "type": "str",
        "choices": ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "nolog"],
    }
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "comment": {"type": "str"},
        "options": {
            "type": "dict",
            "options": {
                "enable": {"type": "bool"},
                "ebtables": {"type": "bool"},
                "policy_in": {"type": "str", "choices": ["", "ACCEPT", "REJECT", "DROP"]},
                "policy_out": {"type": "str", "choices": ["", "ACCEPT", "REJECT", "DROP"]},
                "policy_forward": {"type": "str", "choices": ["", "ACCEPT", "DROP"]},
                "log_ratelimit": {"type": "str"},
                "log_level_in": like_log_level_in,
                "log_level_out": like_log_level_in,
                "log_level_forward": like_log_level_in,
                "tcp_flags_log_level": like_log_level_in,
                "smurf_log_level": like_log_level_in,
                "nosmurfs": {"type": "bool"},
                "tcpflags": {"type": "bool"},
                "nf_conntrack_max": {"type": "int"},
                "nf_conntrack_tcp_timeout_established": {"type": "int"},
                "nf_conntrack_tcp_timeout_syn_recv": {"type": "int"},
                "nf_conntrack_allow_invalid": {"type": "bool"},
                "nf_conntrack_helpers": {"type": "str"},
                "protection_synflood": {"type": "bool"},
                "protection_synflood_rate": {"type": "int"},
                "protection_synflood_burst": {"type": "int"},
                "log_nf_conntrack": {"type": "bool"},
                "nftables": {"type": "bool"},
                "macfilter": {"type": "bool"},
                "dhcp": {"type": "bool"},
                "ndp": {"type": "bool"},
                "radv": {"type": "bool"},
                "ipfilter": {"type": "bool"},
            },
        },
        "rules": {
            "type": "list",
            "elements": "dict",
            "options": {
                "type": {
                    "type": "str",
                    "required": True,
                    "choices": ["in", "out", "forward", "group"],
                },
                "action": {"type": "str", "required": True},
                "enable": {"type": "bool", "default": True},
                "macro": {"type": "str"},
                "iface": {"type": "str"},
                "source": {"type": "str"},
                "dest": {"type": "str"},
                "proto": {"type": "str"},
                "sport": {"type": "str"},
                "dport": {"type": "str"},
                "icmp_type": {"type": "str"},
                "log": like_log_level_in,
                "comment": {"type": "str"},
            },
        },
        "aliases": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "cidr": {"type": "str", "required": True},
                "comment": {"type": "str"},
            },
        },
        "ip_sets": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "comment": {"type": "str"},
                "members": {
                    "type": "list",
                    "elements": "dict",
                    "options": {
                        "cidr": {"type": "str", "required": True},
                        "nomatch": {"type": "bool", "default": False},
                        "comment": {"type": "str"},
                    },
                },
            },
        },
        "allow_lockout": {"type": "bool", "default": False},
        "caller_address": {"type": "str"},
        "exact": {"type": "bool", "default": False},
    }


def info_spec() -> Spec:
    """Return the options of module firewall_info without the choice of the scope."""
    return {"effective": {"type": "bool", "default": False}}


def firewall_check_spec() -> Spec:
    like_source = {
        "type": "dict",
        "required": True,
        "options": {
            "name": {"type": "str"},
            "vmid": {"type": "int"},
            "tenant": {"type": "str"},
            "nic": {"type": "str"},
            "node": {"type": "str"},
            "address": {"type": "str"},
        },
    }
    return {
        "source": like_source,
        "dest": like_source,
        "proto": {"type": "str", "default": "tcp"},
        "dport": {"type": "int"},
        "sport": {"type": "int"},
        "icmp_type": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
    }
