# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Converts options into the desired state, the differences and the plan (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core.errors import Conflict, ValidationFailed
from .plan import Plan, Step
from .table import Call, DesiredResource, Field, Key, Members, ResourceChange, Secret, Table, Values

Property = TypeVar("Property", Key, Field, Members, Secret)
"""The settings that a table has an option for."""

Value = TypeVar("Value")

CREATE, UPDATE, REMOVE, DELETE = "create", "update", "remove members", "delete"
WRITE, COMMIT = "write a secret", "commit"


def read_desired(table: Table, params: Mapping[str, Any]) -> DesiredResource:
    """Return the desired state in the options. Raises ValidationFailed."""
    values: dict[str, Any] = {}
    for one in _given(table.fields, params):
        values[one.option] = one.want(params[one.option])
    members: dict[str, frozenset[Any]] = {}
    for group in _given(table.members, params):
        members[group.option] = _wanted_members(group, params[group.option])
    secrets: dict[str, str] = {}
    for secret in _given(table.secrets, params):
        secrets[secret.option] = secret.check(params[secret.option], secret.option)
    switches = {name: params.get(option) for option, name in table.switches.items()}
    requests = [secret.requested_by for secret in table.secrets if secret.requested_by is not None]
    requested = [params.get(option) == value for option, value in requests]
    # Members that are not listed are removed if `exact` is set, or `append` is not.
    exact = params.get("exact") if params.get("append") is None else not params["append"]
    return DesiredResource(
        keys=read_keys(table, params),
        present=params.get("state") != "absent",
        values=values,
        members=members,
        exact=bool(exact),
        force=bool(params.get("force")),
        allow_self=bool(params.get("allow_self")),
        recreate=bool(params.get("recreate")),
        switches=_not_empty(switches),
        secrets=secrets,
        rewrites=any(requested),
    )


def read_keys(table: Table, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys that the task names, in their canonical form. Raises ValidationFailed."""
    keys: dict[str, str] = {}
    for key in _given(table.keys, params):
        keys[key.option] = key.check(params[key.option], key.option)
    return keys


def _given(parts: Sequence[Property], params: Mapping[str, Any]) -> list[Property]:
    """Return the properties whose options the task sets."""
    return [part for part in parts if params.get(part.option) is not None]


def _wanted_members(group: Members, items: Iterable[Any]) -> frozenset[Any]:
    found = frozenset(group.want(item) for item in items)
    if len(group.identities(found)) < len(found):
        raise ValidationFailed(
            f"{group.option} was refused: it lists the same twice: {', '.join(group.named(found))}",
            "List each once",
            group.option,
        )
    return found


def compare(table: Table, desired: DesiredResource, actual: Values | None) -> ResourceChange:
    """Return the differences. `actual` is None if the resource does not exist."""
    if not desired.present:
        return _compare_absent(table, desired, actual)
    if actual is None:
        return ResourceChange(creates=True, sets=desired.values, adds=_not_empty(desired.members))
    sets = _different(table, desired, actual)
    fixed: list[str] = []
    variant = actual.get(table.variant)
    for one in table.fields:
        if one.is_fixed_in(variant) and one.option in sets:
            fixed.append(one.option)
            del sets[one.option]
    adds: dict[str, frozenset[Any]] = {}
    removes: dict[str, frozenset[Any]] = {}
    for group in _groups(table, desired.members):
        wanted, known = desired.members[group.option], actual[group.option]
        adds[group.option] = wanted - known
        if desired.exact:
            removes[group.option] = _others(group, known, wanted)
    writes: tuple[str, ...] = ()
    if desired.rewrites:
        writes = tuple(desired.secrets)
    return ResourceChange(
        sets=sets,
        before=actual,
        adds=_not_empty(adds),
        removes=_not_empty(removes),
        fixed=tuple(fixed),
        writes=writes,
    )


def _different(table: Table, desired: DesiredResource, actual: Values) -> dict[str, Any]:
    """Return the fields that the task changes, with their future values."""
    wanted = _merged(table, desired, actual)
    return {option: value for option, value in wanted.items() if value != actual[option]}


def _merged(table: Table, desired: DesiredResource, actual: Values) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in table.fields:
        if one.option in desired.values:
            wanted = desired.values[one.option]
            if one.merge is not None:
                wanted = one.merge(actual[one.option], wanted, desired)
            found[one.option] = wanted
    return found


def _compare_absent(
    table: Table, desired: DesiredResource, actual: Values | None
) -> ResourceChange:
    if actual is None:
        return ResourceChange()
    if not table.permanent:
        return ResourceChange(
            deletes=True, removes=_not_empty(_pick(actual, table.separate_members))
        )
    removes: dict[str, frozenset[Any]] = {}
    for group in _groups(table, desired.members):
        known = actual[group.option]
        others = _others(group, known, desired.members[group.option])
        removes[group.option] = known - others
    sets = _different(table, desired, actual)
    return ResourceChange(sets=sets, removes=_not_empty(removes))


def _groups(table: Table, options: Iterable[str]) -> list[Members]:
    return [group for group in table.members if group.option in options]


def _others(group: Members, known: frozenset[Any], items: Iterable[Any]) -> frozenset[Any]:
    """Return the known members that `items` do not name."""
    named = group.identities(items)
    return frozenset(item for item in known if group.identity(item) not in named)


def _not_empty(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the options whose value is not empty."""
    return {option: value for option, value in values.items() if value}


def _pick(values: Mapping[str, Value], options: Collection[str]) -> dict[str, Value]:
    """Return the values of these options, in the order of the values."""
    return {option: value for option, value in values.items() if option in options}


def build_plan(
    table: Table, desired: DesiredResource, actual: Values | None, change: ResourceChange
) -> Plan:
    """Return the ordered steps and the diff.

    Raises Conflict if members prevent a deletion or if a field that differs is fixed, and
    ValidationFailed for fields that the variant of the resource does not have and for missing
    fields.
    """
    if desired.present:
        _require_variant(table, desired, actual)
    if not change:
        return Plan()
    label = table.label(desired.keys)
    if change.deletes:
        return _plan_delete(table, desired, actual or {}, change)
    if not change.fixed:
        return _plan_change(table, desired, actual, change)
    if not desired.recreate:
        raise Conflict(
            f"{_capital(label)} was not changed: Proxmox VE cannot change "
            f"{', '.join(change.fixed)} of an existing {table.noun}",
            f"Set state=absent first, or leave out {', '.join(change.fixed)}",
            "fixed option",
            details={"options": list(change.fixed)},
        )
    old = actual or {}
    absent = DesiredResource(desired.keys, present=False)
    deletion = _plan_delete(table, desired, old, compare(table, absent, old))
    whole = replace(desired, exact=False, recreate=False)
    creation = _plan_change(table, whole, None, compare(table, whole, None))
    return Plan((*deletion.steps, *creation.steps), deletion.before, creation.after)


def _plan_delete(
    table: Table, desired: DesiredResource, actual: Values, change: ResourceChange
) -> Plan:
    label = table.label(desired.keys)
    if change.removes and not desired.force:
        raise Conflict(
            f"{_capital(label)} was not deleted: it is not empty: it has "
            f"{_named(table, change.removes)}",
            (
                "Take its members out first, or set force=true; the members themselves are never"
                " deleted"
            ),
            "not empty",
            details={
                "members": {option: sorted(items) for option, items in change.removes.items()}
            },
        )
    steps = _removals(table, desired, actual, change.removes)
    steps.append(_step(DELETE, f"Delete {label}", "DELETE", table.delete_call, desired))
    steps += commits(table, desired)
    return Plan(tuple(steps), table.show(desired.keys, actual), {})


def _plan_change(
    table: Table, desired: DesiredResource, actual: Values | None, change: ResourceChange
) -> Plan:
    """Return the plan of a creation (`actual` is None) or of a change."""
    steps: list[Step] = []
    target = after(table, desired, actual)
    rest = change
    if change.creates:
        steps.append(_creation(table, desired, change))
        rest = replace(
            change, sets={}, adds=_pick(change.adds, table.separate_members), creates=False
        )
    steps += _updates(table, desired, target, rest)
    steps += _removals(table, desired, target, _pick(change.removes, table.separate_members))
    for secret in table.secrets:
        if secret.call is not None and secret.option in change.writes:
            summary = f"Set {secret.option} of {table.label(desired.keys)}"
            data = {secret.property: desired.secrets[secret.option]}
            steps.append(_step(WRITE, summary, "PUT", secret.call, desired, data))
    steps += commits(table, desired)
    reported = table.show(desired.keys, target)
    if actual is None:
        return Plan(tuple(steps), {}, reported)
    touched = {*change.sets, *change.adds, *change.removes}
    before = _pick(table.show(desired.keys, actual), touched)
    return Plan(tuple(steps), before, _pick(reported, touched))


def after(table: Table, desired: DesiredResource, actual: Values | None) -> dict[str, Any]:
    """Return the canonical values of the resource after the task."""
    if actual is None:
        known = table.values({})
    else:
        known = dict(actual)
    known.update(_merged(table, desired, known))
    for group in _groups(table, desired.members):
        items = desired.members[group.option]
        others = _others(group, known[group.option], items)
        if not desired.present:
            known[group.option] = others
        elif desired.exact:
            known[group.option] = items
        else:
            known[group.option] = others | items
    return known


def _step(
    action: str,
    summary: str,
    method: str,
    call: Call,
    desired: DesiredResource,
    data: Mapping[str, Any] | None = None,
) -> Step:
    """Return the step for a call of the table, with `data` in addition to the data of the call."""
    return Step(
        action,
        summary,
        call.method or method,
        call.path_for(desired.keys),
        {**call.data_for(desired.keys), **(data or {})},
        is_task=call.is_task,
    )


def commits(table: Table, desired: DesiredResource) -> list[Step]:
    """Return the step that makes written changes take effect, if the table has one."""
    if table.commit_call is None:
        return []
    summary = f"Apply the changes of {table.label(desired.keys)}"
    return [_step(COMMIT, summary, "PUT", table.commit_call, desired)]


def _require_variant(table: Table, desired: DesiredResource, actual: Values | None) -> None:
    """Raise ValidationFailed for a field of another variant, and for a missing field."""
    known = actual or {}
    variant = table.variant_of(desired.keys, {**known, **desired.values})
    label = _capital(table.label(desired.keys))
    parts: tuple[Field | Secret, ...] = (*table.fields, *table.secrets)
    for one in parts:
        is_set = one.option in desired.values or one.option in desired.secrets
        if variant is not None and is_set and not one.exists_in(variant):
            raise ValidationFailed(
                f"{label} was refused: {one.option} is an option of {table.variant} "
                f"{', '.join(one.variants)}, and the {table.variant} is {variant}",
                f"Leave out {one.option}, or check {table.variant}",
                one.option,
            )
    for field in table.fields:
        if field.is_required_in(variant) and _lacks(field, desired, actual is None):
            raise ValidationFailed(
                f"{label} was not {('created' if actual is None else 'changed')}: {field.option} "
                f"is required for a {'new ' * (actual is None)}{table.noun}",
                f"Set {field.option}",
                field.option,
            )


def _lacks(field: Field, desired: DesiredResource, is_new: bool) -> bool:
    """Return whether a resource would lack a required field: PVE stores no empty value."""
    if field.option not in desired.values:
        return is_new
    return field.send(desired.values[field.option]) in (None, "")


def _creation(table: Table, desired: DesiredResource, change: ResourceChange) -> Step:
    data = _properties(table, change.sets)[0]
    for group in _groups(table, change.adds):
        if group.own:
            data[group.property] = group.joined(change.adds[group.option])
    for secret in table.secrets:
        if desired.secrets.get(secret.option):
            data[secret.property] = desired.secrets[secret.option]
    summary = f"Create {table.label(desired.keys)}"
    return _step(CREATE, summary, "POST", table.create_call, desired, data)


def _updates(
    table: Table, desired: DesiredResource, target: Values, change: ResourceChange
) -> list[Step]:
    """Return one update with every change that fits into one request, and one for each batch of
    members.
    """
    written = [
        secret for secret in table.secrets if secret.call is None and secret.option in change.writes
    ]
    secrets = {secret.property: desired.secrets[secret.option] for secret in written}
    data = _sent(table, target, change.sets, secrets)
    names = [*change.sets, *(secret.option for secret in written)]
    added: dict[str, frozenset[Any]] = {}
    steps: list[Step] = []
    for group in table.members:
        adds = change.adds.get(group.option, frozenset())
        is_touched = adds or group.option in change.removes
        if group.own and is_touched:
            names.append(group.option)
            data.update(_own(table, group, adds, target, change))
        elif group.batches is not None:
            steps += _batch_steps(table, desired, group, adds, _required(table, target))
        elif adds:
            added[group.option] = adds
            data[group.property] = group.joined(adds)
    label = table.label(desired.keys)
    parts: list[str] = []
    if names:
        parts.append(f"set {', '.join(names)} of {label}")
    if added:
        data.update(desired.switches)
        parts.append(f"add {_named(table, added)} to {label}")
    if not parts:
        return steps
    summary = _capital(" and ".join(parts))
    return [_step(UPDATE, summary, "PUT", table.update_call, desired, data), *steps]


def _own(
    table: Table, group: Members, adds: frozenset[Any], target: Values, change: ResourceChange
) -> dict[str, Any]:
    """Return the own members for a request: all of them if some are removed or if the API cannot
    add members, else the new members.
    """
    if group.option in change.removes or not table.append:
        return {group.property: group.joined(target[group.option])}
    return {group.property: group.joined(adds), table.append: 1}


def _batch_steps(
    table: Table,
    desired: DesiredResource,
    group: Members,
    items: frozenset[Any],
    required: Mapping[str, Any],
    removes: bool = False,
) -> list[Step]:
    if not items or group.batches is None:
        return []
    label, steps = table.label(desired.keys), []
    for batch, data in group.batches(items):
        names = ", ".join(group.named(batch))
        sent = {**required, **data}
        if removes:
            sent.update(table.removal)
            summary = f"Take {names} out of {label}"
            steps.append(_step(REMOVE, summary, "PUT", table.update_call, desired, sent))
            continue
        summary = f"Add {names} to {label}"
        steps.append(_step(UPDATE, summary, "PUT", table.update_call, desired, sent))
    return steps


def _removals(
    table: Table, desired: DesiredResource, target: Values, removes: Mapping[str, frozenset[Any]]
) -> list[Step]:
    """Return one step for all members that one request can remove, and one for each batch."""
    steps: list[Step] = []
    listed: dict[str, frozenset[Any]] = {}
    required = _required(table, target)
    for group in _groups(table, removes):
        items = removes[group.option]
        if group.batches is None:
            listed[group.option] = items
        else:
            steps += _batch_steps(table, desired, group, items, required, removes=True)
    if not listed:
        return steps
    data = dict(required)
    for group in _groups(table, listed):
        data[group.property] = group.joined(listed[group.option])
    data.update(table.removal)
    summary = f"Take {_named(table, listed)} out of {table.label(desired.keys)}"
    return [_step(REMOVE, summary, "PUT", table.update_call, desired, data), *steps]


def _sent(table: Table, target: Values, sets: Values, secrets: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of an update: properties to set and the list of properties to remove."""
    data, removed = _properties(table, sets)
    for name, value in secrets.items():
        if value:
            data[name] = value
        else:
            removed.append(name)
    if removed:
        data[table.unset] = removed if table.unset_as_list else ",".join(removed)
    return {**_required(table, target), **data}


def _required(table: Table, target: Values) -> dict[str, Any]:
    """Return the properties that every update sends, with their future values."""
    return {one.property: one.send(target[one.option]) for one in table.fields if one.always}


def _properties(table: Table, sets: Values) -> tuple[dict[str, Any], list[str]]:
    """Return the properties with a value, and the names of the properties to remove."""
    data: dict[str, Any] = {}
    removed: list[str] = []
    for one in table.fields:
        if one.option not in sets:
            continue
        value = one.send(sets[one.option])
        if value is None:
            removed.append(one.property)
        else:
            data[one.property] = value
    return data, removed


def _named(table: Table, sets: Mapping[str, frozenset[Any]]) -> str:
    """Return members in the form of messages, for example C(VM 100, VM 101, storage local)."""
    names: list[str] = []
    for group in _groups(table, sets):
        names += group.named(sets[group.option])
    return ", ".join(names)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
