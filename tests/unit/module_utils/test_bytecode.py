# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compiled code that processes of modules share: when it is used, and when it is not trusted."""

from __future__ import annotations

import dataclasses
import gc
import json
import marshal
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[3] / "plugins" / "module_utils" / "_entry" / "bytecode.py"
PACKAGE = "ansible_collections.pve.fleet.plugins.module_utils"
ROOM = f"{PACKAGE}._room"
# Imports two files of a room from the zip and prints which sources were compiled, with repeats.
IMPORTING = f"""
import gc, json, os, sys, zipimport
compile_source, compiled, texts = zipimport._compile_source, [], []
def noted(path, source):
    compiled.append(path)
    return compile_source(path, source)
zipimport._compile_source = noted
def noted_text(source, file, *more):
    if file == "<string>":
        texts.append(source)
    return compile(source, file, *more)
sys.path.insert(0, sys.argv[1])
from {PACKAGE}._entry import bytecode
bytecode.compile = noted_text
from {ROOM} import one, two
bytecode.finish()
rooms = [path.partition("_room" + os.sep)[2] for path in compiled if "_room" in path]
source = one.__loader__.get_source(one.__name__)
print(json.dumps([rooms, one.VALUE, one.__file__, source, len(texts), gc.get_threshold()[0]]))
"""


class Sent:
    """A module's zip with this file and a room of two files, and a user's cache directory."""

    def __init__(self, place: Path) -> None:
        self.zip = place / "payload.zip"
        self.cache = place / "cache"
        self.pack()

    @property
    def kept(self) -> Path:
        (file,) = (self.cache / "pve.fleet").iterdir()
        return file

    def pack(self, one: str = "VALUE = 1\n") -> None:
        """Write the zip, as Ansible does for each run."""
        with zipfile.ZipFile(self.zip, "w") as payload:
            parts = PACKAGE.split(".")
            for depth in range(1, len(parts) + 1):
                payload.writestr("/".join([*parts[:depth], "__init__.py"]), "")
            folder = "/".join(parts)
            payload.writestr(f"{folder}/_entry/__init__.py", "")
            payload.writestr(f"{folder}/_entry/bytecode.py", SOURCE.read_text(encoding="utf-8"))
            payload.writestr(f"{folder}/_room/__init__.py", "")
            payload.writestr(f"{folder}/_room/one.py", one)
            payload.writestr(f"{folder}/_room/two.py", "VALUE = 2\n")

    def run(self, *flags: str, cache: Path | None = None) -> tuple[list[str], Any, str, str]:
        """Return which sources a process compiled, and value, path and source of `one`."""
        compiled, value, path, source, *_rest = self.results(*flags, cache=cache)
        return compiled, value, path, source

    def results(self, *flags: str, cache: Path | None = None) -> list[Any]:
        """Return what a process prints: the same, how many texts it compiled for dataclasses, and
        how many new containers it collects garbage after.
        """
        command = [sys.executable, "-S", *flags, "-c", IMPORTING, str(self.zip)]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        environment["XDG_CACHE_HOME"] = str(cache or self.cache)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found: list[Any] = json.loads(done.stdout)
        return found


ALL = ["__init__.py", "one.py", "two.py"]
# A dataclass whose methods all count: VALUE is 11 where they are right.
RECORD = """
from dataclasses import FrozenInstanceError, dataclass, field, replace

@dataclass(frozen=True)
class Record:
    size: int
    names: list = field(default_factory=list, compare=False)

VALUE = replace(Record(1), size={size}).size
VALUE += (Record(1) == Record(1, ["a"])) + (hash(Record(2)) != hash(Record(3)))
try:
    Record(1).size = 2
except FrozenInstanceError:
    VALUE += repr(Record(1)) == "Record(size=1, names=[])"
"""


@pytest.fixture
def sent(tmp_path: Path) -> Sent:
    return Sent(tmp_path)


def test_a_source_is_compiled_once_and_by_the_first_process_only(sent: Sent) -> None:
    assert sent.run()[0] == ALL
    compiled, value, path, source = sent.run()
    assert (compiled, value, source) == ([], 1, "VALUE = 1\n")
    assert path == os.path.join(sent.zip, *ROOM.split("."), "one.py")


def test_a_changed_source_is_compiled_again(sent: Sent) -> None:
    sent.run()
    sent.pack("VALUE = 3\n")
    assert sent.run()[:2] == (["one.py"], 3)
    assert sent.run()[:2] == ([], 3)


def test_the_methods_of_dataclasses_are_compiled_by_the_first_process_only(sent: Sent) -> None:
    sent.pack(RECORD.replace("{size}", "8"))
    first, second = sent.results(), sent.results()
    assert (first[1], second[1]) == (11, 11)
    assert first[4] > 0
    assert second[4] == 0


def test_the_methods_of_a_changed_dataclass_are_compiled_again(sent: Sent) -> None:
    sent.pack(RECORD.replace("{size}", "8"))
    sent.run()
    sent.pack(RECORD.replace("{size}", "8").replace("size: int", "size: int = 0"))
    third = sent.results()
    assert third[1] == 11
    assert third[4] > 0


def test_a_process_from_a_zip_collects_garbage_rarely(sent: Sent) -> None:
    assert sent.results()[5] > 10 * gc.get_threshold()[0]


def test_the_file_is_private(sent: Sent) -> None:
    sent.run()
    assert sent.kept.stat().st_mode & 0o777 == 0o600
    assert sent.kept.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o620, 0o602], ids=["group", "others"])
@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_others_can_write_is_not_trusted(sent: Sent, what: str, mode: int) -> None:
    sent.run()
    place = sent.kept if what == "file" else sent.kept.parent
    place.chmod(mode | 0o100)
    assert sent.run()[0] == ALL


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_belongs_to_another_user_is_not_trusted(sent: Sent, what: str) -> None:
    sent.run()
    os.chown(sent.kept if what == "file" else sent.kept.parent, 12345, -1)
    assert sent.run()[0] == ALL


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", marshal.dumps(7), marshal.dumps((b"another Python", {}))],
    ids=["empty", "nonsense", "number", "another-python"],
)
def test_an_unreadable_file_is_replaced(sent: Sent, content: bytes) -> None:
    sent.run()
    sent.kept.write_bytes(content)
    assert sent.run()[:2] == (ALL, 1)
    assert sent.run()[:2] == ([], 1)


def test_python_that_must_not_write_bytecode_writes_none(sent: Sent) -> None:
    assert sent.run("-B")[:2] == (ALL, 1)
    assert not sent.cache.exists()


def test_a_place_that_cannot_be_written_does_not_matter(sent: Sent, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert sent.run(cache=file)[:2] == (ALL, 1)


def test_nothing_is_installed_outside_of_a_zip() -> None:
    from ansible_collections.pve.fleet.plugins.module_utils._entry import bytecode

    assert bytecode.KEPT is None
    assert "exec" not in vars(dataclasses)
    frozen = gc.get_freeze_count()
    bytecode.finish()
    assert gc.get_freeze_count() == frozen
