#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from metric_server.yml: do not edit.

DOCUMENTATION = r"""
module: metric_server
short_description: Manage metric servers
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a server to which the nodes of a cluster send metrics.
  - Proxmox VE connects to the server before it stores the definition, unless the server is disabled
    or receives datagrams.
  - OpenTelemetry needs Proxmox VE 9.0 or newer.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on C(/).
options:
  name:
    description: Name of the metric server.
    type: str
    required: true
  state:
    description: V(present) creates the metric server or updates settings that differ, V(absent)
      deletes it.
    type: str
    choices: [present, absent]
    default: present
  type:
    description: Kind of the server. Required for a new one. It cannot be changed.
    type: str
    choices: [graphite, influxdb, opentelemetry]
  server:
    description: Address or DNS name of the server. Required for a new one. By default, it is not
      changed.
    type: str
  server_port:
    description: Port of the server. Required for a new one. By default, it is not changed.
    type: int
  disable:
    description: Whether the nodes do not send metrics to it. By default, it is not changed.
    type: bool
  mtu:
    description: MTU for metrics over UDP. Proxmox VE uses V(1500) if it is unset. Not supported for
      V(opentelemetry). By default, it is not changed.
    type: int
  timeout_seconds:
    description: Seconds to wait for the server. Proxmox VE uses V(1) if it is unset. Not supported
      for V(opentelemetry). By default, it is not changed.
    type: int
  proto:
    description: Protocol of Graphite. Proxmox VE uses V(udp) if it is unset. By default, it is not
      changed.
    type: str
    choices: [udp, tcp]
  path:
    description: Root path of the metrics in Graphite. Proxmox VE uses V(proxmox) if it is unset. An
      empty text restores the default of Proxmox VE. By default, it is not changed.
    type: str
  influxdb_proto:
    description: Protocol of InfluxDB. Proxmox VE uses V(udp) if it is unset. By default, it is not
      changed.
    type: str
    choices: [udp, http, https]
  organization:
    description: Organization in InfluxDB. Proxmox VE uses V(proxmox) if it is unset. An empty text
      restores the default of Proxmox VE. By default, it is not changed.
    type: str
  bucket:
    description: Bucket or database in InfluxDB. Proxmox VE uses V(proxmox) if it is unset. An empty
      text restores the default of Proxmox VE. By default, it is not changed.
    type: str
  api_path_prefix:
    description: Path prefix of the InfluxDB API, if a proxy adds one. An empty text removes it. By
      default, it is not changed.
    type: str
  max_body_size:
    description: Maximum size of a request to InfluxDB in bytes. Proxmox VE uses V(25000000) if it
      is unset. By default, it is not changed.
    type: int
  verify_certificate:
    description: Whether the certificate of InfluxDB is verified. Proxmox VE uses V(true) if it is
      unset. By default, it is not changed.
    type: bool
  token:
    description: Token of InfluxDB. It is never returned.
    type: str
  otel_protocol:
    description: Protocol of OpenTelemetry. Proxmox VE uses V(https) if it is unset. By default, it
      is not changed.
    type: str
    choices: [http, https]
  otel_path:
    description: Path of OpenTelemetry. Proxmox VE uses V(/v1/metrics) if it is unset. An empty text
      restores the default of Proxmox VE. By default, it is not changed.
    type: str
  otel_timeout_seconds:
    description: Seconds to wait for OpenTelemetry. Proxmox VE uses V(5) if it is unset. By default,
      it is not changed.
    type: int
  otel_max_body_size:
    description: Maximum size of a request to OpenTelemetry in bytes. Proxmox VE uses V(10000000) if
      it is unset. By default, it is not changed.
    type: int
  otel_compression:
    description: Compression for OpenTelemetry. Proxmox VE uses V(gzip) if it is unset. By default,
      it is not changed.
    type: str
    choices: [none, gzip]
  otel_resource_attributes:
    description: Resource attributes for OpenTelemetry, as JSON in base64. An empty text removes it.
      By default, it is not changed.
    type: str
  otel_verify_ssl:
    description: Whether the certificate of OpenTelemetry is verified. Proxmox VE uses V(true) if it
      is unset. By default, it is not changed.
    type: bool
  otel_headers:
    description: Headers for OpenTelemetry, as JSON in base64. They may contain a token, so they are
      never returned.
    type: str
  update_secrets:
    description: When secrets are written to an existing resource. Proxmox VE never returns them, so
      they cannot be compared. V(on_create) only writes them to a new one, V(always) writes them in
      each run.
    type: str
    choices: [on_create, always]
    default: on_create
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.metric_server_info}]
"""

EXAMPLES = r"""
- name: Send metrics to Graphite
  pve.fleet.metric_server:
    name: graphite
    type: graphite
    server: 10.99.0.50
    server_port: 2003

- name: Define an InfluxDB server that does not exist yet
  pve.fleet.metric_server:
    name: influx
    type: influxdb
    server: influx.example.com
    server_port: 8086
    influxdb_proto: https
    organization: ops
    bucket: proxmox
    token: "{{ lookup('ansible.builtin.env', 'INFLUX_TOKEN') or 'from a vault' }}"
    disable: true

- name: Write a new token
  pve.fleet.metric_server:
    name: influx
    token: another one
    update_secrets: always

- name: Stop sending metrics to Graphite
  pve.fleet.metric_server:
    name: graphite
    state: absent
"""

RETURN = r"""
metric_server:
  description: The result as it is afterwards, or in check mode as it would be. It is null if it is
    deleted. RV(pve.fleet.metric_server_info#module:metric_servers) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create metric server 'graphite']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: fixed option, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.metric_server import (
    metric_server_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.metric_server import (
    METRIC_SERVER,
)

ENTRY = ModuleEntry(partial(run, METRIC_SERVER), metric_server_spec(), name="metric_server")
main = ENTRY.main

if __name__ == "__main__":
    main()
