# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTPS with exactly the trust that the connection names: the one place that touches requests and urllib3."""

from __future__ import annotations

import os
import ssl
from http.cookiejar import DefaultCookiePolicy
from typing import Any

try:
    import certifi
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3 import exceptions as urllib3_errors
except ImportError:  # reported by the entry, with the name of what is missing
    requests = None  # type: ignore[assignment]
    HTTPAdapter = object  # type: ignore[assignment,misc]

from .._core.errors import ConfigurationError, FleetError, NetworkError
from .settings import Connection

POOL_SIZE = 32
_PEM = "-----BEGIN "


class _Adapter(HTTPAdapter):
    """An adapter whose TLS is one context and nothing else: no bundle of requests, no environment variable."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(pool_connections=2, pool_maxsize=POOL_SIZE, max_retries=0)

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, ssl_context=self._context, **more)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Keep requests from adding its own bundle to the context."""
        conn.cert_reqs = self._requirement

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        """Keep requests (2.32 and later) from building a context of its own."""
        host, pool = super().build_connection_pool_key_attributes(request, True, None)
        kept = {key: value for key, value in pool.items() if key not in ("ca_certs", "ca_cert_dir", "cert_file")}
        return host, {**kept, "cert_reqs": self._requirement, "ssl_context": self._context}

    @property
    def _requirement(self) -> str:
        return "CERT_NONE" if self._context.verify_mode == ssl.CERT_NONE else "CERT_REQUIRED"


def tls_context(connection: Connection) -> ssl.SSLContext:
    """Return the TLS context: the named CA, else the system's; client certificate; verification unless switched off.

    Raises ConfigurationError when a file cannot be read.
    """
    try:
        if not connection.validate_certs:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif connection.ca:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            _load_ca(context, connection.ca)
        else:
            context = ssl.create_default_context()
            if not context.cert_store_stats()["x509_ca"]:
                context.load_verify_locations(cafile=certifi.where())
    except (OSError, ssl.SSLError, ValueError) as error:
        raise _unreadable("the CA", "ca_path", connection.ca, error) from error
    # Certificates that PVE makes itself lack what Python 3.13 demands in its strict mode; a chain may also end at
    # the server's own certificate when that is what the user trusts.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0x20)
    context.verify_flags |= getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", 0x80000)
    if connection.client_cert:
        try:
            context.load_cert_chain(connection.client_cert, connection.client_key or None)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise _unreadable("the client certificate", "client_cert and client_key", "", error) from error
    return context


def _load_ca(context: ssl.SSLContext, ca: str) -> None:
    if _PEM in ca:
        context.load_verify_locations(cadata=ca)
    elif os.path.isdir(os.path.expanduser(ca)):
        context.load_verify_locations(capath=os.path.expanduser(ca))
    else:
        context.load_verify_locations(cafile=os.path.expanduser(ca))


def _unreadable(what: str, option: str, given: str, error: Exception) -> ConfigurationError:
    """Return the error for a certificate; `given` is its path, or PEM text, which is not told."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ConfigurationError(
        attempted=f"Could not read {what}",
        answer=f"{given}: {said}" if given and _PEM not in given else said,
        next_step=f"Correct {option}: a path to a PEM file" + (", or PEM text" if option == "ca_path" else ""),
        reason="unreadable certificate",
        dispatched=False,
    )


def new_requests_session(connection: Connection) -> Any:
    """Return a `requests.Session` with our TLS, without cookies, redirects by environment, proxies or .netrc."""
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.verify = connection.validate_certs
    session.mount("https://", _Adapter(tls_context(connection)))
    session.headers.clear()
    session.headers.update(
        {
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "Connection": "keep-alive",
            "User-Agent": "pve.fleet",
        }
    )
    if not connection.validate_certs:
        # Switched off by the user for this connection; one warning a request would say it again and again.
        import warnings

        warnings.filterwarnings("ignore", category=urllib3_errors.InsecureRequestWarning)
    return session


def transport_error(error: Exception, connection: Connection) -> FleetError:
    """Return what a failure below HTTP means, and whether the request can have reached the server."""
    endpoint = connection.endpoint
    cause = _root(error)
    text = " ".join(str(cause).split())
    if isinstance(error, requests.exceptions.SSLError) or isinstance(cause, (ssl.SSLError, ssl.CertificateError)):
        return _tls_error(text, connection)
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return _network(
            f"{endpoint} did not answer within {connection.connect_timeout:g} s",
            "Check host, port and firewall",
            "connect timeout",
            False,
        )
    if isinstance(error, requests.exceptions.Timeout) or "Read timed out" in str(error):
        return _network(f"no answer within {connection.timeout:g} s", "Raise timeout if PVE is busy", "timeout", None)
    if "NameResolutionError" in repr(error) or "Name or service not known" in str(error) or _is_name_error(error):
        again = "Temporary failure" in str(error) or "try again" in str(error).lower()
        return _network(
            f"the name {endpoint.host} cannot be resolved",
            "Check host and the name server",
            "unknown host",
            False,
            again,
        )
    if _has(error, urllib3_errors.NewConnectionError):
        if "refused" in str(error):
            return _network(
                f"{endpoint} refused the connection",
                "Check the port (8006 by default) and that pveproxy runs",
                "connection refused",
                False,
            )
        return _network(f"{endpoint} cannot be reached: {text}", "Check host and network", "unreachable", False)
    if isinstance(error, (requests.exceptions.InvalidURL, requests.exceptions.InvalidHeader, UnicodeError)):
        return ConfigurationError(
            answer=f"the request cannot be made: {text}",
            next_step="Check host and credentials",
            reason="malformed request",
            dispatched=False,
        )
    return _network(f"the connection broke: {text}", "Check the network and pveproxy", "connection broken", None)


def _tls_error(text: str, connection: Connection) -> FleetError:
    """Return the error for a failed TLS handshake, with the option that mends it."""
    lower = text.lower()
    where = str(connection.endpoint)
    if "hostname mismatch" in lower or "ip address mismatch" in lower or "doesn't match" in lower:
        answer, reason = f"the certificate of {where} is not made for this name", "certificate name"
        step = "Use a name or address that the certificate holds as host"
    elif "certificate has expired" in lower:
        answer, reason, step = f"the certificate of {where} has expired", "certificate expired", "Renew it on the node"
    elif "certificate_verify_failed" in lower or "certificate verify failed" in lower:
        answer, reason = f"the certificate of {where} is not signed by a trusted CA", "certificate not trusted"
        step = "Set ca_path to the CA of the cluster (/etc/pve/pve-root-ca.pem on a node)"
        if connection.ca:
            step = "ca_path does not hold the CA that signed it: take /etc/pve/pve-root-ca.pem from a node"
    elif "wrong_version_number" in lower or "record layer failure" in lower or "http_request" in lower:
        answer, reason = f"{where} does not speak TLS", "no TLS"
        step = "Check the port: PVE serves HTTPS on 8006"
    elif "alert" in lower and "certificate" in lower:
        answer, reason = f"{where} does not accept our client certificate", "client certificate"
        step = "Set client_cert and client_key to a pair that the server accepts"
    else:
        return _network(f"TLS with {where} failed: {text}", "Check the network and the TLS settings", "tls", None)
    return _network(answer, step, reason, False, False)


def _network(answer: str, next_step: str, reason: str, dispatched: bool | None, retryable: bool = True) -> NetworkError:
    return NetworkError(answer=answer, next_step=next_step, reason=reason, dispatched=dispatched, retryable=retryable)


def _chain(error: BaseException) -> list[BaseException]:
    """Return the error with everything it wraps, by `reason`, by its arguments or as its cause."""
    found: list[BaseException] = []
    queue: list[Any] = [error]
    while queue and len(found) < 20:
        one = queue.pop(0)
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            queue.extend([getattr(one, "reason", None), *one.args, one.__cause__])
    return found


def _has(error: BaseException, kind: type[BaseException]) -> bool:
    return any(isinstance(one, kind) for one in _chain(error))


def _is_name_error(error: BaseException) -> bool:
    return any(type(one).__name__ in ("gaierror", "NameResolutionError", "LocationParseError") for one in _chain(error))


def _root(error: BaseException) -> BaseException:
    """Return the innermost error, the one with the useful text."""
    chain = _chain(error)
    for one in chain:
        if isinstance(one, ssl.SSLError):
            return one
    return chain[-1]
