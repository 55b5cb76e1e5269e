#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from notify_endpoint.yml: do not edit.

DOCUMENTATION = r"""
module: notification_endpoint_info
short_description: Gather information about targets of notifications
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the endpoints of a type or of all types, without secrets, with one request for each
    type.
  - The token needs C(Mapping.Audit) on C(/mapping/notifications).
options:
  type:
    description: Kind of the endpoints. By default, all kinds are returned.
    type: str
    choices: [gotify, sendmail, smtp, webhook]
  name:
    description: Name of one endpoint. By default, all are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.notification_endpoint}]
"""

EXAMPLES = r"""
- name: Read the endpoints of all types
  pve.fleet.notification_endpoint_info:
  register: known
"""

RETURN = r"""
notification_endpoints:
  description: The endpoints, sorted by type and name.
  returned: success
  type: list
  elements: dict
  contains:
    type: {description: Its type., type: str, sample: smtp}
    name: {description: Its name., type: str, sample: company-mail}
    comment: {description: Its comment., type: str, sample: ''}
    disable: {description: Whether no messages are sent to it., type: bool, sample: false}
    mailto: {description: Mail addresses., type: list, elements: str, sample: [ops@example.com],
      returned: of type sendmail and smtp}
    server: {description: Its server., type: str, sample: mail.example.com, returned: of type smtp
      and gotify}
    webhook_url: {description: Its URL., type: str, returned: of type webhook}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.notify_endpoint import (
    notification_endpoint_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.notification import (
    run_endpoint_info,
)

ENTRY = ModuleEntry(
    run_endpoint_info, notification_endpoint_info_spec(), name="notification_endpoint_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
