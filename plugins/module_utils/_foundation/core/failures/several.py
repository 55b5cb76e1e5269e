# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Combines the failures of several guests: each cause once, in a bounded message (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import FleetError, TaskFailed, category_class
from ..formatting import counted, first_of

# The message has at most this many causes, each with this many characters and VMs.
_CAUSES = 5
_LENGTH = 600
_NAMES = 5
_KIND = re.compile(r"\b(?:VM|container)\b", re.IGNORECASE)
_OWN = re.compile(r"'[^']*'|\d+")


@dataclass(frozen=True)
class FailedGuest:
    """A guest that failed: its label, such as C(VM 'web1' (101)), and its error."""

    label: str
    error: FleetError


def by_cause(failures: Sequence[FailedGuest]) -> list[list[FailedGuest]]:
    """Return the failures in order, in groups of VMs that failed for the same cause.

    A failure with a task, a log or finished steps is a separate group.
    """
    groups: dict[tuple[object, ...], list[FailedGuest]] = {}
    for number, failed in enumerate(failures):
        error = failed.error
        cause: tuple[object, ...] = (
            category_class(error),
            _without_own(error.answer or error.reason or error.attempted, failed.label),
            _without_own(error.next_step, failed.label),
        )
        if error.upid or error.log or error.details.keys() & {"done", "unverified"}:
            cause = (number,)
        groups.setdefault(cause, []).append(failed)
    return list(groups.values())


def causes_of(failures: Sequence[FailedGuest]) -> str:
    """Return the causes for a message: each once, with its VMs."""
    groups = by_cause(failures)
    texts = [_cause(group) for group in groups[:_CAUSES]]
    rest = sum(map(len, groups[_CAUSES:]))
    if rest:
        texts.append(f"And {rest} more.")
    return " ".join(texts)


def failure_of(failures: Sequence[FailedGuest], labels: Sequence[str]) -> FleetError | None:
    """Return the error of the only guest, one error for all failed guests, or None."""
    if not failures:
        return None
    return failures[0].error if len(labels) == 1 else failure_of_several(failures, labels)


def failure_of_several(failures: Sequence[FailedGuest], labels: Sequence[str]) -> FleetError:
    """Return one error for all guests that failed; `labels` are the labels of all guests.

    The error has the category and the reason that all failures share. The details of a request are
    kept if only one guest failed.
    """
    errors = [failed.error for failed in failures]
    noun = _noun_of(labels)
    first = errors[0]
    categories = {category_class(error) for error in errors}
    reasons = {error.reason for error in errors}
    category = categories.pop() if len(categories) == 1 else TaskFailed
    unverified = [step for error in errors for step in error.details.get("unverified", ())]
    failure = category(
        f"{len(errors)} of {counted(len(labels), noun)} failed: {causes_of(failures)}",
        "Repair these and run again: what is done stays done",
        reasons.pop() if len(reasons) == 1 else f"some {noun}s failed",
        retryable=any(error.retryable for error in errors),
        details={"unverified": unverified} if unverified else {},
    )
    if len(errors) > 1:
        return failure
    return failure.on(status=first.status, path=first.path, upid=first.upid, log=first.log)


def _noun_of(labels: Sequence[str]) -> str:
    """Return the noun for the guests with these labels, in singular."""
    found = [_KIND.search(label) for label in labels]
    kinds = {one[0].lower() if one else "" for one in found}
    if kinds == {"vm"}:
        return "VM"
    return "container" if kinds == {"container"} else "guest"


def labelled(failed: FailedGuest) -> str:
    """Return the message of a failure, with the label of the VM in front if it is missing."""
    message = failed.error.message
    name = re.match(r"VM '[^']*'", failed.label)
    if failed.label in message or (name is not None and name[0] in message):
        return message
    return f"{failed.label}: {message}"


def _cause(group: Sequence[FailedGuest]) -> str:
    """Return the message of the first failure, and the other VMs with the same cause."""
    text = labelled(group[0])
    if len(text) > _LENGTH:
        text = f"{text[:_LENGTH]} ..."
    others = [failed.label for failed in group[1:]]
    if not others:
        return text
    return f"{text} The same for {first_of(others, _NAMES)}."


def _without_own(text: str, label: str) -> str:
    """Return a text with a placeholder for the VM's own name and VMID."""
    for own in _OWN.findall(label):
        text = text.replace(own, "*")
    return text
