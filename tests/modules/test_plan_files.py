# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are not the plan of a task: refused in a sentence, before any request."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.document import (
    Document,
    Part,
)
from tests.declared import MODULES, entry_of, minimal_tasks
from tests.modules.estate_lab import Lab
from tests.modules.test_plans import plan
from tests.modules.test_vms import WEB, named

GOAL: dict[str, Any] = {**WEB, "vms": named("a")}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


def with_digest(values: dict[str, Any]) -> str:
    """Return the text of a plan that someone has edited, with the digest of the new content."""
    values.pop("digest", None)
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return json.dumps({**values, "digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest()})


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(place: Path) -> None:
        values = json.loads(place.read_text())
        change(values)
        place.write_text(with_digest(values))

    return edit


def replaced(content: bytes | None) -> Callable[[Path], None]:
    def replace(place: Path) -> None:
        place.unlink()
        if content is not None:
            place.write_bytes(content)

    return replace


def as_directory(place: Path) -> None:
    place.unlink()
    place.mkdir()


def as_link(place: Path) -> None:
    place.unlink()
    place.symlink_to(place.parent / "nothing")


def as_pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def huge(place: Path) -> None:
    with place.open("r+b") as file:
        file.truncate((64 << 20) + 1)


def truncated(place: Path) -> None:
    place.write_text(place.read_text()[:-40])


ATTACKS: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (truncated, "it is not a plan of pve.fleet"),
    "huge": (huge, "it is not a plan of pve.fleet"),
    "directory": (as_directory, "was not read"),
    "link": (as_link, "it is a symbolic link"),
    "pipe": (as_pipe, "was not read"),
    "binary": (replaced(b"\xff\xfe\x00"), "was not read"),
    "list": (replaced(b"[1, 2]"), "it is not a plan of pve.fleet"),
    "deep": (replaced(b"[" * 100_000), "it is not a plan of pve.fleet"),
    "no version": (edited(lambda values: values.pop("version")), "its version is"),
    "no parts": (edited(lambda values: values.pop("parts")), "missing or wrong in it"),
    "wrong parts": (edited(lambda values: values.update(parts=[5])), "missing or wrong in it"),
    "wrong time": (edited(lambda values: values.update(expires=[])), "missing or wrong in it"),
    "no end": (edited(lambda values: values.update(expires="never")), "it expired at"),
    "wrong guest": (
        edited(lambda values: values["parts"][0]["changes"][0].update(guest={"vmid": "x"})),
        "missing or wrong in it",
    ),
    "wrong requests": (
        edited(lambda values: values["parts"][0]["changes"][0].update(requests=[{"method": 1}])),
        "missing or wrong in it",
    ),
    "wrong data": (
        edited(lambda values: values["parts"][0]["changes"][0]["requests"][0].update(data="x")),
        "missing or wrong in it",
    ),
    "wrong values": (
        edited(lambda values: values["parts"][0]["changes"][0].update(before=[], after="x")),
        "missing or wrong in it",
    ),
    "wrong arguments": (
        edited(lambda values: values["parts"][0].update(arguments=[1])),
        "missing or wrong in it",
    ),
    "another module": (
        edited(lambda values: values["parts"][0].update(task="power")),
        "it is for power at",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_wrong_file_is_refused_before_any_request(unused: Lab, place: Path, attack: str) -> None:
    plan(unused, str(place), **GOAL)
    change, text = ATTACKS[attack]
    change(place)
    unused.simulator.reset_log()
    for check in (True, False):
        refused = unused.run("vms", check=check, apply_plan=str(place), **GOAL)
        assert refused["failed"]
        assert "exception" not in refused
        assert text in refused["msg"], refused["msg"]
        assert str(place) in refused["msg"]
    assert unused.simulator.counts() == {}


def planning_modules() -> list[str]:
    """Return the modules that have plans."""
    found = [name for name in MODULES if entry_of(name).plans]
    assert len(found) == 8
    return found


@pytest.mark.parametrize("wrong", ["expired", "edited", "site", "module"])
@pytest.mark.parametrize("module", planning_modules())
def test_each_module_refuses_a_plan_that_is_not_for_it(
    unused: Lab, place: Path, module: str, wrong: str
) -> None:
    now = int(time.time())
    site = "elsewhere:8006" if wrong == "site" else unused.simulator.url.removeprefix("https://")
    part = Part("other" if wrong == "module" else module, site, "root@pam!fleet")
    expires = now - 1 if wrong == "expired" else now + 60
    text = Document(now - 60, expires, "salt", parts=(part,)).render()
    place.write_text(text.replace('"salt"', '"pepper"') if wrong == "edited" else text)
    unused.simulator.reset_log()
    refused = unused.run(module, **{**minimal_tasks()[module], "apply_plan": str(place)})
    texts = {
        "expired": "it expired at",
        "edited": "it was edited: its digest is",
        "site": "it is for ",
        "module": "it is for other at",
    }
    assert f"The plan {place} was not applied: {texts[wrong]}" in refused["msg"], refused["msg"]
    assert unused.simulator.counts() == {}


def test_a_file_of_another_user_is_refused(
    unused: Lab, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read each file, so the kernel's answer to other users is played."""
    plan(unused, str(place), **GOAL)
    unused.simulator.reset_log()
    opened = os.open

    def closed(path: str, *others: Any, **more: Any) -> int:
        if str(path) == str(place):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, *others, **more)

    monkeypatch.setattr(os, "open", closed)
    refused = unused.run("vms", apply_plan=str(place), **GOAL)
    assert f"The plan {place} was not read: Permission denied" in refused["msg"]
    assert unused.simulator.counts() == {}


@pytest.mark.parametrize("attack", ["directory", "pipe", "link", "no directory"])
def test_a_place_that_cannot_have_a_plan_is_refused(unused: Lab, place: Path, attack: str) -> None:
    place.touch()
    if attack == "no directory":
        place = place.parent / "missing" / "plan.json"
    else:
        ATTACKS[attack][0](place)
    unused.simulator.reset_log()
    refused = unused.run("vms", check=True, plan_file=str(place), **GOAL)
    assert "exception" not in refused
    assert str(place) in refused["msg"]
    assert refused["error"]["reason"] == "plan file"
    assert unused.simulator.writes() == []
    assert not (place.parent / "nothing").exists()
