# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option that Proxmox VE stores as a property string is compared by its keys.

Proxmox VE prints the keys of some property strings in another order than they were sent
(pve-access-control: API2/Domains.pm; pve-cluster: DataCenterConfig.pm; pve-common: JSONSchema.pm,
print_property_string). Here every property string of a request is sent with its keys in the
opposite order, as another program may have written it: the next run changes nothing.
"""

from __future__ import annotations

import re
from typing import Any
from unittest import mock

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.generated.requests import (
    OTHERS,
    PARAMETERS,
)
from tests.modules.estate_lab import Lab
from tests.modules.test_notations import TASKS
from tests.simulator.schema.named_hashes import HASHES

# Property strings with a single key, without an option, or of an action that nothing stores.
UNUSED = {"acme", "draid-config", "erasure-coding", "ha", "machine"}


def property_strings() -> dict[str, list[Any]]:
    """Return the formats of parameters that are property strings, alone or as items of a list."""
    rules = {name: [rule] for name, rule in PARAMETERS.items()}
    for name, of_paths in OTHERS.items():
        rules.setdefault(name, []).extend(of_paths.values())
    found: dict[str, list[Any]] = {}
    for name, own in rules.items():
        formats = [rule.get("items", rule).get("format") for rule in own]
        strings = [one for one in formats if isinstance(one, dict) or one in HASHES]
        if strings:
            found[name] = strings
    return found


STRINGS = property_strings()
reversed_names: set[str] = set()


def turned(name: str, value: Any) -> Any:
    """Return a property string with its keys in the opposite order, other values unchanged."""
    if isinstance(value, (list, tuple)):
        return [turned(name, item) for item in value]
    name = re.sub("^(acmedomain)[0-9]$", r"\1[n]", name)
    if name not in STRINGS or not isinstance(value, str) or "," not in value:
        return value
    reversed_names.add(name)
    return ",".join(value.split(",")[::-1])


def turning(send: Any) -> Any:
    def write(self: Client, *path: Any, data: Any = None, **more: Any) -> Any:
        sent = {name: turned(name, value) for name, value in (data or {}).items()}
        return send(self, *path, data=sent, **more)

    return write


def test_the_keys_of_a_property_string_have_no_order(unused: Lab) -> None:
    """The list of `STRINGS` is complete: an option for each of them is in a task."""
    differing = {}
    for base, (module, task) in TASKS.items():
        unused.simulator.reset()
        with mock.patch.object(Client, "write", turning(Client.write)):
            first = unused.run(module, **task)
        assert not first.get("failed"), first["msg"]
        again = unused.run(module, **task)
        if again["changed"]:
            differing[base] = again["diff"]
    assert differing == {}
    assert reversed_names == STRINGS.keys() - UNUSED
