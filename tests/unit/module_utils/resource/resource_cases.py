# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource with all that a table can say, and a server that has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.interface import PlanBook
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.upid import TaskResult
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    AlreadyExists,
    Conflict,
    FleetError,
    NotFound,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import (
    Call,
    Field,
    Key,
    Members,
    Table,
)
from tests.fake_clock import FakeClock

_ONE = Call(("rooms", "{room}", "shelves", "{name}"))
SHELF = Table(
    kind="shelf",
    keys=(
        Key("room", "room", lambda value, _what: value),
        Key("name", "id", lambda value, _what: value),
    ),
    fields=(
        Field("comment", "comment"),
        Field("size", "size", want=int, read=lambda value: int(value or 1)),
        Field("kind", "kind", fixed=True),
    ),
    members=(
        Members("books", "book", "book", int, lambda answer: frozenset(answer.get("books", ()))),
    ),
    list_call=Call(("rooms", "{room}", "shelves")),
    read_call=_ONE,
    create_call=Call(("rooms", "{room}", "shelves"), {"id": "{name}"}),
    update_call=_ONE,
    delete_call=_ONE,
    switches={"loud": "loud-move"},
)


class FakeApi:
    """Has shelves in one room.

    `before_write` is called before each write, and may change them or raise.
    """

    login = "root@pam!fleet"
    plan_book = PlanBook()

    def __init__(self, shelves: Mapping[str, dict[str, Any]] | None = None) -> None:
        self.clock = FakeClock()
        self.shelves = {name: dict(shelf) for name, shelf in (shelves or {}).items()}
        self.written: list[tuple[str, dict[str, Any]]] = []
        self.noted: list[str] = []
        self.before_write: Callable[[str, dict[str, Any]], None] = lambda _method, _data: None

    def release(self) -> tuple[int, ...]:
        return (9, 2, 11)

    def privileges(self) -> Mapping[str, Any]:
        return {}

    def version(self) -> tuple[int, int]:
        return (9, 2)

    def note(self, summary: str) -> None:
        self.noted.append(summary)

    def get(self, *segments: str | int, **_more: Any) -> Any:
        if len(segments) == 3:
            return [
                {"room": segments[1], "id": name, **shelf} for name, shelf in self.shelves.items()
            ]
        if segments[3] not in self.shelves:
            raise NotFound(reason="does not exist")
        return {"id": segments[3], **self.shelves[str(segments[3])]}

    def write(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        confirm: Callable[[], Any] | None = None,
        again: Callable[[], None] | None = None,
    ) -> Any:
        sent = dict(data or {})
        self.before_write(method, sent)
        self.written.append((method, sent))
        try:
            self._apply(method, [str(part) for part in segments], sent)
        except FleetError as error:
            raise error.on(attempted=attempted) from error
        return None

    def task(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        timeout: float = 300.0,
        confirm: Callable[[], Any] | None = None,
    ) -> TaskResult:
        self.write(method, *segments, data=data, attempted=attempted, confirm=confirm)
        return TaskResult("UPID:pve1:1", "pve1", "shelf", "WARNINGS: 1", ("it creaks",))

    def _apply(self, method: str, segments: list[str], sent: dict[str, Any]) -> None:
        name = sent.pop("id", None) or sent.pop("shelf") if method == "POST" else segments[3]
        if method == "POST":
            if name in self.shelves:
                raise AlreadyExists(reason="exists")
            self.shelves[name] = {"books": set(), **sent}
            return
        if name not in self.shelves:
            raise NotFound(reason="does not exist")
        if method == "DELETE":
            del self.shelves[name]
            return
        books = {int(one) for one in str(sent.pop("book", "")).split(",") if one}
        own = self.shelves[name].setdefault("books", set())
        if sent.pop("delete", None):
            own -= books
            return
        if own & books:
            raise Conflict(reason="in a pool", answer="already a member")
        own |= books
        sent.pop("loud-move", None)
        self.shelves[name].update(sent)
