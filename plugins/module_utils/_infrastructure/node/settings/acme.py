# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ACME settings of a node: its account and its domains (pure).

Proxmox VE stores a domain in C(acme) or in one of C(acmedomain0) to C(acmedomain5) (pve-manager:
PVE/NodeConfig.pm, get_acme_conf).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.core import propstring, validate

STANDALONE = "standalone"
DEFAULT_ACCOUNT = "default"
KEYS = tuple(f"acmedomain{number}" for number in range(6))
_PARTS: propstring.Format = {"account": {}, "domains": {}}
_DOMAIN: propstring.Format = {"domain": {"default_key": True}, "plugin": {}, "alias": {}}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9][a-z0-9_-]*)+")
_ALIAS = re.compile(r"[a-z0-9_][a-z0-9_-]*(?:\.[a-z0-9_][a-z0-9_-]*)+")


@dataclass(frozen=True)
class AcmeSettings:
    """The account, and the plugin and the alias of each domain."""

    account: str = DEFAULT_ACCOUNT
    domains: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any] | None:
        """Return the settings as a task declares them, None without domains."""
        if not self.domains:
            return None
        listed: list[dict[str, str]] = []
        for domain, (plugin, alias) in sorted(self.domains.items()):
            item = {"domain": domain, "plugin": plugin}
            listed.append({**item, "alias": alias} if alias else item)
        return {"account": self.account, "domains": listed}

    def config(self) -> dict[str, str]:
        """Return the settings as Proxmox VE stores them, each domain in a key of its own."""
        if not self.domains:
            return {}
        found = {"acme": propstring.render({"account": self.account}, _PARTS)}
        for key, (domain, (plugin, alias)) in zip(KEYS, sorted(self.domains.items()), strict=False):
            values = {"domain": domain, "plugin": plugin}
            if alias:
                values["alias"] = alias
            found[key] = propstring.render(values, _DOMAIN)
        return found


def read_acme(given: Mapping[str, Any] | None) -> AcmeSettings | None:
    """Return the settings of a task, None if it does not set them. Raises ValidationFailed."""
    if given is None:
        return None
    domains: dict[str, tuple[str, str]] = {}
    for number, item in enumerate(given.get("domains") or ()):
        what = f"acme.domains[{number}]"
        domain = _matching(_NAME, item["domain"], f"{what}.domain")
        if domain in domains:
            raise validate.refused(f"{what}.domain", domain, "is listed twice", "List it once")
        alias = item.get("alias") or ""
        if alias:
            alias = _matching(_ALIAS, alias, f"{what}.alias")
        domains[domain] = (item.get("plugin") or STANDALONE, alias)
    if len(domains) > len(KEYS):
        step = f"List {len(KEYS)} at most"
        raise validate.refused("acme.domains", sorted(domains), "are too many", step)
    account = validate.config_id(given.get("account") or DEFAULT_ACCOUNT, "acme.account")
    return AcmeSettings(account, domains)


def _matching(pattern: re.Pattern[str], value: str, what: str) -> str:
    text = str(value).lower()
    if not pattern.fullmatch(text):
        raise validate.refused(what, value, "is not a domain", "Write it as pve1.example.com")
    return text


def acme_of(config: Mapping[str, Any]) -> AcmeSettings:
    """Return the ACME settings in a node's configuration."""
    parts = _parsed(config, "acme", _PARTS)
    domains: dict[str, tuple[str, str]] = {}
    for domain in filter(None, parts.get("domains", "").lower().split(";")):
        domains[domain] = (STANDALONE, "")
    for key in KEYS:
        values = _parsed(config, key, _DOMAIN)
        if values:
            plugin = values.get("plugin") or STANDALONE
            domains[values.get("domain", "").lower()] = (plugin, values.get("alias", ""))
    return AcmeSettings(parts.get("account") or DEFAULT_ACCOUNT, domains)


def _parsed(config: Mapping[str, Any], key: str, form: propstring.Format) -> dict[str, str]:
    text = str(config.get(key) or "")
    return propstring.parse(text, form, what=key) if text else {}


def with_acme(config: Mapping[str, Any], desired: AcmeSettings | None) -> dict[str, Any]:
    """Return a node's configuration with these settings, unchanged if it already has them."""
    if desired is None or acme_of(config) == desired:
        return dict(config)
    rest = {key: value for key, value in config.items() if key not in ("acme", *KEYS)}
    return {**rest, **desired.config()}
