# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options, sites and environment, read into one connection (pure).

A value comes from the task's own options, else from the chosen site, else from the environment. An empty value means
unset at every level. This is the only place that names environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import ConfigurationError
from .endpoint import Endpoint, parse_endpoint

# Option -> names in the environment; the first that is set and not empty counts.
ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "host": ("PROXMOX_HOST", "PROXMOX_URL", "PVE_ENDPOINT"),
    "port": ("PROXMOX_PORT",),
    "user": ("PROXMOX_USER", "PVE_USERNAME"),
    "password": ("PROXMOX_PASSWORD", "PVE_PASSWORD"),
    "token_id": ("PROXMOX_TOKEN_ID", "PVE_TOKEN_ID"),
    "token_secret": ("PROXMOX_TOKEN_SECRET", "PVE_TOKEN_SECRET"),
    "validate_certs": ("PROXMOX_VALIDATE_CERTS", "PVE_INSECURE_SKIP_VERIFY"),
    "ca_path": ("PROXMOX_CA_PATH", "PVE_CA_BUNDLE"),
    "client_cert": ("PROXMOX_CLIENT_CERT",),
    "client_key": ("PROXMOX_CLIENT_KEY",),
    "timeout": ("PROXMOX_TIMEOUT",),
    "retries": ("PROXMOX_RETRIES",),
    "lock_timeout": ("PROXMOX_LOCK_TIMEOUT",),
    "site": ("PROXMOX_SITE",),
    "sites_file": ("PROXMOX_SITES_FILE",),
    "node": ("PROXMOX_NODE", "PVE_NODE_SELECTOR"),
}
# Variables that say the opposite of their option.
INVERTED = ("PVE_INSECURE_SKIP_VERIFY",)
# Other spellings, as the argument specification has them; a site may use them too.
ALIASES: Mapping[str, str] = {
    "api_host": "host",
    "endpoint": "host",
    "url": "host",
    "api_user": "user",
    "api_password": "password",
    "api_token_id": "token_id",
    "api_token_secret": "token_secret",
    "ca_bundle": "ca_path",
    "default_node": "node",
}
DEFAULTS: Mapping[str, Any] = {"validate_certs": True, "timeout": 30.0, "retries": 3, "lock_timeout": 60.0}
CONNECT_TIMEOUT = 10.0

_SITE_KEYS = frozenset(ENVIRONMENT) - {"site", "sites_file"} | {"name", "default"}
_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})
_FALSE = frozenset({"0", "false", "no", "off", "n", "f"})
_USER = re.compile(r"^[^\s:/@]+(?:@[^\s:/@]+)*@[A-Za-z][A-Za-z0-9.\-_]+$")
_TOKEN_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9.\-_]+$")
_VISIBLE = re.compile(r"^[\x21-\x7e]+$")

ReadFile = Callable[[str], Any]


@dataclass(frozen=True)
class Connection:
    """Everything a session needs. Secrets are not part of its text form.

    `token_id` is complete (`user@realm!id`), `ca` is a path or PEM text, times are seconds, `retries` counts tries.
    """

    endpoint: Endpoint
    user: str = ""
    password: str = field(default="", repr=False)
    token_id: str = ""
    token_secret: str = field(default="", repr=False)
    validate_certs: bool = True
    ca: str = field(default="", repr=False)
    client_cert: str = ""
    client_key: str = ""
    timeout: float = 30.0
    connect_timeout: float = CONNECT_TIMEOUT
    retries: int = 3
    lock_timeout: float = 60.0
    site: str = ""
    node: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return tuple(secret for secret in (self.password, self.token_secret) if secret)


def resolve(options: Mapping[str, Any], environ: Mapping[str, str], read_file: ReadFile | None = None) -> Connection:
    """Return the connection that a task's options, a site and the environment describe together.

    `read_file` returns the data of a sites file. Raises ConfigurationError, with a text of its own for a missing or
    malformed endpoint, missing credentials, an unknown site and a malformed value.
    """
    own = _Layer("option", _known(options))
    site = _chosen_site(own, _Layer("", {}, environ), read_file)
    layers = [own, _Layer(f"site {site['name']}: option", site) if site else _Layer("", {}), _Layer("", {}, environ)]
    endpoint = _endpoint(layers)
    credentials = _credentials(layers, endpoint)
    client_cert, _unused = _find(layers, "client_cert")
    client_key, _unused = _find(layers, "client_key")
    if client_key and not client_cert:
        raise _wrong("client_key is given without client_cert", "Give client_cert too", "client certificate")
    timeout = _number(layers, "timeout", 0.1, 86400.0)
    return Connection(
        endpoint=endpoint,
        validate_certs=_boolean(layers, "validate_certs"),
        ca=_text(layers, "ca_path"),
        client_cert=str(client_cert or ""),
        client_key=str(client_key or ""),
        timeout=timeout,
        connect_timeout=min(CONNECT_TIMEOUT, timeout),
        retries=int(_number(layers, "retries", 1, 100)),
        lock_timeout=_number(layers, "lock_timeout", 0.0, 86400.0),
        site=str(site["name"]) if site else "",
        node=_text(layers, "node"),
        **credentials,
    )


def site_names(options: Mapping[str, Any], environ: Mapping[str, str], read_file: ReadFile | None = None) -> list[str]:
    """Return the names of all sites that options and environment define, in their order."""
    return [str(site["name"]) for site in _sites(_Layer("option", _known(options)), _Layer("", {}, environ), read_file)]


class _Layer:
    """One source of values, with the name under which a person knows it."""

    def __init__(self, label: str, values: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> None:
        self._label = label
        self._values = values
        self._environ = environ

    def get(self, option: str) -> tuple[Any, str]:
        """Return the value and where it stands, or (None, "")."""
        if self._environ is None:
            value = self._values.get(option)
            return (None, "") if _is_unset(value) else (value, f"{self._label} {option}")
        for name in ENVIRONMENT.get(option, ()):
            value = self._environ.get(name)
            if not _is_unset(value):
                return value, name
        return None, ""


def _is_unset(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or value == [] or value == {}


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options under their main names; a main name that is set wins over its aliases."""
    known = {key: value for key, value in options.items() if key not in ALIASES}
    for alias, name in ALIASES.items():
        # A module's `node` is where a VM shall be, not a matter of the connection.
        if alias in options and name != "node" and _is_unset(known.get(name)):
            known[name] = options[alias]
    known.pop("node", None)
    return known


def _find(layers: Sequence[_Layer], option: str) -> tuple[Any, str]:
    for layer in layers:
        value, where = layer.get(option)
        if where:
            return value, where
    return None, ""


def _text(layers: Sequence[_Layer], option: str) -> str:
    value, _unused = _find(layers, option)
    return "" if value is None else str(value).strip()


def _boolean(layers: Sequence[_Layer], option: str) -> bool:
    value, where = _find(layers, option)
    if not where:
        return bool(DEFAULTS[option])
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in _TRUE | _FALSE:
        raise _wrong(f"{where} is {word!r}, which is neither true nor false", "Write true or false", "malformed value")
    return (word in _TRUE) != (where in INVERTED)


def _number(layers: Sequence[_Layer], option: str, least: float, most: float) -> float:
    value, where = _find(layers, option)
    if not where:
        return float(DEFAULTS[option])
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not least <= number <= most:
        raise _wrong(
            f"{where} is {value!r}, which is no number from {least:g} to {most:g}", "Correct it", "malformed value"
        )
    return number


def _endpoint(layers: Sequence[_Layer]) -> Endpoint:
    host, where = _find(layers, "host")
    if not where:
        raise ConfigurationError(
            attempted="Could not find out where Proxmox VE is",
            answer="no endpoint is given",
            next_step="Set the option host, or PROXMOX_HOST in the environment, or name a site",
            reason="missing endpoint",
            dispatched=False,
        )
    # The port in the environment belongs to the host in the environment or in the task, not to that of a site.
    site = layers[1]
    port, _unused = _find(layers[:2] if where == site.get("host")[1] else layers, "port")
    try:
        return parse_endpoint(str(host), port)
    except ConfigurationError as error:
        raise error.on(answer=f"{error.answer} (from {where})") from None


def _credentials(layers: Sequence[_Layer], endpoint: Endpoint) -> dict[str, str]:
    """Return user, password, token_id and token_secret; a token wins, unless a nearer source names a password."""
    user = _text(layers, "user")
    token_id, token_secret = _text(layers, "token_id"), _text(layers, "token_secret")
    raw_password, _unused = _find(layers, "password")
    password = "" if raw_password is None else str(raw_password)
    attempted = f"Could not log in to {endpoint}"
    for layer in layers:
        if layer.get("token_id")[1] or layer.get("token_secret")[1]:
            password = "" if token_id and token_secret else password
            break
        if layer.get("password")[1]:
            token_id = token_secret = ""
            break
    if token_id or token_secret:
        return _token(attempted, user, token_id, token_secret)
    if not password:
        raise ConfigurationError(
            attempted=attempted,
            answer="no credentials are given",
            next_step="Set token_id and token_secret, or user and password (or PROXMOX_TOKEN_ID and "
            "PROXMOX_TOKEN_SECRET, or PROXMOX_USER and PROXMOX_PASSWORD, in the environment)",
            reason="no credentials",
            dispatched=False,
        )
    _check_user(attempted, user, "the password")
    return {"user": user, "password": password}


def _token(attempted: str, user: str, token_id: str, token_secret: str) -> dict[str, str]:
    missing = "token_secret" if token_id else "token_id"
    if not (token_id and token_secret):
        raise _wrong(
            f"{'token_id' if token_id else 'token_secret'} is given without {missing}",
            f"Set {missing} (or PROXMOX_{missing.upper()} in the environment)",
            "no credentials",
            attempted,
        )
    owner, mark, name = token_id.partition("!")
    if not mark:
        owner, name = user, token_id
    if not owner:
        raise _wrong(
            f"the token {name!r} has no user",
            "Write token_id as user@realm!id, or set user",
            "no credentials",
            attempted,
        )
    _check_user(attempted, owner, "the token")
    if not _TOKEN_NAME.match(name):
        raise _wrong(
            f"{name!r} is no name of a token", "Write token_id as user@realm!id", "malformed credentials", attempted
        )
    if not _VISIBLE.match(token_secret):
        raise _wrong(
            "token_secret holds characters that no token has",
            "Copy the secret again as PVE showed it, without quotes or line ends",
            "malformed credentials",
            attempted,
        )
    return {"user": owner, "token_id": f"{owner}!{name}", "token_secret": token_secret}


def _check_user(attempted: str, user: str, purpose: str) -> None:
    if not user:
        raise _wrong(f"there is no user for {purpose}", "Set user, for example root@pam", "no credentials", attempted)
    if not _USER.match(user):
        raise _wrong(
            f"{user!r} is no user with a realm",
            "Write user as name@realm, for example root@pam",
            "malformed credentials",
            attempted,
        )


def _chosen_site(own: _Layer, environ: _Layer, read_file: ReadFile | None) -> dict[str, Any] | None:
    """Return the site that the task names, or the default one; none when the task names its own host."""
    own_site, _unused = own.get("site")
    if own.get("host")[1]:
        if own_site:
            raise _wrong("both host and site are given", "Give one of them", "host and site")
        return None
    sites = _sites(own, environ, read_file)
    wanted = str(own_site or environ.get("site")[0] or "").strip()
    names = [str(site["name"]) for site in sites]
    if wanted:
        for site in sites:
            if site["name"] == wanted:
                return site
        known = f"known sites: {', '.join(names)}" if names else "no sites are defined"
        raise _wrong(
            f"there is no site {wanted!r} ({known})",
            "Correct the site's name" if names else "Define it with the option sites or sites_file",
            "unknown site",
            f"Could not use the site {wanted!r}",
        )
    marked = [site for site in sites if str(site.get("default", "")).strip().lower() in _TRUE]
    if len(marked) > 1:
        raise _wrong("more than one site is marked as the default", "Mark one site", "two default sites")
    for choice in (marked, [site for site in sites if site["name"] == "default"], sites if len(sites) == 1 else []):
        if choice:
            return choice[0]
    if sites and not environ.get("host")[1]:
        raise _wrong(
            f"several sites are defined ({', '.join(names)}) and none is the default",
            "Name one with the option site, or mark one with default: true",
            "no site chosen",
        )
    return None


def _sites(own: _Layer, environ: _Layer, read_file: ReadFile | None) -> list[dict[str, Any]]:
    """Return the sites of the option, else of the file, each a dictionary with a name."""
    given, where = own.get("sites")
    if not where:
        path, where = _find([own, environ], "sites_file")
        if where:
            given = read_file(str(path)) if read_file is not None else None
            where = f"{path} (from {where})"
            if isinstance(given, Mapping) and "sites" in given:
                given = given["sites"]
    if not where:
        return []
    if isinstance(given, Mapping):
        given = [{"name": name, **(site if isinstance(site, Mapping) else {})} for name, site in given.items()]
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(s, Mapping) for s in given):
        raise _wrong(
            f"{where} is no list of sites", "Write a list of dictionaries with name and host", "malformed sites"
        )
    sites = [_site(site, where) for site in given]
    names = [site["name"] for site in sites]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise _wrong(
            f"{where} defines {', '.join(doubled)} twice", "Give each site a name of its own", "malformed sites"
        )
    return sites


def _site(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    site: dict[str, Any] = {}
    for key, value in given.items():
        name = ALIASES.get(key, key)
        if name not in _SITE_KEYS:
            raise _wrong(
                f"a site in {where} has the unknown key {key!r}",
                f"Use one of {', '.join(sorted(_SITE_KEYS))}",
                "malformed sites",
            )
        if not _is_unset(value):
            site[name] = value
    if "name" not in site:
        raise _wrong(f"a site in {where} has no name", "Give each site a name", "malformed sites")
    site["name"] = str(site["name"])
    return site


def _wrong(
    answer: str, next_step: str, reason: str, attempted: str = "Could not read the settings of the connection"
) -> ConfigurationError:
    return ConfigurationError(attempted=attempted, answer=answer, next_step=next_step, reason=reason, dispatched=False)
