# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users install: the artifact holds what they need and nothing else, and works alone.

Commands here see the artifact in an empty path and no other collection. The simulated Proxmox VE
is a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.demo.__main__ import EXAMPLES, LOGIN, environment
from tests.demo.lab import Lab
from tests.plays.provision_helpers import Played, Player
from tests.tools.stage import source_files

pytestmark = pytest.mark.slow

# Every file of the artifact is one of these, and each of these has a file.
WANTED = {
    "what Galaxy adds": r"(MANIFEST|FILES)\.json",
    "the first page": r"README\.md",
    "licences": r"LICENSE|LICENSES/[\w.-]+\.txt|REUSE\.toml",
    "how to take part": r"(CONTRIBUTING|CODE_OF_CONDUCT)\.md",
    "the changelog": r"changelogs/(changelog|config)\.yaml|changelogs/fragments/[\w-]+\.yml",
    "what Ansible and ansible-builder read": r"meta/[\w-]+\.(yml|txt)",
    "plugins": r"plugins/[\w/]+\.(py|html\.j2|css)",
    "playbooks": r"playbooks/[a-z_]+\.yml",
    "the action of the set-up of AWX": r"playbooks/action_plugins/\w+\.py",
    "data for AWX": r"playbooks/awx/[\w/.]+\.yml|playbooks/awx/project/README\.md",
    "roles": r"roles/\w+/(README\.md|(defaults|meta|tasks(/\w+)?|vars)/\w+\.yml)",
    "programs for guests": r"roles/\w+/files/\w+\.sh",
    "extensions": r"extensions/(audit|execution_environment|molecule/simulator)/[\w-]+\.yml",
    "event-driven Ansible": r"extensions/eda/(plugins/[\w/]+\.py|rulebooks/\w+\.yml)",
    "guides and reasons": r"docs/(decisions/)?[\w-]+\.md",
    "links and guides of docs.ansible.com": r"docs/docsite/((links|extra-docs)\.yml|rst/[\w-]+\.rst)",
    "pictures of the guides": r"docs/[\w-]+\.(svg|png)",
    "schemas of results": r"docs/\w+\.schema\.json",
    "examples": r"docs/examples/([\w/.-]+\.yml|ansible\.cfg|gitops/requirements\.txt)",
}
# A release adds these to the changelog, and empties the directory of fragments.
RELEASED = {"CHANGELOG.md", "CHANGELOG.rst", "changelogs/fragments/.keep"}
# Bytes of the artifact for each module; it had 26,400 with 36 modules.
LARGEST = 24_000
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(#[^)]*)?\)")
_BLOCK = re.compile(r"^(?P<fence>```+).*?^(?P=fence)\s*$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def artifact(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("artifact")
    build = ["ansible-galaxy", "collection", "build", "--output-path", str(place), str(repo)]
    subprocess.run(build, check=True, capture_output=True)
    (built,) = place.glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def collections(artifact: Path) -> Path:
    """The directory in which the artifact is the only collection."""
    place = artifact.parent / "collections"
    place.mkdir()
    install = ["ansible-galaxy", "collection", "install", "--offline", "-p", str(place)]
    seen = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(place)}
    subprocess.run([*install, str(artifact)], check=True, capture_output=True, env=seen)
    return place


@pytest.fixture(scope="module")
def installed(collections: Path) -> Path:
    return collections / "ansible_collections" / "pve" / "fleet"


@pytest.fixture
def reader(collections: Path, tmp_path: Path, lab: Lab) -> User:
    return User(tmp_path, collections, lab)


class User:
    """A user with the artifact, its examples and the login of a cluster."""

    def __init__(self, directory: Path, collections: Path, lab: Lab) -> None:
        self.directory = directory
        self.lab = lab
        (directory / "ansible.cfg").touch()
        examples = collections / "ansible_collections" / "pve" / "fleet" / "docs" / "examples"
        for name in ("estate.yml", "tenant.yml", "fleet.proxmox.yml"):
            shutil.copy(examples / name, directory)
        given = environment(directory, lab)
        seen = {name: value for name, value in given.items() if not name.startswith("PYTHON")}
        self.environment = {**seen, "ANSIBLE_COLLECTIONS_PATH": str(collections)}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def play(self, *words: str, login: Mapping[str, str] | None = None) -> Played:
        """Play playbooks of the collection one after the other, with the login of a tenant if one
        is given.
        """
        seen = self.environment
        if login is not None:
            others = {name: seen[name] for name in seen if not name.startswith("PROXMOX_")}
            seen = {**others, **login}
        names = [f"pve.fleet.{word}" for word in words if word.isidentifier()]
        rest = [word for word in words if not word.isidentifier()]
        player = Player(self.directory, seen, usual=False)
        player.environment = seen
        return player.play(names[0], *names[1:], *rest).expect()


def test_each_file_is_one_that_users_need(repo: Path, artifact: Path, installed: Path) -> None:
    paths = [path for path in installed.rglob("*") if path.is_file()]
    files = {path.relative_to(installed).as_posix() for path in paths}
    unwanted = {
        name
        for name in files - RELEASED
        if not any(re.fullmatch(rule, name) for rule in WANTED.values())
    }
    assert unwanted == set()
    empty = [what for what, rule in WANTED.items() if not any(re.fullmatch(rule, n) for n in files)]
    assert empty == []
    assert files - {"MANIFEST.json", "FILES.json"} <= set(source_files(repo))
    modules = [name for name in files if name.startswith("plugins/modules/")]
    assert artifact.stat().st_size < LARGEST * len(modules)


def test_pages_lead_to_no_file_that_is_missing(installed: Path) -> None:
    missing = []
    for page in sorted(installed.rglob("*.md")):
        text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
        for link in _LINK.finditer(text):
            target = link["target"]
            if "://" not in target and not (page.parent / target).exists():
                missing.append(f"{page.relative_to(installed)}: {target}")
    assert missing == []


def test_commands_see_the_artifact_alone(reader: User, collections: Path) -> None:
    listed = json.loads(
        reader.run("ansible-galaxy", "collection", "list", "pve.fleet", "--format", "json").stdout
    )
    assert list(listed) == [str(collections / "ansible_collections")]
    imported = reader.run(sys.executable, "-c", "import ansible_collections.pve.fleet")
    assert "ModuleNotFoundError" in imported.stderr


def test_an_estate_with_the_artifact_alone(reader: User, lab: Lab) -> None:
    policy = "snapshot_policy_tenant=acme", "snapshot_policy_name=before"
    needs = json.dumps({"preflight_tasks": ["vm_clone"], "preflight_templates": ["debian-13"]})
    variables = ("-e", "@estate.yml", "-e", policy[0], "-e", policy[1], "-e", needs)
    plays = ("preflight", "provision", "drift", "snapshot", *variables)
    first = reader.play(*plays)
    assert first.changed > 0
    machines = lab.machines()
    assert Counter(vm.tenant for vm in machines) == {"acme": 3, "globex": 3}
    assert {vm.status for vm in machines} == {"running"}

    mark = lab.mark()
    assert reader.play(*plays).changed == 0
    place = reader.directory
    given = {"report_directory": str(place / "report"), "export_directory": str(place)}
    reads = json.dumps({**given, "metrics_path": str(place / "fleet.prom")})
    (place / "estate.yml").rename(place / "own.yml")
    reader.play("report", "export", "metrics", "-e", "@own.yml", "-e", reads)
    graph = reader.run("ansible-inventory", "-i", "fleet.proxmox.yml", "--graph")
    assert "acme-web1" in graph.stdout.partition("@tenant_acme:")[2].partition("@")[0]
    assert [str(one) for one in lab.requests_since(mark) if one.is_write] == []
    assert "acme-web1" in (place / "report" / "report.html").read_text(encoding="utf-8")
    assert "acme-web1" in (place / "estate.yml").read_text(encoding="utf-8")
    assert 'name="acme-web1"' in (place / "fleet.prom").read_text(encoding="utf-8")

    reader.play("rollback", "-e", policy[0], "-e", policy[1])
    leaving = ("deprovision", "-e", "@own.yml", "-e", "provision_tenants=globex")
    assert reader.play(*leaving).changed == 1
    assert {vm.tenant for vm in lab.machines()} == {"acme"}
    assert reader.play(*leaving).changed == 0


@pytest.mark.long
def test_a_tenant_with_the_artifact_alone(reader: User, lab: Lab) -> None:
    before = lab.state()
    given = ("-e", "@tenant.yml")
    assert reader.play("tenant", *given).changed == 1
    own = {"PROXMOX_SITES_FILE": LOGIN}
    assert reader.play("provision", *given, login=own).changed == 1
    assert [vm.tenant for vm in lab.machines()] == ["initech", "initech"]
    assert reader.play("tenant", "provision", *given).changed == 0

    removal = ("-e", "tenant_state=absent", "-e", "tenant_confirm=initech")
    reader.play("tenant", *given, *removal)
    assert lab.state() == before


def test_the_examples_of_the_artifact_are_those_of_the_demo(installed: Path) -> None:
    for path in EXAMPLES.glob("*.yml"):
        assert (installed / "docs" / "examples" / path.name).read_bytes() == path.read_bytes()
