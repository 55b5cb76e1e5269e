#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from metrics.yml: do not edit.

DOCUMENTATION = r"""
module: metrics_info
short_description: Gather metrics of clusters for Prometheus
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the metrics of M(pve.fleet.metrics) as data and as text, for example to send them to a
    Pushgateway or to copy them to another host. Counters only include this task.
  - If sites are defined, and neither O(host) nor O(site) is set, all sites are returned.
  - A site or a node that does not answer does not fail the task. Its figures are omitted,
    RV(missing) has the reasons, and warnings are shown.
  - The module sends four requests for each site, and the requests of O(snapshots), O(backups),
    O(volumes) and O(versions).
requirements:
  - prometheus_client
extends_documentation_fragment:
  - pve.fleet.metrics_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
seealso: [{module: pve.fleet.metrics}]
"""

EXAMPLES = r"""
- name: Read the metrics of a cluster, without a request for each VM
  pve.fleet.metrics_info:
    snapshots: false
  register: read

- name: Show which nodes are online
  ansible.builtin.debug:
    msg: "{{ (read.metrics | selectattr('name', 'eq', 'proxmox_node_up') | first).samples }}"
"""

RETURN = r"""
metrics:
  description: The metrics.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Name of the metric., type: str, sample: proxmox_cluster_nodes_available}
    type: {description: 'V(gauge), V(counter) or V(summary).', type: str, sample: gauge}
    help: {description: Description of the metric., type: str, sample: Number of nodes that are
      online.}
    samples: {description: 'Values, each with C(name), which has a suffix in a summary, C(labels)
      and C(value).', type: list, elements: dict, sample: [{name: proxmox_cluster_nodes_available,
      labels: {}, value: 3.0}]}
text:
  description: The metrics in the text format of Prometheus.
  returned: success
  type: str
  sample: '# HELP proxmox_cluster_nodes_available Number of nodes that are online.

    '
complete:
  description: Whether everything could be read.
  returned: success
  type: bool
  sample: false
missing:
  description: Parts that could not be read, as M(pve.fleet.metrics) returns them.
  returned: success
  type: list
  elements: dict
  sample: [{site: '', part: node, subject: pve3, category: NodeUnhealthy, reason: 'Could not read
    node pve3 and the guests on it: the node is offline.'}]
checked:
  description: Time of the query in ISO 8601 format, UTC.
  returned: success
  type: str
  sample: '2026-11-20T20:15:33Z'
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.metrics import (
    metrics_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.exposition import (
    LIBRARY,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.run import (
    run_info,
    run_info_at_sites,
)

ENTRY = ModuleEntry(
    run_info,
    metrics_spec(),
    sites=SiteSupport(run=run_info_at_sites, every=True),
    libraries=(LIBRARY,),
    name="metrics_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
