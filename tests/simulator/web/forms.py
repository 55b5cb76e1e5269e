"""Parameters of a request: query string, form, JSON and multipart, read as PVE reads them."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from ..errors import ApiError

SOURCE = "/usr/share/perl5/PVE/APIServer/AnyEvent.pm"


class RawError(ApiError):
    """A failure below the API: the reason phrase and a plain text body tell it."""


def _unquote(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def parse_urlencoded(text: str) -> dict[str, Any]:
    """The pairs of a query string or form; a name that comes twice becomes a list."""
    result: dict[str, Any] = {}
    for part in (
        re.split("[&;]", text)
        if ";" in text and "&" not in text and "=" not in text
        else text.split("&")
    ):
        if not part:
            continue
        name, _dummy, value = part.partition("=")
        name, value = _unquote(name), _unquote(value)
        if name in result:
            held = result[name]
            result[name] = [*held, value] if isinstance(held, list) else [held, value]
        else:
            result[name] = value
    return result


def parse_json(body: bytes) -> dict[str, Any]:
    """The object of a JSON body; what is not JSON fails as PVE's decoder does."""
    text = body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise RawError(500, _json_text(text, error) + f" at {SOURCE} line 934.\n") from None
    if not isinstance(value, dict):
        raise RawError(500, f"Not a HASH reference at {SOURCE} line 938.\n")
    return value


def _json_text(text: str, error: json.JSONDecodeError) -> str:
    position = error.pos
    rest = text[position:] or "(end of string)"
    if "property name" in error.msg and text[position : position + 1]:
        what = "'\"' expected"
    elif "delimiter" in error.msg and "':'" in error.msg:
        what = "':' expected"
    elif "delimiter" in error.msg:
        what = ", or } expected while parsing object/hash"
    else:
        what = "malformed JSON string, neither tag, array, object, number, string or atom"
    return f'{what}, at character offset {position} (before "{rest[:40]}")'


def parse_multipart(body: bytes, content_type: str) -> dict[str, Any]:
    """The fields of an upload, in the order PVE insists on: content, checksum-algorithm, checksum,
    the file.
    """
    found = re.search(r'boundary="?([^";]+)"?', content_type)
    if not found:
        raise RawError(400, "Bad Request")
    fields: dict[str, Any] = {}
    order = ["content", "checksum-algorithm", "checksum"]
    for chunk in body.split(b"--" + found[1].encode())[1:-1]:
        head, _dummy, value = chunk.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        value = value.removesuffix(b"\r\n")
        disposition = next(
            (
                line
                for line in head.decode("utf-8", "replace").split("\r\n")
                if line.lower().startswith("content-disp")
            ),
            "",
        )
        name = re.search(r'\bname="([^"]*)"', disposition)
        if not name:
            raise RawError(400, "Bad Request")
        if name[1] == "filename":
            file = re.search(r'filename="([^"]*)"', disposition)
            fields["filename"] = upload_name(file[1] if file else "")
            fields["tmpfilename"] = value
            return fields
        if name[1] not in order:
            raise RawError(400, "Bad Request")
        del order[: order.index(name[1]) + 1]
        fields[name[1]] = value.decode("utf-8", "replace")
    raise RawError(500, f"upload failed at {SOURCE} line 1370.\n")


def upload_name(name: str) -> str:
    """The file name that an upload gets: without directories, odd characters made underscores."""
    name = re.split(r"[/\\]", name)[-1]
    return re.sub(r"[^-a-zA-Z0-9_.]", "_", name)
