# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every fenced block of every page is run, or checked with the reason why it is not run.

Each block is checked by its language: YAML is parsed and the options of its tasks are compared with
those of the modules, shell commands are parsed and what they name must exist. RULES says for each
page and language which test runs its blocks, or why none does. A page without a rule fails.
"""

from __future__ import annotations

import configparser
import importlib
import json
import re
import shlex
import shutil
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from tests.cases import repeated
from tests.demo.lab import Lab
from tests.plays.commands import run
from tests.plays.provision_helpers import Player
from tests.tools.stage import source_files

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = REPO / "docs" / "examples"
HERE = "tests/plays/test_guides.py"
IN_EXAMPLES = "tests/plays/test_examples.py"


@dataclass(frozen=True)
class By:
    """The test that runs the blocks."""

    test: str


@dataclass(frozen=True)
class Not:
    """Why no test runs the blocks; they are checked all the same, if they are complete."""

    reason: str
    complete: bool = True


OUTPUT = Not("it is an output or a form, not a command")
OWN_CLUSTER = Not("it needs a cluster, an account or a node of the reader's own")
PLACEHOLDERS = Not("names and addresses are those of a reader's cluster; the options are checked")
RULES: Mapping[str, Mapping[str, By | Not]] = {
    ".github/ISSUE_TEMPLATE/bug.md": {"yaml": Not("the reader fills it in")},
    "CONTRIBUTING.md": {
        "python": Not("dots for what is left out", complete=False),
        "yaml": Not("a part of a declaration"),
    },
    "README.md": {"shell": By(HERE), "yaml": By(HERE), "json": By(HERE)},
    "docs/access.md": {"yaml": By(IN_EXAMPLES), "text": OUTPUT},
    "docs/awx.md": {"text": OUTPUT},
    "docs/backup.md": {
        "yaml": By(IN_EXAMPLES),
        "shell": Not("tests/plays/test_backup.py sets the same variables"),
    },
    "docs/cloud-init.md": {"yaml": By(IN_EXAMPLES)},
    "docs/cluster-options.md": {"yaml": By(IN_EXAMPLES)},
    "docs/datacenter.md": {"yaml": By(IN_EXAMPLES), "text": Not("it needs a disk on ZFS")},
    "docs/cluster.md": {
        "yaml": By(IN_EXAMPLES),
        "shell": Not(
            "tests/plays/test_cluster_play.py runs the same commands with files of its own"
        ),
        "text": OUTPUT,
    },
    "docs/connections.md": {"yaml": PLACEHOLDERS, "console": OWN_CLUSTER},
    "docs/containers.md": {"yaml": By(IN_EXAMPLES)},
    "docs/drill.md": {
        "yaml": By(IN_EXAMPLES),
        "yml": Not("tests/plays/test_drill.py runs such a file in a copy"),
        "shell": Not("tests/plays/test_drill.py sets the same variables"),
    },
    "docs/failover.md": {
        "yaml": By(IN_EXAMPLES),
        "yml": Not("tests/plays/test_failover.py sets the same variables"),
        "shell": Not("tests/plays/test_failover.py sets the same variables"),
        "text": OUTPUT,
    },
    "docs/relocation.md": {
        "yaml": By(IN_EXAMPLES),
        "yml": Not("tests/plays/test_relocate.py sets the same variables"),
        "shell": Not("tests/plays/test_relocate.py sets the same variables"),
        "text": OUTPUT,
    },
    "docs/drift.md": {
        "yaml": By(IN_EXAMPLES),
        "yml": OUTPUT,
        "console": OUTPUT,
        "text": Not("cron and systemd run it"),
    },
    "docs/plans.md": {"console": OUTPUT, "text": OUTPUT},
    "docs/architecture.md": {"text": OUTPUT},
    "docs/estates.md": {"yaml": By(HERE), "shell": By(HERE)},
    "docs/export.md": {
        "shell": By(HERE),
        "yml": By("tests/modules/test_estate_info.py"),
        "yaml": By(IN_EXAMPLES),
    },
    "docs/fleet.md": {"yaml": By(IN_EXAMPLES), "text": OUTPUT},
    "docs/getting-started.md": {"shell": By(HERE), "yaml": By(HERE), "text": OUTPUT},
    "docs/firewall.md": {"yaml": By(IN_EXAMPLES), "text": OUTPUT},
    "docs/ha.md": {"yaml": By(IN_EXAMPLES), "text": OUTPUT},
    "docs/images.md": {"yaml": PLACEHOLDERS, "shell": OWN_CLUSTER, "text": OUTPUT},
    "docs/inventory.md": {
        "yaml": By("tests/plays/test_inventory_docs.py"),
        "shell": OWN_CLUSTER,
        "ini": Not("tests/plays/test_inventory.py sets the same by the environment"),
    },
    "docs/networks.md": {"yaml": By(IN_EXAMPLES)},
    "docs/events.md": {
        "yaml": PLACEHOLDERS,
        "console": Not("tests/plays/test_rulebook.py runs the same rulebook"),
    },
    "docs/maintenance.md": {
        "shell": Not("tests/plays/test_maintenance.py runs the same commands with its own nodes"),
        "yml": Not("tests/plays/test_inventory_kinds.py reads nodes"),
        "yaml": By(IN_EXAMPLES),
        "text": OUTPUT,
    },
    "docs/metrics.md": {
        "console": OUTPUT,
        "ini": Not("tests/plays/test_callback_metrics.py sets the same; the unit needs systemd"),
        "yaml": PLACEHOLDERS,
    },
    "docs/moving-from-community-proxmox.md": {"yaml": By(HERE)},
    "docs/moving-from-terraform.md": {"shell": By(HERE)},
    "docs/several-clusters.md": {"yaml": PLACEHOLDERS, "text": OUTPUT},
    "docs/placement.md": {"yaml": By("tests/unit/test_docs_vm.py"), "text": OUTPUT},
    "docs/nodes.md": {"yaml": By(IN_EXAMPLES)},
    "docs/pools.md": {"yaml": By(IN_EXAMPLES)},
    "docs/promises.md": {"text": OUTPUT},
    "docs/releasing.md": {
        "shell": Not("a release is made by hand; tests/unit/test_tools_release.py")
    },
    "docs/report.md": {
        "console": OUTPUT,
        "yaml": By(IN_EXAMPLES),
        "shell": Not("tests/plays/test_report.py sets the same variables; paths are a reader's"),
    },
    "docs/security.md": {"text": OUTPUT},
    "docs/settings.md": {"shell": By(HERE)},
    "docs/storage.md": {"yaml": By(IN_EXAMPLES), "text": OUTPUT},
    "docs/simulator.md": {
        "console": OUTPUT,
        "shell": Not("it installs from a package index"),
        "json": Not("dots for what is left out", complete=False),
        "python": Not("tests/simulator_tests/test_product.py runs the package as a user does"),
        "text": OUTPUT,
        "yaml": OUTPUT,
    },
    "docs/snapshots.md": {
        "shell": By(HERE),
        "yaml": Not("the first example of the role, which tests/plays/test_examples.py runs"),
    },
    "docs/snapshots-and-clones.md": {"yaml": By(IN_EXAMPLES)},
    "docs/speed.md": {"text": OUTPUT},
    "docs/tenants.md": {"yaml": By(IN_EXAMPLES), "shell": OWN_CLUSTER, "text": OUTPUT},
    "docs/troubleshooting.md": {
        "text": By("tests/modules/test_docs_troubleshooting.py"),
        "shell": Not("commands of a node, which the simulator does not have"),
        "yaml": By(HERE),
    },
    "docs/usage.md": {
        "console": OUTPUT,
        "shell": Not("tests/plays/test_usage.py sets the same variables; paths are a reader's"),
    },
    "docs/vm.md": {"yaml": By("tests/unit/test_docs_vm.py")},
    "roles/cluster/README.md": {
        "yaml": PLACEHOLDERS,
        "shell": Not("tests/plays/test_cluster_play.py plays such a file"),
        "text": OUTPUT,
    },
    "roles/maintenance/README.md": {
        "yaml": PLACEHOLDERS,
        "shell": Not("tests/plays/test_maintenance.py sets the same variables"),
        "text": OUTPUT,
    },
    "roles/drill/README.md": {
        "yaml": PLACEHOLDERS,
        "shell": Not("tests/plays/test_drill.py sets the same variables"),
    },
    "roles/failover/README.md": {
        "yaml": PLACEHOLDERS,
        "shell": Not("tests/plays/test_failover.py sets the same variables"),
        "text": OUTPUT,
    },
    "roles/relocate/README.md": {"yaml": PLACEHOLDERS},
    "roles/image/README.md": {"yaml": By(IN_EXAMPLES), "shell": OWN_CLUSTER},
    "roles/preflight/README.md": {"yaml": By(IN_EXAMPLES), "text": OUTPUT},
    "roles/provision/README.md": {
        "yaml": PLACEHOLDERS,
        "shell": Not("tests/plays/test_provision.py sets the same variables"),
        "text": OUTPUT,
    },
    "roles/report/README.md": {
        "yaml": PLACEHOLDERS,
        "shell": Not("tests/plays/test_report.py sets the same variables"),
    },
    "roles/snapshot_policy/README.md": {
        "yaml": By(IN_EXAMPLES),
        "shell": Not("tests/plays/test_snapshot_plays.py sets the same variables"),
    },
    "roles/tenant/README.md": {"yaml": PLACEHOLDERS, "shell": OWN_CLUSTER, "text": OUTPUT},
    "tests/README.md": {"shell": Not("they run the tests themselves")},
    "tests/simulator/README.md": {"console": OUTPUT, "python": OUTPUT, "toml": OUTPUT},
    "tests/tools/docs_site/index.md": {"yaml": By("tests/unit/test_tools_docs_site.py")},
    "tests/tools/options/README.md": {"yaml": Not("a part of a declaration")},
}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w{}-]*)\n(?P<text>.*?)^(?P=indent)```", re.M | re.S
)


def blocks() -> Iterator[Block]:
    """Yield the blocks of all pages; directives of the site, such as a list of pages, are none."""
    for page in sorted(file for file in source_files(REPO) if file.endswith(".md")):
        text = (REPO / page).read_text(encoding="utf-8")
        for number, found in enumerate(_FENCE.finditer(text), 1):
            if not found["language"].startswith("{"):
                code = textwrap.dedent(found["text"])
                yield Block(page, number, found["language"], code)


ALL = list(blocks())


class Loader(yaml.SafeLoader):
    """Reads the tags of Ansible as texts."""


for _tag in ("!vault", "!unsafe"):
    Loader.add_constructor(_tag, lambda _loader, node: node.value)


def test_every_block_has_a_rule() -> None:
    """Where this fails: add the page and language to RULES, and run the block if possible."""
    assert [str(one) for one in ALL if one.language not in RULES.get(one.page, {})] == []


def test_every_rule_is_of_use() -> None:
    there = {(one.page, one.language) for one in ALL}
    rules = {(page, language) for page, rules in RULES.items() for language in rules}
    assert rules - there == set()


@pytest.mark.parametrize("page", RULES)
def test_a_test_that_runs_the_blocks_of_a_page_names_it(page: str) -> None:
    for rule in RULES[page].values():
        if isinstance(rule, By):
            text = (REPO / rule.test).read_text(encoding="utf-8")
            names = {Path(page).name, Path(page).stem, Path(page).parent.name}
            assert any(name in text for name in names if name != "docs"), rule.test


@pytest.mark.parametrize("block", ALL, ids=str)
def test_a_block_is_valid(block: Block) -> None:
    check = CHECKS.get(block.language)
    rule = RULES.get(block.page, {}).get(block.language)
    is_complete = not isinstance(rule, Not) or rule.complete
    if check is not None and is_complete:
        check(block)


def check_yaml(block: Block) -> None:
    for document in yaml.load_all(block.text, Loader):
        for name, options in module_calls(document):
            check_options(name, options)


def module_calls(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the modules of this collection in tasks, wherever these are, and their options."""
    if isinstance(document, list):
        for one in document:
            yield from module_calls(one)
    if not isinstance(document, dict):
        return
    for key, value in document.items():
        short = str(key).removeprefix("pve.fleet.")
        if str(key).startswith("pve.fleet.") and (REPO / f"plugins/modules/{short}.py").exists():
            yield short, value or {}
        elif key in ("tasks", "block", "rescue", "always", "pre_tasks", "post_tasks"):
            yield from module_calls(value)


def check_options(module: str, options: dict[str, Any]) -> None:
    """Compare options with those of a module, but for values that a template gives."""
    entry = importlib.import_module(f"ansible_collections.pve.fleet.plugins.modules.{module}").ENTRY
    spec = entry.whole_spec
    known = {*spec, *(alias for one in spec.values() for alias in one.get("aliases", ()))}
    assert set(options) <= known
    plain = {name: value for name, value in options.items() if "{{" not in str(value)}
    allowed = {name: {**one, "required": False} for name, one in spec.items()}
    checked = ArgumentSpecValidator(allowed).validate(plain)
    assert checked.error_messages == []


def check_shell(block: Block) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=block.text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for words in commands(block.text):
        check_names(words)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a block."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words = words[1:]
        if words:
            yield words


def check_names(words: list[str]) -> None:
    """Check the playbooks, modules, variables and targets that a command names."""
    if words[0] == "make":
        targets = set(re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text("utf-8"), re.M))
        assert {word for word in words[1:] if "=" not in word} <= targets
    for word in words:
        name = word.removeprefix("pve.fleet.")
        if word.startswith("pve.fleet.") and words[0] == "ansible-playbook":
            assert (REPO / "playbooks" / f"{name}.yml").exists(), word
    for flag, value in zip(words, words[1:], strict=False):
        variable = re.match(r"([a-z]\w*)=", value)
        if flag == "-e" and variable and words[0] == "ansible-playbook":
            assert variable[1] in variables(), value


def variables() -> set[str]:
    """Return the variables of all roles, and those that playbooks read."""
    found: set[str] = set()
    for file in REPO.glob("roles/*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(file.read_text("utf-8"))["argument_specs"].values():
            found |= set(entry.get("options") or {})
    for file in (REPO / "playbooks").rglob("*.yml"):
        found |= set(re.findall(r"\b([a-z]+_\w+)\b", file.read_text(encoding="utf-8")))
    return found


def check_json(block: Block) -> None:
    for line in [block.text] if block.text.startswith(("{\n", "[\n")) else block.text.splitlines():
        json.loads(line)


def check_python(block: Block) -> None:
    compile(block.text, str(block), "exec")


def check_toml(block: Block) -> None:
    pytest.importorskip("tomllib").loads(block.text)


def check_ini(block: Block) -> None:
    configparser.ConfigParser().read_string(block.text)


CHECKS = {
    "yaml": check_yaml,
    "yml": check_yaml,
    "shell": check_shell,
    "json": check_json,
    "python": check_python,
    "toml": check_toml,
    "ini": check_ini,
}


# What a page shows is run in its order on the simulated cluster.


@pytest.fixture
def reader(player: Player) -> Player:
    """A directory with the files that the pages speak of."""
    for file in [*EXAMPLES.glob("*.yml"), *EXAMPLES.glob("*/*.yml")]:
        shutil.copy(file, player.directory)
    # What the tests set is taken away: the pages say it.
    for name in INVENTORY_WARNINGS:
        player.environment.pop(name, None)
    for text in of("docs/getting-started.md", "shell"):
        player.environment.update(re.findall(r"\b(ANSIBLE_\w+_WARNING)=(\w+)", text))
    return player


INVENTORY_WARNINGS = ("ANSIBLE_LOCALHOST_WARNING", "ANSIBLE_INVENTORY_UNPARSED_WARNING")
INVENTORY_WARNING = re.compile("No inventory was parsed|provided hosts list is empty")


def test_pages_that_set_the_login_switch_off_the_warnings_about_an_inventory() -> None:
    """A page that starts from nothing; the others follow docs/getting-started.md."""
    for block in ALL:
        logs_in = "export PROXMOX_TOKEN_SECRET=" in block.text
        plays = "ansible-playbook" in block.text or block.page == "docs/getting-started.md"
        if logs_in and plays:
            for name in INVENTORY_WARNINGS:
                assert f"{name}=false" in block.text, block


def test_the_example_configuration_switches_off_the_warnings_too(player: Player, lab: Lab) -> None:
    command = ["ansible-playbook", "pve.fleet.preflight", "-e", "preflight_fail=false"]
    quiet = {name: player.environment[name] for name in player.environment}
    for name in INVENTORY_WARNINGS:
        quiet.pop(name, None)
    warned = run(command, REPO, quiet, usual=False)
    assert len(INVENTORY_WARNING.findall(" ".join(warned.stderr.split()))) == 2
    quiet["ANSIBLE_CONFIG"] = str(EXAMPLES / "ansible.cfg")
    done = run(command, REPO, quiet, usual=False)
    assert not INVENTORY_WARNING.search(" ".join(done.stderr.split()))


def of(page: str, language: str) -> list[str]:
    return [one.text for one in ALL if (one.page, one.language) == (page, language)]


def run_commands(reader: Player, text: str) -> list[str]:
    """Run the commands of Ansible in a block, and return their outputs."""
    outputs = []
    for words in commands(text):
        if words[0] in ("ansible", "ansible-playbook", "ansible-inventory"):
            done = run(words, reader.directory, reader.environment)
            assert done.returncode == 0, done.stdout + done.stderr
            assert not INVENTORY_WARNING.search(" ".join(done.stderr.split())), words
            outputs.append(done.stdout)
        elif words[0] == "mkdir":
            (reader.directory / words[1]).mkdir()
    return outputs


def test_estate_of_the_readme(reader: Player, lab: Lab) -> None:
    """It is that of the first page of the site too."""
    (estate,) = of("README.md", "yaml")
    assert of("tests/tools/docs_site/index.md", "yaml") == [estate]
    (reader.directory / "estate.yml").write_text(estate, encoding="utf-8")
    reader.play(str(REPO / "playbooks" / "provision.yml"), "-e", "@estate.yml").expect()
    assert {one.name for one in lab.machines() if one.tenant} == {"acme-web1", "globex-web1"}


def test_error_of_the_readme(reader: Player) -> None:
    (text,) = of("README.md", "json")
    task = "name=acme-web1 tenant=acme source=debian-12"
    command = ["ansible", "localhost", "-m", "pve.fleet.vm", "-a", task, "-o"]
    printed = run(command, reader.directory, reader.environment).stdout
    result = json.loads(printed[printed.index("=> {") + 3 :])
    shown = json.loads(text)
    assert shown["error"].items() <= result["error"].items()
    assert (shown["changed"], shown["msg"]) == (result["changed"], result["msg"])


def test_commands_of_the_readme(reader: Player, lab: Lab) -> None:
    outputs = [one for text in of("README.md", "shell") for one in run_commands(reader, text)]
    assert len(outputs) == 4
    assert "tenant_globex" in outputs[2]
    assert {one.tenant for one in lab.machines()} - {""} == {"globex"}


@pytest.mark.slow
def test_commands_of_the_page_about_settings(reader: Player, lab: Lab) -> None:
    outputs = [
        one for text in of("docs/settings.md", "shell") for one in run_commands(reader, text)
    ]
    assert len(outputs) == 5
    ours = [one for one in lab.machines() if one.tenant]
    assert len(ours) == 6
    assert all(str(lab.config(one)["protection"]) == "1" for one in ours)


@pytest.mark.parametrize("environment", ["development", "staging"])
def test_settings_of_an_environment_are_accepted(reader: Player, environment: str) -> None:
    playbook = str(REPO / "playbooks" / "provision.yml")
    files = ("-e", "@estate.yml", "-e", f"@{environment}.yml")
    reader.play(playbook, *files, "--check").expect()


def test_converted_playbook(reader: Player, lab: Lab) -> None:
    """A second run changes the snapshots only: another one is taken."""
    assert reader.play("after.yml").expect().changed == 2
    (web1,) = [one for one in lab.machines() if one.name == "web1"]
    config = lab.config(web1)
    assert (web1.node, web1.status, str(config["cores"])) == ("pve1", "running", "2")
    assert config["ipconfig0"] == "gw=10.20.0.1,ip=10.20.0.11/24"
    assert "ok: [localhost]" in reader.play("after.yml", "--tags", "all").expect().output


def test_the_page_shows_the_plays_that_are_files() -> None:
    """docs/moving-from-community-proxmox.md has tasks of before.yml and after.yml."""
    _inventory, before, after = of("docs/moving-from-community-proxmox.md", "yaml")
    for text, name in ((before, "before"), (after, "after")):
        file = (EXAMPLES / "moving" / f"{name}.yml").read_text(encoding="utf-8")
        tasks = yaml.safe_load(file)[0]["tasks"]
        assert all(task in tasks for task in yaml.safe_load(text))


@pytest.mark.slow
def test_commands_of_the_page_about_terraform(reader: Player, lab: Lab) -> None:
    """Of an estate that exists, the export comes to no change."""
    playbook = str(REPO / "playbooks" / "provision.yml")
    reader.play(playbook, "-e", "@estate.yml").expect()
    (reader.directory / "estate.yml").unlink()
    text = "".join(of("docs/moving-from-terraform.md", "shell"))
    _exported, preview = run_commands(reader, text)
    assert re.search(r"changed=0 ", preview)


@pytest.mark.slow
def test_commands_of_the_page_about_export(reader: Player, lab: Lab) -> None:
    lab.call("POST", "/nodes/pve1/qemu", vmid=15046, name="web1", memory=128)
    (reader.directory / "estate.yml").unlink()
    first, second = of("docs/export.md", "shell")
    _exported, preview = run_commands(reader, first)
    assert re.search(r"changed=0 ", preview)
    run_commands(reader, second)
    assert [one.tenant for one in lab.machines() if one.name == "web1"] == ["acme"]


def test_commands_of_getting_started_on_the_simulator(reader: Player, lab: Lab) -> None:
    _start, text = of("docs/getting-started.md", "shell")[:2]
    exported = dict(re.findall(r"^export (PROXMOX_TOKEN_\w+)='?(.*?)'?$", text, re.M))
    assert exported == {name: lab.environment[name] for name in exported}
    assert len(exported) == 2
    shutil.copytree(REPO / "docs" / "examples", reader.directory / "docs" / "examples")
    provisioned, listed = run_commands(reader, text)
    assert "Done: 6 created" in provisioned
    assert "tenant_globex" in listed


def test_commands_of_getting_started(reader: Player, lab: Lab) -> None:
    """From a cluster without a template to the end of the VM."""
    page = "docs/getting-started.md"
    estate, inventory = of(page, "yaml")
    (reader.directory / "estate.yml").write_text(estate, encoding="utf-8")
    (reader.directory / "fleet.proxmox.yml").write_text(inventory, encoding="utf-8")
    lab.call("DELETE", "/nodes/pve1/qemu/9000")
    # The playbook of a tenant is run by test_tenant_role.py, the privileges by test_provision.py.
    steps = [
        text for text in of(page, "shell")[2:] if re.search(r"ansible\S* (?!.*tenant\.yml)", text)
    ]
    outputs = [one for text in steps for one in run_commands(reader, text)]
    assert len(outputs) == 12
    assert re.search(r"changed=[1-9]", outputs[1]), "the template is created"
    assert "acme-web1" in outputs[4]
    assert not [one for one in lab.machines() if one.tenant]


@pytest.mark.parametrize("number", repeated(range(6)))
def test_estate_of_the_page_about_estates(reader: Player, lab: Lab, number: int) -> None:
    """Each estate is provisioned, and a second run changes nothing."""
    text = of("docs/estates.md", "yaml")[number]
    (reader.directory / "estate.yml").write_text(text, encoding="utf-8")
    outputs = [run_commands(reader, block) for block in of("docs/estates.md", "shell")]
    (_preview, created), (again, _one_tenant) = outputs
    assert "+ " in created
    assert re.search(r"changed=0 ", again)
    machines = {machine.name: machine for machine in lab.machines() if machine.tenant}
    names = (
        {"acme-web1"},
        {"acme-web1", "globex-web1"},
        {"acme-web1", "acme-db1"},
        {"acme-web1", "globex-web1"},
        {"acme-web1", "acme-db1", "acme-scratch1"},
        {"acme-worker1", "acme-worker2", "acme-worker3"},
    )
    assert machines.keys() == names[number]


def test_what_wins_in_an_estate(reader: Player, lab: Lab) -> None:
    """The table and the sentence above it in docs/estates.md."""
    estate = {
        "provision_defaults": {
            "source": "debian-13",
            "memory": "1G",
            "cores": 1,
            "cpuunits": 50,
            "tags": ["all"],
            "cloud_init": {"user": "ops", "search_domain": "example.com"},
            "nics": [{"network": "front", "ip": "dhcp"}],
        },
        "provision_networks": {"front": "vmbr0", "back": "vmbr1"},
        "provision_classes": {"db": {"memory": "3G", "sockets": 2, "tags": ["db"]}},
        "tenants": {"acme": {"defaults": {"memory": "2G", "cores": 2, "sockets": 1}}},
        "provision_vms": [
            {
                "name": "db1",
                "tenant": "acme",
                "class": "db",
                "memory": "4G",
                "tags": ["own"],
                "cloud_init": {"user": "dba"},
                "nics": [{"network": "back"}],
            }
        ],
    }
    (reader.directory / "estate.yml").write_text(yaml.safe_dump(estate), encoding="utf-8")
    reader.play(str(REPO / "playbooks" / "provision.yml"), "-e", "@estate.yml").expect()
    (db1,) = [machine for machine in lab.machines() if machine.tenant]
    config = lab.config(db1)
    values = [str(config[key]) for key in ("memory", "sockets", "cores", "cpuunits")]
    assert values == ["4096", "2", "2", "50"]
    assert (config["ciuser"], config["searchdomain"]) == ("dba", "example.com")
    assert set(config["tags"].split(";")) == {"all", "db", "own", "tenant_acme"}
    assert "bridge=vmbr1" in config["net0"]
    assert "net1" not in config
    assert config["ipconfig0"] == "ip=dhcp"


@pytest.mark.slow
def test_commands_of_the_page_about_snapshots(reader: Player, lab: Lab) -> None:
    """Two of three VMs are rolled back: the third keeps what was changed."""
    reader.play(str(REPO / "playbooks" / "provision.yml"), "-e", "@estate.yml").expect()
    run_commands(reader, of("docs/snapshots.md", "shell")[0])
    found = {one.name: lab.config(one) for one in lab.machines() if one.tenant == "acme"}
    cpus = {name: str(config["cpu"]) for name, config in found.items()}
    old = "x86-64-v2-AES"
    assert cpus == {"acme-web1": old, "acme-db1": old, "acme-worker1": "host"}
    assert not any("parent" in config for config in found.values())


def test_the_page_about_snapshots_has_the_example_of_the_role() -> None:
    role = of("roles/snapshot_policy/README.md", "yaml")[0]
    assert of("docs/snapshots.md", "yaml") == [role]


def test_tasks_of_the_page_about_trouble(reader: Player, lab: Lab) -> None:
    lab.call("POST", "/nodes/pve1/qemu", vmid=15046, name="web1", tags="tenant_acme")
    tasks = [
        task for text in of("docs/troubleshooting.md", "yaml") for task in yaml.safe_load(text)
    ]
    tasks = [task for task in tasks if task.get("name") != "Remove what a failed restore left"]
    play = [{"name": "Tasks", "hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    (reader.directory / "tasks.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
    assert reader.play("tasks.yml").expect().changed == 0
