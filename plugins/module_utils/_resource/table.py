# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a simple resource says of itself: its calls, its fields, its rules.

The engine does the rest. Data only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .change import Change, Desired
from .protocols import Api

Values = Mapping[str, Any]
"""A resource by the names of its options: canonical values, and a frozenset for members."""

Precheck = Callable[[Api, Desired, Change], "tuple[str, ...]"]
"""Reads what a change needs to know; returns warnings, or raises before the first write."""

Resolve = Callable[[Api, Desired], Desired]
"""Replaces words that stand for others by what this server calls these."""

Pick = Callable[[Any, Mapping[str, str]], "Mapping[str, Any] | None"]
"""Returns one resource from the answer that has it, None where it does not exist; the second
argument are its keys.
"""

Merge = Callable[[Any, Any, Desired], Any]
"""Returns the canonical value that a field has after a task: from the known one and from what the
option lists, which goes with C(state), C(exact) and C(append).
"""

Rows = Callable[[Any, Mapping[str, str]], "list[Mapping[str, Any]]"]
"""Returns the resources in the answer of the listing, each with the properties of all keys; the
second argument are the keys that the task names.
"""


def as_text(value: Any) -> str:
    """Return a text as it is; PVE leaves out what is empty."""
    return "" if value is None else str(value)


def as_is(value: Any) -> Any:
    """Return the value."""
    return value


@dataclass(frozen=True)
class Call:
    """Where the API has it: `{name}` in a segment or in the data stands for the option of that
    name.

    `method` is the one of the step, POST, PUT or DELETE, unless it is given. `is_task` says that
    the answer is the UPID of a task that has to be waited for.
    """

    path: tuple[str, ...]
    data: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    is_task: bool = False

    def path_for(self, keys: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(segment.format(**keys) for segment in self.path)

    def data_for(self, keys: Mapping[str, str]) -> dict[str, str]:
        return {name: value.format(**keys) for name, value in self.data.items()}


@dataclass(frozen=True)
class Key:
    """An option that names the resource.

    `check` returns its canonical form or raises ValidationFailed.
    """

    option: str
    property: str
    check: Callable[[str, str], str]


@dataclass(frozen=True)
class Field:
    """One property with one value, under the name of its option.

    `want` turns the option's value into its canonical form or raises ValidationFailed, `read` does
    so with PVE's, which is None where PVE has none; what is equal after that is equal. `send`
    renders it for a request, None where the property goes, `show` for a result. A `fixed` field
    cannot be changed: the resource has to be created again. With `merge` an option has a part of
    the value only, and the rest stays.
    """

    option: str
    property: str
    want: Callable[[Any], Any] = as_text
    read: Callable[[Any], Any] = as_text
    send: Callable[[Any], Any] = as_text
    fixed: bool = False
    show: Callable[[Any], Any] = as_is
    merge: Merge | None = None

    def merged(self, known: Any, wanted: Any, desired: Desired) -> Any:
        """Return the canonical value after a task."""
        return wanted if self.merge is None else self.merge(known, wanted, desired)


@dataclass(frozen=True)
class Secret:
    """An option that PVE keeps and never shows, such as a password: it is not compared.

    It goes with the creation. `call` writes it to a resource that exists, where the task asks for
    that: its option `asked[0]` has the value `asked[1]`.
    """

    option: str
    property: str
    call: Call
    asked: tuple[str, str]
    check: Callable[[str, str], str]


@dataclass(frozen=True)
class Members:
    """A set that requests add to and take from. `read` finds the members in PVE's answer.

    `want` turns one item of the option into its canonical form; `identity` is the part of it that
    there is once only, `show` renders it for a result, `text` for a message. `batches` splits items
    into those that one request can list, each with the data of the request.

    Members keep the resource from being deleted, unless they are `own`: a property of it, as the
    privileges of a role. Those go with the creation, and an update states all of them, or adds some
    with the parameter `append`.
    """

    option: str
    property: str
    noun: str
    want: Callable[[Any], Any]
    read: Callable[[Mapping[str, Any]], frozenset[Any]]
    identity: Callable[[Any], Any] = as_is
    show: Callable[[Any], Any] = as_is
    text: Callable[[Any], str] | None = None
    batches: Callable[[frozenset[Any]], Sequence[Batch]] | None = None
    own: bool = False

    def identities(self, items: Iterable[Any]) -> set[Any]:
        """Return what names each of these members."""
        return {self.identity(item) for item in items}

    def named(self, items: Iterable[Any]) -> list[str]:
        """Return members as messages name them."""
        names: list[str] = []
        for item in sorted(items):
            if self.text is None:
                names.append(f"{self.noun} {item}")
            else:
                names.append(self.text(item))
        return names

    def joined(self, items: Iterable[Any]) -> str:
        """Return members as one request lists them."""
        return ",".join(str(item) for item in sorted(items))


Batch = tuple[frozenset[Any], Mapping[str, Any]]
"""Members that one request can list, and its data."""


@dataclass(frozen=True)
class Table:
    """One kind of resource.

    `switches` are options that go with every addition of members, by the parameter of the API;
    `removal` is what turns an update into the removal of members. `pick` finds one resource in the
    answer of `read_call`, `rows` all of them in that of `list_call`; `derived` gives what a result
    has besides, from what names the resource, and `shown` are properties that it reports only.

    A resource that is `permanent` is neither created nor deleted: C(state=absent) takes out the
    members and the parts of fields that the task lists. `unset` is the parameter that lists
    properties to remove.

    `settles` is for a resource that every run writes as a whole, so that two runs can undo each
    other: seconds after which whoever read it before has also written it. It is read right before
    each write and again after that time, and written again where it has not lasted.
    """

    kind: str
    keys: tuple[Key, ...]
    fields: tuple[Field, ...]
    list_call: Call
    read_call: Call
    create_call: Call
    update_call: Call
    delete_call: Call
    members: tuple[Members, ...] = ()
    switches: Mapping[str, str] = field(default_factory=dict)
    removal: Mapping[str, Any] = field(default_factory=lambda: {"delete": 1})
    append: str = "append"
    secrets: tuple[Secret, ...] = ()
    shown: tuple[Field, ...] = ()
    permanent: bool = False
    label_as: str = ""
    kinds: str = ""
    pick: Pick = lambda answer, _keys: answer
    rows: Rows = lambda answer, _keys: answer or []
    resolve: Resolve = lambda _client, desired: desired
    derived: Callable[[Mapping[str, str]], Mapping[str, Any]] = lambda _keys: {}
    precheck: Precheck | None = None
    list_is_whole: bool = True  # whether the listing has all fields and members of each
    unset: str = "delete"
    settles: float = 0.0

    @property
    def plural(self) -> str:
        return self.kinds or f"{self.kind}s"

    @property
    def options(self) -> frozenset[str]:
        """The options of the module that the engine works on, beside C(state), C(exact), C(append),
        C(force) and C(recreate).
        """
        found = set(self.switches)
        found.update(key.option for key in self.keys)
        found.update(one.option for one in self.fields)
        found.update(group.option for group in self.members)
        for secret in self.secrets:
            found.update((secret.option, secret.asked[0]))
        return frozenset(found)

    @property
    def apart(self) -> frozenset[str]:
        """The members that requests add and remove, because they are not part of the resource."""
        return frozenset(group.option for group in self.members if not group.own)

    def keys_of(self, answer: Mapping[str, Any]) -> dict[str, str]:
        """Return what names a resource of a listing."""
        return {key.option: str(answer[key.property]) for key in self.keys}

    def label(self, keys: Mapping[str, str]) -> str:
        """Return how messages call the resource."""
        if self.label_as:
            return self.label_as.format(**keys)
        name = "/".join(keys[key.option] for key in self.keys)
        return f"{self.kind} '{name}'"

    def values(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the canonical values of a resource as PVE answers with it."""
        reported = (*self.fields, *self.shown)
        found = {one.option: one.read(answer.get(one.property)) for one in reported}
        for group in self.members:
            found[group.option] = group.read(answer)
        return found

    def show(self, keys: Mapping[str, str], values: Values) -> dict[str, Any]:
        """Return the resource as modules report it."""
        found: dict[str, Any] = {**keys, **self.derived(keys)}
        for one in (*self.fields, *self.shown):
            found[one.option] = one.show(values.get(one.option, one.read(None)))
        for group in self.members:
            items = sorted(values.get(group.option, ()))
            found[group.option] = [group.show(item) for item in items]
        return found
