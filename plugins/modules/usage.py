#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from usage.yml: do not edit.

DOCUMENTATION = r"""
module: usage
short_description: Meter the use of tenants over all sites
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Takes a sample of the guests, disks and backups of each site, and adds the use since the last
    sample to the files in O(path). With O(month), it returns the use of that month by tenant and
    class, and by node.
  - Creations, removals, moves and resizes between two samples are exact to the second if a task
    shows them. Other use between two samples is returned as uncertain, and what is not known is
    named in C(missing). C(docs/usage.md) lists what is exact.
  - Run it every five minutes. A guest that was created and removed between two samples is named,
    but its size is unknown.
  - If sites are defined, and neither O(host) nor O(site) is set, all sites are metered. A site that
    does not answer does not fail the task. Its use is missing until its next sample, which is
    named.
  - The module sends two requests for each node, one for each storage with disks or backups, on each
    node if it is not shared, and three more for each site.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - The diff has the times of the last samples.
  idempotent:
    support: none
    details:
      - Each run adds a sample.
options:
  path:
    description:
      - Absolute path of the directory with the metered use. It is created if it does not exist,
        with a directory for each site, and in it a file for each day and a file with the last
        sample.
      - Only one task should write to it at a time; a task waits for another task that works on the
        same site.
    type: path
    required: true
  month:
    description: The month whose use is returned, such as V(2026-11), in UTC. By default, no use is
      returned.
    type: str
  classes:
    description:
      - Classes of guests by name, as the variable C(classes) of an estate, each with C(cores),
        C(sockets) and C(memory). The use of a guest is assigned to the class whose cores and memory
        it has; several such classes are joined with V(|).
      - By default, and for guests of another size, the class is empty.
    type: dict
    default: {}
  max_gap:
    description:
      - The longest time in seconds between two samples, from V(60) to V(86400). Use between samples
        that are further apart is missing, and never guessed.
    type: int
    default: 3600
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes]
seealso: [{module: pve.fleet.report_info}, {module: pve.fleet.metrics}]
"""

EXAMPLES = r"""
- name: Take a sample
  pve.fleet.usage:
    path: /var/lib/fleet/usage

- name: Return the use of a month
  pve.fleet.usage:
    path: /var/lib/fleet/usage
    month: 2026-10
    classes:
      small: {cores: 1, memory: 2G}
      large: {cores: 4, memory: 16G}
  register: metered

- name: Show the missing parts
  ansible.builtin.debug:
    msg: "{{ metered.lines }}"
  when: not metered.usage.complete
"""

RETURN = r"""
sites:
  description: The samples.
  returned: success
  type: list
  elements: dict
  contains:
    site: {description: 'The site, empty without sites.', type: str, sample: ''}
    last: {description: 'Time of the earlier sample in ISO 8601 format, UTC. Null without one.',
      type: str, sample: '2026-11-20T20:10:33Z'}
    checked: {description: Time of this sample. Null if the site could not be read., type: str,
      sample: '2026-11-20T20:15:33Z'}
    covered: {description: Whether the use between both is known., type: bool, sample: true}
    guests: {description: 'Number of guests, null if the site could not be read.', type: int,
      sample: 6}
    backups: {description: 'Number of backups, null if the site could not be read.', type: int,
      sample: 12}
    missing: {description: 'The parts between both samples whose use is not known, each with
      C(part), C(subject) and C(reason).', type: list, elements: dict, sample: []}
    reason: {description: 'Why the site could not be read, else null.', type: str, sample: null}
complete:
  description: Whether all sites could be read.
  returned: success
  type: bool
  sample: true
lines:
  description: The sites that could not be read, and the missing parts of the month, in words.
  returned: success
  type: list
  elements: str
  sample: [2026-11 is not over yet]
usage:
  description: The use of the month. C(docs/usage.schema.json) has its JSON Schema. Null without
    O(month).
  returned: success
  type: dict
  contains:
    version: {description: Version of the format., type: int, sample: 1}
    month: {description: The month., type: str, sample: 2026-10}
    start: {description: 'First second of the month in ISO 8601 format, UTC.', type: str,
      sample: '2026-10-01T00:00:00Z'}
    end: {description: First second of the next month., type: str, sample: '2026-11-01T00:00:00Z'}
    closed: {description: Whether the month is over., type: bool, sample: true}
    complete: {description: Whether the month is over and nothing is missing., type: bool,
      sample: true}
    missing:
      description:
        - The parts whose use is not known C(from) a time C(to) another, each with C(site), C(part),
          C(subject), C(reason), and C(days), the whole days.
        - C(part) is V(site), V(guest), V(disks), V(backups) or V(tasks). Without V(tasks), guests
          between two samples are not known.
      type: list
      elements: dict
      sample: []
    tenants:
      description:
        - The use by C(site), C(tenant) and C(class). C(hours) are core hours and GiB hours of
          C(cores), C(memory), C(disk) and C(backup), with three decimals; C(seconds) the exact
          amounts, in core seconds and byte seconds.
        - C(uncertain) are hours by which the use may be higher.
      type: list
      elements: dict
      sample:
        - site: ''
          tenant: acme
          class: small
          hours:
            cores: '744.000'
            memory: '1488.000'
            disk: '14880.000'
            backup: '0.000'
          seconds:
            cores: 2678400
            memory: 5752008278016000
            disk: 57520082780160000
            backup: 0
          uncertain:
            cores: '0.000'
            memory: '0.000'
            disk: '0.000'
            backup: '0.000'
    nodes:
      description: The same use by C(site) and C(node). Backups on shared storages have no node.
      type: list
      elements: dict
      sample:
        - site: ''
          node: pve1
          hours:
            cores: '744.000'
            memory: '1488.000'
            disk: '14880.000'
            backup: '0.000'
          seconds:
            cores: 2678400
            memory: 5752008278016000
            disk: 57520082780160000
            backup: 0
          uncertain:
            cores: '0.000'
            memory: '0.000'
            disk: '0.000'
            backup: '0.000'
    total:
      description: The sum over all tenants, which is the sum over all nodes.
      type: dict
      sample:
        hours:
          cores: '744.000'
          memory: '1488.000'
          disk: '14880.000'
          backup: '0.000'
        seconds:
          cores: 2678400
          memory: 5752008278016000
          disk: 57520082780160000
          backup: 0
        uncertain:
          cores: '0.000'
          memory: '0.000'
          disk: '0.000'
          backup: '0.000'
csv:
  description: The use by tenant and class as CSV, without formulas in cells. Null without O(month).
  returned: success
  type: str
  sample: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.usage import (
    usage_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.usage.run import (
    run,
    run_at_sites,
)

ENTRY = ModuleEntry(
    run, usage_spec(), sites=SiteSupport(run=run_at_sites, every=True), name="usage"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
