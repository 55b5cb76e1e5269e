# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An option is declared once.

Specification, documentation, tables and role variables are written from it.
"""

from __future__ import annotations

import functools
import importlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.formats import (
    format_of,
    rule_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import VM_SPECS
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.connection import (
    connection_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.vm_rules import (
    PROPERTY_STRINGS,
    SCALARS,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.desired import parse
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.desired import (
    parse as values,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.desired.parse import (
    read_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate import document
from tests import needs
from tests.declared import MODULES
from tests.tools import make_options, tables
from tests.tools.declarations import DECLARATIONS, about, load
from tests.tools.written import LOADER, DeclarationError

PACKAGE = "ansible_collections.pve.fleet.plugins"
# An option that does not exist, as a contributor would declare it. Proxmox VE has the key.
POINTER = """\
      pointer:
        description: Whether the VM has a pointer device with absolute coordinates.
        type: bool
        version_added: 1.0.0
        pve: tablet
        parsed: scalar
        roles:
          provision:
            main: {}
"""
# The key behind which it is put.
NUMA = re.compile(r"(?m)^      numa:\n(?:        .*\n)+")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the declarations."""
    return Path(shutil.copytree(DECLARATIONS, tmp_path / "options"))


def declare(folder: Path, text: str) -> None:
    """Add an option to the hardware of a VM."""
    file = folder / "vm.yml"
    content = file.read_text(encoding="utf-8")
    whole = NUMA.sub(lambda found: found[0] + text, content)
    assert whole != content
    file.write_text(whole, encoding="utf-8")


def written(folder: Path, path: str) -> str:
    declared = tuple(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.yml")))
    return _files(folder, declared)[Path(path)]


@functools.cache
def _files(folder: Path, _declared: tuple[str, ...]) -> dict[Path, str]:
    """Return what is written from these declarations, which takes most of the time of a test."""
    return make_options.files(folder)


def executed(source: str) -> dict[str, Any]:
    """Return the names that a written Python file defines."""
    names: dict[str, Any] = {"__package__": f"{PACKAGE}.module_utils._foundation.spec.generated"}
    exec(compile(source, "written", "exec"), names)
    return names


def use_rules(monkeypatch: pytest.MonkeyPatch, rules: Mapping[str, Any], *names: str) -> None:
    """Let the parser of VMs use written tables."""
    changed = replace(values.TABLES, **{name.lower(): rules[name] for name in names})
    for room in (parse, values):
        monkeypatch.setattr(room, "TABLES", changed)


@needs.tool("ruff")
def test_written_files_agree_with_the_declarations() -> None:
    assert make_options.stale() == []


@needs.tool("ruff")
def test_a_file_changed_by_hand_is_stale(tmp_path: Path) -> None:
    copy_written(tmp_path)
    assert make_options.stale(repo=tmp_path) == []
    role = tmp_path / "roles/provision/meta/argument_specs.yml"
    text = role.read_text(encoding="utf-8")
    assert "module:reboot_batch).\n        type: int" in text
    role.write_text(
        text.replace(
            "module:reboot_batch).\n        type: int", "module:reboot_batch).\n        type: str"
        )
    )
    (tmp_path / make_options.RULES).unlink()
    assert make_options.stale(repo=tmp_path) == [
        str(make_options.RULES),
        "roles/provision/meta/argument_specs.yml",
    ]


@needs.tool("ruff")
def test_files_of_a_removed_declaration_are_deleted(folder: Path, tmp_path: Path) -> None:
    """Files that are written by hand stay."""
    repo = tmp_path / "repo"
    copy_written(repo)
    by_hand = "plugins/doc_fragments/attributes.py"
    shutil.copy(make_options.REPO / by_hand, repo / by_hand)
    names = ("node_service", "node_service_info")
    files = {f"plugins/{kind}/{name}.py" for name in names for kind in ("action", "modules")}
    files.add("plugins/module_utils/_foundation/spec/generated/node_service.py")
    before = {str(path.relative_to(repo)) for path in repo.rglob("*.py")}
    (folder / "node_service.yml").unlink()
    assert files <= set(make_options.stale(folder, repo))
    make_options.write(folder, repo)
    assert before - {str(path.relative_to(repo)) for path in repo.rglob("*.py")} == files


def copy_written(repo: Path) -> None:
    """Write the files of all declarations to a folder."""
    for path, text in make_options.files().items():
        target = repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


@needs.tool("ruff")
def test_one_declaration_reaches_specification_documentation_role_and_parser(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(folder, POINTER)

    specification = executed(
        written(folder, "plugins/module_utils/_foundation/spec/generated/vm.py")
    )
    assert specification["hardware_spec"]()["pointer"] == {"type": "bool"}

    fragment = executed(written(folder, "plugins/doc_fragments/vm_options.py"))["ModuleDocFragment"]
    assert yaml.safe_load(fragment.DOCUMENTATION)["options"]["pointer"] == {
        "description": "Whether the VM has a pointer device with absolute coordinates.",
        "type": "bool",
        "version_added": "1.0.0",
    }

    role = yaml.safe_load(written(folder, "roles/provision/meta/argument_specs.yml"))[
        "argument_specs"
    ]
    assert role["main"]["options"]["provision_pointer"] == {
        "description": "See O(pve.fleet.vm#module:pointer).",
        "type": "bool",
        "version_added": "1.0.0",
    }
    assert "provision_pointer" not in role["absent"]["options"]

    rules = executed(written(folder, "plugins/module_utils/_foundation/spec/generated/vm_rules.py"))
    use_rules(monkeypatch, rules, "SCALARS")
    assert read_options({"name": "a", "pointer": False}).desired.hardware.scalars == {"tablet": "0"}


@needs.tool("ruff")
def test_one_declaration_reaches_the_export_and_the_tables_of_the_guide(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyError):
        document.in_order({"pointer": True})
    declare(folder, POINTER)

    order = executed(
        written(folder, "plugins/module_utils/_foundation/spec/generated/vm_rules.py")
    )["ORDER"]
    assert order[order.index("numa") + 1] == "pointer"
    monkeypatch.setattr(document, "_PLACE", {name: place for place, name in enumerate(order)})
    options = {"bios": "ovmf", "pointer": True, "numa": True, "name": "a"}
    assert list(document.in_order(options)) == ["name", "numa", "pointer", "bios"]

    monkeypatch.setattr(tables, "load", lambda: load(folder))
    assert "`numa`, `pointer`, " in tables.options_by_purpose()
    assert re.search(r"^\| `pointer` \| (at once|reboot) \|", tables.reboots(), re.M)


def test_the_export_knows_the_place_of_every_option() -> None:
    assert sorted(document.ORDER) == sorted(vm_spec())


@needs.tool("ruff")
def test_an_option_is_placed_after_one_that_exists(folder: Path) -> None:
    declare(folder, "      a: {description: A., type: str, after: nothing}\n")
    with pytest.raises(DeclarationError, match="vm.a: after: nothing: no such option"):
        make_options.files(folder)


@needs.tool("ruff")
def test_a_property_string_with_words_is_one_declaration(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(
        folder,
        "      sound: {description: Sound., type: str, pve: audio0, parsed: property_string,\n"
        "              words: {intel: device=ich9-intel-hda}, empty_removes: true}\n",
    )
    rules = executed(written(folder, "plugins/module_utils/_foundation/spec/generated/vm_rules.py"))
    use_rules(monkeypatch, rules, "PROPERTY_STRINGS", "WORDS", "EMPTY_REMOVES")
    assert read_options({"name": "a", "sound": "intel"}).desired.hardware.property_strings == {
        "audio0": {"device": "ich9-intel-hda"}
    }
    assert read_options({"name": "a", "sound": ""}).desired.hardware.unset == {"audio0"}


@needs.tool("ruff")
def test_a_declared_check_reaches_the_parser(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(
        folder,
        "      home: {description: Home., type: str, check: node}\n"
        "      rooms: {description: Rooms., type: int, range: [2, 5]}\n",
    )
    rules = executed(written(folder, "plugins/module_utils/_foundation/spec/generated/vm_rules.py"))
    use_rules(monkeypatch, rules, "CHECKS", "RANGES")
    assert read_options({"name": "a", "home": "pve1", "rooms": 5}).desired.guest.name == "a"
    for option, value in (("home", "bad_node"), ("rooms", 6)):
        with pytest.raises(ValidationFailed, match=f"{option} was refused"):
            read_options({"name": "a", option: value})


def test_every_declared_check_has_its_function() -> None:
    declared = {kind for kinds in values.CHECKS.values() for kind in kinds.values()}
    assert declared == values.FUNCTIONS.keys()


def test_a_description_taken_over_has_the_word_of_the_other_declaration(folder: Path) -> None:
    options = load(folder)["container"]["sections"]["owner"]["options"]
    assert "The tenant of the container" in str(options["tenant"]["description"])
    assert "VM.Allocate" in about("container", "A VM, VMs. VM.Allocate, VMID")
    assert about("container", ["A VM."]) == ["A container."]


@needs.tool("ruff")
def test_the_environment_is_part_of_specification_and_documentation(folder: Path) -> None:
    declare(
        folder,
        "      pointer: {description: A., type: int, default: 3, environment: PROXMOX_POINTER}\n",
    )
    specification = executed(
        written(folder, "plugins/module_utils/_foundation/spec/generated/vm.py")
    )
    assert specification["hardware_spec"]()["pointer"]["fallback"][1] == ["PROXMOX_POINTER"]
    fragment = executed(written(folder, "plugins/doc_fragments/vm_options.py"))["ModuleDocFragment"]
    documented = yaml.safe_load(fragment.DOCUMENTATION)["options"]["pointer"]
    assert documented["description"] == ["A.", "Environment variable E(PROXMOX_POINTER)."]


@pytest.mark.parametrize(
    ("line", "changed", "message"),
    [
        ("  after: acls\n", "  after: nowhere\n", "after: nowhere: no such section"),
        ("  after: acls\n", "  behind: acls\n", "section of metric_server: unknown key 'behind'"),
        ("  items: Metric servers\n", "", "section of metric_server: items is missing"),
    ],
    ids=str,
)
def test_a_mistake_in_a_section_is_named(
    folder: Path, line: str, changed: str, message: str
) -> None:
    file = folder / "metric_server.yml"
    text = file.read_text(encoding="utf-8")
    assert line in text
    file.write_text(text.replace(line, changed), encoding="utf-8")
    with pytest.raises(DeclarationError, match=re.escape(message)):
        load(folder)


@needs.tool("ruff")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("      a: {description: A., type: str, defualt: x}\n", "vm.a: unknown key 'defualt'"),
        ("      a: {description: A.}\n", "vm.a: type is missing"),
        ("      a: {type: str}\n", "vm.a: description is missing"),
        (
            "      a: {description: A., type: int, range: 5}\n",
            "vm.a: range is the smallest and the largest number",
        ),
        ("      a: {as: vm.nothing}\n", "as: vm.nothing: no such option"),
        (
            "      a: {description: A., type: str, parsed: scalar}\n",
            "vm.a: parsed needs pve, the key of Proxmox VE",
        ),
        ("      a: {description: A., type: str, pve: a, parsed: text}\n", "vm.a: parsed is one of"),
        (
            "      a: {description: A., type: dict, suboptions: {b: {type: str}}}\n",
            "vm.a.b: description is missing",
        ),
        (
            "      a: {description: A., type: str, roles: {provision: {gone: {}}}}\n",
            "roles/provision/meta/argument_specs.yml: entry point gone has no line",
        ),
        (
            "      a: {description: A., type: str, environment: PROXMOX_A}\n",
            "a: only a whole number with a default has `environment`",
        ),
    ],
)
def test_a_mistake_in_a_declaration_is_named(folder: Path, text: str, message: str) -> None:
    declare(folder, text)
    with pytest.raises(DeclarationError, match=re.escape(message)):
        make_options.files(folder)


def test_a_section_without_a_specification_has_the_options_of_the_named_one(folder: Path) -> None:
    file = folder / "container.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("      quotas: {as: vm.quotas}\n", ""), encoding="utf-8")
    with pytest.raises(DeclarationError, match="container.place: its specification is not"):
        make_options.files(folder)


@pytest.mark.parametrize(
    ("place", "device"), [("", ""), ("cloud_init", ""), ("disks", "scsi0"), ("nics", "net0")]
)
def test_every_declared_key_is_one_of_the_schema(place: str, device: str) -> None:
    """The keys are those of the API schema of Proxmox VE (`_foundation/schema/generated/qemu.py`)."""
    for name, key in SCALARS.get(place, {}).items():
        if device:
            assert key in (format_of(device) or {}), name
        else:
            assert rule_of(key), name
            assert format_of(key) is None, name
    for name, key in PROPERTY_STRINGS.get(place, {}).items():
        assert format_of(key), name


def names_of(options: Mapping[str, Any], below: str, path: str = "") -> set[str]:
    found: set[str] = set()
    for name, option in options.items():
        found.add(f"{path}{name}")
        found |= names_of(option.get(below) or {}, below, f"{path}{name}.")
    return found


@functools.cache
def documented_options(module: str) -> dict[str, Any]:
    """Return the options that ansible-doc shows: the module's own, and those of its fragments."""
    text = importlib.import_module(f"{PACKAGE}.modules.{module}").DOCUMENTATION
    own = yaml.load(text, Loader=LOADER)
    options: dict[str, Any] = dict(own.get("options") or {})
    for reference in own["extends_documentation_fragment"]:
        name, _dot, attribute = reference.removeprefix("pve.fleet.").partition(".")
        fragment = importlib.import_module(f"{PACKAGE}.doc_fragments.{name}").ModuleDocFragment
        text = getattr(fragment, attribute.upper() or "DOCUMENTATION")
        for option, content in yaml.load(text, Loader=LOADER)["options"].items():
            options[option] = {**content, **options.get(option, {})}
    return options


@pytest.mark.parametrize("module", MODULES)
def test_the_options_of_a_module_are_those_of_its_documentation(module: str) -> None:
    spec = importlib.import_module(f"{PACKAGE}.modules.{module}").ENTRY.whole_spec
    shown = documented_options(module)
    assert set(shown) == set(spec)
    assert names_of(spec, "options") <= names_of(shown, "suboptions")
    for name, option in spec.items():
        assert shown[name]["type"] == option["type"], name
        assert shown[name].get("default") == option.get("default"), name
        assert shown[name].get("choices") == option.get("choices"), name


def test_the_items_of_a_list_are_documented() -> None:
    """Their documentation is a fragment that is written by hand."""
    assert VM_SPECS.item.keys() == documented_options("vms")["vms"]["suboptions"].keys()


def test_each_call_returns_data_of_its_own() -> None:
    vm_spec()["quotas"]["default"]["acme"] = {}
    assert vm_spec()["quotas"]["default"] == {}


# Option user of module tenant still hides the login of the connection.
@pytest.mark.parametrize("module", [module for module in MODULES if module != "tenant"])
def test_no_option_is_called_like_one_of_the_connection(module: str) -> None:
    entry = importlib.import_module(f"{PACKAGE}.modules.{module}").ENTRY
    taken: set[str] = set()
    for name, rule in connection_spec().items():
        taken.update((name, *rule.get("aliases", ())))
    for name, rule in entry.spec.items():
        assert taken.isdisjoint((name, *rule.get("aliases", ())))


def _texts(options: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Return the description of each option and suboption, without its environment variables."""
    found: dict[str, str] = {}
    for name, option in options.items():
        said = option.get("description", "")
        parts = [said] if isinstance(said, str) else said
        kept = [part for part in parts if not part.startswith("Environment variable")]
        found[f"{path}{name}"] = " ".join(kept)
        found.update(_texts(option.get("suboptions", {}), f"{path}{name}."))
    return found


@pytest.mark.parametrize("name", ["vm", "vms", "connection"])
def test_a_text_says_what_an_operator_needs_and_leaves_the_rest_to_the_guide(name: str) -> None:
    sections = yaml.safe_load((DECLARATIONS / f"{name}.yml").read_text("utf-8"))
    texts: dict[str, str] = {}
    for section in sections["sections"].values():
        texts.update(_texts(section["options"]))
    assert texts
    long = {
        option: text
        for option, text in texts.items()
        if len(re.findall(r"\.(?: |$)", text)) > 3 or len(text) > 450
    }
    assert long == {}


def _limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that limit time and parallel work."""
    limit = re.compile(r"(\w+_)?timeout|retries|parallel\w*|reboot_batch")
    return {name: option for name, option in options.items() if limit.fullmatch(name)}


@pytest.mark.parametrize("module", MODULES)
def test_a_limit_can_be_set_without_a_variable_in_the_play(module: str) -> None:
    """AWX and Automation Platform set them for all jobs, in the environment."""
    for name, option in _limits(documented_options(module)).items():
        said = option["description"]
        text = said if isinstance(said, str) else " ".join(said)
        assert re.search(rf"E\(PROXMOX_{name.upper()}\)", text), name


# What Ansible itself reads in a result: executor/task_executor.py and plugins/callback of ansible-core.
OF_ANSIBLE = {
    "skipped",
    "failed",
    "unreachable",
    "exception",
    "ansible_facts",
    "ansible_stats",
    "results",
    "rc",
}


def test_no_module_returns_a_value_that_ansible_takes_for_the_state_of_the_task() -> None:
    """A list C(skipped) that is not empty made Ansible print a task that ran as skipped."""
    modules = [
        (name, module)
        for declaration in load().values()
        for name, module in declaration.get("modules", {}).items()
    ]
    assert len(modules) > 50
    taken = {name: OF_ANSIBLE & set(module.get("returns") or {}) for name, module in modules}
    assert {name: keys for name, keys in taken.items() if keys} == {}
