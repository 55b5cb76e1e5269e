#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from metric_server.yml: do not edit.

DOCUMENTATION = r"""
module: metric_server_info
short_description: Gather information about metric servers
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one metric server or all of them, without secrets. For all of them, one request is made
    for the list, and one for each server.
  - The token needs C(Sys.Audit) on C(/).
options:
  name:
    description: Name of one metric server. By default, all are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.metric_server}]
"""

EXAMPLES = r"""
- name: Read all metric servers
  pve.fleet.metric_server_info:
  register: known

- name: List the servers that get metrics
  ansible.builtin.debug:
    msg: "{{ known.metric_servers | rejectattr('disable') | map(attribute='name') }}"
"""

RETURN = r"""
metric_servers:
  description: The metric servers, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: graphite}
    type: {description: Its type., type: str, sample: graphite}
    server: {description: Its address., type: str, sample: 10.99.0.50}
    server_port: {description: Its port., type: int, sample: 2003}
    disable: {description: Whether nothing is sent., type: bool, sample: false}
    mtu: {description: The MTU., type: int, sample: 1500, returned: of Graphite and InfluxDB}
    timeout_seconds: {description: Seconds to wait., type: int, sample: 1, returned: of Graphite and
      InfluxDB}
    proto: {description: The protocol., type: str, sample: udp, returned: of Graphite}
    path: {description: The root path., type: str, sample: proxmox, returned: of Graphite}
    influxdb_proto: {description: The protocol., type: str, returned: of InfluxDB}
    organization: {description: The organization., type: str, returned: of InfluxDB}
    bucket: {description: The bucket., type: str, returned: of InfluxDB}
    api_path_prefix: {description: The path prefix of the API., type: str, returned: of InfluxDB}
    max_body_size: {description: Maximum size of a request in bytes., type: int, returned: of
      InfluxDB}
    verify_certificate: {description: Whether the certificate is verified., type: bool, returned: of
      InfluxDB}
    otel_protocol: {description: The protocol., type: str, returned: of OpenTelemetry}
    otel_path: {description: The path., type: str, returned: of OpenTelemetry}
    otel_timeout_seconds: {description: Seconds to wait., type: int, returned: of OpenTelemetry}
    otel_max_body_size: {description: Maximum size of a request in bytes., type: int, returned: of
      OpenTelemetry}
    otel_compression: {description: The compression., type: str, returned: of OpenTelemetry}
    otel_resource_attributes: {description: The resource attributes., type: str, returned: of
      OpenTelemetry}
    otel_verify_ssl: {description: Whether the certificate is verified., type: bool, returned: of
      OpenTelemetry}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.metric_server import (
    metric_server_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.metric_server import (
    METRIC_SERVER,
)

ENTRY = ModuleEntry(
    partial(run_info, METRIC_SERVER), metric_server_info_spec(), name="metric_server_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
