# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of a Proxmox VE: converts every notation of an endpoint into one form (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..core import validate
from ..core.errors import ConfigurationError
from ..core.propstring import sub_keys

DEFAULT_PORT = 8006
_API_PATHS = ("", "/api2", "/api2/json")
_HOST = re.compile(r"^(?!-)[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]+)*\.?\Z")
_FINGERPRINT = re.compile(r"[0-9A-Fa-f]{64}\Z")
_FORMS = "Write it as host, host:port or https://host:8006"


@dataclass(frozen=True)
class Endpoint:
    """Host (an IPv6 address without brackets) and port of an API."""

    host: str
    port: int = DEFAULT_PORT

    @property
    def url(self) -> str:
        """The base URL of every request, without a slash at its end."""
        return f"{self.web}/api2/json"

    @property
    def web(self) -> str:
        """The URL of the user interface, without a slash at its end."""
        return f"https://{self}"

    def __str__(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        if ":" in self.host:
            return f"[{self.host}]:{self.port}"
        return f"{self.host}:{self.port}"


def parse_endpoint(text: str, port: int | str | None = None) -> Endpoint:
    """Return the endpoint for host, host:port, a URL, or a URL with /api2 or /api2/json.

    A port in the text wins over `port`; without both it is 8006. Raises ConfigurationError for
    anything else.
    """
    given = text.strip()
    if "@" in given:
        step = "Give user and password with the options user and password"
        raise _malformed(
            _without_credentials(given), "a user and password must not be part of it", step
        )
    scheme, separator, rest = given.partition("://")
    if not separator:
        rest = given
    elif scheme.lower() != "https":
        raise _malformed(text, f"{scheme}:// is not possible, PVE serves its API over https only")
    try:
        parts = urlsplit(f"https://{_with_brackets(rest)}")
    except ValueError:
        raise _malformed(text, "its IPv6 address is malformed") from None
    if parts.query or parts.fragment or parts.path.rstrip("/").lower() not in _API_PATHS:
        raise _malformed(text, f"the path {parts.path} is not /api2/json")
    try:
        host, own_port = parts.hostname or "", parts.port
    except ValueError:
        raise _malformed(text, "its port is not a number from 1 to 65535") from None
    if not host:
        raise _malformed(text, "it names no host")
    if not _is_host(host):
        raise _malformed(text, f"{host!r} is not a host name or an address")
    if parts.netloc.endswith(":"):
        raise _malformed(text, "there is no port after the colon")
    return Endpoint(host, _port(text, port if own_port is None else own_port))


@dataclass(frozen=True)
class Server:
    """An endpoint, and the SHA-256 fingerprint that its certificate must have (empty: a CA signed it)."""

    endpoint: Endpoint
    fingerprint: str = ""

    def __str__(self) -> str:
        return f"{self.endpoint},fingerprint={self.fingerprint}".removesuffix(",fingerprint=")


def parse_server(text: str, port: int) -> Server:
    """Return a server from `HOST[,fingerprint=XX:...]`. Raises ConfigurationError."""
    keys = sub_keys(text, "hostname")
    unknown = sorted(keys.keys() - {"hostname", "fingerprint"})
    if unknown:
        raise _malformed(text, f"{unknown[0]} is unknown", "Write HOST or HOST,fingerprint=XX:...")
    endpoint = parse_endpoint(keys.get("hostname", ""), port)
    return Server(endpoint, parse_fingerprint(keys.get("fingerprint", "")))


def parse_fingerprint(text: str) -> str:
    """Return a SHA-256 fingerprint without colons, in lower case, or an empty text.

    Raises ConfigurationError.
    """
    digits = text.strip().replace(":", "")
    if digits and not _FINGERPRINT.match(digits):
        raise ConfigurationError(
            f"Could not read the fingerprint {text!r}: it is not a SHA-256 fingerprint of 64 "
            "hexadecimal digits",
            "Copy that of the certificate: pvenode cert info on the node",
            "malformed fingerprint",
        )
    return digits.lower()


def _with_brackets(rest: str) -> str:
    """Put a bare IPv6 address into brackets."""
    netloc, slash, path = rest.partition("/")
    if netloc.count(":") > 1 and not netloc.startswith("["):
        netloc = f"[{netloc}]"
    return netloc + slash + path


def _is_host(host: str) -> bool:
    if ":" in host:
        return validate.is_address(host.partition("%")[0])
    if re.fullmatch(r"[0-9.]+", host):
        return validate.is_address(host)
    return _HOST.match(host) is not None and len(host) <= 253


def _port(text: str, port: int | str | None) -> int:
    if port is None:
        return DEFAULT_PORT
    try:
        number = int(port)
    except ValueError:
        number = 0
    if not 1 <= number <= 65535:
        raise _malformed(f"{text} with port {port}", "its port is not a number from 1 to 65535")
    return number


def credentials_in(text: str) -> set[str]:
    """Return the secret texts of a URL: `user:password` exactly as written, and the password unless
    it is short.
    """
    before = text.rpartition("@")[0]
    login = before.partition("://")[2] or before
    _user, colon, password = login.partition(":")
    if not colon or not password:
        return set()
    if len(password) < 4:
        return {login}
    return {login, password}


def _without_credentials(text: str) -> str:
    """Return a URL with stars in place of the text before its host."""
    before, _at, host = text.rpartition("@")
    scheme, separator, rest = before.partition("://")
    if separator and rest:
        return f"{scheme}://***@{host}"
    return f"***@{host}"


def _malformed(text: str, why: str, next_step: str = _FORMS) -> ConfigurationError:
    return ConfigurationError(
        f"Could not read the endpoint {text!r}: {why}", next_step, "malformed endpoint"
    )
