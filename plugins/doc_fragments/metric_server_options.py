# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules metric_server and metric_server_info.

Written by `make options` from metric_server.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the metric server.
    type: str
    required: true
  state:
    description: V(present) creates the metric server or changes what differs, V(absent) deletes
      it.
    type: str
    choices: [present, absent]
    default: present
  type:
    description: Kind of the server. Required for a new one. It cannot be changed.
    type: str
    choices: [graphite, influxdb, opentelemetry]
  server:
    description: Address or DNS name of the server. Required for a new one. By default, it is
      not changed.
    type: str
  server_port:
    description: Port of the server. Required for a new one. By default, it is not changed.
    type: int
  disable:
    description: Whether the nodes stop sending metrics to it. By default, it is not changed.
    type: bool
  mtu:
    description: MTU for metrics over UDP, V(1500) unless set. Not with V(opentelemetry). By
      default, it is not changed.
    type: int
  timeout_seconds:
    description: Seconds to wait for the server, V(1) unless set. Not with V(opentelemetry).
      By default, it is not changed.
    type: int
  proto:
    description: Protocol of Graphite, V(udp) unless set. By default, it is not changed.
    type: str
    choices: [udp, tcp]
  path:
    description: Root path of the metrics in Graphite, V(proxmox) unless set. An empty text
      restores the default of Proxmox VE. By default, it is not changed.
    type: str
  influxdb_proto:
    description: Protocol of InfluxDB, V(udp) unless set. By default, it is not changed.
    type: str
    choices: [udp, http, https]
  organization:
    description: Organization in InfluxDB, V(proxmox) unless set. An empty text restores the
      default of Proxmox VE. By default, it is not changed.
    type: str
  bucket:
    description: Bucket or database in InfluxDB, V(proxmox) unless set. An empty text restores
      the default of Proxmox VE. By default, it is not changed.
    type: str
  api_path_prefix:
    description: Path before the API of InfluxDB, if a proxy adds one. An empty text removes
      it. By default, it is not changed.
    type: str
  max_body_size:
    description: Most bytes in a request to InfluxDB, V(25000000) unless set. By default, it
      is not changed.
    type: int
  verify_certificate:
    description: Whether the certificate of InfluxDB is verified, V(true) unless set. By default,
      it is not changed.
    type: bool
  token:
    description: Token of InfluxDB. It is never returned.
    type: str
  otel_protocol:
    description: Protocol of OpenTelemetry, V(https) unless set. By default, it is not changed.
    type: str
    choices: [http, https]
  otel_path:
    description: Path of OpenTelemetry, V(/v1/metrics) unless set. An empty text restores the
      default of Proxmox VE. By default, it is not changed.
    type: str
  otel_timeout_seconds:
    description: Seconds to wait for OpenTelemetry, V(5) unless set. By default, it is not changed.
    type: int
  otel_max_body_size:
    description: Most bytes in a request to OpenTelemetry, V(10000000) unless set. By default,
      it is not changed.
    type: int
  otel_compression:
    description: Compression for OpenTelemetry, V(gzip) unless set. By default, it is not changed.
    type: str
    choices: [none, gzip]
  otel_resource_attributes:
    description: Resource attributes for OpenTelemetry, as JSON in base64. An empty text removes
      it. By default, it is not changed.
    type: str
  otel_verify_ssl:
    description: Whether the certificate of OpenTelemetry is verified, V(true) unless set. By
      default, it is not changed.
    type: bool
  otel_headers:
    description: Headers for OpenTelemetry, as JSON in base64. They may contain a token, so
      they are never returned.
    type: str
  update_secrets:
    description: When secrets are written to an existing resource. Proxmox VE never returns
      them, so they cannot be compared. V(on_create) writes them to a new one only, V(always)
      in each run.
    type: str
    choices: [on_create, always]
    default: on_create
"""

    INFO = r"""
options:
  name:
    description: Name of one metric server. By default, all are returned.
    type: str
"""
