# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command of Ansible that is forked does what the same command does as a program of its own."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible.executor import module_common

from tests.own_files import VARIABLE
from tests.plays import commands
from tests.plays.ansible_starter import kept, kept_payloads

pytestmark = pytest.mark.slow

SHOW = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: >-
          {{ lookup('env', 'PROXMOX_HOST') }} {{ playbook_dir }} {{ ansible_playbook_python }}
          {{ lookup('env', 'ANSIBLE_VERBOSITY') }} {{ lookup('pipe', 'pwd') }}
          {{ 'ab' | regex_replace('(.)(.)', '\\2\\1') }}
    # The same text, read in two ways.
    - ansible.builtin.debug: {msg: "{% if true %}\\n-{% endif %}{{ 1 }}"}
    - ansible.builtin.debug: {msg: "#jinja2: trim_blocks:False\\n{% if true %}\\n-{% endif %}{{ 1 }}"}
    - ansible.builtin.command: "true"
    - ansible.builtin.fail: {msg: the end}
      when: fails | default(false) | bool
"""
BROKEN = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug: {msg: "{{ 1 | nosuch.filters.one }}"}
      ignore_errors: true
    - ansible.builtin.debug: {msg: "{{ 1 +"}
"""
COMMANDS = {
    "a play": ["ansible-playbook", "show.yml"],
    "a failure": ["ansible-playbook", "show.yml", "-e", "fails=true"],
    "wrong templates": ["ansible-playbook", "broken.yml"],
    "no playbook": ["ansible-playbook", "nosuch.yml"],
    "a wrong option": ["ansible-playbook", "--nosuch"],
    "an inventory": ["ansible-inventory", "-i", "hosts.ini", "--list"],
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "show.yml").write_text(SHOW, encoding="utf-8")
    (tmp_path / "broken.yml").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "hosts.ini").write_text("[web]\none\n", encoding="utf-8")
    return {**os.environ, "PROXMOX_HOST": "here", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"}


def left_behind(pid: int) -> list[str]:
    """Return the temporary directories of a process: they have its number in their names.

    Other tests end commands at the same time, which leave theirs in the same home.
    """
    directory = Path(os.environ["ANSIBLE_HOME"]) / "tmp"
    return [path.name for path in directory.glob(f"ansible-local-{pid}" + "?" * 8)]


def as_a_program(command: list[str]) -> list[str]:
    """Return a command with the interpreter of these tests.

    The first line of the program names another path of it if the environment is behind a link.
    """
    return [sys.executable, str(Path(sys.executable).with_name(command[0])), *command[1:]]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_forked_or_not_it_is_the_same(
    tmp_path: Path, environment: dict[str, str], command: list[str]
) -> None:
    own = commands.run(as_a_program(command), tmp_path, environment, usual=False)
    for _time in range(2):  # the second one has what the first one compiled
        forked = commands.start(command, tmp_path, environment)
        output, errors = forked.communicate()
        assert left_behind(forked.pid) == []
        assert (forked.wait(), output, errors) == (own.returncode, own.stdout, own.stderr)


def test_another_configuration_is_read(tmp_path: Path, environment: dict[str, str]) -> None:
    """Ansible reads it when it is loaded."""
    play = ["ansible-playbook", "show.yml"]
    forced = commands.run(play, tmp_path, {**environment, "ANSIBLE_FORCE_COLOR": "true"})
    plain = commands.run(play, tmp_path, environment)
    assert ["\x1b[" in done.stdout for done in (forced, plain)] == [True, False]


def test_a_packed_module_holds_compiled_files(tmp_path: Path, environment: dict[str, str]) -> None:
    """The first command packs the module, and the second one runs what the first one left."""
    cached = getattr(module_common, "_CachedModule", None)
    if cached is None:
        pytest.skip("ansible-core packs modules in another form before 2.19")
    for _time in range(2):
        done = commands.run(["ansible-playbook", "show.yml"], tmp_path, environment)
        assert "changed=1" in done.stdout, done.stderr
    (file,) = kept_payloads().glob("ansible.modules.command-ZIP_DEFLATED*")
    data = io.BytesIO(base64.b64decode(cached.load(str(file)).zip_data))
    with zipfile.ZipFile(data) as archive:
        names = archive.namelist()
        assert "ansible/modules/command.py" in names
        assert {f"{name}c" for name in names if name.endswith(".py")} <= {*names}
        # Python takes the compiled file and does not compare it with the source.
        assert archive.read("ansible/modules/command.pyc")[4:8] == (1).to_bytes(4, "little")


def test_a_template_is_compiled_once(tmp_path: Path, environment: dict[str, str]) -> None:
    """The processes of all tasks of all commands share what Jinja has compiled."""
    if not kept("templates").exists():
        pytest.skip("ansible-core compiles templates in another way before 2.19")
    text = f"{{{{ '{tmp_path}' }}}}"
    task = {"ansible.builtin.debug": {"msg": text}, "when": f"'{tmp_path}' != ''"}
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [task, task]}
    (tmp_path / "own.yml").write_text(json.dumps([play]), encoding="utf-8")

    def files() -> set[Path]:
        return {
            file
            for file in kept("templates").iterdir()
            if str(tmp_path).encode() in file.read_bytes()
        }

    counts = []
    for _time in range(2):
        done = commands.run(["ansible-playbook", "own.yml"], tmp_path, environment)
        assert done.stdout.count(f'"msg": "{tmp_path}"') == 2, done.stdout
        counts.append({file: file.stat().st_mtime_ns for file in files()})
    assert len(counts[0]) == 2
    assert counts[0] == counts[1]


def test_commands_at_once_do_not_share_what_they_are_given(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    places = [tmp_path / name for name in ("one", "two", "three")]
    for place in places:
        place.mkdir()
        (place / "show.yml").write_text(SHOW, encoding="utf-8")

    def show(place: Path) -> str:
        given = {**environment, "PROXMOX_HOST": f"host-{place.name}"}
        return commands.run(["ansible-playbook", "show.yml"], place, given).stdout

    with ThreadPoolExecutor(len(places)) as pool:
        printed = list(pool.map(show, places))
    for place, text in zip(places, printed, strict=True):
        assert re.findall(r"host-\w+", text) == [f"host-{place.name}"]
        assert str(place) in text
        assert "failed=0" in text


def test_workers_share_the_process_that_forks_their_commands(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """To load Ansible takes longer than most plays. A worker has a name and files of its own."""
    counts = []
    for name in ("gw0", "gw1"):
        own = {"PYTEST_XDIST_WORKER": name, VARIABLE: str(tmp_path / name)}
        done = commands.run(["ansible-playbook", "show.yml"], tmp_path, {**environment, **own})
        assert "failed=0" in done.stdout
        counts.append(commands._starter.cache_info().currsize)
    assert counts[0] == counts[1]


def test_more_than_a_pipe_holds_is_read(tmp_path: Path, environment: dict[str, str]) -> None:
    long = "x" * 200_000
    (tmp_path / "hosts.ini").write_text(f"[web]\none text={long}\n", encoding="utf-8")
    command = ["ansible-inventory", "-i", "hosts.ini", "-i", "nosuch.ini", "--list"]
    done = commands.run(command, tmp_path, environment)
    assert done.returncode == 0
    assert json.loads(done.stdout)["_meta"]["hostvars"]["one"]["text"] == long
    assert "nosuch.ini" in done.stderr
