# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTPS with exactly the trust that the connection configures: the only file that uses requests and
urllib3.
"""

from __future__ import annotations

import os
import ssl
import time
import traceback
import warnings
import zlib
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any

try:
    import certifi
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3 import exceptions as urllib3_errors
except ImportError:  # reported by `require_libraries` of the backend
    requests = None  # type: ignore[assignment]
    HTTPAdapter = object  # type: ignore[assignment,misc]

from ...core.errors import ConfigurationError, FleetError, NetworkError, NotReached
from ...core.quantities import readable_size
from ..settings import ConnectionSettings

POOL_SIZE = 32
_CA_STEP = "Correct ca_path: a path to a PEM file, or PEM text"
_CLIENT_STEP = "Correct client_cert and client_key: a path to a PEM file"
_PEM = "-----BEGIN "
_NAME_ERRORS = ("gaierror", "NameResolutionError", "LocationParseError")
_TLS_OPTIONS = ("ca_certs", "ca_cert_dir", "cert_file")
_PIECE = 1 << 16  # bytes of an answer that are read at once
_GZIP = zlib.MAX_WBITS + 16


class AnswerTooLarge(ValueError):
    """An answer is larger than the connection permits."""


class _TimedSocket(ssl.SSLSocket):
    """A socket whose timeout limits the time to read an answer, not each wait for some bytes of it.

    The time begins when the timeout is set: urllib3 sets it before it reads an answer.
    """

    _seconds: float | None = None
    _deadline = 0.0

    def settimeout(self, value: float | None) -> None:
        """Begin the time for an answer."""
        super().settimeout(value)
        self._seconds = value
        self._deadline = time.monotonic() + (value or 0.0)

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        """Read a part of an answer. Raises TimeoutError if its time is over."""
        if not self._seconds:
            return super().recv_into(buffer, nbytes, flags)
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("timed out")
        super().settimeout(remaining)
        try:
            return super().recv_into(buffer, nbytes, flags)
        finally:
            super().settimeout(self._seconds)


class _Adapter(HTTPAdapter):
    """An adapter that uses only the given TLS context: no CA bundle of requests, no environment
    variables.
    """

    def __init__(self, context: ssl.SSLContext, connection: ConnectionSettings) -> None:
        self._context = context
        self._max_answer_size = connection.max_answer_size
        self._fingerprint = connection.fingerprint or None
        self._requirement = "CERT_REQUIRED"
        if context.verify_mode == ssl.CERT_NONE:
            self._requirement = "CERT_NONE"
        super().__init__(pool_connections=2, pool_maxsize=POOL_SIZE, max_retries=0)

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        # urllib3 compares the fingerprint after the handshake, before it sends a request.
        more["assert_fingerprint"] = self._fingerprint
        super().init_poolmanager(*args, ssl_context=self._context, **more)

    def send(self, request: Any, *args: Any, **more: Any) -> Any:
        """Return the response with its body. Raises AnswerTooLarge, and errors of requests."""
        response = super().send(request, *args, **more)
        try:
            response._content = _read_body(response, self._max_answer_size)
        except urllib3_errors.HTTPError as error:
            raise requests.exceptions.ConnectionError(error, request=request) from error
        except (ValueError, zlib.error):
            response.close()
            raise
        return response

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Keep requests from adding its own bundle to the context."""
        conn.cert_reqs = self._requirement

    def build_connection_pool_key_attributes(
        self, request: Any, verify: Any, cert: Any = None
    ) -> Any:
        """Keep requests (2.32 and later) from building its own context."""
        host, pool = super().build_connection_pool_key_attributes(request, True, None)
        options = {key: value for key, value in pool.items() if key not in _TLS_OPTIONS}
        options["cert_reqs"] = self._requirement
        options["ssl_context"] = self._context
        return host, options


def _read_body(response: Any, maximum: int) -> bytes:
    """Return the body of a response, decompressed piece by piece. Raises AnswerTooLarge."""
    decompressor = None
    if response.headers.get("Content-Encoding", "").strip().lower() in ("gzip", "x-gzip"):
        decompressor = zlib.decompressobj(_GZIP)
    body = bytearray()
    while piece := response.raw.read(_PIECE, decode_content=False):
        if decompressor is not None:
            # One more byte shows that the body is too large.
            piece = decompressor.decompress(piece, maximum + 1 - len(body))
        body += piece
        if len(body) > maximum:
            raise AnswerTooLarge
    return bytes(body)


def tls_context(connection: ConnectionSettings) -> ssl.SSLContext:
    """Return the TLS context: the named CA, else the system's; verification unless switched off.

    Raises ConfigurationError if a file cannot be read.
    """
    try:
        context = _verifying_context(connection)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise _unreadable("the CA", _CA_STEP, connection.ca, error) from error
    # Debian builds Python without this minimum, and leaves it to the configuration of OpenSSL.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    # Certificates that PVE creates itself do not pass the strict mode of Python 3.13; a chain may
    # also end at the server's own certificate if the user trusts that.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0x20)
    context.verify_flags |= getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", 0x80000)
    # With TLS 1.2 a server can request another handshake, with another certificate, after a request
    # was sent. pveproxy never does that: pve-http-server, AnyEvent.pm, OP_NO_RENEGOTIATION.
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.sslsocket_class = _TimedSocket
    if connection.client_cert:
        try:
            context.load_cert_chain(connection.client_cert, connection.client_key or None)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise _unreadable("the client certificate", _CLIENT_STEP, "", error) from error
    return context


def _verifying_context(connection: ConnectionSettings) -> ssl.SSLContext:
    if not connection.validate_certs or connection.fingerprint:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if not connection.ca:
        context = ssl.create_default_context()
        if not context.cert_store_stats()["x509_ca"]:
            context.load_verify_locations(cafile=certifi.where())
        return context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    path = os.path.expanduser(connection.ca)
    if _PEM in connection.ca:
        context.load_verify_locations(cadata=connection.ca)
    elif os.path.isdir(path):
        context.load_verify_locations(capath=path)
    else:
        context.load_verify_locations(cafile=path)
    return context


def _unreadable(what: str, next_step: str, given: str, error: Exception) -> ConfigurationError:
    """Return the error for a certificate; `given` is its path, or PEM text, which is not shown."""
    answer = str(error)
    if isinstance(error, OSError) and error.strerror:
        answer = error.strerror
    if given and _PEM not in given:
        answer = f"{given}: {answer}"
    return ConfigurationError(
        f"Could not read {what}: {answer}", next_step, "unreadable certificate"
    )


def new_requests_session(connection: ConnectionSettings) -> Any:
    """Return a `requests.Session` with our TLS settings, without cookies, proxies, .netrc and
    settings of the environment.
    """
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.verify = connection.validate_certs
    adapter = _Adapter(tls_context(connection), connection)
    session.mount("https://", adapter)
    session.headers.clear()
    session.headers.update(
        {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "Connection": "keep-alive",
            "User-Agent": "pve.fleet",
        }
    )
    if not connection.validate_certs and not connection.fingerprint:
        # The user switched verification off for this connection: no warning with each request.
        warnings.filterwarnings("ignore", category=urllib3_errors.InsecureRequestWarning)
    return session


def transport_error(error: Exception, connection: ConnectionSettings) -> FleetError:
    """Return the error for a failure below HTTP; it shows whether the request may have reached the
    server.
    """
    cause = _root(error)
    text = " ".join(str(cause).split())
    if isinstance(error, AnswerTooLarge):
        return _network(
            f"the answer is larger than {readable_size(connection.max_answer_size)}",
            "Raise max_answer_size if Proxmox VE can have that much to answer; otherwise check that"
            " host and port lead to Proxmox VE",
            "answer too large",
            retryable=False,
        )
    tls_errors = (ssl.SSLError, ssl.CertificateError)
    if isinstance(error, requests.exceptions.SSLError) or isinstance(cause, tls_errors):
        return _tls_error(text, connection, while_connecting=_in_handshake(cause))
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return _network(
            f"{connection.endpoint} did not answer within {connection.connect_timeout:g} s",
            "Check host, port and firewall",
            "connect timeout",
            dispatched=False,
            kind=NotReached,
        )
    if isinstance(error, requests.exceptions.Timeout) or "Read timed out" in str(error):
        return _network(
            f"no complete answer within {connection.timeout:g} s",
            "Raise timeout if PVE is busy",
            "timeout",
        )
    if _is_name_error(error):
        return _unknown_host(error, connection)
    if _has(error, urllib3_errors.NewConnectionError):
        return _unreachable(error, text, connection)
    malformed = (requests.exceptions.InvalidURL, requests.exceptions.InvalidHeader, UnicodeError)
    if isinstance(error, malformed):
        return ConfigurationError(
            answer=f"the request cannot be made: {text}",
            next_step="Check host and credentials",
            reason="malformed request",
        )
    return _network(
        f"the connection broke: {text}", "Check the network and pveproxy", "connection broken"
    )


def _unknown_host(error: Exception, connection: ConnectionSettings) -> FleetError:
    message = str(error)
    is_temporary = "Temporary failure" in message or "try again" in message.lower()
    return _network(
        f"the name {connection.endpoint.host} cannot be resolved",
        "Check host and the name server",
        "unknown host",
        dispatched=False,
        kind=NotReached,
        retryable=is_temporary,
    )


def _unreachable(error: Exception, text: str, connection: ConnectionSettings) -> FleetError:
    if "refused" in str(error):
        return _network(
            f"{connection.endpoint} refused the connection",
            "Check the port (8006 by default) and that pveproxy runs",
            "connection refused",
            dispatched=False,
            kind=NotReached,
        )
    return _network(
        f"{connection.endpoint} cannot be reached: {text}",
        "Check host and network",
        "unreachable",
        dispatched=False,
        kind=NotReached,
    )


@dataclass(frozen=True)
class _TlsFailure:
    """The error to report if the message of a TLS library contains one of `signs` (lower case).
    `{}` is the endpoint.
    """

    signs: tuple[str, ...]
    answer: str
    next_step: str
    reason: str


_NOT_TRUSTED = "certificate not trusted"
_TLS_FAILURES = (
    _TlsFailure(
        ("hostname mismatch", "ip address mismatch", "doesn't match"),
        "the certificate of {} is not made for this name",
        "Use a name or address that the certificate holds as host",
        "certificate name",
    ),
    _TlsFailure(
        ("certificate has expired",),
        "the certificate of {} has expired",
        "Renew it on the node",
        "certificate expired",
    ),
    _TlsFailure(
        ("certificate is not yet valid",),
        "the certificate of {} is not valid yet",
        "Compare the clocks of this machine and of the node",
        "certificate not valid yet",
    ),
    # If the certificate is a CA at the end of a chain, the text contains "in certificate chain".
    _TlsFailure(
        ("self-signed certificate (", "self signed certificate ("),
        "the certificate of {} is signed by no CA, and not trusted by itself",
        "Set ca_path to a copy of this certificate (/etc/pve/local/pveproxy-ssl.pem on the node),"
        " after you have compared their fingerprints",
        "self-signed certificate",
    ),
    _TlsFailure(
        ("certificate_verify_failed", "certificate verify failed"),
        "the certificate of {} is not signed by a trusted CA",
        "Set ca_path to the CA of the cluster (/etc/pve/pve-root-ca.pem on a node)",
        _NOT_TRUSTED,
    ),
    _TlsFailure(
        ("wrong_version_number", "record layer failure", "http_request"),
        "{} does not speak TLS",
        "Check the port: PVE serves HTTPS on 8006",
        "no TLS",
    ),
)
# If we refuse a second handshake, the server ends the connection with this alert.
_RENEGOTIATION = _TlsFailure(
    ("handshake_failure", "handshake failure"),
    "{} wants another TLS handshake in the middle of a connection, which is refused",
    "Check what answers at this address: Proxmox VE never does this. A proxy before it must not"
    " renegotiate: let it use TLS 1.3",
    "renegotiation",
)
_CLIENT_CERTIFICATE = _TlsFailure(
    (),
    "{} does not accept our client certificate",
    "Set client_cert and client_key to a pair that the server accepts",
    "client certificate",
)
_OTHER_CERTIFICATE = _TlsFailure(
    (),
    "the certificate of {} has another fingerprint than its site or the manager names",
    "Find out who answers at this address. If the certificate was renewed, correct the fingerprint in"
    " the sites file or in the manager",
    "other certificate",
)
_WRONG_CA = "ca_path does not hold the CA that signed it: take /etc/pve/pve-root-ca.pem from a node"


def _tls_error(text: str, connection: ConnectionSettings, *, while_connecting: bool) -> FleetError:
    """Return the error for a failure of TLS, with the option that corrects it.

    `while_connecting`: it failed in the handshake, before any request was sent.
    """
    if "fingerprints did not match" in text.lower():
        failure: _TlsFailure | None = _OTHER_CERTIFICATE
    else:
        failure = _tls_failure(text.lower(), while_connecting)
    if failure is None:
        return _network(
            f"TLS with {connection.endpoint} failed: {text}",
            "Check the network and the TLS settings",
            "tls",
        )
    next_step = failure.next_step
    if failure.reason == _NOT_TRUSTED and connection.ca:
        next_step = _WRONG_CA
    # With TLS 1.3 a client certificate is refused after the handshake: no request was read then.
    never_sent = while_connecting or failure in (_CLIENT_CERTIFICATE, _OTHER_CERTIFICATE)
    return _network(
        failure.answer.format(connection.endpoint),
        next_step,
        failure.reason,
        dispatched=False if never_sent else None,
        retryable=False,
    )


def _tls_failure(text: str, while_connecting: bool) -> _TlsFailure | None:
    possible = _TLS_FAILURES if while_connecting else (_RENEGOTIATION,)
    for failure in possible:
        if any(sign in text for sign in failure.signs):
            return failure
    if "alert" in text and "certificate" in text:
        return _CLIENT_CERTIFICATE
    return None


def _in_handshake(error: BaseException) -> bool:
    """Return whether an error of Python's `ssl` is from the first handshake of a connection."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_name == "do_handshake" for frame, _line in frames)


def _network(
    answer: str,
    next_step: str,
    reason: str,
    *,
    dispatched: bool | None = None,
    retryable: bool = True,
    kind: type[NetworkError] = NetworkError,
) -> NetworkError:
    return kind(
        answer=answer,
        next_step=next_step,
        reason=reason,
        dispatched=dispatched,
        retryable=retryable,
    )


def _chain(error: BaseException) -> list[BaseException]:
    """Return the error and all errors that it wraps: as `reason`, in its arguments or as cause."""
    found: list[BaseException] = []
    queue: list[Any] = [error]
    while queue and len(found) < 20:
        one = queue.pop(0)
        if not isinstance(one, BaseException) or one in found:
            continue
        found.append(one)
        queue.append(getattr(one, "reason", None))
        queue.extend(one.args)
        queue.append(one.__cause__)
    return found


def _has(error: BaseException, kind: type[BaseException]) -> bool:
    return any(isinstance(one, kind) for one in _chain(error))


def _is_name_error(error: BaseException) -> bool:
    if "NameResolutionError" in repr(error) or "Name or service not known" in str(error):
        return True
    return any(type(one).__name__ in _NAME_ERRORS for one in _chain(error))


def _root(error: BaseException) -> BaseException:
    """Return the innermost error, whose text is useful."""
    chain = _chain(error)
    for one in chain:
        if isinstance(one, ssl.SSLError):
            return one
    return chain[-1]
