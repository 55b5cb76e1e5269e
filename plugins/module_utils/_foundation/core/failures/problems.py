# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The refusal of a task about several guests: a line for each of them (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import Conflict
from ..formatting import counted
from ..texts.plan_lines import FAILED, PlanLine, plan_lines


@dataclass(frozen=True)
class RefusalWords:
    """The words of a refusal. `outcome` is about one guest, such as C(not moved)."""

    attempted: str
    next_step: str
    reason: str
    outcome: str


def require_none(problems: Sequence[str], words: RefusalWords, names: Mapping[str, str]) -> None:
    """Raise Conflict for problems such as C(VM 'web1' (101): it has snapshots). `names` are the names
    of guests in the lines to print, by the labels that begin their problems.

    The message has the problems of the first guest. The lines and C(error.problems) have all.
    """
    distinct = list(dict.fromkeys(problems))
    if not distinct:
        return
    texts_of: dict[str, list[str]] = {}
    for one in distinct:
        label = next(filter(one.startswith, names), one.partition(": ")[0])
        text = one.removeprefix(label).removeprefix(":").strip()
        texts_of.setdefault(label, []).append(text)
    rows: list[PlanLine] = []
    for label, texts in texts_of.items():
        reason = "; ".join(filter(None, texts))
        name = names.get(label)
        line = PlanLine(FAILED, label, reason)
        if name is not None:
            line = PlanLine(FAILED, name, f"{words.outcome}: {reason}")
        rows.append(line)
    first, texts = next(iter(texts_of.items()))
    answer = f"{first}: {'; '.join(texts)}" if any(texts) else first
    rest = len(distinct) - len(texts)
    if rest:
        answer = f"{answer}; and {counted(rest, 'other problem')}"
    raise Conflict(
        f"{words.attempted}: {answer}",
        words.next_step,
        words.reason,
        details={"problems": distinct},
        report=tuple(plan_lines(rows, check_mode=True)),
    )
