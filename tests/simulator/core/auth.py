"""Who is calling: API tokens, tickets, CSRF tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ..errors import AuthError

if TYPE_CHECKING:
    from .acl import Acl

TICKET_LIFETIME = 7200
# Calls that need no credentials.
OPEN = {
    ("GET", "/access/domains"),
    ("GET", "/access/ticket"),
    ("POST", "/access/ticket"),
    ("POST", "/access/vncticket"),
    ("POST", "/access/openid/login"),
    ("POST", "/access/openid/auth-url"),
}


class Caller:
    """The user or token behind a request."""

    __slots__ = ("token", "who")

    def __init__(self, who: str, token: bool = False) -> None:
        self.who = who
        self.token = token

    @property
    def user(self) -> str:
        """The user, without the name of the token."""
        return self.who.partition("!")[0]


class Authority:
    """Makes and verifies credentials."""

    def __init__(self, acl: Acl, key: bytes) -> None:
        self.acl = acl
        self.key = key
        self.passwords: dict[str, str] = {}
        self._tokens: dict[str, Caller] = {}
        self._tickets: dict[str, tuple[str, int]] = {}

    # -- tickets ---------------------------------------------------------------------------------

    def _sign(self, text: str) -> str:
        return base64.b64encode(
            hmac.new(self.key, text.encode(), hashlib.sha512).digest() * 4
        ).decode()

    def ticket(self, user: str) -> str:
        """A ticket of the user, good for two hours."""
        plain = f"PVE:{user}:{int(time.time()):08X}"
        return f"{plain}::{self._sign(plain)}"

    def csrf(self, user: str) -> str:
        """The token that a write with a ticket needs."""
        stamp = f"{int(time.time()):08X}"
        digest = hmac.new(self.key, f"{stamp}:{user}".encode(), hashlib.sha256).digest()
        return f"{stamp}:{base64.b64encode(digest).decode().rstrip('=')}"

    def ticket_user(self, ticket: str) -> str | None:
        """The user of a valid ticket."""
        plain, found, signature = ticket.partition("::")
        parts = plain.split(":")
        if not found or len(parts) != 3 or parts[0] != "PVE":
            return None
        known = self._tickets.get(ticket)
        if known is None:
            try:
                stamp = int(parts[2], 16)
            except ValueError:
                return None
            if not hmac.compare_digest(signature, self._sign(plain)):
                return None
            known = self._tickets[ticket] = (parts[1], stamp)
        user, stamp = known
        return user if -300 < time.time() - stamp < TICKET_LIFETIME else None

    def check_csrf(self, user: str, token: str | None) -> None:
        """Refuse a write whose CSRF token is missing, forged or old."""
        stamp, _dummy, digest = (token or "").partition(":")
        good = hmac.new(self.key, f"{stamp}:{user}".encode(), hashlib.sha256).digest()
        expected = base64.b64encode(good).decode().rstrip("=")
        try:
            age = time.time() - int(stamp, 16)
        except ValueError:
            age = TICKET_LIFETIME
        if (
            not hmac.compare_digest(digest.encode(), expected.encode())
            or not -300 < age < TICKET_LIFETIME
        ):
            raise AuthError("Permission denied - invalid csrf token")

    def password_ok(self, user: str, password: str) -> bool:
        """Whether the password, or a ticket of the user in its place, lets the user in."""
        if not self.enabled(user):
            return False
        if password.startswith("PVE:") and self.ticket_user(password) == user:
            return True
        known = self.passwords.get(user)
        return known is not None and hmac.compare_digest(known.encode(), password.encode())

    def enabled(self, user: str) -> bool:
        """Whether the account exists, is switched on and has not expired."""
        info = self.acl.users.get(user)
        if user == "root@pam":
            return info is None or bool(info.get("enable", 1))
        if info is None or not info.get("enable", 1):
            return False
        expire = int(info.get("expire", 0))
        return not expire or expire > time.time()

    # -- requests --------------------------------------------------------------------------------

    def changed(self) -> None:
        """An account or token changed: look at the next request afresh."""
        self._tokens.clear()

    def _token_caller(self, value: str) -> Caller:
        known = self._tokens.get(value)
        if known is not None:
            return known
        head, equals, secret = value.partition("=")
        if not equals:
            head, _dummy, secret = value.partition(" ")
        user, bang, name = head.strip().partition("!")
        info = self.acl.users.get(user, {}).get("tokens", {}).get(name) if bang else None
        if (
            info is None
            or not self.enabled(user)
            or not hmac.compare_digest(info["secret"].encode(), secret.encode())
        ):
            raise AuthError("Authentication failed!")
        expire = int(info.get("expire", 0))
        if expire and expire <= time.time():
            raise AuthError("Authentication failed!")
        caller = Caller(f"{user}!{name}", token=True)
        if not expire and not int(self.acl.users[user].get("expire", 0)):
            self._tokens[value] = caller
        return caller

    def identify(self, method: str, path: str, headers: Mapping[str, str]) -> Caller | None:
        """The caller, or None for a call that needs no credentials."""
        if (method, path) in OPEN:
            authorization = headers.get("Authorization", "")
            if authorization.startswith("PVEAPIToken"):
                # A token is looked at even here, so that the answer says that it may not log in.
                return self._token_caller(authorization[11:].lstrip("= "))
            return None
        authorization = headers.get("Authorization", "")
        if authorization.startswith("PVEAPIToken"):
            return self._token_caller(authorization[11:].lstrip("= "))
        ticket = cookie_ticket(headers.get("Cookie", "")) or _header_ticket(authorization)
        if not ticket:
            raise AuthError("No ticket")
        user = self.ticket_user(ticket)
        if user is None or not self.enabled(user):
            raise AuthError("Authentication failed!")
        if method != "GET" and not path.endswith("/upload"):
            self.check_csrf(user, headers.get("CSRFPreventionToken"))
        return Caller(user)


def cookie_ticket(cookies: str) -> str | None:
    """The ticket among the cookies."""
    for part in cookies.split(";"):
        name, _dummy, value = part.strip().partition("=")
        if name in ("PVEAuthCookie", "__Host-PVEAuthCookie"):
            return unquote(value.strip('"'))
    return None


def _header_ticket(authorization: str) -> str | None:
    name, _dummy, value = authorization.partition("=")
    return value if name == "PVEAuthCookie" else None
