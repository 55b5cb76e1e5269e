# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the remotes of a Proxmox Datacenter Manager as sites.

Its API has the names, addresses and types of remotes, and never their secrets
(proxmox-datacenter-manager: server/src/api/remotes/mod.rs, list_remotes).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..api.answers.forms import ObjectForm, WrongForm, rows, text
from ..api.client import Client
from ..api.endpoint import parse_endpoint, parse_fingerprint
from ..api.settings import ALIASES, PDM, ConnectionSettings, resolve
from ..core.arguments.options import did_you_mean
from ..core.errors import ApiError, ConfigurationError
from ..core.propstring import sub_keys

_PORT = 8443  # lib/pdm-buildcfg/src/lib.rs, PDM_PORT
_KEYS = frozenset(
    "host port token_id token_secret fingerprint ca_path validate_certs timeout".split()
)
_TRUST = {"fingerprint", "ca_path", "ca_bundle", "validate_certs"}
# lib/pdm-api-types/src/remotes.rs: Remote, and NodeUrl with the default key hostname.
_REMOTES = rows(ObjectForm({"id": text, "type": text, "nodes": rows(text)}, {}))
_HOST = {"host", *(alias for alias, name in ALIASES.items() if name == "host")}
_SECONDS = 60.0
_known: dict[ConnectionSettings, tuple[float, dict[str, list[str]]]] = {}


def sites_with_remotes(given: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    """Return the sites of a file with C(sites_from): each remote that is a Proxmox VE, with the keys of
    the site of its name, and sites with a host. Raises FleetError.
    """
    if given["sites_from"] != "pdm":
        raise _wrong(path, f"sites_from is {given['sites_from']}", "Write pdm, or leave it out")
    hosts = _hosts(_connection(given.get("pdm"), path))
    own = _by_name(given.get("sites") or {}, path)
    with_host = {name for name, site in own.items() if _HOST & site.keys()}
    for name in sorted(own.keys() - hosts.keys() - with_host):
        near = did_you_mean(name, hosts)
        answer = f"site {name} has no host, and is none of the remotes {', '.join(hosts)}{near}"
        raise _wrong(path, answer, "Correct the name, or set host")
    found = {name: {"name": name, **own.get(name, {})} for name in {**hosts, **own}}
    for name in hosts.keys() - with_host:
        found[name] = {**_place(hosts[name], found[name]), **found[name]}
    return list(found.values())


def _place(nodes: list[str], site: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hosts of a site, with their fingerprints unless the site has a trust of its own."""
    servers = [sub_keys(node, "hostname") for node in nodes]
    if _TRUST & site.keys():
        servers = [{"hostname": server.get("hostname", "")} for server in servers]
    first, *others = servers
    hosts = [",".join(f"{key}={value}" for key, value in server.items()) for server in others]
    return {
        "host": first.get("hostname"),
        "fingerprint": first.get("fingerprint"),
        "other_hosts": hosts or None,
    }


def _by_name(sites: Any, path: str) -> dict[str, dict[str, Any]]:
    """Return the sites by name from a list or a dictionary. Raises ConfigurationError."""
    try:
        if not isinstance(sites, Mapping):
            sites = {site["name"]: site for site in sites}
        return {str(name): dict(site or {}) for name, site in sites.items()}
    except (TypeError, ValueError, KeyError):
        raise _wrong(path, "sites is not a list of sites", "Give each site a name") from None


def _connection(given: Any, path: str) -> ConnectionSettings:
    """Return the connection to the manager; the environment is about Proxmox VE, so it is not used."""
    options = dict(given) if isinstance(given, Mapping) else {}
    unknown = sorted(options.keys() - _KEYS)
    if unknown or not {"host", "token_id", "token_secret"} <= options.keys():
        answer = f"pdm has the unknown key {unknown[0]}" if unknown else "pdm has no login"
        raise _wrong(path, answer, "Give pdm a host, token_id and token_secret")
    endpoint = parse_endpoint(str(options["host"]), options.pop("port", _PORT))
    fingerprint = parse_fingerprint(str(options.pop("fingerprint", "")))
    connection = resolve({**options, "host": str(endpoint)}, {})
    return replace(connection, product=PDM, fingerprint=fingerprint)


def _hosts(connection: ConnectionSettings) -> dict[str, list[str]]:
    """Return the nodes of each remote by name, the first one first; one request in a minute."""
    now = time.monotonic()
    read_at, hosts = _known.get(connection, (now - _SECONDS, {}))
    if now - read_at >= _SECONDS:
        with Client(connection) as client:
            attempted = f"Could not read the remotes of {connection.endpoint}"
            answer = client.get("remotes", "remote", attempted=attempted)
        try:
            found = {row["id"]: row for row in _REMOTES(answer) if row["type"] == "pve"}
        except WrongForm as problem:
            raise ApiError(f"{attempted}: {problem}", reason="malformed answer") from None
        hosts = {name: row["nodes"] for name, row in sorted(found.items()) if row["nodes"]}
        _known[connection] = now, hosts
    return hosts


def _wrong(path: str, answer: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(
        f"Could not read the sites file {path}: {answer}", next_step, "malformed sites"
    )
