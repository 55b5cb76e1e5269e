# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A standard repository of APT: the work of modules apt_repository and apt_repository_info."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import ConfigurationError, DigestChanged, ValidationFailed
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import Execution, result_of
from ...._foundation.resource.manage import Hooks, manage
from ...._foundation.resource.plan import Plan, Step

ENABLED, DISABLED = "enabled", "disabled"
Answer = Mapping[str, Any]


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Enable or disable a repository of a node; check mode writes nothing."""
    node = validate.node(params["node"])
    handle, uri = params.get("handle"), params.get("uri")
    state = params["state"]
    require_choice(node, handle, uri)

    def plan(answer: Answer) -> Plan:
        if handle:
            return plan_repository(node, handle, state, answer)
        return plan_configured(node, uri or "", state, answer)

    def report(plan: Plan, _answer: Answer, execution: Execution | None) -> Result:
        repository = {"node": node, "handle": handle, "uri": uri, "state": state}
        header = f"repository {handle or uri} of node {node}"
        return result_of(plan, {"apt_repository": repository}, execution, header=header)

    hooks = Hooks[Answer](stale_errors=(DigestChanged,))
    read = partial(_read, client, node)
    return manage(client, read, plan, report, check_mode=check_mode, hooks=hooks)


def run_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the standard repositories of a node; one request. Nothing is written."""
    node = validate.node(params["node"])
    return Result(False, {"node": node, "repositories": repositories_in(_read(client, node))})


def _read(client: Api, node: str) -> Answer:
    attempted = f"Could not read the repositories of node {node}"
    found: Answer = client.get("nodes", node, "apt", "repositories", attempted=attempted) or {}
    return found


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
            f"Refused to change the repositories of node {node}: handle or uri chooses the "
            "repository, not both",
            "Set one of them",
            "choice of repository",
        )


def plan_repository(node: str, handle: str, state: str, answer: Answer) -> Plan:
    """Return the plan that enables or disables a standard repository of a node.

    Raises ConfigurationError for an unknown handle. A missing repository counts as disabled.
    """
    states = {one["handle"]: one["state"] for one in repositories_in(answer)}
    if handle not in states:
        raise ConfigurationError(
            f"Refused to change the repositories of node {node}: there is no standard repository "
            f"{handle}, only {', '.join(states)}{did_you_mean(handle, states)}",
            "Name one of them",
            "unknown repository",
        )
    before = states[handle]
    steps: list[Step] = []
    if state == ENABLED and before != ENABLED:
        data = _with_digest({"handle": handle}, answer)
        summary = f"Enable repository {handle} of node {node}"
        steps.append(Step(ENABLED, summary, "PUT", _path(node), data, is_task=False))
    if state == DISABLED and before == ENABLED:
        for path, index, entry in _entries(answer):
            if not entry.get("Enabled") or not is_standard(handle, entry):
                continue
            data = _with_digest({"path": path, "index": index, "enabled": 0}, answer)
            summary = f"Disable repository {handle} of node {node} in {path}"
            action = f"{DISABLED} {path} {index}"
            # Each step changes the digest for the next one.
            step = Step(action, summary, "POST", _path(node), data, is_task=False, reread=True)
            steps.append(step)
    return Plan(tuple(steps), {handle: before}, {handle: state}) if steps else Plan()


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
            f"Refused to change the repositories of node {node}: its files have no repository "
            f"{uri}, only {', '.join(known)}{did_you_mean(uri, known)}",
            "Write it to a file in /etc/apt/sources.list.d first: the API adds only"
            " standard repositories",
            "unknown repository",
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
