# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that select the connection plugin of a guest (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.cluster.tenant import PREFIX
from ..._guests.kinds.words import CT, VIRTUAL_MACHINE
from .hosts import InventoryGuest

PLUGINS = {VIRTUAL_MACHINE: "pve.fleet.agent", CT: "pve.fleet.pct"}
# The options for the address of a cluster and for TLS. The login is not included, because
# `ansible-inventory --list` shows the variables of hosts.
_PLACE = ("host", "port", "validate_certs", "ca_path", "client_cert", "client_key")
_VARIABLE = "ansible_pve_"


def connection_variables(
    guest: InventoryGuest, connection: Mapping[str, Any], prefix: str
) -> dict[str, Any]:
    """Return the connection plugin of a guest with its options, nothing for a node.

    The plugins know VMID, name and node from the variables of the inventory. The tenant is set so
    that a guest is refused if it has been given to another tenant since.
    """
    plugin = PLUGINS.get(guest.kind)
    if plugin is None:
        return {}
    variables: dict[str, Any] = {"ansible_connection": plugin}
    for option, value in _options(guest.site, connection).items():
        variables[f"{_VARIABLE}{option}"] = value
    if guest.tenant:
        variables[f"{_VARIABLE}tenant"] = guest.tenant
    if prefix != PREFIX:
        variables[f"{_VARIABLE}tenant_prefix"] = prefix
    return variables


def _options(site: str, connection: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the connection to a site that the file of the inventory contains.

    The plugins read all others from the environment. A site of a list in that file is passed on as
    its own options, because the plugins do not know the list. A site of another file is passed on
    as its name.
    """
    own = _given(connection, _PLACE)
    if not site:
        return own
    for one in connection.get("sites") or ():
        if str(one.get("name")) == site:
            return {**own, **_given(one, _PLACE)}
    return {**own, **_given(connection, ("sites_file",)), "site": site}


def _given(options: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: options[name] for name in names if options.get(name) not in (None, "")}
