# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One event: a dictionary with the keys of its type, without secrets (pure)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from ..._foundation.core.formatting import printable
from ..._foundation.core.times import iso
from .kinds import KEYS

Event = dict[str, Any]

POLL, WEBHOOK = "poll", "webhook"
_LONGEST = 4000  # characters of one text, for example of a notification
_STARS = "********"


def event_of(
    type: str, site: str, when: float, values: Mapping[str, Any], origin: str = POLL
) -> Event:
    """Return an event with all keys of its type; a value that is not known is None.

    `when` is in seconds since the epoch. The same event has the same ID in every process.
    """
    event: Event = {"type": type, "site": site, "time": iso(when), "origin": origin}
    for key in KEYS[type]:
        event[key] = values.get(key)
    return with_id(event)


def with_id(event: Mapping[str, Any]) -> Event:
    """Return an event with its ID, a hash of its other keys."""
    content = {key: value for key, value in event.items() if key != "id"}
    text = json.dumps(content, sort_keys=True, default=str)
    return {"id": hashlib.sha256(text.encode()).hexdigest()[:24], **content}


def without_secrets(event: Mapping[str, Any], secrets: Collection[str]) -> Event:
    """Return an event with stars instead of these secrets, and long texts shortened."""
    return with_id({key: _clean(value, secrets) for key, value in event.items()})


def _clean(value: Any, secrets: Collection[str]) -> Any:
    if isinstance(value, str):
        return clean_text(value, secrets)
    if isinstance(value, (list, tuple)):
        return [_clean(one, secrets) for one in value]
    if isinstance(value, Mapping):
        return {key: _clean(one, secrets) for key, one in value.items()}
    return value


def clean_text(text: str, secrets: Collection[str] = ()) -> str:
    """Return a printable text with stars instead of secrets, shortened if it is long."""
    for secret in secrets:
        text = text.replace(secret, _STARS)
    text = printable(text)
    if len(text) > _LONGEST:
        return text[:_LONGEST] + " ..."
    return text
