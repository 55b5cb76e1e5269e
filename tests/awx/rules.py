# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of AWX for what can be created in it; facts.yml says where they were read.

Each function returns the errors as texts, none where AWX accepts the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import yaml
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

FACTS: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "facts.yml").read_text(encoding="utf-8")
)
_NAME = re.compile(r"^[a-zA-Z_]+[a-zA-Z0-9_]*$")
_FILE = re.compile(r"^template(\.[a-zA-Z_]+[a-zA-Z0-9_]*)?$")
_DEFAULT_TYPES: Mapping[str, tuple[type, ...]] = {"integer": (int,), "float": (int, float)}


def credential_type_errors(inputs: Mapping[str, Any], injectors: Mapping[str, Any]) -> list[str]:
    return [*_input_errors(inputs), *_injector_errors(inputs, injectors)]


def _input_errors(inputs: Mapping[str, Any]) -> Iterator[str]:
    unknown = set(inputs) - {"fields", "required"}
    if unknown:
        yield f"inputs: unknown {sorted(unknown)}"
    fields = inputs.get("fields", [])
    names = [field.get("id") for field in fields]
    if len(names) != len(set(names)):
        yield "inputs: field IDs must be unique"
    for field in fields:
        yield from (f"{field.get('id')}: {error}" for error in _field_errors(field))
    for name in inputs.get("required", []):
        if name not in names:
            yield f"required: there is no field {name}"


def _field_errors(field: Mapping[str, Any]) -> Iterator[str]:
    for key in ("id", "label"):
        if key not in field:
            yield f"{key} is missing"
    unknown = set(field) - set(FACTS["input_keys"])
    if unknown:
        yield f"unknown {sorted(unknown)}"
    if not _NAME.match(field.get("id", "")) or field.get("id") == FACTS["reserved_input"]:
        yield "is not a valid ID"
    kind = field.get("type", "string")
    if kind not in FACTS["input_types"]:
        yield f"type {kind} is not one of {FACTS['input_types']}"
    if field.get("format", "url") not in FACTS["input_formats"]:
        yield f"format {field['format']} is not known"
    if kind != "string":
        for key in sorted(set(FACTS["only_for_strings"]) & set(field)):
            yield f"{key} is only for strings"


def _injector_errors(inputs: Mapping[str, Any], injectors: Mapping[str, Any]) -> Iterator[str]:
    unknown = set(injectors) - set(FACTS["injectors"])
    if unknown:
        yield f"injectors: unknown {sorted(unknown)}"
    files = injectors.get("file", {})
    for name in files:
        if not _FILE.match(name):
            yield f"file {name} must be template or template.NAME"
    if "template" in files and len(files) > 1:
        yield "several files must all have names"
    for name in injectors.get("env", {}):
        if not _NAME.match(name):
            yield f"{name} is not a name of a variable"
        if name.startswith(FACTS["refused_prefix"]) or name in FACTS["refused_variables"]:
            yield f"variable {name} is not allowed in credentials"
    yield from _template_errors(inputs, injectors)


def _template_errors(inputs: Mapping[str, Any], injectors: Mapping[str, Any]) -> Iterator[str]:
    """Yield an error for each template that uses what no input defines."""
    known: dict[str, Any] = {field["id"]: "EXAMPLE" for field in inputs.get("fields", [])}
    files = injectors.get("file", {})
    filename: Any = "EXAMPLE_FILENAME"
    if "template" not in files:
        filename = {name.partition(".")[2]: "EXAMPLE_FILENAME" for name in files}
    known["tower"] = {"filename": filename}
    sandbox = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    for part in ("file", "env", "extra_vars"):
        for name, template in injectors.get(part, {}).items():
            try:
                sandbox.from_string(template).render(known)
            except TemplateError as error:
                yield f"{part} {name}: {error}"
            if not template.isascii():
                yield f"{part} {name}: is not ASCII"


def survey_errors(survey: Mapping[str, Any]) -> list[str]:
    """Return what AWX refuses of a survey specification."""
    errors = [
        f"{key} is missing or of another type"
        for key, kind in (("name", str), ("description", str), ("spec", list))
        if not isinstance(survey.get(key), kind)
    ]
    if errors:
        return errors
    if not survey["spec"]:
        return ["spec has no questions"]
    variables = [question.get("variable") for question in survey["spec"]]
    if len(variables) != len(set(variables)):
        errors.append("a variable is asked for twice")
    for question in survey["spec"]:
        errors += [f"{question.get('variable')}: {one}" for one in _question_errors(question)]
    return errors


def _question_errors(question: Mapping[str, Any]) -> Iterator[str]:
    for key in FACTS["question_keys"]:
        wanted = bool if key == "required" else str
        if not isinstance(question.get(key), wanted):
            yield f"{key} is missing or not a {wanted.__name__}"
    kind = str(question.get("type"))
    if kind not in FACTS["question_types"]:
        yield f"type {kind} is not known"
    for key in ("min", "max"):
        if question.get(key) is not None and not isinstance(question[key], int):
            yield f"{key} is not an integer"
    default = question.get("default", "")
    if default != "" and not isinstance(default, _DEFAULT_TYPES.get(kind, (str,))):
        yield f"default {default!r} is of another type"
    if kind in ("multiplechoice", "multiselect"):
        yield from _choice_errors(question, default)


def _choice_errors(question: Mapping[str, Any], default: Any) -> Iterator[str]:
    if not question.get("choices"):
        yield "choices are missing"
    elif default not in ("", *question["choices"]):
        yield f"default {default!r} is not one of the choices"
    elif not all(isinstance(choice, str) for choice in question["choices"]):
        yield "a choice is not a text"


def answer_errors(survey: Mapping[str, Any], answers: Mapping[str, Any]) -> list[str]:
    """Return what AWX refuses of the answers at a launch."""
    errors: list[str] = []
    for question in survey["spec"]:
        name = question["variable"]
        if name not in answers:
            if question["required"]:
                errors.append(f"'{name}' value missing")
            continue
        errors += [f"{name}: {one}" for one in _value_errors(question, answers[name])]
    known = {question["variable"] for question in survey["spec"]}
    errors += [f"variable {name} is not allowed" for name in sorted(set(answers) - known)]
    return errors


def _value_errors(question: Mapping[str, Any], value: Any) -> Iterator[str]:
    kind = question["type"]
    if kind == "multiplechoice":
        if value not in question["choices"]:
            yield f"{value!r} is not one of the choices"
        return
    if kind == "multiselect":
        if not isinstance(value, list) or not set(value) <= set(question["choices"]):
            yield f"{value!r} is not a list of choices"
        return
    if kind == "integer":
        size = value
        if isinstance(value, bool) or not isinstance(value, int):
            yield f"{value!r} is not an integer"
            return
    else:
        if not isinstance(value, str):
            yield f"{value!r} is not a text"
            return
        size = len(value)
    if question.get("min") is not None and size < question["min"]:
        yield f"{value!r} is too small"
    if question.get("max") is not None and size > question["max"]:
        yield f"{value!r} is too large"


def job_variables(
    template: Mapping[str, Any], survey: Mapping[str, Any], answers: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the variables of a job: those of its template, defaults of the survey, answers."""
    variables = dict(template)
    for question in survey.get("spec", []):
        default = question.get("default")
        if default is not None and not list(_value_errors(question, default)):
            variables[question["variable"]] = default
    return {**variables, **answers}


def notification_errors(kind: str, configuration: Mapping[str, Any]) -> list[str]:
    """Return what AWX refuses of a notification template."""
    fields = FACTS["notification_types"].get(kind)
    if fields is None:
        return [f"notification_type: {kind} is not a valid choice."]
    missing = [name for name in fields if name not in configuration]
    if missing:
        return [f"Missing required fields for Notification Configuration: {missing}."]
    types = FACTS["notification_value_types"]
    return [
        f"Configuration field '{name}' incorrect type, expected {wanted}."
        for name, wanted in fields.items()
        if type(configuration[name]).__name__ != types[wanted]
    ]


def message_errors(messages: Mapping[str, Any]) -> list[str]:
    """Return what AWX refuses of the texts of a notification (awx/api/serializers.py,
    validate_messages).
    """
    found: list[str] = []
    for event in messages.values():
        for kind, text in (event or {}).items():
            if text is not None and kind == "message" and "\n" in text:
                found.append("Messages cannot contain newlines")
            elif text is not None:
                shown_message(text, {"artifacts": {}})
    return found


def shown_message(text: str, job: Mapping[str, Any]) -> str:
    """Return the text of a notification as AWX renders it for a job
    (awx/main/models/notifications.py, build_notification_message).
    """
    known = {"id": 42, "name": "a job", "status": "successful", **job}
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    context = {"job": known, "job_friendly_name": "Job", "url": "https://awx.example.com/42"}
    return environment.from_string(text).render(**context)


def next_nodes(node: Mapping[str, Any], failed: bool) -> list[str]:
    """Return the nodes of a workflow that follow a job that has ended."""
    links = "failure_nodes" if failed else "success_nodes"
    return [*node.get(links, []), *node.get("always_nodes", [])]


def walk(
    nodes: Mapping[str, Mapping[str, Any]], run: Callable[[str], bool]
) -> tuple[dict[str, bool], bool]:
    """Run the nodes of a workflow, each after all nodes before it have ended or do not run, if one of
    them leads to it: convergence "any", bfs_nodes_to_run and mark_dnr_nodes in dag_workflow.py.

    `run` returns whether the job of a node failed. Return that by node, and whether AWX calls the
    workflow failed.
    """
    parents = {
        target: [
            identifier
            for identifier, node in nodes.items()
            if target in (*next_nodes(node, failed=True), *next_nodes(node, failed=False))
        ]
        for target in nodes
    }
    ended: dict[str, bool] = {}
    waiting = list(nodes)
    while waiting:
        identifier = next(one for one in waiting if not set(parents[one]) & set(waiting))
        waiting.remove(identifier)
        before = [one for one in parents[identifier] if one in ended]
        leads = [one for one in before if identifier in next_nodes(nodes[one], ended[one])]
        if leads or not parents[identifier]:
            ended[identifier] = run(identifier)
    failed_nodes = {identifier for identifier, failed in ended.items() if failed}
    return ended, has_workflow_failed(nodes, failed_nodes)


def has_workflow_failed(nodes: Mapping[str, Mapping[str, Any]], failed: Set[str]) -> bool:
    """Return whether AWX calls a workflow failed, given the nodes whose jobs failed.

    It does if one of them has no node that follows a failure: what handles a failure hides it.
    """
    return any(not next_nodes(nodes[identifier], failed=True) for identifier in failed)


def sliced(hosts: Iterable[str], number: int) -> list[list[str]]:
    """Return the hosts of each of `number` slices: by name, each takes every n-th."""
    names = sorted(hosts)
    number = min(number, len(names))
    return [names[offset::number] for offset in range(number)]


def schedule_errors(rrule: str) -> list[str]:
    """Return what AWX refuses of a schedule's rule."""
    errors = []
    starts = re.findall(r"DTSTART(;[^:]+)?:([0-9]+T[0-9]+Z?)", rrule)
    if len(starts) != 1:
        errors.append("exactly one DTSTART is required")
    elif not starts[0][0] and not starts[0][1].endswith("Z"):
        errors.append("DTSTART has no time zone")
    rules = re.findall(r"RRULE:(\S*)", rrule)
    if not rules:
        errors.append("RRULE is required")
    for rule in rules:
        if "INTERVAL=" not in rule:
            errors.append("INTERVAL is required")
        if "SECONDLY" in rule:
            errors.append("SECONDLY is not supported")
        if "COUNT=" in rule and "UNTIL=" in rule:
            errors.append("COUNT and UNTIL exclude each other")
        if re.search(r"BYDAY=[0-9]", rule):
            errors.append("BYDAY with a number is not supported")
    if re.search(r"EXDATE:|RDATE:", rrule):
        errors.append("EXDATE and RDATE are not allowed")
    return errors
