# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_options.yml: do not edit.
"""The options of module cluster_options."""

from ..form import Spec


def cluster_options_spec() -> Spec:
    like_migration = {
        "type": "dict",
        "options": {
            "type": {"type": "str", "choices": ["", "secure", "insecure"]},
            "network": {"type": "str"},
        },
    }
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "registered_tags": {"type": "list", "elements": "str"},
        "exact": {"type": "bool", "default": False},
        "tag_style": {
            "type": "dict",
            "options": {
                "color_map": {"type": "dict"},
                "ordering": {"type": "str", "choices": ["", "config", "alphabetical"]},
                "case_sensitive": {"type": "bool"},
                "shape": {"type": "str", "choices": ["", "full", "circle", "dense", "none"]},
            },
        },
        "user_tag_access": {
            "type": "dict",
            "options": {
                "user_allow": {"type": "str", "choices": ["", "none", "list", "existing", "free"]},
                "user_allow_list": {"type": "list", "elements": "str"},
            },
        },
        "crs": {
            "type": "dict",
            "options": {
                "ha": {"type": "str", "choices": ["", "basic", "static", "dynamic"]},
                "ha_rebalance_on_start": {"type": "bool"},
                "ha_auto_rebalance": {"type": "bool"},
                "ha_auto_rebalance_threshold": {"type": "str"},
                "ha_auto_rebalance_method": {
                    "type": "str",
                    "choices": ["", "bruteforce", "topsis"],
                },
                "ha_auto_rebalance_hold_duration": {"type": "str"},
                "ha_auto_rebalance_margin": {"type": "str"},
            },
        },
        "mac_prefix": {"type": "str"},
        "bwlimit": {
            "type": "dict",
            "options": {
                "clone": {"type": "str"},
                "default": {"type": "str"},
                "migration": {"type": "str"},
                "move": {"type": "str"},
                "restore": {"type": "str"},
            },
        },
        "migration": like_migration,
        "next_id": {
            "type": "dict",
            "options": {"lower": {"type": "str"}, "upper": {"type": "str"}},
        },
        "description": {"type": "str"},
        "console": {"type": "str", "choices": ["", "html5", "vv", "xtermjs"]},
        "keyboard": {
            "type": "str",
            "choices": [
                "",
                *(
                    "de de-ch da en-gb en-us es fi fr fr-be fr-ca fr-ch hu is it "
                    "ja lt mk nl no pl pt pt-br sv sl tr"
                ).split(),
            ],
        },
        "language": {
            "type": "str",
            "choices": [
                "",
                *(
                    "ar ca da de en es eu fa fr hr he it ja ka kr nb nl nn pl "
                    "pt_BR ru sl sv tr ukr zh_CN zh_TW"
                ).split(),
            ],
        },
        "email_from": {"type": "str"},
        "http_proxy": {"type": "str"},
        "max_workers": {"type": "int"},
        "fencing": {"type": "str", "choices": ["", "watchdog", "hardware", "both"]},
        "ha": {
            "type": "dict",
            "options": {
                "shutdown_policy": {
                    "type": "str",
                    "choices": ["", "freeze", "failover", "conditional", "migrate"],
                }
            },
        },
        "consent_text": {"type": "str"},
        "notify": {
            "type": "dict",
            "options": {
                "fencing": {"type": "str", "choices": ["", "always", "never"]},
                "package_updates": {"type": "str", "choices": ["", "auto", "always", "never"]},
                "replication": {"type": "str", "choices": ["", "always", "never"]},
                "target_fencing": {"type": "str"},
                "target_package_updates": {"type": "str"},
                "target_replication": {"type": "str"},
            },
        },
        "replication": like_migration,
        "location": {
            "type": "dict",
            "options": {
                "latitude": {"type": "str"},
                "longitude": {"type": "str"},
                "name": {"type": "str"},
            },
        },
        "webauthn": {
            "type": "dict",
            "options": {
                "rp": {"type": "str"},
                "origin": {"type": "str"},
                "id": {"type": "str"},
                "allow_subdomains": {"type": "bool"},
            },
        },
        "u2f": {"type": "dict", "options": {"appid": {"type": "str"}, "origin": {"type": "str"}}},
    }
