# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from metric_server.yml: do not edit.
"""The options of modules metric_server and metric_server_info."""

from ..form import Spec


def metric_server_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "type": {"type": "str", "choices": ["graphite", "influxdb", "opentelemetry"]},
        "server": {"type": "str"},
        "server_port": {"type": "int"},
        "disable": {"type": "bool"},
        "mtu": {"type": "int"},
        "timeout_seconds": {"type": "int"},
        "proto": {"type": "str", "choices": ["udp", "tcp"]},
        "path": {"type": "str"},
        "influxdb_proto": {"type": "str", "choices": ["udp", "http", "https"]},
        "organization": {"type": "str"},
        "bucket": {"type": "str"},
        "api_path_prefix": {"type": "str"},
        "max_body_size": {"type": "int"},
        "verify_certificate": {"type": "bool"},
        "token": {"type": "str", "no_log": True},
        "otel_protocol": {"type": "str", "choices": ["http", "https"]},
        "otel_path": {"type": "str"},
        "otel_timeout_seconds": {"type": "int"},
        "otel_max_body_size": {"type": "int"},
        "otel_compression": {"type": "str", "choices": ["none", "gzip"]},
        "otel_resource_attributes": {"type": "str"},
        "otel_verify_ssl": {"type": "bool"},
        "otel_headers": {"type": "str", "no_log": True},
        "update_secrets": {
            "type": "str",
            "choices": ["on_create", "always"],
            "default": "on_create",
            "no_log": False,
        },
    }


def metric_server_info_spec() -> Spec:
    return {"name": {"type": "str"}}
