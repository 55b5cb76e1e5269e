"""Values as people write them and as PVE keeps them: what is written once is not written again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema import formats, versions
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.vm_rules import (
    EMPTY_REMOVES,
)
from tests.modules.estate_lab import Lab

# How a configuration is filed and read again: qemu-server, QemuServer.pm, parse_vm_config and
# write_vm_config.
TEXTS: list[dict[str, Any]] = [
    {"description": "front end  "},
    {"description": "front end\n\n"},
    {"description": "front end \t\r\n \n"},
    {"description": "  two\r\nlines\r\n"},
    {"description": "\n\nfront  \n\nend"},
    {"cloud_init": {"user": " ops "}},
    {"options": {"startdate": " 2006-06-17 "}},
    {"options": {"smbios1": {"serial": " x1 "}}},
    {"disks": [{"name": "scsi0", "serial": " s1 "}]},
]


@pytest.mark.parametrize("options", TEXTS, ids=str)
def test_blanks_around_a_text_change_nothing(lab: Lab, name: str, options: dict[str, Any]) -> None:
    lab.vm(name=name, source="debian-13")
    assert lab.vm(name=name, **options)["changed"]
    assert not lab.vm(name=name, **options)["changed"]


@pytest.mark.parametrize("options", TEXTS[:-1], ids=str)
@pytest.mark.parametrize(
    "start", [{"source": "debian-13"}, {"disks": [{"name": "scsi0", "size": 1}]}], ids=str
)
def test_a_new_vm_with_such_a_text_is_not_changed_again(
    lab: Lab, name: str, options: dict[str, Any], start: dict[str, Any]
) -> None:
    assert lab.vm(name=name, **start, **options)["changed"]
    assert not lab.vm(name=name, **options)["changed"]


def test_blanks_at_the_end_of_a_snapshots_description_change_nothing(lab: Lab, name: str) -> None:
    lab.vm(name=name, source="debian-13")
    options: dict[str, Any] = {
        "vms": [name],
        "snapshot": "s1",
        "description": "before the update \n",
    }
    assert lab.run("snapshot", **options)["changed"]
    assert not lab.run("snapshot", **options)["changed"]


@pytest.mark.parametrize(
    "options",
    [
        {"options": {"smbios1": "serial=a\nb"}},
        {"options": {"startdate": "now\nlock: backup"}},
        {"options": {"nosuch": "a\nb"}},
        {"cloud_init": {"user": "a\nb"}},
        {"name": "web1\n"},
        {"cloud_init": {"search_domain": "example.com\n"}},
    ],
    ids=str,
)
def test_a_line_feed_within_an_option_is_refused_before_any_request(
    lab: Lab, options: dict[str, Any]
) -> None:
    result = lab.refused(**{"name": "refused", "disks": [{"size": 1}], **options})
    assert result["error"]["category"] == "ValidationFailed"


# What a token cannot set or PVE does not know: the task's options, and the same as PVE takes it.
BEYOND: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"options": {"nosuch": "1"}}, {"nosuch": "1"}),
    ({"options": {"nosuch": {"a": 1}}}, {"nosuch": "a=1"}),
    ({"cpu": "nonsense"}, {"cpu": "nonsense"}),
    ({"cpu": "host,flags=+nonsense"}, {"cpu": "host,flags=+nonsense"}),
    ({"cpu": "host,nosuch=1"}, {"cpu": "host,nosuch=1"}),
    ({"nics": [{"options": {"nosuch": 1}}]}, {"net0": "virtio,nosuch=1"}),
    ({"nics": [{"model": "nosuch"}]}, {"net0": "model=nosuch"}),
    ({"disks": [{"name": "scsi0", "options": {"nosuch": 1}}]}, {"scsi0": "ceph:1,nosuch=1"}),
    ({"ostype": "dos"}, {"ostype": "dos"}),
    ({"nics": [{"ip": "10.0.0.5/255.255.255.0"}]}, {"ipconfig0": "ip=10.0.0.5/255.255.255.0"}),
    ({"nics": [{"ip": "10.0.0.5/7"}]}, {"ipconfig0": "ip=10.0.0.5/7"}),
    ({"nics": [{"ip6": "fe80::1%1/64"}]}, {"ipconfig0": "ip6=fe80::1%1/64"}),
    ({"options": {"args": "-vnc :1"}}, {"args": "-vnc :1"}),
    ({"options": {"hugepages": "2"}}, {"hugepages": "2"}),
    ({"options": {"affinity": "0-1"}}, {"affinity": "0-1"}),
    ({"options": {"parallel0": "/dev/parport0"}}, {"parallel0": "/dev/parport0"}),
    (
        {"options": {"spice_enhancements": "videostreaming=all"}},
        {"spice_enhancements": "videostreaming=all"},
    ),
    ({"options": {"serial1": "/dev/ttyS0"}}, {"serial1": "/dev/ttyS0"}),
    ({"options": {"usb0": "host=1234:5678"}}, {"usb0": "host=1234:5678"}),
    ({"options": {"hostpci0": "0000:01:00.0"}}, {"hostpci0": "0000:01:00.0"}),
    ({"options": {"hostpci0": "nonsense"}}, {"hostpci0": "nonsense"}),
]


@pytest.mark.parametrize(("options", "raw"), BEYOND, ids=str)
def test_check_mode_refuses_what_pve_refuses(
    lab: Lab, name: str, options: dict[str, Any], raw: dict[str, str]
) -> None:
    made = lab.vm(name=name, source="debian-13")["vm"]
    with pytest.raises(FleetError) as refusal:
        lab.client.write("PUT", "nodes", made["node"], "qemu", made["vmid"], "config", data=raw)
    new: dict[str, Any] = {"name": f"{name}-2", "source": "debian-13"}
    for task in ({"name": name, **options}, {**new, **options}, {**new, "source": None, **options}):
        foreseen = lab.run("vm", check=True, **task)
        assert foreseen.get("failed"), foreseen
        assert foreseen["error"]["category"] == refusal.value.category, foreseen["msg"]
        assert lab.refused(**task)["msg"] == foreseen["msg"]


def test_a_list_with_an_unknown_name_is_refused_whole(lab: Lab, name: str) -> None:
    lab.simulator.reset_log()
    items = [{"name": name, "source": "debian-13"}, {"name": f"{name}-2", "cpu": "host,levl=30"}]
    result = lab.run("vms", vms=items)
    assert result["error"]["category"] == "ValidationFailed"
    assert "vms[1]" in result["msg"]
    assert "Did you mean 'level'?" in result["msg"]
    assert lab.simulator.writes() == []


def test_a_device_of_the_host_is_not_replaced_by_a_token(lab: Lab, name: str) -> None:
    made = lab.vm(name=name, source="debian-13", options={"serial1": "socket", "usb0": "spice"})[
        "vm"
    ]
    assert lab.config(made)["serial1"] == "socket"
    assert lab.vm(name=name, options={"serial1": None, "usb0": None})["changed"]


def _forget_rules() -> None:
    """Empty the caches of the facts."""
    formats.rule_of.cache_clear()
    formats._parsed.cache_clear()


@pytest.fixture
def schema_of_an_older_release(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take the names out of our facts that the server has: it is newer than they are."""
    _forget_rules()
    monkeypatch.setattr(versions, "RELEASE", (9, 2, 10))
    for rules in (formats.OPTIONS, *versions.BY_VERSION.values()):
        monkeypatch.delitem(rules, "tablet", raising=False)
        for option, part in (("net[n]", "host-tunnel"), ("scsi[n]", "aio")):
            monkeypatch.delitem(rules[option]["format"], part, raising=False)
    monkeypatch.delitem(formats.NAMED["pve-vm-cpu-conf"], "level")
    yield
    _forget_rules()


@pytest.mark.usefixtures("schema_of_an_older_release")
@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"cpu": "host,level=30"}, "cpu.level"),
        ({"nics": [{"name": "net0", "options": {"host-tunnel": True}}]}, "net0.host-tunnel"),
        ({"disks": [{"name": "scsi0", "options": {"aio": "threads"}}]}, "scsi0.aio"),
        ({"options": {"tablet": False}}, "tablet"),
    ],
)
def test_a_newer_server_is_asked_and_check_mode_says_so(
    lab: Lab, name: str, options: dict[str, Any], what: str
) -> None:
    lab.vm(name=name, source="debian-13")
    foreseen = lab.vm(check=True, name=name, **options)
    assert foreseen["changed"]
    assert f"whether PVE 9.2.11 takes {what} is known to the server only" in "".join(
        foreseen["warnings"]
    )
    done = lab.vm(name=name, **options)
    assert done["changed"]
    assert not [text for text in done["warnings"] if "known to the server" in text]
    again = lab.vm(name=name, **options)
    assert not again["changed"]
    assert lab.vm(name=name, cores=3, nics=[{"name": "net0", "vlan": 9}])["changed"]  # and it stays
    assert not lab.vm(name=name, **options)["changed"]


def test_a_custom_cpu_model_is_for_the_server_to_judge(lab: Lab, name: str) -> None:
    task: dict[str, Any] = {"name": name, "source": "debian-13", "cpu": "custom-nosuch"}
    foreseen = lab.vm(check=True, **task)
    assert "custom-nosuch is known to the server only" in "".join(foreseen["warnings"])
    assert lab.run("vm", **task)["failed"]


# What can be removed: the option it is part of and its name, a task that sets it, one that removes
# it, PVE's key and sub-key.
REMOVED: list[tuple[tuple[str, str], dict[str, Any], dict[str, Any], str, str | None]] = [
    (("", "agent"), {"agent": "1,fstrim_cloned_disks=1"}, {"agent": ""}, "agent", None),
    (("", "balloon"), {"balloon": 64}, {"balloon": ""}, "balloon", None),
    (("", "bios"), {"bios": "uefi"}, {"bios": ""}, "bios", None),
    (("", "boot"), {"boot": ["scsi0"]}, {"boot": []}, "boot", None),
    (("", "cpu"), {"cpu": "host"}, {"cpu": ""}, "cpu", None),
    (("", "hotplug"), {"hotplug": "disk"}, {"hotplug": ""}, "hotplug", None),
    (("", "machine"), {"machine": "q35"}, {"machine": ""}, "machine", None),
    (("", "ostype"), {"ostype": "solaris"}, {"ostype": ""}, "ostype", None),
    (("", "scsihw"), {"scsihw": "virtio-scsi-pci"}, {"scsihw": ""}, "scsihw", None),
    (("", "startup"), {"startup": "order=1"}, {"startup": ""}, "startup", None),
    (("", "vga"), {"vga": "qxl"}, {"vga": ""}, "vga", None),
    (
        ("disks", "cache"),
        {"disks": [{"name": "scsi0", "cache": "unsafe"}]},
        {"disks": [{"name": "scsi0", "cache": ""}]},
        "scsi0",
        "cache",
    ),
    (
        ("disks", "serial"),
        {"disks": [{"name": "scsi0", "serial": "s1"}]},
        {"disks": [{"name": "scsi0", "serial": ""}]},
        "scsi0",
        "serial",
    ),
    (
        ("nics", "ip"),
        {"nics": [{"ip": "10.0.0.5/24", "gateway": "10.0.0.1"}]},
        {"nics": [{"ip": ""}]},
        "ipconfig0",
        None,
    ),
    (
        ("nics", "gateway"),
        {"nics": [{"ip": "10.0.0.5/24", "gateway": "10.0.0.1"}]},
        {"nics": [{"gateway": ""}]},
        "ipconfig0",
        "gw",
    ),
    (
        ("nics", "ip6"),
        {"nics": [{"ip": "dhcp", "ip6": "auto"}]},
        {"nics": [{"ip6": ""}]},
        "ipconfig0",
        "ip6",
    ),
    (
        ("nics", "gateway6"),
        {"nics": [{"ip6": "fd00::5/64", "gateway6": "fd00::1"}]},
        {"nics": [{"gateway6": ""}]},
        "ipconfig0",
        "gw6",
    ),
    (
        ("cloud_init", "password"),
        {"cloud_init": {"password": "hunter22"}},
        {"cloud_init": {"password": ""}},
        "cipassword",
        None,
    ),
    (
        ("cloud_init", "search_domain"),
        {"cloud_init": {"search_domain": "example.com"}},
        {"cloud_init": {"search_domain": ""}},
        "searchdomain",
        None,
    ),
    (
        ("cloud_init", "type"),
        {"cloud_init": {"type": "nocloud"}},
        {"cloud_init": {"type": ""}},
        "citype",
        None,
    ),
    (
        ("cloud_init", "user"),
        {"cloud_init": {"user": "ops"}},
        {"cloud_init": {"user": ""}},
        "ciuser",
        None,
    ),
    *(
        (
            ("cloud_init.snippets", part),
            {"cloud_init": {"snippets": {part: "local:snippets/user.yml"}}},
            {"cloud_init": {"snippets": {part: ""}}},
            "cicustom",
            None,
        )
        for part in ("meta", "network", "user", "vendor")
    ),
    (
        ("options", "tablet"),
        {"options": {"tablet": False}},
        {"options": {"tablet": ""}},
        "tablet",
        None,
    ),
    (
        ("options", "watchdog"),
        {"options": {"watchdog": "ib700,action=reset"}},
        {"options": {"watchdog": {"action": ""}}},
        "watchdog",
        "action",
    ),
    (
        ("nics", "options"),
        {"nics": [{"mtu": 1400}]},
        {"nics": [{"options": {"mtu": ""}}]},
        "net0",
        "mtu",
    ),
    (
        ("disks", "options"),
        {"disks": [{"name": "scsi0", "ssd": True}]},
        {"disks": [{"name": "scsi0", "options": {"ssd": ""}}]},
        "scsi0",
        "ssd",
    ),
]


@pytest.mark.parametrize(
    ("_option", "set_by", "removed_by", "key", "part"), REMOVED, ids=lambda value: str(value)[:40]
)
def test_an_empty_text_removes_what_was_set(
    lab: Lab,
    name: str,
    _option: Any,
    set_by: dict[str, Any],
    removed_by: dict[str, Any],
    key: str,
    part: str | None,
) -> None:
    made = lab.vm(name=name, source="debian-13", **set_by)["vm"]
    assert key in lab.config(made)
    foreseen = lab.vm(check=True, name=name, **removed_by)
    done = lab.vm(name=name, **removed_by)
    assert foreseen["changed"]
    assert done["changed"]
    assert foreseen["diff"] == done["diff"]
    found = lab.config(made)
    assert f"{part}=" not in found.get(key, "") if part else key not in found
    assert not lab.vm(name=name, **removed_by)["changed"]


def test_all_that_can_be_removed_is_tried() -> None:
    known = {(part, option) for part, options in EMPTY_REMOVES.items() for option in options}
    assert known - {row[0] for row in REMOVED} == {("", "description"), ("", "pool")}


@pytest.mark.parametrize("source", ["debian-13", None])
def test_an_empty_description_removes_the_notes_and_no_marker(
    lab: Lab, name: str, source: str | None
) -> None:
    made = lab.vm(
        name=name, source=source, description="front end", disks=[{"name": "scsi0", "size": "8G"}]
    )["vm"]
    marker = lab.config(made)["description"].partition("front end")[2].strip()
    assert lab.vm(name=name, description="")["vm"]["description"] == ""
    assert lab.config(made).get("description", "") == marker
    assert bool(marker) == bool(source)
    assert not lab.vm(name=name, description=" ")["changed"]


def test_a_vm_is_taken_out_of_its_pool(quiet: Lab, name: str) -> None:
    """DELETE semantics of C(PUT /pools) with C(delete) (pve-manager, API2/Pool.pm, update_pool)."""
    made = quiet.vm(name=name, source="debian-13", pool="acme", tenant="acme")["vm"]
    assert made["pool"] == "acme"
    assert not quiet.vm(name=name, pool="acme")["changed"]
    assert not quiet.vm(name=name)["changed"]  # what is not mentioned stays
    foreseen = quiet.vm(check=True, name=name, pool="")
    assert foreseen["diff"]["before"] == {"pool": "acme"}
    assert foreseen["diff"]["after"] == {"pool": None}
    assert foreseen["changed"]
    refused = quiet.refused(vmid=made["vmid"], pool="", tenant="globex")
    assert refused["error"]["category"] == "Conflict"
    done = quiet.vm(name=name, pool="")
    assert done["diff"] == foreseen["diff"]
    assert done["vm"]["pool"] is None
    assert [
        row
        for row in quiet.client.get("pools", poolid="acme")[0]["members"]
        if row.get("vmid") == made["vmid"]
    ] == []
    again = quiet.vm(name=name, pool="")
    assert not again["changed"]
    assert again["warnings"] == []
    assert quiet.vm(name=name, pool="acme")["vm"]["pool"] == "acme"


def test_a_new_vm_and_a_clone_are_in_no_pool(lab: Lab, name: str) -> None:
    assert lab.vm(name=name, source="debian-13", pool="")["vm"]["pool"] is None
    assert lab.vm(name=f"{name}-2", disks=[{"size": 1}], pool="")["vm"]["pool"] is None


def test_a_pool_that_the_token_may_not_see_is_said(quiet: Lab, name: str) -> None:
    quiet.vm(name=name, source="debian-13", pool="acme")
    quiet.client.write(
        "POST", "access", "users", data={"userid": "blind@pve", "password": "blind12345"}
    )
    quiet.client.write(
        "PUT", "access", "acl", data={"path": "/vms", "users": "blind@pve", "roles": "PVEVMAdmin"}
    )
    login: dict[str, Any] = {
        "token_id": None,
        "token_secret": None,
        "user": "blind@pve",
        "password": "blind12345",
    }
    result = quiet.vm(name=name, pool="", **login)
    assert not result["changed"]
    assert "no Pool.Audit on /pool" in result["warnings"][0]


@pytest.mark.parametrize(
    "start",
    [
        {"disks": [{"size": 1}]},
        {"source": "local:iso/debian-13-netinst.iso", "node": "pve1", "disks": [{"size": 1}]},
        {"source": "local:import/debian-13-genericcloud-amd64.qcow2", "node": "pve1"},
        {"source": "debian-13"},
    ],
    ids=str,
)
def test_a_new_vm_uses_the_guest_agent(lab: Lab, name: str, start: dict[str, Any]) -> None:
    foreseen = lab.vm(check=True, name=name, **start)
    assert foreseen["diff"]["after"]["agent"] == {"enabled": True}
    assert lab.config(lab.vm(name=name, **start)["vm"])["agent"] == "1"
    assert not lab.vm(name=name, **start)["changed"]


@pytest.mark.parametrize(
    ("agent", "stored"), [(False, None), ("", None), ("1,type=isa", "1,type=isa")]
)
def test_a_task_decides_about_the_agent_of_a_new_vm(
    lab: Lab, name: str, agent: Any, stored: str | None
) -> None:
    made = lab.vm(name=name, disks=[{"size": 1}], agent=agent)
    assert lab.config(made["vm"]).get("agent") == stored
    assert not lab.vm(name=name, agent=agent)["changed"]
    assert not lab.vm(name=name)["changed"]


def test_a_clone_of_a_template_without_the_agent_gets_it_and_an_existing_vm_does_not(
    lab: Lab, name: str
) -> None:
    source = f"{name[:30]}-src"
    made = lab.vm(name=source, disks=[{"size": 1, "storage": "ceph"}], agent="")["vm"]
    assert not lab.vm(name=source, cores=2)["changed"]
    lab.client.task("POST", "nodes", made["node"], "qemu", made["vmid"], "template")
    vm = lab.vm(name=name, source=source)
    assert vm["diff"]["after"]["agent"] == {"enabled": True}
    assert lab.config(vm["vm"])["agent"] == "1"
    copied = lab.run("clone", name=f"{name}-2", source=source)
    assert "agent" not in lab.config(copied["vm"])  # a copy is what its source is


def test_a_node_can_have_a_limit_of_its_own(quiet: Lab, name: str) -> None:
    blank: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}]}
    there = {row["node"]: row["vms"]["total"] for row in quiet.run("node_info")["nodes"]}
    limits = {"pve1": there["pve1"], "pve2": there["pve2"] + 1}
    made = quiet.vm(
        name=name, placement={"max_vms_per_node": limits, "nodes": ["pve1", "pve2"]}, **blank
    )
    assert made["vm"]["node"] == "pve2"
    assert f"at most {limits['pve1']} are allowed" in made["placement"]["refused"]["pve1"]
    left = {
        row["node"]: row["capacity"]["vms_left"]
        for row in quiet.run("node_info", max_vms_per_node=limits)["nodes"]
    }
    assert left == {"pve1": 0, "pve2": 0, "pve3": None}
    for wrong in ({"pve9": 1}, {"pve1": -1}, {"pve1": "many"}, "many", True, {"pve1": True}):
        category = "ConfigurationError" if "pve9" in str(wrong) else "ValidationFailed"
        result = quiet.refused(name=f"{name}-2", placement={"max_vms_per_node": wrong}, **blank)
        assert result["error"]["category"] == category, result["msg"]


@pytest.mark.parametrize("bad", ["a" * 64, f"ok.{'b' * 64}.ok", ".".join(["a" * 60] * 5)])
def test_a_name_that_is_too_long_is_refused_before_any_request(lab: Lab, bad: str) -> None:
    for options in (
        {"name": bad, "disks": [{"size": 1}]},
        {"name": "refused", "cloud_init": {"search_domain": bad}},
    ):
        result = lab.refused(**options)
        assert result["error"]["category"] == "ValidationFailed"
        assert "63 between two dots" in result["msg"]
        assert lab.simulator.log() == []


# Storages that decide for themselves, and what they make of a disk (pve-storage: the plugin of each
# kind).
ALLOCATIONS: list[tuple[dict[str, Any], str | None, str]] = [
    ({"type": "zfspool", "pool": "rpool/a", "content": "images"}, None, "thick"),
    ({"type": "zfspool", "pool": "rpool/b", "content": "images", "sparse": 1}, None, "thin"),
    ({"type": "dir", "path": "/mnt/c", "content": "images"}, None, "thin"),
    (
        {"type": "dir", "path": "/mnt/d", "content": "images", "preallocation": "full"},
        None,
        "thick",
    ),
    (
        {"type": "dir", "path": "/mnt/e", "content": "images", "preallocation": "falloc"},
        "qcow2",
        "thick",
    ),
    (
        {"type": "dir", "path": "/mnt/f", "content": "images", "preallocation": "full"},
        "vmdk",
        "thin",
    ),
    ({"type": "lvm", "vgname": "vg1", "content": "images"}, None, "thick"),
]


@pytest.mark.parametrize(("definition", "form", "allocates"), ALLOCATIONS, ids=str)
def test_a_storage_class_gets_the_allocation_it_asks_for_or_an_error(
    quiet: Lab, name: str, definition: dict[str, Any], form: str | None, allocates: str
) -> None:
    quiet.client.write("POST", "storage", data={"storage": "odd", **definition})
    other = {"thin": "thick", "thick": "thin"}[allocates]
    for wanted in (allocates, other):
        classes = {"fast": {"storage": "odd", "type": wanted, **({"format": form} if form else {})}}
        task: dict[str, Any] = {
            "name": name,
            "storage_classes": classes,
            "disks": [{"name": "scsi0", "size": 1, "storage_class": "fast"}],
        }
        foreseen = quiet.run("vm", check=True, **task)
        if wanted == allocates:
            made = quiet.vm(**task)
            assert foreseen["changed"]
            assert ("discard=on" in quiet.config(made["vm"])["scsi0"]) == (wanted == "thin")
            assert not quiet.vm(**task)["changed"]
            continue
        refused = quiet.refused(**task)
        assert refused["error"]["category"] == foreseen["error"]["category"] == "NotSupported"
        assert f"allocates disks {allocates}" in refused["msg"]


def test_thick_on_a_thin_storage_is_refused_and_no_storage_is_read_for_it(
    lab: Lab, name: str
) -> None:
    for storage in ("local-lvm", "ceph"):
        classes = {"fast": {"storage": storage, "type": "thick"}}
        disks = [{"name": "scsi0", "size": "8G", "storage_class": "fast"}]
        result = lab.refused(
            name=name, source="debian-13", full=True, storage_classes=classes, disks=disks
        )
        assert result["error"]["category"] == "NotSupported"
        assert f"storage {storage}" in result["msg"]
        assert not [entry for entry in lab.simulator.log() if entry["path"].endswith("/storage")]
    wrong = {"fast": {"storage": "ceph", "type": "thinn"}}
    result = lab.refused(
        name=name, storage_classes=wrong, disks=[{"size": 1, "storage_class": "fast"}]
    )
    assert result["error"]["category"] == "ValidationFailed"


def test_the_discard_of_a_thin_class_can_be_switched_off(lab: Lab, name: str) -> None:
    classes = {
        "fast": {"storage": "ceph", "type": "thin"},
        "quiet": {"storage": "ceph", "type": "thin", "discard": False},
    }
    disks = [
        {"size": 1, "storage_class": "fast", "discard": False},
        {"size": 1, "storage_class": "quiet"},
    ]
    config = lab.config(lab.vm(name=name, storage_classes=classes, disks=disks)["vm"])
    assert "discard=on" not in config["scsi0"] + config["scsi1"]


def site_of(lab: Lab, **own: Any) -> dict[str, Any]:
    """Return the connection options of a site that may use only a part of the cluster."""
    site = {"name": "berlin", **lab.connection, **own}
    return {"site": "berlin", "sites": [site], **dict.fromkeys(lab.connection)}


OWN = {"nodes": ["pve2"], "storages": ["ceph", "local"], "bridges": ["vmbr1"]}
NOT_OWN: list[tuple[dict[str, Any], str, str]] = [
    ({"disks": [{"size": 1, "storage": "ceph"}], "node": "pve1"}, "Node 'pve1'", "pve2"),
    ({"disks": [{"size": 1, "storage": "local-lvm"}]}, "Storage 'local-lvm'", "ceph, local"),
    ({"disks": [{"size": 1}]}, "Storage 'local-lvm'", "ceph, local"),
    (
        {"disks": [{"size": 1, "storage": "ceph"}], "cloud_init": {"storage": "local-lvm"}},
        "Storage 'local-lvm'",
        "ceph",
    ),
    (
        {"disks": [{"size": 1, "storage": "ceph"}], "nics": [{"bridge": "vmbr0"}]},
        "Bridge 'vmbr0'",
        "vmbr1",
    ),
    (
        {"disks": [{"size": 1, "storage": "ceph"}], "nics": [{"network": "lan"}]},
        "Bridge 'vmbr0'",
        "vmbr1",
    ),
    ({"source": "debian-13"}, "Bridge 'vmbr0'", "vmbr1"),  # the card of the template
    (
        {
            "source": "debian-13",
            "full": True,
            "nics": [{"bridge": "vmbr1"}],
            "disks": [{"name": "scsi0", "storage": "local-lvm"}],
        },
        "Storage 'local-lvm'",
        "ceph",
    ),
]


@pytest.mark.parametrize(("options", "what", "own"), NOT_OWN, ids=str)
def test_a_site_uses_its_own_only(
    lab: Lab, name: str, options: dict[str, Any], what: str, own: str
) -> None:
    for result in (
        lab.refused(name=name, **options, **site_of(lab, **OWN)),
        lab.run("vm", check=True, name=name, **options, **site_of(lab, **OWN)),
    ):
        assert result["error"]["category"] == "ConfigurationError", result["msg"]
        assert what in result["msg"]
        assert f"site berlin uses {own}" in result["msg"]


def test_a_site_places_on_its_own_nodes(quiet: Lab, name: str) -> None:
    own = site_of(quiet, **OWN)
    blank: dict[str, Any] = {
        "disks": [{"size": 1, "storage": "ceph"}],
        "nics": [{"bridge": "vmbr1"}],
    }
    made = quiet.vm(name=name, placement={"nodes": ["pve1"]}, **blank, **own)
    assert made["vm"]["node"] == "pve2"
    assert "site berlin does not use it" in made["placement"]["refused"]["pve1"]
    assert not quiet.vm(name=name, **blank, **own)["changed"]
    for options in (
        {"node": "pve1"},
        {"disks": [{"name": "scsi0", "storage": "local-lvm"}]},
        {"nics": [{"bridge": "vmbr2"}]},
    ):
        assert "site berlin uses" in quiet.refused(name=name, **options, **own)["msg"]
    elsewhere = quiet.vm(
        name=f"{name}-2", node="pve1", disks=[{"size": 1, "storage": "local-lvm"}]
    )["vm"]
    assert quiet.vm(name=f"{name}-2", cores=4, **own)["vm"]["node"] == elsewhere["node"] == "pve1"
    result = quiet.run("vms", vms=[{"name": f"{name}-3", **blank, "node": "pve3"}], **own)
    assert "site berlin uses pve2" in str(result)
    result = quiet.run(
        "clone", name=f"{name}-4", source="debian-13", storage="local-lvm", full=True, **own
    )
    assert "site berlin uses ceph, local" in result["msg"]


def test_a_site_has_limits_of_its_own(quiet: Lab, name: str) -> None:
    there = {row["node"]: row["vms"]["total"] for row in quiet.run("node_info")["nodes"]}
    own = site_of(
        quiet,
        max_vms_per_node={"pve1": there["pve1"], "pve2": there["pve2"] + 1},
        node="pve1",
        nodes=["pve1", "pve2"],
    )
    blank: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}]}
    assert quiet.vm(name=name, **blank, **own)["vm"]["node"] == "pve2"
    result = quiet.refused(name=f"{name}-2", **blank, **own)
    assert result["error"]["category"] == "NodeUnhealthy"
    assert "site berlin does not use it" in result["msg"]
    task = {"name": f"{name}-2", "placement": {"max_vms_per_node": 1000}, **blank}
    assert quiet.vm(**task, **own)["vm"]["node"] == "pve1"  # the task's own limit


@pytest.mark.parametrize(
    "wrong", [{"nodes": []}, {"storages": [""]}, {"nodes": ["pve2"], "node": "pve1"}], ids=str
)
def test_a_site_that_lists_nothing_is_refused(lab: Lab, wrong: dict[str, Any]) -> None:
    result = lab.refused(name="refused", disks=[{"size": 1}], **site_of(lab, **wrong))
    assert result["error"]["category"] == "ConfigurationError"
    assert "berlin" in result["msg"]
