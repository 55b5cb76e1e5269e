# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One session with one Proxmox VE: it sends a request, keeps a login alive and classifies
errors.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from ...core.clock import Clock
from ...core.errors import (
    AuthenticationError,
    ConfigurationError,
    FleetError,
    NetworkError,
    NotReached,
)
from ...core.failures.classify import classify
from ..answers.forms import ObjectForm, WrongForm, flag, like
from ..endpoint import Endpoint
from ..http import transport
from ..protocols import Row
from ..request import Upload
from ..settings import PVE, ConnectionSettings
from .multipart import MultipartBody

RENEW_AFTER = 6600.0  # seconds; a ticket of PVE is valid for two hours
_TICKET_PATH = "/access/ticket"
_CSRF = "CSRFPreventionToken"
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_HEADER = like(r"[\x21-\x7e]+", "what a header can hold")
_LOGIN = ObjectForm({"ticket": _HEADER}, {_CSRF: _HEADER, "NeedTFA": flag})
_STALE_LOGIN = (
    "authentication failed!",
    "invalid pve ticket",
    "invalid csrf token",
    "invalid ticket",
    "no ticket",
)


class HttpAnswer:
    """The part of a response that proxmoxer reads.

    Its text form is short, so that nothing secret or large reaches a log.
    """

    def __init__(self, status: int, reason: str, body: bytes) -> None:
        self.status_code = status
        self.reason = reason
        self.body = body

    @property
    def content(self) -> str:
        return f"<{len(self.body)} bytes>"

    @property
    def text(self) -> str:
        return self.content


def read_data(answer: HttpAnswer) -> Any:
    """Return `data` of an answer. Raises NetworkError if the answer is not from PVE."""
    try:
        return _read_json(answer.body)["data"]
    except (ValueError, KeyError, TypeError):
        raise _not_the_api(answer, "the answer is not JSON of Proxmox VE") from None


def read_beside(answer: HttpAnswer, attribute: str) -> dict[str, Any]:
    """Return `data` of an answer and an attribute beside it, null if the answer lacks it.

    Raises NetworkError if the answer is not from PVE.
    """
    data = read_data(answer)
    return {"data": data, attribute: _read_json(answer.body).get(attribute)}


def _not_the_api(answer: HttpAnswer, problem: str) -> NetworkError:
    return NetworkError(
        status=answer.status_code,
        answer=problem,
        next_step="Check that host and port lead to Proxmox VE, and the proxies on the way",
        reason="not the API",
        retryable=False,
    )


def _read_login(answer: HttpAnswer, attempted: str) -> dict[str, Any]:
    """Return the data of the answer to a login: a ticket, and whether a second factor is needed."""
    try:
        found: dict[str, Any] = _LOGIN(read_data(answer))
    except NetworkError as error:
        raise error.on(attempted=attempted) from None
    except WrongForm as problem:
        raise _not_the_api(answer, f"the answer is not a ticket: {problem}").on(
            attempted=attempted
        ) from None
    return found


def _read_json(body: bytes) -> Any:
    """Return the data of a body. Raises ValueError if it is not JSON or is nested too deep.

    Half of a surrogate pair, which JSON can escape but files cannot contain, becomes a question
    mark.
    """
    try:
        if _HALF_A_PAIR.search(body):
            body = json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
        return json.loads(body, parse_constant=_raise_for_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _raise_for_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


@dataclass(frozen=True)
class HttpRequest:
    """An HTTP request.

    `path` is relative to the base URL and already quoted. `timeout` is in seconds. `number` is the
    number of the try, for the record.
    """

    method: str
    path: str
    data: Mapping[str, Any] | None = field(default=None, repr=False)
    params: Mapping[str, Any] | None = field(default=None, repr=False)
    timeout: float | None = None
    number: int = 1
    upload: Upload | None = None

    @property
    def plain_path(self) -> str:
        """The path without quoting, for people."""
        return unquote(self.path)


class Session:
    """Sends requests for one connection; safe to use from several threads."""

    has_answered = False  # whether the endpoint has ever answered

    def __init__(self, connection: ConnectionSettings, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._lock = threading.RLock()
        self._http: Any = None
        self._ticket = ""
        self._csrf = ""
        self._ticket_born = 0.0
        self._refusal: FleetError | None = None
        self.rows: list[Row] = []

    @property
    def endpoint(self) -> Endpoint:
        """The server of the next request: the first one that was reached."""
        return self._connection.endpoint

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        with self._lock:
            if self._http is not None:
                self._http.close()
                self._http = None

    def send_http(self, exchange: HttpRequest) -> HttpAnswer:
        """Return the answer if its status is 200 to 299; otherwise raise a FleetError."""
        login = self._login()
        answer = self._exchange(exchange, login)
        if answer.status_code == 401 and self._ticket and self._is_stale_login(answer):
            login = self._login(instead_of=login)
            answer = self._exchange(exchange, login)
        if answer.status_code >= 300:
            raise self._failure(exchange, answer)
        return answer

    def _exchange(self, exchange: HttpRequest, login: Mapping[str, str]) -> HttpAnswer:
        """Make one HTTP exchange with these headers, and record it."""
        if exchange.upload is None:
            return self._request(exchange, dict(login), exchange.data or None)
        with MultipartBody(exchange.data or {}, exchange.upload, self._clock) as body:
            return self._request(exchange, {**login, "Content-Type": body.content_type}, body)

    def _request(self, exchange: HttpRequest, headers: dict[str, str], body: Any) -> HttpAnswer:
        """Return the answer of the server of the last request, or of the next one that is reached."""
        answers: list[str] = []
        while True:
            connection, http = self._open()
            try:
                return self._request_to(connection, http, exchange, headers, body)
            except NotReached as failure:
                answers.append(failure.answer)
                self._leave(connection)
                if len(answers) > len(connection.others):
                    raise failure.on(answer=", and ".join(answers)) from failure

    def _leave(self, connection: ConnectionSettings) -> None:
        """Send later requests to the next server, unless another thread has changed it already."""
        with self._lock:
            if connection.others and self._connection is connection:
                self._connection = connection.next_server
                self.close()

    def _request_to(
        self,
        connection: ConnectionSettings,
        http: Any,
        exchange: HttpRequest,
        headers: dict[str, str],
        body: Any,
    ) -> HttpAnswer:
        wait = exchange.timeout
        if wait is None:
            wait = connection.timeout
        if exchange.method == "GET":
            headers.pop(_CSRF, None)
        started = self._clock.monotonic()
        status = 0
        try:
            response = http.request(
                exchange.method,
                connection.endpoint.url + exchange.path,
                params=exchange.params or None,
                data=body,
                headers=headers,
                timeout=(min(connection.connect_timeout, wait), wait),
                allow_redirects=False,
                verify=connection.validate_certs,
            )
            status = response.status_code
            self.has_answered = True
            return HttpAnswer(status, response.reason or "", response.content)
        except (OSError, ValueError, zlib.error) as error:  # OSError: all errors of requests
            failure = transport.transport_error(error, connection)
            if connection.site:
                failure = failure.on(answer=f"{failure.answer} (site {connection.site})")
            failure = self.without_secrets(failure)
            raise failure.on(
                method=exchange.method, path=exchange.plain_path, status=status or None
            ) from error
        finally:
            taken = (self._clock.monotonic() - started) * 1000
            self.rows.append(
                (exchange.method, exchange.plain_path, status, round(taken, 1), exchange.number)
            )

    def _open(self) -> tuple[ConnectionSettings, Any]:
        """Return the server and its `requests` session; the first request opens it."""
        with self._lock:
            if self._http is None:
                self._http = transport.new_requests_session(self._connection)
            return self._connection, self._http

    def _login(self, instead_of: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Return the headers that authenticate a request.

        `instead_of` are the headers that PVE just refused.
        """
        connection = self._connection
        if connection.token_id:
            # proxmox-auth-api, extract_auth_data: other products separate the secret by a colon.
            separator = "=" if connection.product == PVE else ":"
            token = f"{connection.token_id}{separator}{connection.token_secret}"
            return {"Authorization": f"{connection.product}APIToken={token}"}
        self._open()
        with self._lock:
            refused = instead_of is not None and instead_of == self._ticket_headers()
            if refused or not self._is_fresh():
                try:
                    self._get_ticket()
                except NetworkError as error:  # the request itself was not sent
                    raise error.on(dispatched=False) from error
            return self._ticket_headers()

    def _is_fresh(self) -> bool:
        return bool(self._ticket) and self._clock.monotonic() - self._ticket_born < RENEW_AFTER

    def _ticket_headers(self) -> dict[str, str]:
        return {"Cookie": f"PVEAuthCookie={self._ticket}", _CSRF: self._csrf}

    def _get_ticket(self) -> None:
        """Log in with the password; the caller holds the lock."""
        connection = self._connection
        # PVE delays each refusal by three seconds; one refusal is enough for all threads.
        if self._refusal is not None:
            raise self._refusal
        self._ticket = ""
        attempted = f"Could not log in to {connection.endpoint} as {connection.user}"
        data = {"username": connection.user, "password": connection.password}
        exchange = HttpRequest("POST", _TICKET_PATH, data)
        answer = self._exchange(exchange, {})
        if answer.status_code >= 300:
            failure = self._failure(exchange, answer).on(attempted=attempted)
            if isinstance(failure, AuthenticationError):
                self._refusal = failure
            raise failure
        found = _read_login(answer, attempted)
        if found.get("NeedTFA"):
            raise AuthenticationError(
                f"{attempted}: the user has a second factor",
                "Use an API token: set token_id and token_secret",
                "second factor",
                status=answer.status_code,
                method="POST",
                path=_TICKET_PATH,
            )
        self._ticket = found["ticket"]
        self._csrf = found.get(_CSRF, "")
        self._ticket_born = self._clock.monotonic()

    def _is_stale_login(self, answer: HttpAnswer) -> bool:
        message, _errors = _message(answer)
        text = f"{answer.reason} {message}".lower()
        return any(sign in text for sign in _STALE_LOGIN)

    def _failure(self, exchange: HttpRequest, answer: HttpAnswer) -> FleetError:
        """Return the classified error of an answer, without the secrets of this connection."""
        method, plain = exchange.method, exchange.plain_path
        if answer.status_code < 400:
            return ConfigurationError(
                answer=(
                    f"{self._connection.endpoint} redirects the request (status"
                    f" {answer.status_code})"
                ),
                next_step=(
                    "Set host to the address where PVE itself answers; credentials are never sent"
                    " elsewhere"
                ),
                reason="redirect",
                status=answer.status_code,
                method=method,
                path=plain,
            )
        message, errors = _message(answer)
        error = classify(method, plain, answer.status_code, answer.reason, message, errors)
        if isinstance(error, AuthenticationError) and plain != _TICKET_PATH:
            error = error.on(answer=f"{error.answer} ({self._identity})")
        return self.without_secrets(error)

    @property
    def _identity(self) -> str:
        """The login of the requests, for people."""
        if self._connection.token_id:
            return f"token {self._connection.token_id}"
        return f"user {self._connection.user}"

    def without_secrets(self, error: FleetError) -> FleetError:
        """Return the error with every secret of the connection replaced by stars."""
        return starred_error(error, [*self._connection.secrets, self._ticket, self._csrf])


def starred_error(error: FleetError, secrets: Sequence[str]) -> FleetError:
    """Return the error with each of these secrets replaced by stars."""
    answer = _starred(error.answer, secrets)
    reason = _starred(error.reason, secrets)
    parameters = {key: _starred(text, secrets) for key, text in error.parameters.items()}
    was = (error.answer, error.reason, error.parameters)
    if (answer, reason, parameters) == was:
        return error
    return error.on(answer=answer, reason=reason, parameters=parameters)


def _message(answer: HttpAnswer) -> tuple[str, dict[str, Any]]:
    """Return `message` and `errors` of an error's body.

    Without a JSON body, `message` is the reason phrase.
    """
    try:
        body = _read_json(answer.body)
    except ValueError:
        return "", {}
    if not isinstance(body, dict):
        return "", {}
    message = str(body.get("message") or "")
    errors = body.get("errors")
    if not isinstance(errors, dict):
        errors = {}
    return message, errors


def _starred(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if len(secret) >= 3:
            text = text.replace(secret, "********")
    return text
