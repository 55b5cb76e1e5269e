# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a move up to root or its hold time, and the whole move for an approved plan (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..._foundation.plans.requests import ANY, LATER
from ..._foundation.resource.plan import Plan, Step
from ..._guests.kinds.marker import split_notes
from ..._guests.kinds.move import PROVEN
from .belongings import JOIN, forms_of_join, sid_of
from .decide import (
    BY_ROOT,
    DONE,
    DROP_SOURCE,
    DROP_TARGET,
    HOLD,
    LOCK_SOURCE,
    MOVE,
    REFUSE,
    RESTORE,
    RESUME_TARGET,
    REVOKE,
    SOURCE,
    START_SOURCE,
    START_TARGET,
    TARGET,
    UNLOCK_TARGET,
    Verdict,
)
from .steps import BACK_UP, TEMPLATE, MoveSide, MoveSides, SiteStep, plan_step

_LONGEST_PLAN = 20  # steps; each verdict brings a move nearer to its end
# These complete or take back an interrupted move, and are part of its approval.
_REPAIRS = (REVOKE, DROP_TARGET)
_OF_A_PROCESS = (DROP_SOURCE, DROP_TARGET, START_SOURCE)
_STARTS = (START_SOURCE, START_TARGET, RESUME_TARGET)
_NOT_COMPARED = ("lock", "digest", TEMPLATE)
# Parameters with the name of the archive and the ID of the record, which a run chooses.
_OF_A_RUN = ("archive", "ostemplate", "notes-template")

DecideNext = Callable[[MoveSides], Verdict]


def follow(
    sides: MoveSides, decide_next: DecideNext, *, through_root: bool = False
) -> tuple[list[SiteStep], MoveSides, Verdict]:
    """Return the steps until root, the hold time or a refusal ends them, both sides after them, and
    the last verdict. With `through_root`, root removes each lock, and the hold time passes.
    """
    steps: list[SiteStep] = []
    verdict = decide_next(sides)
    for _number in range(_LONGEST_PLAN):
        is_pause = verdict.step == HOLD or verdict.step in BY_ROOT
        if verdict.step in (DONE, REFUSE) or (is_pause and not through_root):
            break
        if verdict.step in (MOVE, RESTORE) and sides.destination is None:
            break  # back at the source, or complete: nothing is moved again
        if is_pause:
            sides = _after_root(sides, verdict.step)
        else:
            more, sides = plan_step(verdict.step, sides)
            steps += more
        verdict = decide_next(sides)
    return steps, sides, verdict


def _after_root(sides: MoveSides, step: str) -> MoveSides:
    if step == LOCK_SOURCE:
        return replace(sides, source=sides.source.with_state(lock="migrate"))
    if step == UNLOCK_TARGET:
        return replace(sides, target=sides.target.with_state(lock=""))
    return replace(sides, source=sides.source.with_state(lock=""))


def whole_steps(sides: MoveSides, decide_next: DecideNext, *, with_repairs: bool) -> list[SiteStep]:
    """Return all steps of a move, empty if nothing is left to do. With repairs, they include the steps
    that complete an interrupted move or take it back.
    """
    steps, _sides, _verdict = follow(sides, decide_next, through_root=True)
    if not steps or not with_repairs:
        return steps
    record = sides.source.state.record or sides.record
    if sides.destination is not None and sides.destination.archive is not None:
        # the source is backed up again if it was started in between
        steps += plan_step(MOVE, replace(sides, source=sides.source.with_state(power="running")))[0]
    repairs = [one for one in _OF_A_PROCESS if one in {step.action for step in steps}]
    if sides.target.state.state != PROVEN:
        repairs += [*_REPAIRS, *(_STARTS if record.ran or sides.record.ran else ())]
    # a machine that has handed over its memory, or waits for it, is stopped first
    source = sides.source.with_state(power="postmigrate")
    target = sides.target.with_state(power="paused")
    for step in repairs:
        steps += plan_step(step, replace(sides, source=source, target=target))[0]
    return steps


def plan_at(
    at: str, steps: Iterable[SiteStep], sides: MoveSides, versions: Mapping[str, str]
) -> Plan:
    """Return the part of a move at one site for its approval, with the facts that must not
    change. The guest can be on any node of the target, because it stays there for days.
    """
    side = sides.source if at == SOURCE else sides.target
    found: dict[tuple[Any, ...], Step] = {}
    sid = sid_of(sides.kind, side.vmid)
    for one in steps:
        for step in forms_of_join(one, sid) if one.action.startswith(JOIN) else (one,):
            if one.at != at:
                continue
            path = step.path
            if at == TARGET and path[0] == "nodes":
                path = ("nodes", ANY, *path[2:])
            data = dict(step.data)
            if one.action in (BACK_UP, RESTORE):
                data |= {key: LATER for key in _OF_A_RUN if key in data}
            key = (step.method, path, tuple(sorted(data.items())))
            found.setdefault(key, replace(step, path=path, data=data))
    before: dict[str, Any] = {}
    if sides.destination is not None:
        before["version"] = versions[at]
    if at == TARGET:
        after = {"vmid": side.vmid, "node": place_of(sides)}
        return Plan(tuple(found.values()), before, after)
    if side.config:
        before |= {"node": side.node, "config": _facts(side)}
    return Plan(tuple(found.values()), before)


def place_of(sides: MoveSides) -> str:
    """Return the node of the guest at the target, or the chosen node."""
    return sides.target.node if sides.destination is None else sides.destination.node


def _facts(side: MoveSide) -> dict[str, Any]:
    """Return the configuration of a guest as it must be, without the lock and the record."""
    config = {key: value for key, value in side.config.items() if key not in _NOT_COMPARED}
    config["description"] = split_notes(side.config.get("description"))[0]
    return config
