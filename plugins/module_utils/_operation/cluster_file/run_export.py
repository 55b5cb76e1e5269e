# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module cluster_export_info."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.api.root import ROOT
from ..._foundation.core.errors import AuthenticationError, FleetError, NotSupported
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.result import Result
from ..._foundation.core.texts.checksum import with_checksum
from ..._foundation.core.texts.yaml_text import lines_of, one_line
from ..._foundation.resource.run import list_values, read_values
from ..._infrastructure.datacenter.table import CLUSTER_OPTIONS
from ..._infrastructure.node.apt.run import run_info as list_repositories
from ..._infrastructure.node.identity.acme_account import ACME_ACCOUNT
from ..._infrastructure.node.identity.certificate import NODE_CERTIFICATE
from ..._infrastructure.node.identity.subscription import SUBSCRIPTION
from ..._infrastructure.node.network.run import run_info as list_interfaces
from ..._infrastructure.node.settings.run import run_info as read_settings
from ..._infrastructure.storage.ceph.pool import POOL, on_node
from ..._infrastructure.storage.ceph.run import node_with_ceph, require_ceph
from .declared import ExportedSection, declared, exported_rows, without_default
from .export_networks import export_firewall, export_sdn
from .generated.sections import SECTIONS
from .sections import Section

_OPTIONS = next(section for section in SECTIONS if section.name == "options")
_ONCE = frozenset(section.name for section in SECTIONS if not section.keys)
_HEAD = """\
---
# The configuration of a cluster that pve.fleet.export wrote. Edit it, keep it in git, and run
#
#   ansible-playbook pve.fleet.cluster -e @cluster.yml
#
# Another export replaces this file only if it was not edited.
"""
_SECRETS = "# Proxmox VE does not return these secrets:"
_NOTES = "# Not exported, because it is not in force yet:"
_MISSING = "# NOT COMPLETE, and not to be used with cluster_exact:"
VARIABLE = "cluster_{}"


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the configuration of a cluster as a cluster file. Nothing is written."""
    wanted = params.get("sections")
    sections = [one for one in SECTIONS if wanted is None or one.name in wanted]
    nodes = [str(row["node"]) for row in client.get("nodes") or [] if row.get("status") == "online"]
    read = partial(_read, sorted(nodes), client)
    found = dict(zip(sections, side_by_side(read, sections), strict=True))
    missing = [
        {"section": section.name, "reason": one.message}
        for section, one in found.items()
        if isinstance(one, FleetError)
    ]
    exported = {
        section.name: one for section, one in found.items() if isinstance(one, ExportedSection)
    }
    # The value of a section without keys is its only item.
    filled = {
        name: one.items[0] if name in _ONCE else one.items
        for name, one in exported.items()
        if one.items
    }
    secrets = {name: one.secrets for name, one in exported.items()}
    notes = [note for one in exported.values() for note in one.notes]
    texts = [f"{one['section']}: {one['reason']}" for one in missing]
    values = {
        "cluster": {VARIABLE.format(name): value for name, value in filled.items()},
        "text": text_of(filled, secrets, texts, notes),
        "complete": not missing,
        "missing": missing,
        "secrets": [
            {"section": name, "secret": text} for name, texts in secrets.items() for text in texts
        ],
    }
    return Result(False, values)


def _read(nodes: Sequence[str], client: Client, section: Section) -> ExportedSection | FleetError:
    """Return a section, or the error if it cannot be read. Raises AuthenticationError.

    A section that this server does not support is empty, for example HA rules on Proxmox VE 8.
    """
    try:
        if section.table is not None:
            found = [
                pair
                for group in section.groups
                for pair in list_values(section.table, client, group)
            ]
            return exported_rows(section, section.table, found)
        if section is _OPTIONS:
            values = read_values(CLUSTER_OPTIONS, client, {}) or {}
            options = declared(section, CLUSTER_OPTIONS, {}, values)
            return ExportedSection([options] if options else [], [])
        return _READERS[section.name](nodes, client)
    except AuthenticationError:
        raise
    except NotSupported:
        return ExportedSection([], [])
    except FleetError as error:
        return error


def _settings(nodes: Sequence[str], client: Client) -> ExportedSection:
    found: list[dict[str, Any]] = []
    for node in nodes:
        settings = read_settings({"node": node}, client).values["settings"]
        options = without_default(settings, {"startall_onboot_delay": 0, "ballooning_target": 80})
        found.append({"node": node, **(options or {})})
    return ExportedSection(found, [])


def _networks(nodes: Sequence[str], client: Client) -> ExportedSection:
    found: list[dict[str, Any]] = []
    for node in nodes:
        interfaces = list_interfaces({"node": node}, client).values["interfaces"]
        found.append({"node": node, "interfaces": interfaces})
    return ExportedSection(found, [])


def _repositories(nodes: Sequence[str], client: Client) -> ExportedSection:
    found: list[dict[str, Any]] = []
    for node in nodes:
        for one in list_repositories({"node": node}, client).values["repositories"]:
            if one["state"] is not None:
                found.append({"node": node, "handle": one["handle"], "state": one["state"]})
    return ExportedSection(found, [])


def _certificates(nodes: Sequence[str], client: Client) -> ExportedSection:
    """Return the uploaded certificates; a node with ACME settings orders its certificate itself."""
    items: list[dict[str, Any]] = []
    secrets: list[str] = []
    for node in nodes:
        found = read_values(NODE_CERTIFICATE, client, {"node": node})
        if found is None:
            continue
        if read_settings({"node": node}, client).values["settings"]["acme"] is None:
            items.append({"node": node, "certificates": found["certificates"].text})
            secrets.append(f"{node}: private_key")
    return ExportedSection(items, secrets)


def _subscriptions(nodes: Sequence[str], client: Client) -> ExportedSection:
    names = [node for node in nodes if read_values(SUBSCRIPTION, client, {"node": node})]
    return ExportedSection([{"node": node} for node in names], [f"{node}: key" for node in names])


def _acme_accounts(_nodes: Sequence[str], client: Client) -> ExportedSection:
    """Return the accounts of ACME if the login can read them, otherwise only notes about them."""
    if client.login == ROOT:
        found = list_values(ACME_ACCOUNT, client, {})
        return exported_rows(_section("acme_accounts"), ACME_ACCOUNT, found)
    rows = client.get(*ACME_ACCOUNT.list_call.path) or []
    return ExportedSection([], [f"{row['name']}: only {ROOT} can read the account" for row in rows])


def _section(name: str) -> Section:
    (found,) = (one for one in SECTIONS if one.name == name)
    return found


def _ceph_pools(nodes: Sequence[str], client: Client) -> ExportedSection:
    """Return the replicated pools, except pools of Ceph itself, whose names begin with a dot.

    Proxmox VE does not return the profile of an erasure-coded pool.
    """
    table = on_node(POOL, require_ceph(node_with_ceph(nodes, client)))
    found = [
        declared(_section("ceph_pools"), table, keys, values)
        for keys, values in list_values(table, client, {})
        if values["type"] == "replicated" and not keys["name"].startswith(".")
    ]
    return ExportedSection(found, [])


def _volumes(_nodes: Sequence[str], _client: Client) -> ExportedSection:
    """Return no volumes: Proxmox VE does not know the source of their content."""
    return ExportedSection([], [])


_READERS: Mapping[str, Callable[[Sequence[str], Client], ExportedSection]] = {
    "nodes": _settings,
    "networks": _networks,
    "apt_repositories": _repositories,
    "sdn": export_sdn,
    "firewall": export_firewall,
    "certificates": _certificates,
    "subscriptions": _subscriptions,
    "acme_accounts": _acme_accounts,
    "ceph_pools": _ceph_pools,
    "volumes": _volumes,
}


def text_of(
    sections: Mapping[str, Any],
    secrets: Mapping[str, Sequence[str]],
    missing: Sequence[str],
    notes: Sequence[str] = (),
) -> str:
    """Return the text of a cluster file. The same cluster has the same text in each run."""
    lines = [*_comment(_MISSING, missing), *_comment(_NOTES, notes)]
    for name, value in sections.items():
        lines.append("")
        lines += _comment(_SECRETS, secrets.get(name, ()))
        lines += lines_of({VARIABLE.format(name): value})
    rest = "\n".join([*lines, ""])
    return with_checksum(f"{_HEAD}{rest}", _HEAD)


def _comment(head: str, texts: Sequence[str]) -> list[str]:
    return [head, *(f"# - {one_line(text)}" for text in texts)] if texts else []
