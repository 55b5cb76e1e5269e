# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The declaration of a simple resource: its calls, its fields, its rules; its desired state and
the differences from it.

The engine does the rest. Data only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..api.access.listed import Way
from ..api.interface import Api
from .own_loss import OwnLoss


@dataclass(frozen=True)
class DesiredResource:
    """The desired state of a resource, by option.

    Options that are missing in `values` and `members` are not changed.
    """

    keys: Mapping[str, str]
    present: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)
    members: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    exact: bool = False  # whether members that are not named are removed
    force: bool = False  # whether a resource with members may be deleted
    allow_self: bool = False  # whether the login of the task may lose rights
    recreate: bool = False  # whether it may be deleted and recreated to change a fixed field
    switches: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    rewrites: bool = False  # whether secrets are also written to a resource that exists


@dataclass(frozen=True)
class ResourceChange:
    """The differences between a resource and its desired state."""

    creates: bool = False
    deletes: bool = False
    sets: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)  # all present values
    adds: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    removes: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()  # options that differ and cannot be changed
    writes: tuple[str, ...] = ()  # secrets to write to a resource that exists

    def __bool__(self) -> bool:
        return self.visible or bool(self.writes)

    @property
    def verb(self) -> str:
        """The word for the change in messages."""
        if self.creates:
            return "created"
        return "deleted" if self.deletes else "changed"

    @property
    def visible(self) -> bool:
        """Whether a reading of the resource shows a difference; secrets are never shown."""
        is_whole = self.creates or self.deletes
        parts = (self.sets, self.adds, self.removes, self.fixed)
        return is_whole or any(parts)


Values = Mapping[str, Any]
"""A resource by the names of its options: canonical values, and a frozenset for members."""

Precheck = Callable[[Api, DesiredResource, ResourceChange], "tuple[str, ...]"]
"""Reads the facts that a change needs; returns warnings, or raises before the first write."""

Resolve = Callable[[Api, DesiredResource], DesiredResource]
"""Replaces names of this collection by the names of this server."""

Pick = Callable[[Any, Mapping[str, str]], "Mapping[str, Any] | None"]
"""Returns one resource from the answer that contains it, None if it does not exist; the second
argument contains its keys.
"""

Merge = Callable[[Any, Any, DesiredResource], Any]
"""Returns the canonical value of a field after a task, from the known value and the values of the
option, which depends on C(state), C(exact) and C(append).
"""

IsPending = Callable[[Any, Mapping[str, str]], bool]
"""Returns whether the answer with a resource also shows a change that was not committed."""

Rows = Callable[[Any, Mapping[str, str]], "list[Mapping[str, Any]]"]
"""Returns the resources in the answer of the listing, each with the properties of all keys; the
second argument contains the keys in the task.
"""


Listed = Callable[[Mapping[str, str]], tuple[Way, ...]]
"""Returns the ways in which PVE lists a resource with these keys, if it hides others."""


class Guard(Protocol):
    """Returns the rights that the login of the task loses by a change.

    Sends no request if the change cannot affect the login.
    """

    def __call__(
        self, api: Api, desired: DesiredResource, change: ResourceChange, existing: Values, /
    ) -> OwnLoss | None: ...


def as_text(value: Any) -> str:
    """Return a text unchanged; PVE leaves out empty texts."""
    return "" if value is None else str(value)


def as_is(value: Any) -> Any:
    """Return the value."""
    return value


@dataclass(frozen=True)
class Call:
    """A call of the API: `{name}` in a segment or in the data is replaced by the option `name`.

    `method` is POST, PUT or DELETE, by default the method of the step. With `is_task`, the answer
    is the UPID of a task whose end is awaited.
    """

    path: tuple[str, ...]
    data: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    is_task: bool = False

    def path_for(self, keys: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(segment.format(**keys) for segment in self.path)

    def data_for(self, keys: Mapping[str, str]) -> dict[str, str]:
        return {name: value.format(**keys) for name, value in self.data.items()}


_AS_READ = Call(())


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

    `want` converts the option's value into its canonical form or raises ValidationFailed, `read`
    converts PVE's value, or None, into the same form; equal forms mean equal values. `send` renders
    it for a request, None if the property is removed, `show` for a result. A `fixed` field cannot
    be changed: the resource must be recreated. With `merge` the option contains only a part of the
    value, and the rest stays.

    An `always` field is part of every update, because Proxmox VE requires it there. A `required`
    field must be set for a new resource. With `variants` the field exists only if the table's
    `variant` has one of these values; `fixed` and `required` can list some of them as well.
    """

    option: str
    property: str
    want: Callable[[Any], Any] = as_text
    read: Callable[[Any], Any] = as_text
    send: Callable[[Any], Any] = as_text
    fixed: bool | tuple[str, ...] = False
    show: Callable[[Any], Any] = as_is
    merge: Merge | None = None
    always: bool = False
    required: bool | tuple[str, ...] = False
    variants: tuple[str, ...] = ()

    def exists_in(self, variant: Any) -> bool:
        """Return whether a resource of this variant has the field."""
        return not self.variants or variant in self.variants

    def is_fixed_in(self, variant: Any) -> bool:
        """Return whether the field cannot be changed in a resource of this variant."""
        return _holds(self.fixed, variant)

    def is_required_in(self, variant: Any) -> bool:
        """Return whether a new resource of this variant must have the field."""
        return self.exists_in(variant) and _holds(self.required, variant)


def _holds(rule: bool | tuple[str, ...], variant: Any) -> bool:
    """Return whether a rule holds for a variant: a tuple lists its variants, true means all."""
    if isinstance(rule, tuple):
        return variant in rule
    return rule


@dataclass(frozen=True)
class Secret:
    """An option that PVE stores and never shows, such as a password: it is not compared.

    It is part of the creation. It is also written to an existing resource if option
    `requested_by[0]` has the value `requested_by[1]`. Without `requested_by` it cannot be written
    again. `call` writes it; without a call it is part of the update, and an empty text removes it.
    With `variants` it exists only if the table's `variant` has one of these values.
    """

    option: str
    property: str
    call: Call | None
    requested_by: tuple[str, str] | None
    check: Callable[[Any, str], str]
    variants: tuple[str, ...] = ()

    def exists_in(self, variant: Any) -> bool:
        """Return whether a resource of this variant has the secret."""
        return not self.variants or variant in self.variants


@dataclass(frozen=True)
class Members:
    """A set with requests that add and remove members. `read` finds the members in PVE's answer.

    `want` converts one item of the option into its canonical form; `identity` is its unique part,
    `show` renders it for a result, `text` for a message. `batches` splits items into batches that
    one request can list, each with the data of the request.

    A resource with members is not deleted, unless the members are `own`: a property of the
    resource, like the privileges of a role. Own members are part of the creation, and an update
    contains all of them, or adds some with the parameter `append`.
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
        """Return the identity of each of these members."""
        return {self.identity(item) for item in items}

    def named(self, items: Iterable[Any]) -> list[str]:
        """Return members in the form of messages."""
        names: list[str] = []
        for item in sorted(items):
            if self.text is None:
                names.append(f"{self.noun} {item}")
            else:
                names.append(self.text(item))
        return names

    def joined(self, items: Iterable[Any]) -> str:
        """Return members in the form of one request."""
        return ",".join(str(item) for item in sorted(items))


Batch = tuple[frozenset[Any], Mapping[str, Any]]
"""Members that one request can list, and its data."""


@dataclass(frozen=True)
class Table:
    """One kind of resource.

    `switches` are options that every addition of members sends, by the parameter of the API;
    `removal` is the parameter that turns an update into the removal of members. `pick` finds one
    resource in the answer of `read_call`, `rows` finds all resources in the answer of `list_call`;
    `derived` computes further values of a result from the keys of the resource, and `read_only` are
    properties that are only reported. A call that is not given is the `read_call`.

    A `permanent` resource is neither created nor deleted: C(state=absent) removes the members and
    the parts of fields that the task lists. `unset` is the parameter that lists properties to
    remove, as one text or `unset_as_list`.

    `title` is the name of the kind in messages if it differs from `kind`, the name in results.
    `variant` is the option, a field or a key, that decides which fields a resource has, such as the
    type of a storage.

    `digest` are the methods whose requests contain the digest of the reading. If another run has
    changed the resource in the meantime, Proxmox VE refuses the request, and the plan is made
    again. So a set that is written as a whole (`append=""`) keeps a member that another run added.

    `commit_call` follows the writes of a plan, for configurations that take effect as a whole;
    `is_pending` finds a change that was written but not committed, by this run or by an interrupted
    run.

    `settle_seconds` is for a resource that every run writes as a whole, so two runs can undo each
    other's changes: the seconds within which every run that has read the resource also writes it.
    The resource is read right before each write and again after that time. If the change has not
    lasted, it is written again.
    """

    kind: str
    keys: tuple[Key, ...]
    fields: tuple[Field, ...]
    read_call: Call
    list_call: Call = _AS_READ
    create_call: Call = _AS_READ
    update_call: Call = _AS_READ
    delete_call: Call = _AS_READ
    members: tuple[Members, ...] = ()
    switches: Mapping[str, str] = field(default_factory=dict)
    removal: Mapping[str, Any] = field(default_factory=lambda: {"delete": 1})
    append: str = "append"
    secrets: tuple[Secret, ...] = ()
    read_only: tuple[Field, ...] = ()
    permanent: bool = False
    label_as: str = ""
    kinds: str = ""
    pick: Pick = lambda answer, _keys: answer
    rows: Rows = lambda answer, _keys: answer or []
    resolve: Resolve = lambda _client, desired: desired
    derived: Callable[[Mapping[str, str]], Mapping[str, Any]] = lambda _keys: {}
    precheck: Precheck | None = None
    guard: Guard | None = None
    listed: Listed | None = None
    list_is_whole: bool = True  # whether the listing has all fields and members of each
    unset: str = "delete"
    unset_as_list: bool = False
    settle_seconds: float = 0.0
    title: str = ""
    variant: str = ""
    digest: tuple[str, ...] = ()
    commit_call: Call | None = None
    is_pending: IsPending | None = None
    noun: str = field(init=False)  # the name of the kind in messages

    def __post_init__(self) -> None:
        for name in ("list_call", "create_call", "update_call", "delete_call"):
            if getattr(self, name) is _AS_READ:
                object.__setattr__(self, name, self.read_call)
        object.__setattr__(self, "noun", self.title or self.kind)
        if (self.commit_call is None) != (self.is_pending is None):
            raise ValueError(f"{self.kind}: commit_call and is_pending belong together")

    @property
    def option_names(self) -> Mapping[str, str]:
        """The names of options by the parameters of requests."""
        parts: tuple[Key | Field | Members | Secret, ...] = (
            *self.keys,
            *self.fields,
            *self.members,
            *self.secrets,
        )
        return {part.property: part.option for part in parts}

    @property
    def plural(self) -> str:
        return self.kinds or f"{self.kind}s"

    @property
    def options(self) -> frozenset[str]:
        """The options of the module that the engine handles, besides C(state), C(exact), C(append),
        C(force) and C(recreate).
        """
        found = set(self.switches)
        found.update(key.option for key in self.keys)
        found.update(one.option for one in self.fields)
        found.update(group.option for group in self.members)
        for secret in self.secrets:
            found.add(secret.option)
            if secret.requested_by is not None:
                found.add(secret.requested_by[0])
        return frozenset(found)

    @property
    def separate_members(self) -> frozenset[str]:
        """The members that are not part of the resource: requests add and remove them."""
        return frozenset(group.option for group in self.members if not group.own)

    def keys_of(self, answer: Mapping[str, Any]) -> dict[str, str]:
        """Return the keys of a resource of a listing."""
        return {key.option: str(answer[key.property]) for key in self.keys}

    def label(self, keys: Mapping[str, str]) -> str:
        """Return the name of the resource in messages."""
        if self.label_as:
            return self.label_as.format(**keys)
        name = "/".join(keys[key.option] for key in self.keys)
        return f"{self.noun} '{name}'"

    def values(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the canonical values of a resource in an answer of PVE."""
        reported = (*self.fields, *self.read_only)
        found = {one.option: one.read(answer.get(one.property)) for one in reported}
        for group in self.members:
            found[group.option] = group.read(answer)
        return found

    def variant_of(self, keys: Mapping[str, str], values: Values) -> Any:
        """Return the variant of a resource, the value of one of its keys or fields."""
        return keys.get(self.variant) or values.get(self.variant)

    def show(self, keys: Mapping[str, str], values: Values) -> dict[str, Any]:
        """Return the resource as modules report it."""
        found: dict[str, Any] = {**keys, **self.derived(keys)}
        variant = self.variant_of(keys, values)
        for one in (*self.fields, *self.read_only):
            if one.exists_in(variant):
                found[one.option] = one.show(values.get(one.option, one.read(None)))
        for group in self.members:
            items = sorted(values.get(group.option, ()))
            found[group.option] = [group.show(item) for item in items]
        return found
