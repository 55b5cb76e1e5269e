# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies the tables of networks and addresses to guests that come up from replicas (pure).

The NICs of a guest are changed after its configuration was moved, in the run that starts it. A
table could map an address a second time, so the mark of the guest contains a fingerprint of its
NICs after the tables are applied. A guest with these NICs is not changed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....._foundation.core.errors import Conflict
from ....._guests.kinds.kind import Kind
from ...choose import ChosenArchive
from ..desired import DesiredFailover
from ..guest import nameserver_options
from ..mapping import is_nic, mapped_nameservers, mapped_nics, nameservers_in, nic_options

_DIGITS = 16


@dataclass(frozen=True)
class NicChange:
    """The options of module vm or container that change the NICs of a guest, the changes in words,
    and the fingerprint of its NICs after the change.
    """

    options: Mapping[str, Any]
    words: tuple[str, ...]
    after: str


def change_of(desired: DesiredFailover, chosen: ChosenArchive) -> NicChange:
    """Return the change of the NICs. Raises Conflict for an address that is not in the table."""
    nics, problems = mapped_nics(chosen.kind, chosen.config, desired.nics)
    if problems:
        raise _refused("; ".join(problems), "Complete the table")
    changed = [nic for nic in nics if nic.keys() - {"name", "mac"}]
    before = _values(chosen.kind, chosen.config)
    after = dict(before)
    for nic in changed:
        after |= {f"{nic['name']} {key}": nic[key] for key in nic.keys() - {"name", "mac"}}
    servers = nameserver_options(desired, chosen)
    if servers:
        mapped = mapped_nameservers(chosen.config, desired.nics.addresses)
        after["nameservers"] = " ".join(mapped)
    options = {**({"nics": changed} if changed else {}), **servers}
    words = [
        f"{key} {before[key]} becomes {value}"
        for key, value in sorted(after.items())
        if before[key] != value
    ]
    return NicChange(options, tuple(words), _fingerprint(after))


def remaining_options(
    desired: DesiredFailover, chosen: ChosenArchive, expected: str
) -> Mapping[str, Any]:
    """Return the options that no earlier run has changed. `expected` is the fingerprint in the mark
    of the guest. Raises Conflict if its NICs or the tables have changed since the mark was written.
    """
    if _fingerprint(_values(chosen.kind, chosen.config)) == expected:
        return {}
    change = change_of(desired, chosen)
    if change.after != expected:
        raise _refused(
            "its NICs, networks or addresses have changed since its job was marked",
            "Change its NICs with module vm or container, start it, and run this again",
        )
    return change.options


def _values(kind: Kind, config: Mapping[str, str]) -> dict[str, str]:
    """Return the bridges, addresses and name servers of a guest."""
    found = {"nameservers": " ".join(nameservers_in(config))}
    for key in filter(is_nic, config):
        options = nic_options(kind, config, key)
        found |= {f"{key} {option}": value for option, value in options.items()}
    return found


def _fingerprint(values: Mapping[str, str]) -> str:
    text = repr(sorted(values.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _refused(why: str, step: str) -> Conflict:
    return Conflict(
        attempted="its NICs cannot be mapped", answer=why, next_step=step, reason="nics"
    )
