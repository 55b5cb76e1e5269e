# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task gives the same result in the controller's process as in a process of its own: one table,
run both ways.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from tests.cases import cases
from tests.declared import UNSUPPORTED, minimal_tasks, module_sample
from tests.metrics_text import TIMED, TIMED_LINE
from tests.modules.access_lab import with_directory
from tests.simulator.process import DEMO, TOKEN_ID, TOKEN_SECRET, Simulator

pytestmark = pytest.mark.slow

HERE, AS_A_MODULE = "runs in this process", "runs as a module"
SECRETS = [TOKEN_SECRET, "hush-hush-1", "hush-hush-2", "00000000-0000-4000-8000-00000000dead"]
VAULTED = "kept in the vault"
PASSWORD = "open sesame"


@dataclass(frozen=True)
class Row:
    """A task, and by which way it must go when it may go by the quick one."""

    name: str
    module: str
    options: dict[str, Any]
    keywords: dict[str, Any] = field(default_factory=dict)
    way: str = HERE

    @property
    def task(self) -> dict[str, Any]:
        return {
            "name": self.name,
            f"pve.fleet.{self.module}": self.options,
            "ignore_errors": True,
            "diff": True,
            **self.keywords,
        }


# For every module a task that works.
MINIMAL = minimal_tasks()
CHECK = {"check_mode": True}


# The modules whose task is also refused, foreseen and repeated: in `make test-long` all.
THOROUGH = cases(full=tuple(MINIMAL), short=("vm", "vms", "vm_info"))


def module_rows(modules: Iterable[str]) -> list[Row]:
    """Return what each of these modules must stand."""
    found: list[Row] = []
    for module in modules:
        options = MINIMAL[module]
        do = Row(f"{module}: do", module, options)
        if module not in THOROUGH:
            found.append(do)
            continue
        found += [
            Row(f"{module}: foresee", module, options, CHECK),
            do,
            Row(f"{module}: unknown option", module, {**options, "nosuch": 1}),
            Row(f"{module}: wrong token", module, {**options, "token_secret": SECRETS[-1]}),
        ]
        if not module.endswith("_info"):
            found.append(Row(f"{module}: again", module, options))
    return found


PARTICULAR = [
    Row("neither name nor vmid", "vm", {"cores": 2}),
    Row("exclusive", "snapshot", {"name": "a", "vms": ["b"], "snapshot": "s"}),
    Row("required if", "snapshot", {"name": "both", "state": "rolled_back"}),
    Row(
        "required by",
        "storage_download",
        {**MINIMAL["storage_download"], "checksum_algorithm": "md5"},
    ),
    Row("a change, foreseen", "vm", {"name": "both", "cores": "4", "onboot": "yes"}, CHECK),
    Row("a change", "vm", {"name": "both", "cores": "4", "onboot": "yes"}),
    Row("a list from text", "vm", {"name": "both", "tags": "b,a"}),
    Row("not convertible", "node_info", {"retries": "many"}),
    Row("malformed token", "vm_info", {"token_id": "x", "token_secret": "hush-hush-2 "}),
    Row("choices", "vm", {"name": "both", "state": "flying"}),
    Row(
        "an unknown option within", "vm", {"name": "both", "disks": [{"size": 1, "colour": "red"}]}
    ),
    Row("an alias", "vm_info", {"name": "both", "api_token_id": TOKEN_ID}),
    Row("not one of the cluster's", "vm", {"name": "new", "source": "nosuch"}),
    Row(
        "a secret", "vm", {"name": "both", "cloud_init": {"user": "ops", "password": "hush-hush-1"}}
    ),
    Row(
        "a secret again",
        "vm",
        {"name": "both", "cloud_init": {"user": "ops", "password": "hush-hush-1"}},
    ),
    Row(
        "secrets of many",
        "vms",
        {
            "vms": [{"name": "both", "cloud_init": {"password": "hush-hush-1"}}],
            "cloud_init": {"user": "ops", "password": "hush-hush-2"},
        },
    ),
    Row(
        "a secret in a refusal of many",
        "vms",
        {"vms": [{"name": "hush-hush-1!"}], "cloud_init": {"password": "hush-hush-1"}},
    ),
    Row(
        "an unknown option of one",
        "vms",
        {"vms": [{"name": "both", "disks": [{"size": 1, "colour": "red"}]}]},
    ),
    Row(
        "one of many fails",
        "vms",
        {"vms": [{"name": "both"}, {"name": "both-3", "source": "nosuch"}], "tenant": "both"},
    ),
    Row(
        "a secret in a refusal",
        "vm",
        {"name": "hush-hush-1!", "cloud_init": {"password": "hush-hush-1"}},
    ),
    Row(
        "a secret in a complaint",
        "vm",
        {"name": "both", "cores": "hush-hush-1", "password": "hush-hush-1"},
    ),
    Row(
        "a secret of a site",
        "vm_info",
        {"sites": [{"name": "a", "password": "hush-hush-2"}], "site": "b"},
    ),
    Row("a warning", "node_info", {"memory_warn": 1}),
    Row(
        "any letters", "vm", {"name": "both", "description": "ü ☃ \U0001f600\n  tail  \n\ttab\x07"}
    ),
    Row(
        "templates within templates",
        "vms",
        {"vms": "{{ many }}", "tenant": "both"},
        {
            "vars": {
                "many": [{"name": "{{ who }}", "description": "{{ text }}"}],
                "who": "both",
                "text": "{{ 1 }}!",
            }
        },
    ),
    Row("the text of a tenant", "vm", {"name": "both", "description": "{{ unsafe }}"}),
    Row("out of the vault", "vm", {"name": "both", "description": "{{ vaulted }}"}),
    Row(
        "a secret out of the vault",
        "vm",
        {"name": "both", "cloud_init": {"user": "x", "password": "{{ vaulted }}"}},
    ),
    Row(
        "another login for each item",
        "vm_info",
        {"name": "both", "token_secret": "{{ logins[item] }}"},
        {"loop": [0, 1, 0]},
    ),
    Row("host and site", "vm_info", {"host": "https://127.0.0.1:1", "site": "x"}),
]

KEYWORDS = [
    Row("no server listens", "vm_info", {"host": "https://127.0.0.1:9", "retries": 1}),
    Row(
        "environment",
        "vm_info",
        {"host": ""},
        {"environment": {"PROXMOX_HOST": "{{ 'no' ~ 'where:x' }}"}},
    ),
    Row(
        "environment of TLS",
        "vm_info",
        {"ca_path": ""},
        {"environment": {"SSL_CERT_FILE": "{{ ca }}"}},
    ),
    Row(
        "environment of Python",
        "vm_info",
        {},
        {"environment": {"PYTHONHASHSEED": "1"}},
        AS_A_MODULE,
    ),
    Row(
        "defaults of the module",
        "snapshot_info",
        {"name": "both"},
        {
            "module_defaults": {
                "pve.fleet.snapshot_info": {"details": True},
                "pve.fleet.vm": {"cores": 8},
            }
        },
    ),
    Row(
        "a loop",
        "vm",
        {"name": "both", "cores": "{{ item }}"},
        {"loop": [4, "x", 5], "failed_when": False},
    ),
    Row(
        "failed when",
        "vm_info",
        {"name": "both"},
        {"register": "r", "failed_when": "r.vms | length == 1"},
    ),
    Row(
        "until",
        "vm_info",
        {"name": "both"},
        {"register": "r", "until": "r.vms == 1", "retries": 1, "delay": 0},
    ),
    Row("delegated", "vm_info", {"name": "both"}, {"delegate_to": "localhost", "run_once": True}),
    Row("no log", "vm", {"name": "both", "description": "x"}, {"no_log": True}),
    Row(
        "variables",
        "vm",
        {"name": "{{ who }}", "description": "{{ '{{ no }' ~ '}' }}"},
        {"vars": {"who": "both"}},
    ),
    Row(
        "become another",
        "vm_info",
        {"name": "both"},
        {"become": True, "become_user": "nobody"},
        AS_A_MODULE,
    ),
    Row("asynchronous", "vm_info", {"name": "both"}, {"async": 60, "poll": 1}, AS_A_MODULE),
    Row(
        "another Python",
        "vm_info",
        {},
        {"vars": {"ansible_python_interpreter": "/nowhere/python"}},
        AS_A_MODULE,
    ),
]
# The server answers late while these run.
SLOW = [Row("too long", "snapshot", {"name": "both", "snapshot": "slow"}, {"timeout": 2})]
# Every table works on this VM.
MAKE = Row("make", "vm", MINIMAL["vm"])


@dataclass(frozen=True)
class Played:
    """Registered results by the row's name, all that was printed, and the results as those of two
    runs can be compared.
    """

    results: dict[str, Any]
    output: str
    compared: dict[str, Any] = field(default_factory=dict)

    def way(self, name: str) -> str:
        """Return what was printed while that task ran."""
        return self.output.partition(f"TASK [{name}] *")[2].partition("\nTASK [")[0]


def play(
    where: Path, table: list[Row], simulator: Simulator, *arguments: str, **environment: str
) -> Played:
    """Run the rows as one playbook with the connection in a group of module_defaults."""
    names = {f"r{number}": row.name for number, row in enumerate(table)}
    tasks = [
        {
            **row.task,
            "register": row.keywords.get("register", "r") if "until" in row.keywords else name,
        }
        for name, row in zip(names, table, strict=True)
    ]
    for name, task in zip(names, tasks, strict=True):
        text = json.dumps(task).replace("r.vms", f"{name}.vms")
        task.update({**json.loads(text), "register": name})
    results = "{{ {" + ", ".join(f"'{name}': {name}" for name in names) + "} | to_json }}"
    last = {"name": "Write", "keep": {"content": results, "dest": "results.json"}}
    connection = {
        "ca_path": simulator.ca,
        "host": simulator.url,
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
    }
    plays = [
        {
            "name": "Rows",
            "hosts": "localhost",
            "gather_facts": False,
            "module_defaults": {"group/pve.fleet.all": connection},
            "vars": {"ca": simulator.ca},
            "tasks": [*tasks, {**last, "no_log": True}],
        }
    ]
    where.mkdir(exist_ok=True)
    (where / "rows.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    command = ["ansible-playbook", "-vvv", "rows.yml", *arguments]
    known = {
        **os.environ,
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_PIPELINING": "1",
        **environment,
    }
    done = subprocess.run(
        command, cwd=where, env=known, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    found = json.loads((where / "results.json").read_text(encoding="utf-8"))
    return Played({names[key]: value for key, value in found.items()}, done.stdout + done.stderr)


def same(value: Any, simulator: Simulator) -> Any:
    """Return a result without what differs from run to run: times, task IDs, made-up addresses,
    ports.
    """
    drops = {
        "checked",
        "uptime",
        "ms",
        "ended",
        "age",
        "master_age",
        "recovery_point",
        "newest_time",
        "duration",
        "time",
        "created",
        "began",  # of a drill, and the ID of its run
        "run",
        "since",
        "snaptime",
        "ctime",
        "frame",  # where in its own code Ansible 2.18 found itself when the timeout came
        "ansible_job_id",
        "results_file",
    }
    if isinstance(value, dict):
        if "labels" in value and TIMED.search(value["name"]):
            drops = {*drops, "value"}
        return {key: same(part, simulator) for key, part in value.items() if key not in drops}
    if isinstance(value, list):
        parts = [same(part, simulator) for part in value]
        # How often a task was asked for its state is a matter of time.
        asked = parts and all(
            isinstance(part, dict) and {"method", "path", "try"} <= part.keys() for part in parts
        )
        return sorted({json.dumps(part, sort_keys=True) for part in parts}) if asked else parts
    if not isinstance(value, str):
        return value
    text = value.replace(simulator.ca, "CA").replace(str(simulator.port), "PORT")
    text = re.sub(r"[^\s'\"]*/both\.prom", "FILE", text)
    text = TIMED_LINE.sub(r"\1", text)
    text = re.sub(r"(vzdump-\w+-\d+)-[\d_-]+", r"\1-TIME", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)
    text = re.sub(r"UPID:[^\s'\"]*", "UPID", text)
    text = re.sub(r"BC:24:11(:[0-9A-F]{2}){3}", "MAC", text)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)
    return re.sub(r"0x[0-9a-f]{6,}|after \d+(\.\d+)? s", "X", text)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The variable `vaulted` as YAML, encrypted with PASSWORD."""
    where = tmp_path_factory.mktemp("vault")
    (where / "password").write_text(PASSWORD, encoding="utf-8")
    command = [
        "ansible-vault",
        "encrypt_string",
        "--vault-password-file",
        "password",
        "--name",
        "vaulted",
        VAULTED,
    ]
    return (
        subprocess.run(command, cwd=where, capture_output=True, text=True, check=True).stdout + "\n"
    )


@dataclass(frozen=True)
class Tables:
    """Runs tables each on a cluster of its own."""

    place: Path
    vaulted: str

    def both_ways(self, table: list[Row], slow: Sequence[Row] = ()) -> tuple[Played, Played]:
        """Return what was played in the controller's process, and in processes of its own.

        The results are the same, whatever the way, and no secret is printed.
        """
        here = self._run(table, slow, in_process=True)
        module = self._run(table, slow, in_process=False)
        assert differing(here.compared, module.compared) == []
        for row in (MAKE, *table, *slow):
            assert row.way in here.way(row.name), row.name
            assert HERE not in module.way(row.name), row.name
            assert "Traceback" not in json.dumps(here.results[row.name]), row.name
        for played in (here, module):
            assert_failures_have_an_error(played.results)
            printed = "\n".join(line for line in played.output.splitlines() if "EXEC" not in line)
            for secret in SECRETS:
                assert secret not in printed
                assert secret not in json.dumps(played.results)
        return here, module

    def _run(self, table: list[Row], slow: Sequence[Row], *, in_process: bool) -> Played:
        arguments = (
            "--cluster",
            DEMO,
            "--lag-s",
            "0",
            "--auth-delay-s",
            "0",
            "--task-ms",
            "default=10",
        )
        switch = ("-e", f"pve_fleet_in_process={str(in_process).lower()}", "-e", "@vars.yml")
        where = self.place / ("here" if in_process else "module")
        where.mkdir()
        unsafe = 'unsafe: !unsafe "{{ 1 + 1 }} {% x %}"'
        logins = f"logins: [{TOKEN_SECRET}, {SECRETS[-1]}]"
        lines = (self.vaulted, unsafe, logins, "")
        (where / "vars.yml").write_text("\n".join(lines), encoding="utf-8")
        (where / "password").write_text(PASSWORD, encoding="utf-8")
        with Simulator(*arguments) as simulator:
            vault = {"ANSIBLE_VAULT_PASSWORD_FILE": "password"}
            login = {"ca_path": simulator.ca, "token_id": TOKEN_ID, "token_secret": TOKEN_SECRET}
            with connect({**login, "host": simulator.url}, {}) as client:
                with_directory(client, simulator)
            played = play(where, [MAKE, *table], simulator, *switch, **vault)
            results, output = played.results, played.output
            if slow:
                simulator.fault(method="GET", path="/snapshot$", delay_ms=5000)
                late = play(where, list(slow), simulator, *switch, **vault)
                results, output = {**results, **late.results}, output + late.output
            compared = {name: same(result, simulator) for name, result in results.items()}
            return Played(results, output, compared)


@pytest.fixture
def tables(tmp_path: Path, encrypted: str) -> Tables:
    return Tables(tmp_path, encrypted)


def differing(here: Any, module: Any, where: str = "") -> list[str]:
    """Return where two results differ, each with both values."""
    if isinstance(here, dict) and isinstance(module, dict):
        keys = sorted(here.keys() | module.keys())
        return [
            line
            for key in keys
            for line in differing(here.get(key), module.get(key), f"{where}/{key}")
        ]
    return [] if here == module else [f"{where}: {here!r:.300} and {module!r:.300}"]


PARTS = 4


# The module whose task leaves the object of another module's task.
NEEDED = {"container_image": "container", "restore": "backup"}


def modules_of(part: int) -> list[str]:
    """Return the modules of one part of the table, after those that leave what they need."""
    size = -(-len(MINIMAL) // PARTS)
    return with_needed(list(MINIMAL)[part * size : (part + 1) * size])


def with_needed(modules: Sequence[str]) -> list[str]:
    """Return modules, after those that leave what they need."""
    needed = [NEEDED[module] for module in modules if module in NEEDED]
    return [*(module for module in needed if module not in modules), *modules]


def test_each_kind_of_module_says_the_same_both_ways(tables: Tables) -> None:
    same_both_ways(tables, with_needed(module_sample()))


# Few tables, because each start of ansible-playbook, and the clusters, cost more than a row; more
# than two, because several workers share the tests.
@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_every_module_says_the_same_both_ways(tables: Tables, part: int) -> None:
    same_both_ways(tables, modules_of(part))


def same_both_ways(tables: Tables, modules: Sequence[str]) -> None:
    here, _module = tables.both_ways(module_rows(modules))
    for name, result in here.results.items():
        if name.endswith((": foresee", ": do", ": again")):
            module = name.partition(":")[0]
            assert result["failed"] is (module in UNSUPPORTED), (name, result)
            # a move needs a second site, so that its task asks nothing
            assert result.get("requests") or module == "relocate", name


@pytest.mark.long
def test_both_ways_take_the_same_options(tables: Tables) -> None:
    here, _module = tables.both_ways(PARTICULAR)
    assert here.results["a change"]["changed"]
    assert here.results["a change, foreseen"]["diff"]
    assert here.results["out of the vault"]["vm"]["description"] == VAULTED
    assert here.results["the text of a tenant"]["vm"]["description"] == "{{ 1 + 1 }} {% x %}"
    assert VAULTED not in json.dumps(here.results["a secret out of the vault"])
    logins = here.results["another login for each item"]["results"]
    assert [login["failed"] for login in logins] == [False, True, False]


@pytest.mark.long
def test_both_ways_heed_the_keywords_of_a_task(tables: Tables) -> None:
    here, _module = tables.both_ways(KEYWORDS, SLOW)
    assert here.results["too long"]["failed"]


# Where Ansible itself ends the task or calls it failed, our code has no say. A machine may lack
# sudo.
ANSIBLES_OWN = {"too long", "failed when", "until", "no log", "become another"}


def assert_failures_have_an_error(results: Mapping[str, Any]) -> None:
    for name, result in results.items():
        for one in result.get("results", [result]):
            if one["failed"] and name not in ANSIBLES_OWN:
                assert "error" in one, (name, one)
                assert one["error"]["category"], (name, one)


def test_every_module_has_both_ways_and_a_row(repo: Path) -> None:
    modules = {
        file.stem for file in (repo / "plugins" / "modules").glob("*.py") if file.stem != "__init__"
    }
    assert modules == set(MINIMAL), "declare each module, with a task that works"
    assert modules == {file.stem for file in (repo / "plugins" / "action").glob("*.py")}


def test_a_loop_logs_in_once(tmp_path: Path) -> None:
    with Simulator() as simulator:
        login: Mapping[str, Any] = {
            "token_id": "",
            "token_secret": "",
            "user": "root@pam",
            "password": "fleetpw123",
        }
        loop = Row("loop", "vm_info", {**login, "tags": ["{{ item }}"]}, {"loop": list("abcdef")})
        counted = {}
        for switch in ("true", "false"):
            simulator.reset_log()
            play(tmp_path, [loop], simulator, "-e", f"pve_fleet_in_process={switch}")
            counted[switch] = len(
                [row for row in simulator.writes() if row["path"].endswith("/access/ticket")]
            )
    assert counted == {"true": 1, "false": 6}


def test_without_a_library_a_module_tells(tmp_path: Path) -> None:
    hide = (
        "import importlib.machinery as m\n"
        "find = m.PathFinder.find_spec\n"
        "def seek(name, *a, **k):\n"
        "    return None if name.split('.')[0] == 'proxmoxer' else find(name, *a, **k)\n"
        "m.PathFinder.find_spec = staticmethod(seek)\n"
    )
    (tmp_path / "sitecustomize.py").write_text(hide, encoding="utf-8")
    with Simulator() as simulator:
        played = play(tmp_path, [Row("it", "vm_info", {})], simulator, PYTHONPATH=str(tmp_path))
    assert AS_A_MODULE in played.way("it")
    assert "(proxmoxer)" in played.results["it"]["msg"]
    assert played.results["it"]["error"]["reason"] == "missing library proxmoxer"


def test_a_mistake_tells_no_secret(tmp_path: Path) -> None:
    break_it = (
        "import requests\n"
        "def request(*_unused, **_unused_too):\n"
        "    raise RuntimeError('boom hush-hush-1')\n"
        "requests.Session.request = request\n"
    )
    (tmp_path / "sitecustomize.py").write_text(break_it, encoding="utf-8")
    options = {"name": "x", "cloud_init": {"password": "hush-hush-1"}}
    table = [Row("open", "vm", options), Row("hidden", "vm", options, {"no_log": True})]
    with Simulator() as simulator:
        played = play(tmp_path, table, simulator, PYTHONPATH=str(tmp_path))
    assert HERE in played.way("open")
    assert "RuntimeError" in played.way("open")
    assert played.results["open"]["error"]["category"] == "InternalError"
    assert "hush-hush-1" not in played.output + json.dumps(played.results)
    assert "Traceback" not in played.way("hidden")


def test_the_switch_in_the_environment(tmp_path: Path) -> None:
    with Simulator() as simulator:
        played = play(tmp_path, [Row("it", "vm_info", {})], simulator, PVE_FLEET_IN_PROCESS="false")
        assert AS_A_MODULE in played.way("it")


def test_progress_is_shown_where_it_is_asked_for(tmp_path: Path) -> None:
    arguments = ("--cluster", DEMO, "--lag-s", "0", "--task-ms", "qmclone=5000,default=10")
    with Simulator(*arguments) as simulator:
        copy = Row("copy", "clone", {"name": "copy", "source": "debian-13", "full": True})
        foreseen = Row(
            "foreseen", "clone", {"name": "other", "source": "debian-13", "full": True}, CHECK
        )
        played = play(tmp_path, [foreseen, copy], simulator, PVE_FLEET_PROGRESS="true")
        again = Row("again", "clone", {"name": "third", "source": "debian-13", "full": True})
        silent = play(tmp_path, [again], simulator)
    lines, unasked = (
        re.findall(r"^(clone of .*)$", each.output, re.M) for each in (played, silent)
    )
    assert 2 <= len(lines) <= 6, played.output[-3000:]
    assert all(
        re.fullmatch(r"clone of VM 9000 on node pve1(, \d+ %)?, \d+ s", line) for line in lines
    ), lines
    assert any("%" in line for line in lines)
    assert unasked == []


def test_progress_of_an_upload_is_shown_unless_the_task_is_hidden(tmp_path: Path) -> None:
    slow_network = (
        "import ssl, time\n"
        "send = ssl.SSLSocket.sendall\n"
        "def sendall(self, data, *rest):\n"
        "    time.sleep(0.25 if len(data) > 100_000 else 0)\n"
        "    return send(self, data, *rest)\n"
        "ssl.SSLSocket.sendall = sendall\n"
    )
    (tmp_path / "sitecustomize.py").write_text(slow_network, encoding="utf-8")
    file = tmp_path / "debian.iso"
    file.write_bytes(bytes(3 << 20))
    volume = {"storage": "local", "node": "pve1", "content": "iso", "src": str(file)}
    shown = Row("shown", "volume", volume)
    hidden = Row("hidden", "volume", {**volume, "filename": "other.iso"}, {"no_log": True})
    with Simulator("--task-ms", "default=10") as simulator:
        played = play(
            tmp_path,
            [shown, hidden],
            simulator,
            PYTHONPATH=str(tmp_path),
            PVE_FLEET_PROGRESS="true",
        )
    assert [played.results[name]["changed"] for name in ("shown", "hidden")] == [True, True]
    lines = re.findall(r"^(upload of .*)$", played.output, re.M)
    assert 1 <= len(lines) <= 4, played.output[-3000:]
    line = r"upload of debian\.iso to local on node pve1, \d+ % of 3 MiB, [\d.]+ [KM]iB/s, \d+ s"
    assert all(re.fullmatch(line, each) for each in lines), lines
