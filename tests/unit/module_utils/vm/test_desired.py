"""What the options ask for, and every input that is refused before any request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    FleetError,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.vm_rules import (
    EMPTY_REMOVES,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.desired.parse import (
    read_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.update import (
    VM_PLANNER,
)
from tests.unit.module_utils.vm.vm_cases import desired_vm, judged

REFUSED: list[dict[str, Any]] = [
    {"name": "my_vm"},
    {"name": "a b"},
    {"vmid": 99},
    {"memory": "63M"},
    {"memory": "3T"},
    {"memory": "4X"},
    {"memory": "lots"},
    {"cores": 0},
    {"cores": 1025},
    {"sockets": 0},
    {"cpulimit": 129.0},
    {"balloon": "8G", "memory": "4G"},
    {"ostype": "dos"},
    {"scsihw": "nosuch"},
    {"machine": "vax"},
    {"vga": "nosuch"},
    {"boot": ["nosuch0"]},
    {"tags": ["a b"]},
    {"tags": ["-x"]},
    {"tenant": "a=b"},
    {"pool": "a b"},
    {"node": "bad_node"},
    {"source": "99"},
    {"source": "x" * 256},
    {"vmid_range": [200]},
    {"vmid_range": [300, 200]},
    {"shutdown_timeout": -1},
    {"disks": [{"size": "20GB2"}]},
    {"disks": [{"size": "100K"}]},
    {"disks": [{"size": "101T"}]},
    {"disks": [{"name": "hda", "size": 1}]},
    {"disks": [{"name": "scsi31", "size": 1}]},
    {"disks": [{"name": "scsi0", "size": 1}, {"name": "scsi0", "size": 2}]},
    {"disks": [{"name": "scsi0", "bus": "ide", "size": 1}]},
    {"disks": [{"size": 1, "storage": "a b"}]},
    {"disks": [{"size": 1, "options": {"nosuch": 1}}]},
    {"disks": [{"size": 1, "options": {"size": "4G"}}]},
    {"disks": [{"iso": "local:iso/x.iso", "size": 1}]},
    {"disks": [{"name": "efidisk0", "size": 1}]},
    {"disks": [{"name": "tpmstate0", "size": "4M"}]},
    {"disks": [{"import_from": "/tmp/x.qcow2"}]},
    {"nics": [{"model": "floppy"}]},
    {"nics": [{"vlan": 4095}]},
    {"nics": [{"mac": "xx"}]},
    {"nics": [{"bridge": "a b"}]},
    {"nics": [{"name": "eth0"}]},
    {"nics": [{"name": "net0"}, {"name": "net0"}]},
    {"nics": [{"ip": "10.0.0.5"}]},
    {"nics": [{"ip": "fd00::1/64"}]},
    {"nics": [{"ip": "10.0.0.5/255.255.255.0"}]},
    {"nics": [{"ip": "10.0.0.5/7"}]},
    {"nics": [{"ip6": "fe80::1%eth0/64"}]},
    {"nics": [{"ip": "10.0.0.5/24", "gateway": "10.0.0.1/24"}]},
    {"cpu": "nonsense"},
    {"cpu": "host,flags=+nonsense"},
    {"cpu": "host,reported-model=kvm64"},
    {"cpu": "host,levl=30"},
    {"cpu": "host,phys-bits=7"},
    {"options": {"nosuch": 1}},
    {"options": {"affinity": "a-b"}},
    {"options": {"hugepages": "3"}},
    {"options": {"hostpci0": "nonsense"}},
    {"options": {"smbios1": {"serial": "a b"}}},
    {"options": {"onboot": {"a": 1}}},
    {"options": {"startdate": ["now"]}},
    {"options": {"nosuch": ["a"]}},
    {"nics": [{"gateway": "10.0.0.1"}]},
    {"nics": [{"ip": "dhcp", "gateway": "10.0.0.1"}]},
    {"nics": [{"network": "lan", "bridge": "vmbr1"}]},
    {"nics": [{"mtu": 70000}]},
    {"cloud_init": {"nameservers": ["dns.example.com"]}},
    {"cloud_init": {"drive": "net0"}},
    {"cloud_init": {"snippets": {"user": "/etc/x"}}},
    {"options": {"cores": 4}},
    {"options": {"net0": "virtio"}},
    {"options": {"lock": "backup"}},
    {"options": {"kvm": "maybe"}},
    {"options": {"watchdog": "nosuch=1"}},
    {"options": {"onboot": 1}, "onboot": True},
]


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_refused_with_the_option_and_a_next_step(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed) as failure:
        judged(desired_vm(**options))
    assert failure.value.category == "ValidationFailed"
    assert failure.value.next_step
    assert failure.value.attempted


def test_memory_floor_is_an_option() -> None:
    assert desired_vm(memory="32M", memory_floor="16M").hardware.property_strings["memory"] == {
        "current": "32"
    }


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("9000", "vmid"),
        (9000, "vmid"),
        ("local:iso/x.iso", "volume"),
        ("debian-13", "name"),
        ("Debian 13", "name"),
    ],
)
def test_a_source_is_a_number_a_volume_or_a_name(source: object, kind: str) -> None:
    found = desired_vm(source=source).guest.source
    assert found is not None
    assert getattr(found, kind) == (9000 if kind == "vmid" else str(source))


CLASSES = {
    "web": {
        "cores": 2,
        "memory": "2G",
        "tags": ["web"],
        "disks": [{"name": "scsi0", "size": 20}],
        "cloud_init": {"user": "ops", "upgrade": "no"},
    }
}


def test_a_class_stands_under_what_the_vm_says() -> None:
    found = desired_vm(
        **{"class": "web"}, classes=CLASSES, cores=8, tags=["blue"], cloud_init={"user": "root"}
    )
    assert found.hardware.scalars["cores"] == "8"
    assert found.hardware.property_strings["memory"] == {"current": "2048"}
    assert found.guest.tags == frozenset(("web", "blue"))
    assert (found.hardware.scalars["ciuser"], found.hardware.scalars["ciupgrade"]) == ("root", "0")
    assert found.hardware.disks[0].size == 20 << 30


def test_networks_and_storage_classes_stand_for_their_settings() -> None:
    found = desired_vm(
        networks={
            "backend": {"bridge": "vmbr1", "vlan": 200, "gateway": "10.2.0.1"},
            "lan": "vmbr7",
        },
        storage_classes={"fast": {"storage": "nvme", "ssd": True, "discard": True}, "slow": "nas"},
        nics=[
            {"network": "backend", "ip": "10.2.0.5/24"},
            {"network": "backend", "vlan": 300},
            {"network": "lan"},
            {"network": "vmbr3"},
        ],
        disks=[
            {"size": 1, "storage_class": "fast", "ssd": False},
            {"size": 2, "storage_class": "slow"},
        ],
    )
    assert found.hardware.property_strings["net0"] == {"bridge": "vmbr1", "tag": "200"}
    assert found.hardware.property_strings["ipconfig0"] == {"ip": "10.2.0.5/24", "gw": "10.2.0.1"}
    assert found.hardware.property_strings["net1"] == {"bridge": "vmbr1", "tag": "300"}
    assert "ipconfig1" not in found.hardware.property_strings
    assert found.hardware.property_strings["net2"] == {"bridge": "vmbr7"}
    assert found.hardware.property_strings["net3"] == {"bridge": "vmbr3"}
    assert found.hardware.disks[0].storage == "nvme"
    assert found.hardware.disks[0].options == {"ssd": "0", "discard": "on"}
    assert found.hardware.disks[1].storage == "nas"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"class": "nosuch", "classes": CLASSES}, ConfigurationError),
        ({"nics": [{"network": "nosuch"}]}, ConfigurationError),
        ({"disks": [{"size": 1, "storage_class": "nosuch"}]}, ConfigurationError),
        ({"class": "x", "classes": {"x": {"colour": "red"}}}, ValidationFailed),
        ({"class": "x", "classes": {"x": {"disks": [{"sise": 1}]}}}, ValidationFailed),
        ({"class": "x", "classes": {"x": "big"}}, ValidationFailed),
        ({"nics": [{"network": "x"}], "networks": {"x": {"bride": "vmbr0"}}}, ValidationFailed),
        ({"nics": [{"network": "x"}], "networks": {"x": 5}}, ValidationFailed),
    ],
    ids=str,
)
def test_unknown_names_and_wrong_maps_are_refused(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        desired_vm(**options)


def test_a_password_is_not_part_of_what_is_shown() -> None:
    assert "hunter2" not in repr(
        read_options({"name": "a", "cloud_init": {"password": "hunter2"}}).desired
    )


# Options that module vm has a name of its own for, and what it takes more generously than PVE:
# YAML's booleans.
_ELSEWHERE = re.compile(
    r"^(name|memory|cores|tags|sshkeys|pool|node|vmid|(net|ipconfig|scsi|ide)\d+)$"
)
_WORDS = {"yes", "no", "on", "off", "true", "false"}


def refusal(options: dict[str, Any]) -> str:
    """Return why these open options are refused, or an empty text."""
    try:
        judged(desired_vm(options=options))
    except FleetError as error:
        return error.message
    return ""


def test_pves_verdicts_are_ours_before_any_request(shared: Path) -> None:
    """Of the open-ended `options`, reading refuses what PVE refuses, and nothing else."""
    vectors = json.loads((shared / "pve" / "vectors.json").read_text(encoding="utf-8"))
    judged = 0
    for vector in vectors:
        options = {
            key: value for key, value in vector["params"].items() if not _ELSEWHERE.match(key)
        }
        if vector["method"] not in ("create_vm", "update_vm") or not options:
            continue
        judged += 1
        bad = {
            key
            for key in options
            if key in (vector.get("errors") or {}) and options[key] not in _WORDS
        }
        said = refusal(options)
        assert bool(said) == bool(bad), (options, said)
        assert not bad or any(key in said for key in bad)
    assert judged > 30


@pytest.mark.parametrize(
    "options",
    [
        {"boot": "scsi0;net0"},
        {"boot": "order=bogus0"},
        {"startup": "first"},
        {"watchdog": {"model": "nosuch"}},
        {"cpu": {"cputype": "host", "nosuch": "1"}},
        {"hotplug": "network,teleport"},
    ],
    ids=str,
)
def test_an_open_option_is_refused_before_any_request(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed) as caught:
        judged(desired_vm(options=options))
    assert caught.value.next_step
    assert next(iter(options)) in caught.value.message


def test_a_boot_order_of_the_old_kind_is_passed_on() -> None:
    changes_ = VM_PLANNER.changes(
        desired_vm(options={"boot": "cdn"}), {"boot": "order=scsi0", "scsi0": "ceph:x,size=1G"}
    )
    assert changes_.sets["boot"] == "cdn"
    assert not VM_PLANNER.changes(
        desired_vm(options={"boot": "cdn"}), {"boot": "legacy=cdn"}
    ).sets.get("boot")


def test_what_only_an_older_version_takes_is_read_too() -> None:
    disk = desired_vm(disks=[{"name": "scsi0", "size": 8, "options": {"cyls": 4}}]).hardware.disks[
        0
    ]
    assert disk.options["cyls"] == "4"


@pytest.mark.parametrize("value", [False, "false", "False", "off", "no", 0, "0"])
def test_no_balloon_is_zero(value: object) -> None:
    assert desired_vm(balloon=value).hardware.scalars["balloon"] == "0"


@pytest.mark.parametrize("value", [True, "true", "yes", "on"])
def test_a_balloon_without_a_size_is_refused(value: object) -> None:
    with pytest.raises(ValidationFailed, match="is a boolean.*such as 1G, or 0 for no balloon"):
        desired_vm(balloon=value)


def _texts(spec: Mapping[str, Mapping[str, Any]], part: str) -> list[tuple[str, str]]:
    """Return the options, with the option they are part of, that Ansible hands over when they are
    empty texts.
    """
    found = []
    for name, rule in spec.items():
        if rule["type"] in ("str", "raw", "path") and "" in rule.get("choices", [""]):
            found.append((part, name))
    return found


NESTED = {name: vm_spec()[name]["options"] for name in ("disks", "nics", "cloud_init")}
SNIPPETS = NESTED["cloud_init"]["snippets"]["options"]
TEXTS = [
    *_texts(vm_spec(), ""),
    *(pair for part, spec in NESTED.items() for pair in _texts(spec, part)),
    *_texts(SNIPPETS, "cloud_init.snippets"),
]
BASE: dict[str, Any] = {"disks": [{"name": "scsi0"}], "nics": [{"name": "net0"}], "cloud_init": {}}


def _with(part: str, name: str, value: Any) -> dict[str, Any]:
    if not part:
        return {**BASE, name: value}
    if part == "cloud_init.snippets":
        return {**BASE, "cloud_init": {"snippets": {name: value}}}
    if part == "cloud_init":
        return {**BASE, "cloud_init": {name: value}}
    return {**BASE, part: [{**BASE[part][0], name: value}]}


@pytest.mark.parametrize(("part", "name"), TEXTS)
def test_an_empty_text_removes_an_option_or_counts_as_left_out(part: str, name: str) -> None:
    if name in ("name", "tenant") and not part:
        return  # identity and tenant have rules of their own
    if (part, name) == ("disks", "name"):
        return  # without it the disk is another one
    blank, left_out = (desired_vm(**_with(part, name, value)) for value in ("", None))
    assert (blank != left_out) == (name in EMPTY_REMOVES[part])
    assert desired_vm(**_with(part, name, " ")) == blank


def test_every_option_that_can_be_removed_is_one_of_text() -> None:
    known = {(part, name) for part, names in EMPTY_REMOVES.items() for name in names}
    assert known - set(TEXTS) == {("", "boot")}  # a list
    assert desired_vm(boot=[]).hardware.unset == desired_vm(boot=[""]).hardware.unset == {"boot"}


def test_an_empty_text_wins_over_a_class_and_a_left_out_one_does_not() -> None:
    classes = {"big": {"cpu": "host", "memory": "4G", "disks": [{"name": "scsi0", "size": 1}]}}
    found = desired_vm(**{"class": "big"}, classes=classes, cpu="", memory="")
    assert found.hardware.unset == {"cpu"}
    assert found.hardware.property_strings["memory"] == {"current": "4096"}


def test_a_gateway_goes_with_its_address() -> None:
    assert desired_vm(nics=[{"ip": ""}]).hardware.property_strings["ipconfig0"] == {
        "ip": None,
        "gw": None,
    }
    assert desired_vm(nics=[{"gateway6": ""}]).hardware.property_strings["ipconfig0"] == {
        "gw6": None
    }


@pytest.mark.parametrize(
    ("agent", "parts"),
    [
        (True, {"enabled": "1"}),
        ({"enabled": True}, {"enabled": "1"}),
        (
            {"enabled": True, "fstrim_cloned_disks": False},
            {"enabled": "1", "fstrim_cloned_disks": "0"},
        ),
        ("1,fstrim_cloned_disks=1", {"enabled": "1", "fstrim_cloned_disks": "1"}),
    ],
    ids=str,
)
def test_the_agent_can_be_a_dictionary(agent: Any, parts: dict[str, str]) -> None:
    assert (
        read_options({"name": "a", "agent": agent}).desired.hardware.property_strings["agent"]
        == parts
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"memory": {"size": [1, True, None]}}, "{size: [1, true, null]} is not"),
        ({"agent": {"enabled": {"a": True}}}, "agent"),
        ({"classes": {"web": [1]}, "class": "web"}, "[1] is"),
    ],
    ids=str,
)
def test_a_value_is_shown_as_the_user_writes_it(options: dict[str, Any], text: str) -> None:
    with pytest.raises(FleetError) as caught:
        read_options({"name": "a", **options})
    assert text in caught.value.message
    assert not any(word in caught.value.message for word in ("True", "None", "{'", "['"))
