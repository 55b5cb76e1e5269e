# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/moving-from-community-proxmox.md names every option of the other collection, and replaces
it by options that exist.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.doc_fragments.connection import (
    ModuleDocFragment as Connection,
)
from ansible_collections.pve.fleet.plugins.doc_fragments.inventory import (
    ModuleDocFragment as Inventory,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.container import (
    container_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.storage_download import (
    storage_download_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.snapshot import (
    snapshot_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.modules import backup_job, vm_info
from tests.bench.environment import HOME
from tests.tools.facts.make_schema import VERSION, paths_of

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "moving-from-community-proxmox.md").read_text(encoding="utf-8")
# The option names of community.proxmox 2.0.0, read from the documentation in its files.
PEER: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("community_proxmox.yml").read_text(encoding="utf-8")
)
NONE = "none"


@dataclass(frozen=True)
class Row:
    """One option there, what replaces it here, and the rest of the line."""

    option: str
    ours: str
    note: str


@functools.cache
def _documented(text: str) -> dict[str, Any]:
    options: dict[str, Any] = yaml.safe_load(text)["options"]
    return options


def _ours(section: str) -> Mapping[str, Any]:
    """Return the options here that a section of the page is about."""
    connection = _documented(Connection.DOCUMENTATION)
    specs: dict[str, Mapping[str, Any]] = {
        "Connection": connection,
        "proxmox": container_spec(),
        "proxmox_kvm": vm_spec(),
        "proxmox_disk": {**connection, **vm_spec()},
        "proxmox_nic": vm_spec(),
        "proxmox_snap": snapshot_spec(),
        "proxmox_template": storage_download_spec(),
        "proxmox_vm_info": vm_info.ENTRY.spec,
        "The inventory": {**connection, **_documented(Inventory.DOCUMENTATION), "plugin": {}},
    }
    return specs[section]


def section_of(name: str) -> str:
    (found,) = [one for one in PAGE.split("\n## ") if one.startswith(f"{name}\n")]
    return found


def rows(section: str) -> Iterator[Row]:
    """Yield the lines of the table of options in a section."""
    table = section_of(section).partition("| option | pve.fleet | |\n|---|---|---|\n")[2]
    for line in table.splitlines():
        if not line.startswith("|"):
            return
        option, ours, note = (cell.strip() for cell in line.strip("|").split(" |", 2))
        yield Row(option.strip("`"), ours.strip("`"), note.strip("| "))


@pytest.mark.parametrize("section", PEER["options"])
def test_every_option_of_the_other_collection_has_a_row(section: str) -> None:
    assert [row.option for row in rows(section)] == PEER["options"][section]


@pytest.mark.parametrize("section", PEER["options"])
def test_every_replacement_exists(section: str) -> None:
    for row in rows(section):
        if row.ours != NONE:
            assert _exists(row.ours, _ours(section)), row


def _exists(path: str, options: Mapping[str, Any]) -> bool:
    """Return whether there is such an option, written as `disks[].size` or `cloud_init.user`."""
    name, _dot, rest = path.replace("[]", "").partition(".")
    option = options.get(name)
    if option is None:
        return False
    below = option.get("options") or option.get("suboptions") or {}
    return not rest or _exists(rest, below)


@pytest.mark.parametrize("section", PEER["options"])
def test_what_has_no_counterpart_says_what_to_do(section: str) -> None:
    silent = [row.option for row in rows(section) if row.ours == NONE and not row.note]
    assert silent in ([], ["want_proxmox_nodes_ansible_host"])


TERRAFORM = (REPO / "docs" / "moving-from-terraform.md").read_text(encoding="utf-8")
BPG: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("terraform_bpg.yml").read_text(encoding="utf-8")
)
TABLES = {
    "## Every module": (PAGE, PEER["modules"]),
    "## Every resource": (TERRAFORM, BPG["resources"]),
}


def counterparts(title: str) -> dict[str, tuple[str, str]]:
    """Return the counterparts and the note of each row of a table, by its first cell."""
    section = TABLES[title][0].partition(f"{title}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \| (.*?) \|(.*)\|$", section, re.M)
    assert len(found) == len({name for name, _ours, _note in found})
    return {name: (ours, note.strip()) for name, ours, note in found}


@pytest.mark.parametrize("title", TABLES)
def test_everything_of_another_tool_has_a_row(title: str) -> None:
    assert list(counterparts(title)) == TABLES[title][1]


def attribute_rows() -> list[Row]:
    """Return the rows of the attributes of a VM."""
    table = TERRAFORM.partition("| attribute | pve.fleet | |\n|---|---|---|\n")[2].partition(
        "\n\n"
    )[0]
    cells = [line.strip("|").split(" |", 2) for line in table.splitlines()]
    return [Row(left.strip(), ours.strip(), note.strip("| ")) for left, ours, note in cells]


def test_every_attribute_of_a_vm_has_a_row() -> None:
    found = [name for row in attribute_rows() for name in re.findall(r"`([\w.]+)`", row.option)]
    assert len(found) == len(set(found))
    covered = {name for name in BPG["vm"] if any(f"{name}.".startswith(f"{one}.") for one in found)}
    assert set(BPG["vm"]) - covered == set()
    assert [
        one for one in found if not any(f"{name}.".startswith(f"{one}.") for name in BPG["vm"])
    ] == []


def test_every_attribute_has_an_option_or_a_reason() -> None:
    for row in attribute_rows():
        if row.ours == NONE:
            assert row.note, row
            continue
        for path in re.findall(r"`([^`]+)`", row.ours):
            assert _exists(path, vm_spec()), row


@pytest.mark.parametrize("title", TABLES)
def test_every_counterpart_is_a_module(title: str) -> None:
    modules = {file.stem for file in (REPO / "plugins" / "modules").glob("*.py")}
    for name, (ours, note) in counterparts(title).items():
        if ours == NONE:
            assert note, name
            continue
        assert set(re.findall(r"`(\w+)`", ours)) <= modules, name


# The cells of the row about a subject in each guide, and a part of its note.
SUBJECTS = {
    "audiences of openid": (PAGE, "`proxmox_domain` | `realm`", "`audiences`"),
    "audiences of openid, Terraform": (TERRAFORM, "`realm_openid` | `realm`", "`audiences`"),
    "keystrokes": (PAGE, "`proxmox_sendkey` | none", "no run can see their effect"),
    "keystrokes, Terraform": (TERRAFORM, "`qm sendkey` | none", "no run can see the effect"),
    "creation and join": (PAGE, "`proxmox_cluster` | none", "cannot be undone"),
    "join information": (PAGE, "`proxmox_cluster_join_info` | `cluster_join_info`", "fingerprint"),
    "join, Terraform": (TERRAFORM, "`pvecm add` | `cluster_join_info`", "by hand"),
    "keys of LXC": (PAGE, "`idmap`, `lxc.*` | none", "has no API"),
    "keys of LXC, Terraform": (TERRAFORM, "`idmap` | none", "has no API"),
    "connections": (PAGE, "tracked connections", "`with-conntrack-state`"),
    "connections, Terraform": (TERRAFORM, "`migrate` | `migrate`", "`with-conntrack-state`"),
}
# Parameters of a backup job in the API schema without an option.
OF_VZDUMP = {"dow", "dumpdir", "quiet", "stop"}
REPLACED = {"id": "name", "vmid": "vms", "starttime": "schedule", "maxfiles": "prune_backups"}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_audiences_keystrokes_and_joins_have_a_row_in_both_guides(subject: str) -> None:
    page, cells, reason = SUBJECTS[subject]
    (row,) = [line for line in page.splitlines() if cells in line]
    assert reason in row


def test_every_key_of_a_backup_job_has_an_option_or_a_reason_in_both_guides() -> None:
    options = yaml.safe_load(backup_job.DOCUMENTATION)["options"]
    keys = paths_of(VERSION)["/cluster/backup"]["POST"]["params"]
    ours = {key: REPLACED.get(key, key.replace("-", "_")) for key in keys}
    assert {key for key, name in ours.items() if name not in options} == OF_VZDUMP
    for key in OF_VZDUMP:
        assert f"| `{key}` of vzdump | none |" in PAGE
        assert f"| `{key}` | none |" in TERRAFORM


def test_the_option_and_the_limits_that_these_rows_name_exist() -> None:
    realm = yaml.safe_load((REPO / "tests/tools/options/realm_config.yml").read_text("utf-8"))
    assert "audiences" in str(realm)
    assert (REPO / "plugins" / "modules" / "cluster_join_info.py").exists()
    limits = (REPO / "docs" / "limits.md").read_text(encoding="utf-8")
    assert "| creation of a cluster, and joining it | `pvecm create` and `pvecm add`" in limits
    assert "| keystrokes to the screen of a VM |" in limits


def test_an_alias_that_the_page_promises_is_one() -> None:
    connection = _documented(Connection.DOCUMENTATION)
    for section in ("Connection", "The inventory"):
        for row in rows(section):
            if "accepted as well" in row.note:
                assert row.option in connection[row.ours]["aliases"]
            elif row.option not in connection:
                aliases = connection.get(row.ours, {}).get("aliases", ())
                assert row.option not in aliases, f"{row.option} is an alias"


def test_timeout_is_never_the_replacement_of_timeout() -> None:
    found = [
        (section, row.ours)
        for section in PEER["options"]
        for row in rows(section)
        if row.option == "timeout"
    ]
    assert found == [
        ("proxmox", "task_timeout"),
        ("proxmox_kvm", "task_timeout"),
        ("proxmox_disk", "task_timeout"),
        ("proxmox_snap", "task_timeout"),
        ("proxmox_template", "task_timeout"),
    ]
    assert "response to one request" in str(
        _documented(Connection.DOCUMENTATION)["timeout"]["description"]
    )
    assert "timeout" not in vm_spec()


def test_states_are_those_of_the_module() -> None:
    text = section_of("proxmox_kvm").partition("### States")[2].partition("### ")[0]
    lines = re.findall(r"^\| `(\w+)` \| (?:`(\w+)`)?", text, re.M)
    assert [there for there, _here in lines] == PEER["states"]
    allowed = vm_spec()["state"]["choices"]
    assert [there for there, here in lines if here not in allowed] == ["current"]


def _written(file: Path, name: str) -> dict[str, Any]:
    """Return the options in a documentation text of a file, which is not imported."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        if node.targets[0].id == name and isinstance(node.value, ast.Constant):
            return _documented(str(node.value.value))
    raise AssertionError(f"{name} is not in {file}")


def installed() -> Path:
    """Return where the other collection is, which `make bench` installs."""
    found = list(HOME.glob("lib/python*/site-packages/ansible_collections/community/proxmox"))
    if not found:
        pytest.skip("community.proxmox is not installed; make bench installs it")
    return found[0]


def test_recorded_options_are_those_of_the_collection() -> None:
    home = installed()
    manifest = yaml.safe_load((home / "MANIFEST.json").read_text(encoding="utf-8"))
    assert manifest["collection_info"]["version"] == PEER["version"]
    plugins = home / "plugins"
    fragment = plugins / "doc_fragments" / "proxmox.py"
    assert list(_written(fragment, "DOCUMENTATION")) == PEER["options"]["Connection"]
    modules = ("proxmox", "proxmox_kvm", "proxmox_snap", "proxmox_template", "proxmox_vm_info")
    for module in modules:
        options = _written(plugins / "modules" / f"{module}.py", "DOCUMENTATION")
        if module == "proxmox_kvm":
            assert options["state"]["choices"] == PEER["states"]
        if module in ("proxmox", "proxmox_kvm"):
            options |= _written(fragment, "SELECTION")
        assert sorted(options) == PEER["options"][module]
    inventory = _written(plugins / "inventory" / "proxmox.py", "DOCUMENTATION")
    assert sorted(inventory) == PEER["options"]["The inventory"]
