"""Parameters of a request: query string, form and JSON, read as PVE reads them."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from ..errors import ApiError

SOURCE = "/usr/share/perl5/PVE/APIServer/AnyEvent.pm"


class RawError(ApiError):
    """A failure below the API: the reason phrase and a plain text body tell it."""


class Unanswered(Exception):
    """There is no answer: PVE's server died of the request, or the client went away."""


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
    """The object of a JSON body; invalid JSON fails as in PVE's decoder."""
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
