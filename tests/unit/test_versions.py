# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions that the collection needs are the same wherever they are stated.

Packages are stated in meta/ee-requirements.txt, ansible-core in meta/runtime.yml, Python in
pyproject.toml.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml


def needed_packages(repo: Path) -> dict[str, str]:
    """Return the versions of each package, in the form ``>=2.2.0``."""
    text = (repo / "meta" / "ee-requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([A-Za-z][\w-]*)(\S*)$", text, re.MULTILINE))


def needed_ansible(repo: Path) -> str:
    """Return the oldest supported release of ansible-core, such as 2.16."""
    runtime = yaml.safe_load((repo / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    found = re.fullmatch(r">=(\d+\.\d+)\.0", runtime["requires_ansible"])
    assert found
    return found[1]


def needed_python(repo: Path) -> str:
    """Return the oldest Python on which plugins run, such as 3.10."""
    found = re.search(
        r'^python_version = "(.*)"$',
        (repo / "pyproject.toml").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert found
    return found[1]


def in_words(package: str, versions: str) -> str:
    """Return a requirement as documentation has it, such as ``proxmoxer >= 2.2.0``."""
    bounds = [re.sub(r"^([<>=]+)", r"\1 ", bound) for bound in versions.split(",")]
    return f"{package} {', '.join(bounds)}"


def documented_requirements(repo: Path) -> list[str]:
    source = (repo / "plugins" / "doc_fragments" / "connection.py").read_text(encoding="utf-8")
    (fragment,) = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    for node in fragment.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DOCUMENTATION":
            requirements: list[str] = yaml.safe_load(ast.literal_eval(node.value))["requirements"]
            return requirements
    raise AssertionError("the fragment has no DOCUMENTATION")


def test_packages_have_a_lower_bound_only(repo: Path) -> None:
    """Certified collections may not state an upper bound of a package:
    github.com/ansible-collections/certification, README, dependency management.
    """
    found = needed_packages(repo)
    assert found
    assert not found.keys() & {"ansible", "ansible-core"}
    assert all(re.fullmatch(r">=\d+(\.\d+)+", versions) for versions in found.values())


def test_documentation_names_the_same_packages(repo: Path) -> None:
    packages = [in_words(name, versions) for name, versions in needed_packages(repo).items()]
    assert len(packages) == 3
    assert documented_requirements(repo) == [f"python >= {needed_python(repo)}", *packages]


def test_integration_tests_install_the_same(repo: Path) -> None:
    """ansible-test installs this file alone; every other environment includes it."""
    lines = (repo / "tests/integration/requirements.txt").read_text("utf-8").splitlines()
    assert needed_packages(repo).keys() <= {one.partition("==")[0] for one in lines}
    for name in ("tests/requirements-demo.txt", "tests/requirements-test.txt"):
        assert "-r integration/requirements.txt" in (repo / name).read_text("utf-8").splitlines()


def test_readme_names_the_same_versions(repo: Path) -> None:
    text = " ".join((repo / "README.md").read_text(encoding="utf-8").split())
    for name, versions in needed_packages(repo).items():
        assert in_words(name, versions) in text
    assert f"- ansible-core {needed_ansible(repo)} or newer" in text
    assert f"- Python {needed_python(repo)} or newer" in text


@pytest.mark.parametrize("name", ["docs/getting-started.md"])
def test_pages_name_the_same_ansible(repo: Path, name: str) -> None:
    named = re.findall(
        r"ansible-core (\d+\.\d+) or newer", (repo / name).read_text(encoding="utf-8")
    )
    assert named == [needed_ansible(repo)]


def test_roles_need_the_same_ansible(repo: Path) -> None:
    found = {
        path.parts[-3]: yaml.safe_load(path.read_text(encoding="utf-8"))["galaxy_info"][
            "min_ansible_version"
        ]
        for path in (repo / "roles").glob("*/meta/main.yml")
    }
    assert found
    assert set(found.values()) == {needed_ansible(repo)}


def test_tools_use_the_same_python(repo: Path) -> None:
    python = needed_python(repo)
    assert f'target-version = "py{python.replace(".", "")}"' in (repo / "pyproject.toml").read_text(
        encoding="utf-8"
    )
    config = yaml.safe_load((repo / "tests" / "config.yml").read_text(encoding="utf-8"))
    assert config["modules"]["python_requires"] == f">={python}"


def test_pinned_packages_are_supported(repo: Path) -> None:
    pinned = (repo / "tests/integration/requirements.txt").read_text(encoding="utf-8")
    for name, versions in needed_packages(repo).items():
        found = re.search(rf"^{name}==(\S+)$", pinned, re.MULTILINE)
        assert found, name
        for bound in versions.split(","):
            assert _holds(found[1], bound), f"{name} {found[1]} is not {bound}"


def _holds(version: str, bound: str) -> bool:
    sign, limit = re.fullmatch(r"(>=|<)(.*)", bound).groups()  # type: ignore[union-attr]
    value = [int(part) for part in version.split(".")]
    edge = [int(part) for part in limit.split(".")]
    return value >= edge if sign == ">=" else value < edge
