# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that change a firewall into the desired one (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._foundation.cluster.tenant import EVERY_TENANT
from ..._foundation.core.marks import keep_mark, marked_tag
from ..._foundation.resource.plan import Plan, Step
from .model import DesiredFirewall, Firewall, IpSet, view_of
from .references import members_as_spelled, unqualified_rule
from .rules.model import Rule, kept_comment
from .rules.transition import CREATE, DELETE, MOVE, POLICY, DefaultPolicies, transition
from .scope import GROUP, ROOT, FirewallScope, Path

_POLICY = "policy_"
_ALIASES = "aliases"


@dataclass(frozen=True)
class FirewallStep(Step):
    """A step that is sent only if its part of the firewall is as the plan expects.

    `part` is the path from which the part is read, and `reader` names the function that parses it.
    `expected` and `result` are the part before and after the step; if `name` is set, they are the
    entry of that name, or None.
    """

    part: Path = ()
    reader: str = ""
    expected: Any = None
    result: Any = None
    name: str = ""


def _guarded(step: Step, part: Path, reader: str, expected: Any, result: Any) -> FirewallStep:
    """Return the step with the part of the firewall that it changes."""
    values = {"part": part, "reader": reader, "expected": expected, "result": result}
    return FirewallStep(**vars(step), **values)


def plan_firewall(scope: FirewallScope, actual: Firewall, desired: DesiredFirewall) -> Plan:
    """Return the plan: new names that rules may use, then rules and policies, then removed names.

    The firewall is switched on after its rules are complete, and off before they change.
    """
    after = after_plan(actual, desired)
    steps = tuple(_steps(scope, actual, after, desired))
    before_view, after_view = view_of(scope, actual), view_of(scope, after)
    changed = [key for key in after_view if before_view.get(key) != after_view[key]]
    if not after.exists or not actual.exists:
        changed = list(after_view)
    before = {key: before_view.get(key) for key in changed if actual.exists}
    new_values = {key: after_view.get(key) for key in changed if after.exists}
    return Plan(steps, before, new_values) if steps else Plan()


def after_plan(actual: Firewall, desired: DesiredFirewall) -> Firewall:
    """Return the firewall after the task."""
    if not desired.is_wanted:
        return Firewall(exists=False)
    options = {**actual.options, **desired.options}
    comment = actual.comment
    if desired.comment is not None:
        comment = keep_mark(actual.comment, kept_comment(desired.comment))
    aliases = _without(_by_name(actual.aliases, desired.aliases, desired.exact), desired.gone)
    sets = _without(_by_name(actual.ip_sets, desired.ip_sets, desired.exact), desired.gone)
    for name, goal in sets.items():
        known = actual.ip_sets.get(name, IpSet()).members
        members = members_as_spelled(goal.members, known, desired.own_names)
        if not desired.exact:
            members = _without({**known, **members}, desired.gone_members.get(name, ()))
        sets[name] = replace(goal, members=members)
    if desired.exact:  # names of tenants stay: module tenant creates and removes them
        own_aliases = {
            name: one for name, one in actual.aliases.items() if marked_tag(one[1]) is not None
        }
        own_sets = {
            name: one
            for name, one in actual.ip_sets.items()
            if name == EVERY_TENANT or marked_tag(one.comment) is not None
        }
        aliases, sets = {**own_aliases, **aliases}, {**own_sets, **sets}
    return Firewall(
        {name: value for name, value in options.items() if value != ""},
        _rules_after(actual, desired),
        aliases,
        sets,
        comment,
    )


def _rules_after(actual: Firewall, desired: DesiredFirewall) -> tuple[Rule, ...]:
    """Return the rules after the task. The group that isolates a guest stays first."""
    if desired.rules is None:
        return actual.rules
    own = desired.own_names
    known = {unqualified_rule(rule, own): rule for rule in reversed(actual.rules)}
    rules = tuple(known.get(unqualified_rule(rule, own), rule) for rule in desired.rules)
    for first in actual.rules[:1]:
        is_kept = first.type == "group" and first.action in desired.kept_groups
        if is_kept and first not in rules:
            return (first, *rules)
    return rules


def _without(named: Mapping[str, Any], gone: Collection[str]) -> dict[str, Any]:
    return {name: one for name, one in named.items() if name not in gone}


def _by_name(
    actual: Mapping[str, Any], desired: Mapping[str, Any] | None, exact: bool
) -> dict[str, Any]:
    """Return the aliases or IP sets after the task; existing names keep their case."""
    if desired is None:
        return dict(actual)
    existing = {name.lower(): name for name in actual}
    goals = {existing.get(name.lower(), name): value for name, value in desired.items()}
    return goals if exact else {**actual, **goals}


def _steps(
    scope: FirewallScope, actual: Firewall, after: Firewall, desired: DesiredFirewall
) -> Iterator[Step]:
    if not after.exists:
        if actual.exists:
            yield from _rule_steps(scope, actual, replace(actual, rules=()))
            yield _group_step(scope, "Remove", {}, actual.comment, None)
        return
    if scope.kind == GROUP:
        yield from _group_steps(scope, actual, after)
    yield from _alias_steps(scope, actual, after)
    yield from _set_steps(scope, actual, after)
    switches_on = scope.is_on(after.options) and not scope.is_on(actual.options)
    others = {
        name: value for name, value in desired.options.items() if not name.startswith(_POLICY)
    }
    if not switches_on:
        yield from _option_steps(scope, actual.options, others)
    yield from _rule_steps(scope, actual, after, others if not switches_on else {})
    if switches_on:
        policies = {
            name: value for name, value in desired.options.items() if name.startswith(_POLICY)
        }
        yield from _option_steps(scope, _with_options(actual.options, policies), others)
    yield from _removals(scope, actual, after)


# -- groups --------------------------------------------------------------------------------------


def _group_steps(scope: FirewallScope, actual: Firewall, after: Firewall) -> Iterator[Step]:
    data: dict[str, Any] = {"group": scope.name}
    if after.comment:
        data["comment"] = after.comment
    if not actual.exists:
        yield _group_step(scope, "Create", data, None, after.comment)
    elif actual.comment != after.comment:
        data = {"group": scope.name, "rename": scope.name, "comment": after.comment}
        yield _group_step(scope, "Change", data, actual.comment, after.comment)


def _group_step(
    scope: FirewallScope,
    verb: str,
    data: Mapping[str, Any],
    expected: str | None,
    result: str | None,
) -> Step:
    """Return a step about the group; `expected` and `result` are its comment before and after."""
    groups = (*ROOT, "groups")
    method, path = ("DELETE", scope.path) if result is None else ("POST", groups)
    summary = f"{verb} security group '{scope.name}'"
    step = Step("group", summary, method, path, data, is_task=False)
    return replace(_guarded(step, groups, "groups", expected, result), name=scope.name)


# -- aliases and IP sets -------------------------------------------------------------------------


def _alias_steps(scope: FirewallScope, actual: Firewall, after: Firewall) -> Iterator[Step]:
    path = (*scope.path, _ALIASES)
    now = dict(actual.aliases)
    for name, (cidr, comment) in after.aliases.items():
        if now.get(name) == (cidr, comment):
            continue
        data = {"cidr": cidr, **({"comment": comment} if comment else {})}
        verb, method, target = "Change", "PUT", (*path, name)
        if name not in now:
            verb, method, target = "Create", "POST", path
            data["name"] = name
        summary = f"{verb} alias '{name}' of {scope.label}: {cidr}"
        step = Step("alias", summary, method, target, data, is_task=False)
        expected, now = dict(now), {**now, name: (cidr, comment)}
        yield _guarded(step, path, _ALIASES, expected, now)


def _set_steps(scope: FirewallScope, actual: Firewall, after: Firewall) -> Iterator[Step]:
    path = (*scope.path, "ipset")
    now = {name: one.comment for name, one in actual.ip_sets.items()}
    for name, goal in after.ip_sets.items():
        origin = actual.ip_sets.get(name)
        if origin is None or origin.comment != goal.comment:
            data: dict[str, Any] = {"name": name}
            if origin is not None:
                data["rename"] = name
            if goal.comment or origin is not None:
                data["comment"] = goal.comment
            expected, now = dict(now), {**now, name: goal.comment}
            verb = "Create" if origin is None else "Change"
            summary = f"{verb} IP set '{name}' of {scope.label}"
            step = Step("ipset", summary, "POST", path, data, is_task=False)
            yield _guarded(step, path, "ipsets", expected, now)
        yield from _member_steps(scope, name, origin or IpSet(), goal)


def _member_steps(scope: FirewallScope, name: str, origin: IpSet, goal: IpSet) -> Iterator[Step]:
    path = (*scope.path, "ipset", name)
    now = dict(origin.members)
    # Members are added first, so an address in an old and a new network never leaves the set.
    for cidr in (*goal.members, *origin.members):
        member = goal.members.get(cidr)
        if now.get(cidr) == member:
            continue
        expected = dict(now)
        data: dict[str, Any] = {}
        if member is None:
            verb, method = "Remove {} from", "DELETE"
            del now[cidr]
        else:
            verb, method = ("Change {} in", "PUT") if cidr in now else ("Add {} to", "POST")
            now[cidr] = member
            data = {"nomatch": int(member[0])} if member[0] else {}
            data.update({"comment": member[1]} if member[1] else {})
            data.update({"cidr": cidr} if method == "POST" else {})
        summary = f"{verb.format(cidr)} IP set '{name}' of {scope.label}"
        target = path if method == "POST" else (*path, cidr)
        step = Step("member", summary, method, target, data, is_task=False)
        yield _guarded(step, path, "members", expected, dict(now))


def _removals(scope: FirewallScope, actual: Firewall, after: Firewall) -> Iterator[Step]:
    """Yield the removals of names, which come after the writes of rules that used them."""
    aliases = {name: after.aliases.get(name, one) for name, one in actual.aliases.items()}
    aliases = {**aliases, **after.aliases}
    sets = {name: one.comment for name, one in {**actual.ip_sets, **after.ip_sets}.items()}
    for name in actual.aliases:
        if name not in after.aliases:
            expected = dict(aliases)
            del aliases[name]
            path = (*scope.path, _ALIASES)
            summary = f"Remove alias '{name}' of {scope.label}"
            yield _removal(summary, path, name, _ALIASES, (expected, dict(aliases)))
    for name in actual.ip_sets:
        if name not in after.ip_sets:
            expected_sets = dict(sets)
            del sets[name]
            summary = f"Remove IP set '{name}' of {scope.label}"
            path = (*scope.path, "ipset")
            yield _removal(summary, path, name, "ipsets", (expected_sets, dict(sets)))


def _removal(summary: str, part: Path, name: str, reader: str, states: tuple[Any, Any]) -> Step:
    data = {"force": 1} if reader == "ipsets" else {}
    step = Step("remove", summary, "DELETE", (*part, name), data, is_task=False)
    return _guarded(step, part, reader, *states)


# -- options and rules ---------------------------------------------------------------------------


def _with_options(actual: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    merged = {**actual, **changes}
    return {name: value for name, value in merged.items() if value != ""}


def _option_steps(
    scope: FirewallScope, actual: Mapping[str, str], changes: Mapping[str, str]
) -> Iterator[Step]:
    after = _with_options(actual, changes)
    if after == dict(actual):
        return
    data: dict[str, Any] = {}
    gone: list[str] = []
    words: list[str] = []
    for name, value in changes.items():
        if actual.get(name, "") == value:
            continue
        if value == "":
            gone.append(name)
            words.append(f"remove {name}")
        else:
            data[name] = value
            words.append(f"{name}={value}")
    if gone:
        data["delete"] = ",".join(gone)
    path = (*scope.path, "options")
    summary = f"Set options of {scope.label}: {', '.join(words)}"
    step = Step("options", summary, "PUT", path, data, is_task=False)
    yield _guarded(step, path, "options", dict(actual), after)


def _rule_steps(
    scope: FirewallScope,
    actual: Firewall,
    after: Firewall,
    set_before: Mapping[str, str] | None = None,
) -> Iterator[Step]:
    """Yield the writes of rules, with the write of the policies among them."""
    options = _with_options(actual.options, set_before or {})
    policies = _policies(scope, actual.options), _policies(scope, after.options)
    is_enforced = scope.is_on(actual.options) and scope.is_on(after.options)
    chosen = {
        name: after.options.get(name, "")
        for name in {**actual.options, **after.options}
        if name.startswith(_POLICY)
    }
    rules = actual.rules
    written = False
    for write in transition(rules, after.rules, policies, is_enforced=is_enforced):
        if write.kind == POLICY:
            yield from _option_steps(scope, options, chosen)
            written = True
            continue
        goal = ""
        if write.kind == MOVE:
            moveto = int(write.data["moveto"])
            goal = f" to position {moveto if moveto <= write.pos else moveto - 1}"
        verb = _VERBS.get(write.kind, "Change")
        summary = f"{verb} rule {write.pos} of {scope.label}{goal}: {write.rule}"
        method = {CREATE: "POST", DELETE: "DELETE"}.get(write.kind, "PUT")
        path = scope.rules_path if write.kind == CREATE else (*scope.rules_path, write.pos)
        step = Step(f"rule {write.kind}", summary, method, path, write.data, is_task=False)
        yield _guarded(step, scope.rules_path, "rules", rules, write.result)
        rules = write.result
    if not written:  # no policy changes its effect: its option is set to the default
        yield from _option_steps(scope, options, chosen)


def _policies(scope: FirewallScope, options: Mapping[str, str]) -> DefaultPolicies:
    defaults = scope.policies.items()
    return DefaultPolicies(
        tuple((name, options.get(_POLICY + name) or default) for name, default in defaults)
    )


_VERBS = {CREATE: "Create", MOVE: "Move", DELETE: "Remove"}
