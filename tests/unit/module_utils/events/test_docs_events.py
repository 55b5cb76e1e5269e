# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page about events has each of them with its keys, and rules read only what exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.cluster_events import (
    cluster_events_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.kinds import (
    COMMON,
    ENDS,
    KEYS,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.webhook import (
    notification_event,
)

_CODE = re.compile(r"`(\w+)`")
_TYPE = re.compile(r'event\.type (?:==|in) (?:"(\w+)"|\[([^]]*)\])')
_KEY = re.compile(r"event\.(\w+)")
# Names in the last column that are not keys.
_OF_TEXTS = {"id"}


def page(repo: Path) -> str:
    return (repo / "docs" / "events.md").read_text(encoding="utf-8")


def rows(text: str, heading: str) -> Iterator[list[str]]:
    """Yield the cells of the rows of the first table below a heading."""
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_has_every_key_of_every_event(repo: Path) -> None:
    found: dict[str, set[str]] = {}
    before: set[str] = set()
    whole: set[str] = set()
    for names, _when, keys in rows(page(repo), "Events and their keys"):
        listed = set(_CODE.findall(keys)) - _OF_TEXTS
        if keys.startswith("the same"):
            listed |= whole
        else:
            whole = listed
        before = listed
        for name in _CODE.findall(names):
            found[name] = before
    assert found == {name: set(keys) for name, keys in KEYS.items()}


def test_the_table_has_every_option_with_its_default(repo: Path) -> None:
    found = {name.strip("`"): default for name, default, _text in rows(page(repo), "Options")}
    spec = cluster_events_spec()
    assert set(found) == set(spec)
    for name, rule in spec.items():
        expected = "required" if rule.get("required") else str(rule.get("default") or "")
        assert found[name].strip("`") == expected, name


def test_every_alarm_has_an_end() -> None:
    for begin, end in ENDS.items():
        assert KEYS[begin] == KEYS[end]


def rulebooks(repo: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each rule of the rulebooks and of the page, with its file."""
    texts = {file.name: file.read_text(encoding="utf-8") for file in _files(repo)}
    blocks = re.findall(r"```yaml\n(.*?)```", page(repo), re.S)
    (texts["docs/events.md"],) = [text for text in blocks if "rules:" in text]
    for name, text in texts.items():
        for ruleset in yaml.safe_load(text):
            for rule in ruleset["rules"]:
                yield name, rule


def _files(repo: Path) -> list[Path]:
    return sorted((repo / "extensions" / "eda" / "rulebooks").glob("*.yml"))


def test_rules_read_keys_of_their_events(repo: Path) -> None:
    number = 0
    for name, rule in rulebooks(repo):
        number += 1
        types: set[str] = set()
        for one, several in _TYPE.findall(rule["condition"]):
            types |= {one} if one else set(re.findall(r"\w+", several))
        assert types, (name, rule)
        used = set(_KEY.findall(json.dumps(rule)))
        for type in types:
            assert used <= {*COMMON, *KEYS[type]}, (name, rule["name"], type)
    assert number > 8


def test_the_body_of_the_page_is_read_by_the_filter(repo: Path) -> None:
    """The helpers are those of proxmox-notify: escape, json (pve-docs, notifications.adoc)."""
    (block,) = (one for one in re.findall(r"```yaml\n(.*?)```", page(repo), re.S) if "body:" in one)
    body = yaml.safe_load(block)[0]["pve.fleet.notification_endpoint"]["body"]
    body = re.sub(r"{% (end)?raw %}", "", body)
    values = {
        "{{ escape title }}": json.dumps('backup "failed"\n')[1:-1],
        "{{ escape message }}": "Details",
        "{{ severity }}": "error",
        "{{ timestamp }}": "1795208400",
        "{{ json fields }}": json.dumps({"type": "vzdump", "hostname": "pve1"}),
    }
    for place, value in values.items():
        assert place in body
        body = body.replace(place, value)
    event = notification_event({"payload": json.loads(body)})
    assert (event["type"], event["node"]) == ("backup_failed", "pve1")
    assert event["exitstatus"] == 'backup "failed"'
