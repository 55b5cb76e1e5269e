"""The connection to the other cluster, as the source of a migration has it.

Source: pve-apiclient, PVE/APIClient/LWP.pm (call, new, verify_cert_callback); pve-guest-common,
PVE/Tunnel.pm (fork_websocket_tunnel, write_tunnel, read_tunnel).
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp

from ..errors import PveError

# Seconds until a command without a reply fails. In Proxmox VE 10 to 600, by the command.
REPLY_S = 30.0
_NO_JSON = (
    "malformed JSON string, neither tag, array, object, number, string or atom, at character"
    ' offset 0 (before "(end of string)") at /usr/share/perl5/PVE/Tunnel.pm line 125.'
)


if TYPE_CHECKING:
    # aiohttp's class has a type parameter since 3.12
    Socket = aiohttp.ClientWebSocketResponse[bool]


class Endpoint:
    """The other cluster: its API, and the sockets of the tunnel."""

    def __init__(self, text: str) -> None:
        parts = dict(part.partition("=")[::2] for part in text.split(","))
        self.host = parts["host"]
        self.port = int(parts.get("port") or 8006)
        self.token = parts["apitoken"]
        self.fingerprint = parts.get("fingerprint", "").upper()
        # without a fingerprint, the certificate must be valid for the system's authorities
        self.tls: aiohttp.Fingerprint | bool = True
        if self.fingerprint:
            self.tls = aiohttp.Fingerprint(bytes.fromhex(self.fingerprint.replace(":", "")))
        self.session = aiohttp.ClientSession(f"https://{self.host}:{self.port}", trust_env=False)

    async def close(self) -> None:
        """Close every connection."""
        await self.session.close()

    @property
    def _api_token(self) -> str:
        """The client of the API completes the header (LWP.pm, new); the tunnel does not."""
        known = self.token.partition("=")[0].replace("_", "").isalnum()
        return self.token if known else f"PVEAPIToken={self.token}"

    async def call(self, verb: str, path: str, params: dict[str, Any] | None = None) -> Any:
        """The data of an answer. Raises PveError with the text of the client."""
        headers = {"Authorization": self._api_token}
        options: dict[str, Any] = {"ssl": self.tls, "headers": headers}
        if params is not None:
            options["data"] = params
        try:
            async with self.session.request(verb, f"/api2/json{path}", **options) as answer:
                if answer.status == 200:
                    return (await answer.json(content_type=None))["data"]
                reason, text = answer.reason or "", await answer.text()
        except aiohttp.ServerFingerprintMismatch as error:
            raise _not_verified(error.got) from None
        except aiohttp.ClientConnectorCertificateError:
            raise PveError("fingerprint '?' not verified, abort!") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PveError(
                f"500 Can't connect to {self.host}:{self.port} ({_cause(error)})"
            ) from None
        raise PveError("\n".join([f"{answer.status} {reason}", *_faults(text)]))

    async def open(self, path: str, ticket: str, socket: str) -> Socket:
        """A socket on the other side. Raises PveError if it does not open."""
        query = urlencode({"ticket": ticket, "socket": socket})
        try:
            return await self.session.ws_connect(
                f"/api2/json{path}?{query}",
                ssl=self.tls,
                headers={"Authorization": self.token},
                max_msg_size=0,
            )
        except (aiohttp.ClientError, OSError):
            raise PveError(f"can't open tunnel - {_NO_JSON}") from None


def _not_verified(got: bytes) -> PveError:
    text = got.hex().upper()
    shown = ":".join(text[index : index + 2] for index in range(0, len(text), 2))
    return PveError(f"fingerprint '{shown}' not verified, abort!")


def _cause(error: Exception) -> str:
    cause = getattr(error, "os_error", error)
    return (
        getattr(cause, "strerror", None) or "Server closed connection without sending any data back"
    )


def _faults(text: str) -> list[str]:
    """The errors of parameters, which the client adds to the message (Exception.pm, stringify)."""
    try:
        errors = json.loads(text).get("errors") or {}
    except ValueError:
        return []
    return [f"{name}: {fault.rstrip()}" for name, fault in errors.items()]


class Tunnel:
    """The source's end of the tunnel: commands and replies, one at a time."""

    def __init__(self, endpoint: Endpoint, path: str) -> None:
        self.endpoint = endpoint
        self.path = path
        self.control: Socket | None = None
        self.upid = ""

    async def start(self, storages: list[str], bridges: list[str]) -> None:
        """Start the worker on the other side and connect to it."""
        request = {"storages": ",".join(storages), "bridges": ",".join(bridges)}
        answer = await self.endpoint.call("POST", f"{self.path}/mtunnel", request)
        self.upid = answer["upid"]
        path = f"{self.path}/mtunnelwebsocket"
        self.control = await self.endpoint.open(path, answer["ticket"], answer["socket"])

    async def write(self, command: str, **params: Any) -> dict[str, Any]:
        """Send a command; the reply. Raises PveError for a refusal and for a broken tunnel."""
        if self.control is None or self.control.closed:
            raise PveError("writing to tunnel failed: interrupted by signal")
        line = json.dumps({**params, "cmd": command}, separators=(",", ":"))
        try:
            await self.control.send_str(line)
            message = await self.control.receive(REPLY_S)
        except asyncio.TimeoutError:
            reason = "reading from tunnel failed: got timeout"
            raise PveError(f"no reply to command '{line}': {reason}") from None
        except (aiohttp.ClientError, OSError):
            raise PveError("writing to tunnel failed: interrupted by signal") from None
        if message.type is not aiohttp.WSMsgType.TEXT:
            await self.control.close()
            text = f"failed to decode tunnel reply '' (command '{line}')"
            raise PveError(f"{text} - {_NO_JSON}")
        reply: dict[str, Any] = json.loads(message.data)
        if not reply["success"]:
            said = f" - {reply['msg'].rstrip()}" if reply.get("msg") else ""
            raise PveError(f"error - tunnel command '{line}' failed{said}")
        return reply

    async def send(self, socket: str, data: dict[str, Any]) -> None:
        """Send the data of a disk or of the memory through a socket of its own.

        Raises PveError if the other side did not take all of it.
        """
        ticket = (await self.write("ticket", path=socket))["ticket"]
        stream = await self.endpoint.open(f"{self.path}/mtunnelwebsocket", ticket, socket)
        try:
            await stream.send_str(json.dumps(data))
            taken = await stream.receive(REPLY_S)
        except (asyncio.TimeoutError, aiohttp.ClientError, OSError):
            raise PveError("command 'dd' failed: got signal 13") from None
        finally:
            await stream.close()
        if taken.type is not aiohttp.WSMsgType.TEXT:
            raise PveError("command 'dd' failed: got signal 13")

    async def finish(self, *, cleanup: bool = False) -> None:
        """End the worker on the other side; with `cleanup` it removes the guest.

        The connection is closed in any case (Tunnel.pm, finish_tunnel).
        """
        try:
            await self.write("quit", cleanup=int(cleanup))
        finally:
            if self.control is not None:
                await self.control.close()
