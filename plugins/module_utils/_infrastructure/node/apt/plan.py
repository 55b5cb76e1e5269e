# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The package repositories of a node, and the requests that switch one (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...._foundation.core.errors import ConfigurationError, ValidationFailed
from ...._foundation.resource.plan import Plan, Step

ENABLED, DISABLED = "enabled", "disabled"
Answer = Mapping[str, Any]


def repositories_in(answer: Answer) -> list[dict[str, Any]]:
    """Return the standard repositories, sorted by handle; `state` is None for a missing one."""
    found = []
    for row in answer.get("standard-repos") or ():
        status = row.get("status")
        state = None
        if status is not None:
            state = ENABLED if status else DISABLED
        found.append({"handle": row["handle"], "name": row.get("name"), "state": state})
    return sorted(found, key=lambda one: str(one["handle"]))


def require_choice(node: str, handle: str | None, uri: str | None) -> None:
    """Raise ValidationFailed unless one of both options chooses a repository."""
    if bool(handle) == bool(uri):
        raise ValidationFailed(
            attempted=f"Refused to change the repositories of node {node}",
            answer="handle or uri chooses the repository, not both",
            next_step="Set one of them",
            reason="choice of repository",
        )


def plan_repository(node: str, handle: str, state: str, answer: Answer) -> Plan:
    """Return the plan that enables or disables a standard repository of a node.

    Raises ConfigurationError for an unknown handle. A missing repository counts as disabled.
    """
    states = {one["handle"]: one["state"] for one in repositories_in(answer)}
    if handle not in states:
        raise ConfigurationError(
            attempted=f"Refused to change the repositories of node {node}",
            answer=f"there is no standard repository {handle}, only {', '.join(states)}",
            next_step="Name one of them",
            reason="unknown repository",
        )
    before = states[handle]
    steps: tuple[Step, ...]
    if state == ENABLED:
        steps = () if before == ENABLED else (_enable(node, handle, answer),)
    else:
        steps = tuple(_disable(node, handle, answer)) if before == ENABLED else ()
    if not steps:
        return Plan()
    return Plan(steps, {handle: before}, {handle: state})


def plan_configured(node: str, uri: str, state: str, answer: Answer) -> Plan:
    """Return the plan that enables or disables all entries of a URI in the files of a node.

    Raises ConfigurationError if there is none: the API adds only standard repositories.
    """
    uri = uri.rstrip("/")
    entries = [(entry, path, index) for path, index, entry in _entries(answer)]
    chosen = [row for row in entries if uri in _uris(row[0])]
    if not chosen:
        known = sorted({one for entry, _path, _index in entries for one in _uris(entry)})
        raise ConfigurationError(
            attempted=f"Refused to change the repositories of node {node}",
            answer=f"its files have no repository {uri}, only {', '.join(known)}",
            next_step="Write it to a file in /etc/apt/sources.list.d first: the API adds only"
            " standard repositories",
            reason="unknown repository",
        )
    verb = "Enable" if state == ENABLED else "Disable"
    steps: list[Step] = []
    for entry, path, index in chosen:
        if bool(entry.get("Enabled")) == (state == ENABLED):
            continue
        data = {"path": path, "index": index, "enabled": int(state == ENABLED)}
        summary = f"{verb} repository {uri} of node {node} in {path}, entry {index}"
        sent = _with_digest(data, answer)
        action = f"{state} {path} {index}"
        steps.append(Step(action, summary, "POST", _path(node), sent, is_task=False, reread=True))
    if not steps:
        return Plan()
    before = DISABLED if state == ENABLED else ENABLED
    return Plan(tuple(steps), {uri: before}, {uri: state})


def _uris(entry: Mapping[str, Any]) -> list[str]:
    return [str(uri).rstrip("/") for uri in entry.get("URIs") or ()]


def _enable(node: str, handle: str, answer: Answer) -> Step:
    data = _with_digest({"handle": handle}, answer)
    summary = f"Enable repository {handle} of node {node}"
    return Step(ENABLED, summary, "PUT", _path(node), data, is_task=False)


def _disable(node: str, handle: str, answer: Answer) -> Iterator[Step]:
    """Yield a step for each enabled entry; each step changes the digest for the next one."""
    for path, index, entry in _entries(answer):
        if entry.get("Enabled") and is_standard(handle, entry):
            data = _with_digest({"path": path, "index": index, "enabled": 0}, answer)
            summary = f"Disable repository {handle} of node {node} in {path}"
            action = f"{DISABLED} {path} {index}"
            yield Step(action, summary, "POST", _path(node), data, is_task=False, reread=True)


def _entries(answer: Answer) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    for file in answer.get("files") or ():
        for index, entry in enumerate(file.get("repositories") or ()):
            yield str(file["path"]), index, entry


def is_standard(handle: str, entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of a file is the standard repository of this handle.

    Handles are C(enterprise), C(no-subscription) and C(test), also after a prefix C(ceph-RELEASE-).
    """
    product, component = "pve", f"pve-{handle}"
    if handle.startswith("ceph-"):
        release, _dash, component = handle[len("ceph-") :].partition("-")
        product = f"ceph-{release}"
    is_product = any(uri.endswith(f".proxmox.com/debian/{product}") for uri in _uris(entry))
    return is_product and component in (entry.get("Components") or ())


def _with_digest(data: dict[str, Any], answer: Answer) -> dict[str, Any]:
    if answer.get("digest"):
        data["digest"] = str(answer["digest"])
    return data


def _path(node: str) -> tuple[str, ...]:
    return ("nodes", node, "apt", "repositories")
