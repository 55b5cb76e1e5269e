#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from metrics.yml: do not edit.

DOCUMENTATION = r"""
module: metrics
short_description: Write metrics of clusters to a file for Prometheus
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Writes metrics of nodes, VMs, containers and storages, the use and quotas of tenants, and the
    age of the newest snapshot and backup of each guest to a text file, which the textfile collector
    of node_exporter reads. C(docs/metrics.md) lists the metrics.
  - If sites are defined, and neither O(host) nor O(site) is set, the file contains all sites.
  - A site or a node that does not answer does not fail the task. The file marks it as unavailable
    and omits its figures, so a value is never older than the file. RV(missing) has the reasons, and
    warnings are shown.
  - The file is replaced as a whole. Counters in it continue from run to run.
  - The module sends four requests for each site, and the requests of O(snapshots), O(backups),
    O(volumes) and O(versions).
requirements:
  - prometheus_client
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - The diff names the metrics, without their values.
  idempotent:
    support: none
    details:
      - The file contains the time of the query, so it changes in every run.
options:
  path:
    description:
      - Absolute path of the file. It must end in C(.prom), because node_exporter only reads such
        files.
      - A file with lines other than metrics of this collection is not overwritten.
    type: path
    required: true
extends_documentation_fragment: [pve.fleet.metrics_options, pve.fleet.connection,
  pve.fleet.attributes]
seealso: [{module: pve.fleet.metrics_info}, {module: pve.fleet.drift_info}]
"""

EXAMPLES = r"""
- name: Write the metrics of a cluster
  pve.fleet.metrics:
    path: /var/lib/prometheus/node-exporter/proxmox.prom
    quotas:
      acme: {vms: 20, memory: 64G}
  register: metrics

- name: Show what could not be read
  ansible.builtin.debug:
    msg: "{{ metrics.missing | map(attribute='reason') }}"
  when: not metrics.complete
"""

RETURN = r"""
file:
  description: Path of the file.
  returned: success
  type: str
  sample: /var/lib/prometheus/node-exporter/proxmox.prom
families:
  description: Names of the metrics in the file.
  returned: success
  type: list
  elements: str
  sample: [proxmox_cluster_connection_status, proxmox_machines_total]
series:
  description: Number of time series in the file.
  returned: success
  type: int
  sample: 120
complete:
  description: Whether everything could be read.
  returned: success
  type: bool
  sample: false
missing:
  description: Parts that could not be read.
  returned: success
  type: list
  elements: dict
  contains:
    site: {description: 'The site, empty without sites.', type: str, sample: ''}
    part: {description: 'V(site), V(node), V(privileges), V(vms), V(disk), V(snapshots) or
      V(backups).', type: str, sample: node}
    subject: {description: 'The affected node, tenant or VMID, or empty.', type: str, sample: pve3}
    category: {description: 'Category of the error, as in C(error.category).', type: str,
      sample: NodeUnhealthy}
    reason: {description: Why., type: str, sample: 'Could not read node pve3 and the guests on it:
      the node is offline.'}
checked:
  description: Time of the query in ISO 8601 format, UTC.
  returned: success
  type: str
  sample: '2026-11-20T20:15:33Z'
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ConfigurationError, reason: path, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.metrics import metrics_spec
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.exposition import (
    LIBRARY,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.run import (
    run,
    run_at_sites,
)

ENTRY = ModuleEntry(
    run,
    metrics_spec(),
    sites=SiteSupport(run=run_at_sites, every=True),
    libraries=(LIBRARY,),
    name="metrics",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
