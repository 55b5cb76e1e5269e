"""Bodies of requests: their limits, and the parameters in them.

Source of the rules: pve-http-server, AnyEvent.pm, process_header and
authenticate_and_handle_request. The body of a DELETE is ignored, as was observed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web

from .forms import RawError, Unanswered, parse_json, parse_urlencoded
from .multipart import Upload, boundary_of

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

# Bytes of a body that is not an upload ($limit_max_post).
MOST = 512 * 1024
_BODY_METHODS = ("POST", "PUT")
_FORM_TYPES = ("", "application/x-www-form-urlencoded", "application/json")


def request_of(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """A request without a limit of aiohttp's: the rules of this file are all."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=0)


def check_head(request: web.BaseRequest) -> None:
    """Refuse by the headers. Raises RawError."""
    coding = request.headers.get("Transfer-Encoding", "")
    if coding.lower() == "chunked":
        raise RawError(501, "chunked transfer encoding not supported")
    if coding:
        raise RawError(501, f"Unknown transfer encoding '{coding}'")


async def read_parameters(request: web.BaseRequest, upload: bool) -> dict[str, Any]:
    """The parameters of body and query. Raises RawError and Unanswered."""
    query = parse_urlencoded(request.rel_url.raw_query_string)
    length = (request.content_length or 0) if request.method in _BODY_METHODS else 0
    params: dict[str, Any] = {}
    try:
        if length and upload:
            params = await _read_upload(request, query)
        elif length:
            params = await _read_form(request, length)
    except (OSError, web.PayloadAccessError):
        raise Unanswered from None
    params = {**query, **params} if upload else {**params, **query}
    params.pop("_dc", None)
    return params


async def _read_form(request: web.BaseRequest, length: int) -> dict[str, Any]:
    if length > MOST:
        raise RawError(501, "for data too large")
    content_type = request.headers.get("Content-Type", "")
    kind = content_type.split(";")[0].split(",")[0].strip()
    if kind not in _FORM_TYPES:
        raise RawError(506, f"upload 'Content-Type '{content_type}' not implemented")
    body = await request.read()
    if kind == "application/json":
        return parse_json(body)
    return parse_urlencoded(body.decode("utf-8", "replace"))


async def _read_upload(request: web.BaseRequest, query: dict[str, Any]) -> dict[str, Any]:
    boundary = boundary_of(request.headers.get("Content-Type", ""))
    if boundary is None or "tmpfilename" in query:
        raise Unanswered
    upload = Upload(boundary)
    async for data in request.content.iter_any():
        upload.add(data)
    return upload.end()
