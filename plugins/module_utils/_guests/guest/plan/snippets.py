# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Full user data in a plan: the step that writes its file, and its fingerprint in a diff (pure)."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from ...._foundation.resource.plan import Plan, Step
from ...kinds.hardware import Snippet
from ...kinds.marker import join_notes, split_notes
from ...kinds.model import Actual
from .steps import config_step, notes_data, with_digest

# Actions that write the cloud-init drive of a running VM again, or lead to a start that does.
_RENEWING = frozenset(("reboot", "shutdown", "stop"))


def with_user_data(plan: Plan, snippet: Snippet | None, actual: Actual | None, node: str) -> Plan:
    """Return the plan with the file written first, unless it already has the content (pure).

    `node` is the future node of the VM. The cloud-init drive of a running VM is written again; the
    drive of any other VM is written when it starts.
    """
    if snippet is None or not snippet.is_written:
        return plan
    steps = [write_step(snippet, node)]
    actions = [step.action for step in plan.steps]
    renewed_first = _RENEWING.intersection(actions[:1])
    is_renewed = "cloudinit" in actions or bool(renewed_first)
    runs = actual is not None and actual.running
    if actual is not None and runs and not is_renewed:
        # The mark is written before the file: if this run ends in between, the next run writes the
        # drive.
        steps = [
            mark(actual),
            *steps,
            regenerate(actual),
            replace(unmark(actual), reread=bool(plan.steps)),
        ]
    steps += plan.steps
    before = dict(plan.before)
    if actual is not None:
        before["user_data"] = fingerprint(snippet.now)
    after = {**plan.after, "user_data": fingerprint(snippet.content)}
    return replace(plan, steps=tuple(steps), before=before, after=after)


def fingerprint(content: str | None) -> str | None:
    """Return user data in the form of a diff: a fingerprint, because it may contain secrets."""
    if content is None:
        return None
    digest = hashlib.sha256(content.encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def write_step(snippet: Snippet, node: str) -> Step:
    """Return the step that writes the file."""
    is_new = snippet.now is None
    data = {"content": snippet.content, "volume": snippet.volume, "node": node, "new": is_new}
    return Step(
        "snippet",
        f"Write user data to {snippet.file}",
        "FILE",
        (snippet.file,),
        data,
        is_task=False,
    )


def marked_notes(actual: Actual, notes: str | None = None) -> str:
    """Return the notes, or new ones, with the mark that the cloud-init drive is stale."""
    if notes is None:
        notes = actual.target.get("description")
    text, marker = split_notes(notes)
    return join_notes(text, replace(marker, stale=True))


def mark(actual: Actual) -> Step:
    """Return the step that marks the cloud-init drive as stale, before its data changes."""
    data = with_digest({"description": marked_notes(actual)}, actual)
    return config_step(actual, f"Mark the cloud-init drive of {actual.label} as outdated", data)


def unmark(actual: Actual, notes: str | None = None) -> Step:
    """Return the step that removes that mark once the drive is written; `notes` are new ones."""
    if notes is None:
        notes = join_notes(actual.notes, replace(actual.marker, stale=False))
    summary = f"Mark the cloud-init drive of {actual.label} as current"
    return config_step(actual, summary, notes_data(notes))


def regenerate(actual: Actual) -> Step:
    """Return the step that writes the cloud-init drive of a running VM again.

    At a start PVE writes it anyway.
    """
    return Step(
        "cloudinit",
        f"Regenerate the cloud-init drive of {actual.label}",
        method="PUT",
        path=(*actual.path, "cloudinit"),
        is_task=False,
    )
