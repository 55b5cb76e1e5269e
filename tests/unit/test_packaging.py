# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The artifact that users install, and what must never get into the repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from tests.tools.stage import source_files

NOT_FOR_USERS = {
    ".ci",
    ".devcontainer",
    ".github",
    ".gitignore",
    ".pre-commit-config.yaml",
    ".venv",
    "Makefile",
    "build",
    "pyproject.toml",
    "requirements-dev.txt",
    "tests",
}
DOCUMENTED_PLUGIN_TYPES = ("modules", "inventory", "lookup", "filter", "test", "callback")

FORBIDDEN = {
    "a path of one machine": re.compile(
        r"(?<![\w.$}~-])/(?:work|Users|root/\.\w+|home/(?:runner|vagrant))/[\w.]"
    ),
    "the host of a package registry": re.compile(
        r"\b(?:pypi\.org|pythonhosted\.org|registry\.npmjs\.org|galaxy\.ansible\.com|ghcr\.io|quay\.io|docker\.io)\b"
    ),
    "a private key": re.compile(r"PRIVATE KEY-----(?:\s|\\n)+[A-Za-z0-9+/]{24}"),
    "a token of a well-known service": re.compile(
        r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{36}|glpat-[\w-]{20}|xox[bp]-\d+)"
    ),
}
SECRET_UUID = re.compile(
    r"(?:secret|PVEAPIToken)\S{0,60}?[\"']?\s*[:=]+\s*[\"']?[^\s\"']*?"
    r"(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
    re.IGNORECASE,
)


def run(*command: str, **environment: str) -> str:
    result = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def load_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def artifact(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("artifact")
    run("ansible-galaxy", "collection", "build", "--output-path", str(target), str(repo))
    (built,) = target.glob("pve-fleet-*.tar.gz")
    return built


@pytest.fixture(scope="module")
def installed(artifact: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    install = (
        "ansible-galaxy",
        "collection",
        "install",
        "--offline",
        "-p",
        str(target),
        str(artifact),
    )
    # else the working tree counts as installed already
    run(*install, ANSIBLE_COLLECTIONS_PATH=str(target))
    return target


def test_artifact_is_named_after_galaxy_yml(repo: Path, artifact: Path) -> None:
    galaxy = load_yaml(repo / "galaxy.yml")
    assert artifact.name == f"{galaxy['namespace']}-{galaxy['name']}-{galaxy['version']}.tar.gz"


def test_artifact_holds_only_files_of_the_repository_that_users_need(
    repo: Path, artifact: Path
) -> None:
    with tarfile.open(artifact) as archive:
        files = {member.name for member in archive if not member.isdir()}
    assert files - {"MANIFEST.json", "FILES.json"} <= set(source_files(repo))
    assert {name.split("/")[0] for name in files}.isdisjoint(NOT_FOR_USERS)
    assert {"README.md", "LICENSE", "meta/runtime.yml", "meta/ee-requirements.txt"} <= files


@pytest.mark.slow
def test_installed_plugins_are_documented(repo: Path, installed: Path) -> None:
    found = {kind: names for kind in DOCUMENTED_PLUGIN_TYPES if (names := plugin_names(repo, kind))}
    assert found
    for kind, names in found.items():
        full_names = [f"pve.fleet.{name}" for name in names]
        option = "module" if kind == "modules" else kind
        answer = run(
            "ansible-doc",
            "-t",
            option,
            "--json",
            *full_names,
            ANSIBLE_COLLECTIONS_PATH=str(installed),
        )
        documented = json.loads(answer)
        assert sorted(documented) == full_names
        for name, plugin in documented.items():
            assert plugin["doc"]["description"], name
            assert plugin["doc"]["version_added"], name
            assert plugin["examples"], name
            assert plugin["return"] or kind != "modules", name


def test_installed_roles_are_documented(repo: Path, installed: Path) -> None:
    names = sorted(spec.parts[-3] for spec in (repo / "roles").glob("*/meta/argument_specs.yml"))
    assert names == sorted(path.name for path in (repo / "roles").iterdir() if path.is_dir())
    full_names = [f"pve.fleet.{name}" for name in names]
    answer = run(
        "ansible-doc", "-t", "role", "--json", *full_names, ANSIBLE_COLLECTIONS_PATH=str(installed)
    )
    documented = json.loads(answer)
    assert sorted(documented) == full_names
    for name, role in documented.items():
        assert all(entry["short_description"] for entry in role["entry_points"].values()), name


def plugin_names(repo: Path, plugin_type: str) -> list[str]:
    files = (repo / "plugins" / plugin_type).glob("*.py")
    return sorted(file.stem for file in files if not file.stem.startswith("_"))


def test_every_action_group_lists_every_module(repo: Path) -> None:
    groups = load_yaml(repo / "meta" / "runtime.yml")["action_groups"]
    modules = plugin_names(repo, "modules")
    assert groups, "module_defaults need an action group"
    for group, members in groups.items():
        assert sorted(m for m in members if isinstance(m, str)) == modules, group


def text_files(repo: Path) -> dict[str, str]:
    texts = {}
    for name in source_files(repo):
        try:
            texts[name] = (repo / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, IsADirectoryError):
            continue
    del texts["tests/unit/test_packaging.py"]  # it names what it looks for
    return texts


@pytest.mark.parametrize("what", FORBIDDEN)
def test_repository_does_not_hold(repo: Path, what: str) -> None:
    found = [
        f"{name}: {match.group()}"
        for name, text in text_files(repo).items()
        for match in FORBIDDEN[what].finditer(text)
    ]
    assert found == []


def test_copyright_lines_are_the_same(repo: Path) -> None:
    line = re.compile(r"Copyright \(c\) .*pve\.fleet[^\n\"']*", re.IGNORECASE)
    others = [
        f"{name}: {match.group()}"
        for name, text in text_files(repo).items()
        for match in line.finditer(text)
        if match.group() != "Copyright (c) 2026, the pve.fleet authors"
    ]
    assert others == []


def test_token_secrets_are_invented(repo: Path) -> None:
    """Secrets in examples and tests show by their form that they are not in use: a group of one
    repeated digit.
    """
    found = [
        f"{name}: {match['uuid']}"
        for name, text in text_files(repo).items()
        for match in SECRET_UUID.finditer(text)
        if all(len(set(group)) > 1 for group in match["uuid"].split("-"))
    ]
    assert found == []


def test_requirements_are_pinned(repo: Path) -> None:
    files = [
        "requirements-dev.txt",
        *(n for n in source_files(repo) if re.fullmatch(r"tests/.*requirements.*\.txt", n)),
    ]
    loose = [
        f"{name}: {line}"
        for name in files
        for line in (repo / name).read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith(("#", "-r ")) and "==" not in line.split(";")[0]
    ]
    assert loose == []


def pins(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {
        line.split(";")[0].strip().lower()
        for line in lines
        if "==" in line and not line.startswith("#")
    }


def test_development_environment_holds_what_the_simulator_needs(repo: Path) -> None:
    """The simulator can be installed alone.

    Here its packages come from the tests, in a version that it allows.
    """
    text = (repo / "tests" / "simulator" / "pyproject.toml").read_text(encoding="utf-8")
    needed = [
        Requirement(line) for line in re.findall(r'^  "([A-Za-z]+>=[^"]+)",$', text, re.MULTILINE)
    ]
    installed_here = dict(
        pin.split("==") for pin in pins(repo / "tests/integration/requirements.txt")
    )
    assert len(needed) >= 4
    for package in needed:
        assert installed_here[package.name.lower()] in package.specifier, package


def test_plugins_have_the_types_that_ansible_knows(repo: Path) -> None:
    """Source: docs.ansible.com, Ansible community package collections requirements, Modules and
    plugins.
    """
    from ansible.plugins import loader

    known = {one.package for one in vars(loader).values() if isinstance(one, loader.PluginLoader)}
    types = {package.rpartition(".")[2] for package in known} | {"module_utils", "plugin_utils"}
    found = {path.name for path in (repo / "plugins").iterdir() if path.is_dir()}
    assert {"modules", "inventory"} <= found - {"__pycache__"} <= types


def test_no_state_of_a_module_reads(repo: Path) -> None:
    """Modules that read are named `_info`."""
    pattern = re.compile(r"^  state:\n(?:    .*\n)*?    choices: \[(.*)\]", re.MULTILINE)
    modules = (repo / "plugins" / "modules").glob("*.py")
    found = [pattern.findall(path.read_text(encoding="utf-8")) for path in modules]
    states = {state for texts in found for text in texts for state in text.split(", ")}
    assert {"present", "absent", "started"} <= states
    assert not states & {"get", "list", "query", "info", "read"}


def test_the_readme_has_the_sections_of_certified_content(repo: Path) -> None:
    """docs.ansible.com/projects/partner-certification-requirements/readmes, and the Communication
    section of a collection in the Ansible package.
    """
    text = (repo / "README.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    wanted = ["Requirements", "Installation", "Use cases", "Testing", "Communication", "Support"]
    wanted += ["Release notes", "Related information", "License"]
    assert [name for name in sections if name in wanted] == wanted
    assert "https://forum.ansible.com" in text


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_that_are_named_exist(repo: Path, name: str) -> None:
    makefile = (repo / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    named = set(
        re.findall(
            r"(?:^|`)make ([a-z][a-z-]*)", (repo / name).read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    assert named
    assert named <= targets
