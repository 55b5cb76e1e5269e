# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of each call's answer (pure).

The forms are generated from `returns` in the API's schema, see tests/tools/facts/make_answers.py.
The needed keys of a row identify an object or its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .forms import Form, optional, task_id
from .generated.answers import READS, WRITES

_TASK_OR_NOTHING = optional(task_id)  # the answer to a write on a node


def _nested(forms: Mapping[str, Form]) -> dict[tuple[int, str], list[tuple[list[str], Form]]]:
    """Return the forms by the number of segments and the first one."""
    found: dict[tuple[int, str], list[tuple[list[str], Form]]] = {}
    for path, form in forms.items():
        parts = path.split("/")
        found.setdefault((len(parts), parts[0]), []).append((parts, form))
    return found


_READS, _WRITES = _nested(READS), _nested(WRITES)


def form_of(method: str, segments: Sequence[str | int]) -> Form | None:
    """Return the form of an answer, or None if any answer is accepted."""
    if method == "GET":
        return next(_matching(_READS, segments), None)
    other = _TASK_OR_NOTHING if segments[0] == "nodes" else None
    return next(_matching(_WRITES, segments), other)


def _matching(
    forms: Mapping[tuple[int, str], Sequence[tuple[list[str], Form]]], segments: Sequence[str | int]
) -> Iterator[Form]:
    for parts, form in forms.get((len(segments), str(segments[0])), ()):
        if all(part in ("*", one) for part, one in zip(parts, segments, strict=True)):
            yield form
