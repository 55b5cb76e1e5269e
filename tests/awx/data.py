# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the data files of playbooks/awx as the playbook does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

HOME = Path(__file__).resolve().parents[2] / "playbooks" / "awx"


class _Loader(yaml.SafeLoader):
    """Reads a text with `!unsafe` as it stands."""


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    return loader.construct_scalar(node)


_Loader.add_constructor("!unsafe", _text)


def read_all(name: str) -> dict[str, Any]:
    """Return the variables in a file of playbooks/awx/vars."""
    text = (HOME / "vars" / f"{name}.yml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.load(text, Loader=_Loader)
    return data


def read(name: str) -> Any:
    """Return the value of the only variable in a file of playbooks/awx/vars."""
    (value,) = read_all(name).values()
    return value


def survey_of(template: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the survey of a job template for `fleet` or `tenant`, as AWX gets it."""
    questions = template.get("survey", [])
    if kind == "tenant":
        fixed = template.get("tenant_variable")
        questions = [one for one in questions if one["variable"] != fixed]
    return {"name": "", "description": "", "spec": questions} if questions else {}


def job_template(name: str, kind: str) -> dict[str, Any]:
    """Return the job template of that name for `fleet` or `tenant`."""
    named = [one for one in read("job_templates") if one["name"] == name]
    (found,) = [one for one in named if kind in one["scopes"]]
    template: dict[str, Any] = found
    return template


def maintenance_nodes(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the nodes of the workflow of a maintenance as playbook awx_setup creates them."""
    first = f"approve {names[0]}"
    asked = {"maintenance_nodes": ",".join(names)}
    found: dict[str, dict[str, Any]] = {
        "plan": {"job_type": "check", "extra_data": asked, "success_nodes": [first]}
    }
    for name, following in zip(names, [*names[1:], ""], strict=True):
        found[f"approve {name}"] = {"success_nodes": [f"maintain {name}"]}
        found[f"maintain {name}"] = {
            "extra_data": {"maintenance_nodes": name},
            "success_nodes": [f"approve {following}"] if following else [],
        }
    return found


def nodes_of(workflow: dict[str, Any], *, approval: bool) -> dict[str, dict[str, Any]]:
    """Return the nodes of a workflow as AWX gets them, with or without the approval."""
    found = {}
    for node in workflow["nodes"]:
        if node.get("only_with_approval") and not approval:
            continue
        other = node.get("success_nodes_with_approval") if approval else None
        links = {"success_nodes": other} if other else {}
        found[node["identifier"]] = {**node, **links}
    return found
