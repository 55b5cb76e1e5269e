# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds one connection from options, sites and environment (pure).

A value comes from the task's own options, else from the chosen site, else from the environment. An
empty value counts as unset in each of them. Only this file names environment variables of the
connection.
"""

from __future__ import annotations

import re
from collections import ChainMap, Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.arguments.options import did_you_mean
from ..core.errors import ConfigurationError, ValidationFailed
from ..core.formatting import formatted
from ..core.quantities import GIB, MIB, parse_size
from .endpoint import Endpoint, Server, parse_endpoint, parse_fingerprint, parse_server

# Option -> names in the environment; the first variable that is set and not empty counts.
ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "host": ("PROXMOX_HOST", "PROXMOX_URL", "PROXMOX_ENDPOINT", "PVE_ENDPOINT"),
    "port": ("PROXMOX_PORT",),
    "user": ("PROXMOX_USER", "PROXMOX_USERNAME", "PVE_USERNAME"),
    "password": ("PROXMOX_PASSWORD", "PVE_PASSWORD"),
    "token_id": ("PROXMOX_TOKEN_ID", "PVE_TOKEN_ID"),
    "token_secret": ("PROXMOX_TOKEN_SECRET", "PVE_TOKEN_SECRET"),
    "validate_certs": ("PROXMOX_VALIDATE_CERTS", "PVE_INSECURE_SKIP_VERIFY"),
    "ca_path": ("PROXMOX_CA_PATH", "PVE_CA_BUNDLE"),
    "client_cert": ("PROXMOX_CLIENT_CERT",),
    "client_key": ("PROXMOX_CLIENT_KEY",),
    "timeout": ("PROXMOX_TIMEOUT",),
    "retries": ("PROXMOX_RETRIES",),
    "retry_timeout": ("PROXMOX_RETRY_TIMEOUT",),
    "lock_timeout": ("PROXMOX_LOCK_TIMEOUT",),
    "max_answer_size": ("PROXMOX_MAX_ANSWER_SIZE",),
    "site": ("PROXMOX_SITE", "PROXMOX_DEFAULT_CLUSTER"),
    "sites_file": ("PROXMOX_SITES_FILE",),
    "require_tenant": ("PROXMOX_REQUIRE_TENANT",),
    "node": ("PROXMOX_NODE",),
    "preferred_nodes": ("PVE_NODE_SELECTOR",),
}
# Other software sets this variable even if there are no sites: without sites it is ignored.
_ONLY_WITH_SITES = ("PROXMOX_DEFAULT_CLUSTER",)
# Variables with the opposite meaning of their option.
INVERTED = ("PVE_INSECURE_SKIP_VERIFY",)
# Aliases of options, as in the argument specification; a site may use them too.
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
DEFAULTS: Mapping[str, Any] = {
    "validate_certs": True,
    "require_tenant": False,
    "timeout": 30.0,
    "retry_timeout": 30.0,
    "lock_timeout": 60.0,
    "max_answer_size": "128M",
}
CONNECT_TIMEOUT = 10.0

_SITE_KEYS = frozenset(ENVIRONMENT) - {"site", "sites_file", "preferred_nodes"} | {
    "name",
    "default",
}
_OWN_LISTS = ("nodes", "storages", "bridges")  # the nodes, storages and bridges that a site may use
ACTIVE, DRAINING, CLOSED = "active", "draining", "closed"
PVE, PDM = "PVE", "PDM"  # products, as in the header with a token
SITE_STATES = (ACTIVE, DRAINING, CLOSED)
_SITE_KEYS |= {*_OWN_LISTS, "max_vms_per_node", "labels", "state", "fingerprint", "other_hosts"}
_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})
_FALSE = frozenset({"0", "false", "no", "off", "n", "f"})
_USER = re.compile(r"^[^\s:/@]+(?:@[^\s:/@]+)*@[A-Za-z][A-Za-z0-9.\-_]+\Z")
_TOKEN_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9.\-_]+\Z")
_VISIBLE = re.compile(r"^[\x21-\x7e]+\Z")
# The form of a token's secret (pve-access-control: PVE/API2/User.pm, generate_token: a UUID).
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# A token in the form of a request header (pve-http-server: PVEAPIToken=USER@REALM!ID=SECRET).
_WHOLE_TOKEN = re.compile(rf"(?:PVEAPIToken=)?(?P<id>.*)={_UUID.pattern}")
_STARS = "********"

ReadFile = Callable[[str], Any]

Given = dict[str, tuple[Any, str]]
"""The options that one source sets: each value, and its source for people."""

AllGiven = ChainMap[str, tuple[Any, str]]
"""The options of several sources; the first source that sets an option counts."""

_UNSET = (None, "")


@dataclass(frozen=True)
class ConnectionSettings:
    """The settings of a session. Secrets are not part of its text form.

    `token_id` is complete (`user@realm!id`), `ca` is a path or PEM text, times are in seconds,
    `retries` is a number of tries or None. A new VM is placed on `node`; without it, on one of the
    `preferred_nodes` if one of them fits.
    """

    endpoint: Endpoint
    user: str = ""
    password: str = field(default="", repr=False)
    token_id: str = ""
    token_secret: str = field(default="", repr=False)
    validate_certs: bool = True
    ca: str = field(default="", repr=False)
    fingerprint: str = ""  # of the certificate, instead of a CA: SHA-256 without colons
    client_cert: str = ""
    client_key: str = ""
    timeout: float = 30.0
    connect_timeout: float = CONNECT_TIMEOUT
    retries: int | None = None
    retry_timeout: float = 30.0
    lock_timeout: float = 60.0
    max_answer_size: int = 64 * MIB  # bytes, decompressed
    site: str = ""
    node: str = ""
    preferred_nodes: tuple[str, ...] = ()
    own_nodes: tuple[str, ...] = ()  # the nodes that the site may use; empty: all
    own_storages: tuple[str, ...] = ()
    own_bridges: tuple[str, ...] = ()
    require_tenant: bool = False  # a task that writes needs a tenant
    max_vms_per_node: Any = field(default=None, hash=False)  # the site's, unless the task sets it
    labels: tuple[tuple[str, str], ...] = ()  # the site's, such as (("region", "eu"),)
    state: str = ACTIVE  # of the site, see require_accepted_by_site in entry/required_tenant.py
    product: str = PVE  # the server
    others: tuple[Server, ...] = ()  # of the same cluster, used if the endpoint cannot be reached

    @property
    def next_server(self) -> ConnectionSettings:
        """The connection to the first of the `others`, with its own endpoint as the last of them."""
        server, *others = self.others
        own = Server(self.endpoint, self.fingerprint)
        return replace(
            self, endpoint=server.endpoint, fingerprint=server.fingerprint, others=(*others, own)
        )

    @property
    def login(self) -> str:
        """The user, or the full name of the token."""
        return self.token_id or self.user

    @property
    def secrets(self) -> tuple[str, ...]:
        """The password and the token's secret, which must never be shown."""
        return tuple(secret for secret in (self.password, self.token_secret) if secret)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings that a user of this connection should read.

        The text is the same for each task, because Ansible shows equal warnings once.
        """
        if self.validate_certs or self.fingerprint:
            return ()
        text = (
            f"The certificate of {self.endpoint} is not verified (validate_certs=false): another"
            " server in its place would get the credentials, and could report any state. Set"
            " ca_path to the CA of the cluster (/etc/pve/pve-root-ca.pem on a node), and remove"
            " validate_certs"
        )
        return (text,)


def resolve(
    options: Mapping[str, Any], environ: Mapping[str, str], read_file: ReadFile | None = None
) -> ConnectionSettings:
    """Return the connection from a task's options, a site and the environment.

    `read_file` returns the data of a sites file. Raises ConfigurationError for a missing or
    malformed endpoint, missing credentials, an unknown site and a malformed value, each with its
    own message.
    """
    own, environment = _own(options), _environment(environ)
    site = _chosen_site(own, environment, read_file) or {}
    sources = [own, _given(site, f"site {site.get('name')}: option"), environment]
    given = ChainMap(*sources)
    endpoint = _endpoint(sources)
    if "client_key" in given and "client_cert" not in given:
        raise _wrong(
            "client_key is given without client_cert", "Give client_cert too", "client certificate"
        )
    timeout = _number(given, "timeout", 0.1, 86400.0)
    node = _text(given, "node")
    preferred = () if node else re.split(r"[,;\s]+", _text(given, "preferred_nodes"))
    return ConnectionSettings(
        endpoint=endpoint,
        validate_certs=_boolean(given, "validate_certs"),
        ca=_text(given, "ca_path"),
        client_cert=str(given.get("client_cert", _UNSET)[0] or ""),
        client_key=str(given.get("client_key", _UNSET)[0] or ""),
        timeout=timeout,
        connect_timeout=min(CONNECT_TIMEOUT, timeout),
        retries=int(_number(given, "retries", 1, 100)) if "retries" in given else None,
        retry_timeout=_number(given, "retry_timeout", 0.0, 86400.0),
        lock_timeout=_number(given, "lock_timeout", 0.0, 86400.0),
        max_answer_size=_size(given, "max_answer_size"),
        site=str(site.get("name", "")),
        node=node,
        preferred_nodes=tuple(dict.fromkeys(filter(None, preferred))),
        own_nodes=tuple(site.get("nodes", ())),
        own_storages=tuple(site.get("storages", ())),
        own_bridges=tuple(site.get("bridges", ())),
        require_tenant=any(_boolean(source, "require_tenant") for source in sources),
        max_vms_per_node=site.get("max_vms_per_node"),
        labels=tuple(sorted(site.get("labels", {}).items())),
        state=site.get("state", ACTIVE),
        fingerprint=parse_fingerprint(str(site.get("fingerprint", ""))),
        others=tuple(parse_server(host, endpoint.port) for host in site.get("other_hosts", ())),
        **_credentials(sources, f"{endpoint} (site {site['name']})" if site else str(endpoint)),
    )


def named_site(options: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return the name of the site in options or environment, or an empty text."""
    return _text(_own(options), "site") or _text(_environment(environ), "site")


def site_names(
    options: Mapping[str, Any], environ: Mapping[str, str], read_file: ReadFile | None = None
) -> list[str]:
    """Return the names of the sites that options and environment define, in their order.

    Closed sites are left out: nothing is expected of them.
    """
    sites = _sites(_own(options), _environment(environ), read_file)
    return [str(site["name"]) for site in sites if site.get("state") != CLOSED]


def unchosen_sites(
    options: Mapping[str, Any], environ: Mapping[str, str], read_file: ReadFile | None = None
) -> list[str]:
    """Return the names of all sites if neither a host nor a site is chosen, else none."""
    if "host" in _own(options) or named_site(options, environ):
        return []
    return site_names(options, environ, read_file)


def _is_unset(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or value in ([], {})


def _given(values: Mapping[str, Any], label: str) -> Given:
    return {
        name: (value, f"{label} {name}") for name, value in values.items() if not _is_unset(value)
    }


def _own(options: Mapping[str, Any]) -> Given:
    """Return the options of a task by their main names; a main name wins over its aliases.

    A module's `node` is the node of a VM, not a setting of the connection.
    """
    named = _given(options, "option")
    for alias, name in ALIASES.items():
        if not _is_unset(options.get(alias)):
            named.setdefault(name, (options[alias], f"option {name}"))
    named.pop("node", None)
    return named


def _environment(environ: Mapping[str, str]) -> Given:
    found: Given = {}
    for option, names in ENVIRONMENT.items():
        name = next((name for name in names if not _is_unset(environ.get(name))), "")
        if name:
            found[option] = environ[name], name
    return found


def _text(given: Given | AllGiven, option: str) -> str:
    value, _unused = given.get(option, _UNSET)
    if value is None:
        return ""
    return str(value).strip()


def _boolean(given: Given | AllGiven, option: str) -> bool:
    value, where = given.get(option, _UNSET)
    if not where:
        return bool(DEFAULTS[option])
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in _TRUE | _FALSE:
        raise _wrong(
            f"{where} is {word!r}, which is neither true nor false",
            "Write true or false",
            "malformed value",
        )
    return (word in _TRUE) != (where in INVERTED)


def _number(given: Given | AllGiven, option: str, minimum: float, maximum: float) -> float:
    value, where = given.get(option, _UNSET)
    if not where:
        return float(DEFAULTS[option])
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not minimum <= number <= maximum:
        raise _wrong(
            f"{where} is {formatted(value)}, which is not a number from {minimum:g} to {maximum:g}",
            "Correct it",
            "malformed value",
        )
    return number


def _size(given: Given | AllGiven, option: str) -> int:
    """Return a size in bytes; a number without a unit is in MiB."""
    value, where = given.get(option, _UNSET)
    try:
        size = parse_size(value if where else DEFAULTS[option], bare=MIB, what=where)
    except ValidationFailed:
        size = 0
    if not MIB <= size <= 16 * GIB:
        raise _wrong(
            f"{where} is {formatted(value)}, which is not a size from 1M to 16G",
            "Correct it",
            "malformed value",
        )
    return size


def _endpoint(sources: Sequence[Given]) -> Endpoint:
    host, where = ChainMap(*sources).get("host", _UNSET)
    if not where:
        raise ConfigurationError(
            "No Proxmox VE endpoint is configured: host is not set",
            "Set the option host, or PROXMOX_HOST in the environment, or sites_file"
            " (PROXMOX_SITES_FILE)",
            "missing endpoint",
        )
    # The port in the environment belongs to the host in the environment or in the task, not to the
    # host of a site.
    if where == sources[1].get("host", _UNSET)[1]:
        sources = sources[:2]
    port, port_from = ChainMap(*sources).get("port", _UNSET)
    given_in = " and ".join(filter(None, (where, port_from)))
    try:
        endpoint = parse_endpoint(str(host), port)
        if not port_from:
            return endpoint
        with_port = parse_endpoint(endpoint.host, port)
    except ConfigurationError as error:
        raise error.on(answer=f"{error.answer} (from {given_in})") from None
    if with_port == endpoint:
        return endpoint
    # If the port in the host differs from the option, the source with higher priority counts.
    for source in sources:
        has_host, has_port = "host" in source, "port" in source
        if has_host and has_port:
            raise _wrong(
                f"host names port {endpoint.port}, and port is {with_port.port} (from {given_in})",
                "Give the port once",
                "two ports",
            )
        if has_host or has_port:
            return endpoint if has_host else with_port
    return endpoint


def misplaced_secrets(options: Mapping[str, Any]) -> set[str]:
    """Return secrets of tokens in an option whose value is shown: the ID of a token."""
    found: set[str] = set()
    for name, value in options.items():
        if ALIASES.get(name, name) == "token_id":
            found.update(_UUID.findall(str(value or "")))
    return found


def _masked(text: str) -> str:
    """Return a text for a message, in quotation marks and with stars for the secret of a token."""
    return formatted(_UUID.sub(_STARS, text))


def _credentials(sources: Sequence[Given], place: str) -> dict[str, str]:
    """Return user, password, token_id and token_secret for an endpoint, with its site in messages.

    A token wins, unless a source with higher priority than the token's names a password.
    """
    given = ChainMap(*sources)
    user = _text(given, "user")
    attempted = f"Could not log in to {place}"
    for source in sources:
        if "token_id" in source or "token_secret" in source:
            _require_one_user(sources, attempted)
            return _token(attempted, user, _text(given, "token_id"), _text(given, "token_secret"))
        if "password" in source:
            password, _where = source["password"]
            return _password(attempted, user, str(password))
    raise ConfigurationError(
        f"{attempted}: no credentials are given",
        "Set token_id and token_secret, or user and password (or PROXMOX_TOKEN_ID and "
        "PROXMOX_TOKEN_SECRET, or PROXMOX_USER and PROXMOX_PASSWORD, in the environment)",
        "no credentials",
    )


def _password(attempted: str, user: str, password: str) -> dict[str, str]:
    if user and not _USER.match(user) and _USER.match(password):
        raise _wrong(
            "user and password are swapped",
            "Give the name with its realm in user",
            "swapped credentials",
            attempted,
        )
    _require_user(attempted, user, "the password")
    return {"user": user, "password": password}


def _require_one_user(sources: Sequence[Given], attempted: str) -> None:
    """Raise ConfigurationError if a source names a user without a password, and a token of another
    user.
    """
    for source in sources:
        token_id, where = source.get("token_id", _UNSET)
        user, user_from = source.get("user", _UNSET)
        owner, mark, _name = str(token_id or "").strip().partition("!")
        if not mark or not user_from or "password" in source:
            continue
        if owner != str(user).strip():
            raise _wrong(
                f"{where} is a token of {owner}, and {user_from} is {user}",
                "Remove the user, or give the token of that user",
                "two users",
                attempted,
            )


def _token(attempted: str, user: str, token_id: str, token_secret: str) -> dict[str, str]:
    if not token_id:
        raise _half_token(attempted, "token_secret", "token_id")
    if not token_secret:
        raise _half_token(attempted, "token_id", "token_secret")
    _require_token_id(attempted, token_id, token_secret)
    owner, mark, name = token_id.partition("!")
    if not mark:
        owner = user
        name = token_id
    if not owner:
        raise _wrong(
            f"the token {_masked(name)} has no user",
            "Write token_id as user@realm!id, or set user",
            "no credentials",
            attempted,
        )
    _require_user(attempted, owner, "the token")
    if not _TOKEN_NAME.match(name):
        raise _wrong(
            f"{_masked(name)} is not a valid name of a token",
            "Write token_id as user@realm!id",
            "malformed credentials",
            attempted,
        )
    if not _VISIBLE.match(token_secret):
        raise _wrong(
            "token_secret holds characters that no token has",
            "Copy the secret again as PVE showed it, without quotes or line ends",
            "malformed credentials",
            attempted,
        )
    return {"user": owner, "token_id": f"{owner}!{name}", "token_secret": token_secret}


def _require_token_id(attempted: str, token_id: str, token_secret: str) -> None:
    """Raise ConfigurationError if the ID contains a secret, which must not be shown."""
    if _UUID.fullmatch(token_id) and not _UUID.fullmatch(token_secret):
        raise _wrong(
            "token_id and token_secret are swapped",
            "Give user@realm!id in token_id and the UUID in token_secret",
            "swapped credentials",
            attempted,
        )
    whole = _WHOLE_TOKEN.match(token_id)
    if whole is not None:
        own = _masked(whole["id"])
        raise _wrong(
            "token_id holds the secret too",
            f"Give {own} in token_id and the UUID after it in token_secret",
            "malformed credentials",
            attempted,
        )


def _half_token(attempted: str, given: str, missing: str) -> ConfigurationError:
    return _wrong(
        f"{given} is given without {missing}",
        f"Set {missing} (or PROXMOX_{missing.upper()} in the environment)",
        "no credentials",
        attempted,
    )


def _require_user(attempted: str, user: str, purpose: str) -> None:
    if not user:
        raise _wrong(
            f"there is no user for {purpose}",
            f"Set user, for example root@pam, or leave out {purpose}: it is that of the login, not"
            " of a guest",
            "no credentials",
            attempted,
        )
    if not _USER.match(user):
        raise _wrong(
            f"{_masked(user)} is not a user with a realm",
            "Write user as name@realm, for example root@pam",
            "malformed credentials",
            attempted,
        )


def _chosen_site(own: Given, environ: Given, read_file: ReadFile | None) -> dict[str, Any] | None:
    """Return the site that the task names, or the default site.

    None if the task names its own host.
    """
    own_site, _unused = own.get("site", _UNSET)
    if "host" in own:
        if own_site:
            raise _wrong("both host and site are given", "Give one of them", "host and site")
        return None
    sites = _sites(own, environ, read_file)
    default, variable = environ.get("site", _UNSET)
    wanted = str(own_site or default or "").strip()
    is_ignored = not own_site and not sites and variable in _ONLY_WITH_SITES
    if wanted and not is_ignored:
        for site in sites:
            if site["name"] == wanted:
                return site
        known = " (no sites are defined)"
        next_step = "Define it with the option sites or sites_file"
        if sites:
            near = did_you_mean(wanted, [str(site["name"]) for site in sites])
            known = near or f" (known sites: {_names(sites)})"
            next_step = "Correct the site's name"
        raise _wrong(
            f"there is no site {wanted!r}{known}",
            next_step,
            "unknown site",
            f"Could not use the site {wanted!r}",
        )
    return _default_site(sites, environ)


def _default_site(sites: list[dict[str, Any]], environ: Given) -> dict[str, Any] | None:
    """Return the site that is marked as default, or is named `default`, or is the only one.

    Returns None if there is no such site, or if the environment names a host.
    """
    marked = [site for site in sites if str(site.get("default", "")).strip().lower() in _TRUE]
    if len(marked) > 1:
        raise _wrong(
            "more than one site is marked as the default", "Mark one site", "two default sites"
        )
    if marked:
        return marked[0]
    for site in sites:
        if site["name"] == "default" or len(sites) == 1:
            return site
    if sites and "host" not in environ:
        raise _wrong(
            f"several sites are defined ({_names(sites)}) and none is the default",
            "Name one with the option site, or mark one with default: true",
            "no site chosen",
        )
    return None


def _names(sites: list[dict[str, Any]]) -> str:
    return ", ".join(str(site["name"]) for site in sites)


def _sites(own: Given, environ: Given, read_file: ReadFile | None) -> list[dict[str, Any]]:
    """Return the sites of the option, else of the file, each a dictionary with a name."""
    given, where = own.get("sites", _UNSET)
    if where and "sites_file" in own:
        raise _wrong(
            "both sites and sites_file are given", "Give one of them", "two lists of sites"
        )
    if not where:
        given, where = _sites_of_file(own, environ, read_file)
    if not where:
        return []
    if isinstance(given, Mapping):
        named = {name: site if isinstance(site, Mapping) else {} for name, site in given.items()}
        given = [{"name": name, **site} for name, site in named.items()]
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    if not is_list or not all(isinstance(site, Mapping) for site in given):
        raise _wrong(
            f"{where} is not a list of sites",
            "Write a list of dictionaries with name and host",
            "malformed sites",
        )
    sites = [_site(site, where) for site in given]
    counts = Counter(site["name"] for site in sites)
    repeated = sorted(name for name, count in counts.items() if count > 1)
    if repeated:
        raise _wrong(
            f"{where} defines {', '.join(repeated)} twice",
            "Give each site a name of its own",
            "malformed sites",
        )
    return sites


def _sites_of_file(own: Given, environ: Given, read_file: ReadFile | None) -> tuple[Any, str]:
    """Return the data of the sites file and a text with its path and source, or (None, "")."""
    path, where = own.get("sites_file") or environ.get("sites_file", _UNSET)
    if not where:
        return None, ""
    given = None
    if read_file is not None:
        given = read_file(str(path))
    if isinstance(given, Mapping) and "sites" in given:
        given = given["sites"]
    return given, f"{path} (from {where})"


def _site(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    site: dict[str, Any] = {}
    for key, value in given.items():
        name = ALIASES.get(key, key)
        if name not in _SITE_KEYS:
            raise _wrong(
                f"a site in {where} has the unknown key {formatted(key)}",
                f"Use one of {', '.join(sorted(_SITE_KEYS))}",
                "malformed sites",
            )
        if _is_unset(value):
            continue
        if name in site and site[name] != value:
            raise _wrong(
                f"a site in {where} has {name} twice, also as an alias",
                f"Give {name} once",
                "malformed sites",
            )
        site[name] = value
    if "name" not in site:
        raise _wrong(f"a site in {where} has no name", "Give each site a name", "malformed sites")
    site["name"] = str(site["name"])
    _require_one_trust(site)
    for key in (*_OWN_LISTS, "other_hosts"):
        if given.get(key) is not None:
            site[key] = _own_list(given[key], f"{key} of site {site['name']}")
    _require_state(site)
    if "labels" in site:
        site["labels"] = _labels(site["labels"], f"labels of site {site['name']}")
    if site.get("node") and site["node"] not in site.get("nodes", [site["node"]]):
        raise _wrong(
            f"node of site {site['name']} is {site['node']}, which its nodes do not have",
            "Name one of them",
            "malformed sites",
        )
    return site


def _require_one_trust(site: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for a fingerprint beside a CA."""
    if "fingerprint" in site and "ca_path" in site:
        raise _wrong(
            f"site {site['name']} has both fingerprint and ca_path",
            "Give one of them: they are two kinds of trust",
            "malformed sites",
        )


def _require_state(site: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for an unknown state."""
    state = site.get("state", ACTIVE)
    if state not in SITE_STATES:
        raise _wrong(
            f"state of site {site['name']} is {formatted(state)}",
            f"Use one of {', '.join(SITE_STATES)}",
            "malformed sites",
        )


def _labels(value: Any, what: str) -> dict[str, str]:
    """Return the labels as texts. Raises ConfigurationError for lists and dictionaries."""
    labels = value if isinstance(value, Mapping) else {"": []}
    if any(isinstance(label, (list, dict)) or label is None for label in labels.values()):
        raise _wrong(
            f"{what} is not a dictionary of texts and numbers",
            "Write labels such as {region: eu, price: 3}",
            "malformed sites",
        )
    return {str(name): str(label) for name, label in labels.items()}


def _own_list(value: Any, what: str) -> list[str]:
    """Return a list of names.

    An empty list is refused, because it could mean nothing or everything.
    """
    names = [value] if isinstance(value, str) else value
    is_list = isinstance(names, list) and bool(names)
    if not is_list or not all(isinstance(name, str) and name.strip() for name in names):
        raise _wrong(
            f"{what} is not a list of names",
            "List names, or leave it out for all",
            "malformed sites",
        )
    return list(dict.fromkeys(name.strip() for name in names))


def _wrong(
    answer: str,
    next_step: str,
    reason: str,
    attempted: str = "Could not read the settings of the connection",
) -> ConfigurationError:
    return ConfigurationError(f"{attempted}: {answer}", next_step, reason)
