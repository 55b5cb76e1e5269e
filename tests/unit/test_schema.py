"""The facts about VM options are those of the official API schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.propstring import parse
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.check import (
    disputed,
    find_part_refusal,
    find_refusals,
    taken_by,
    unknown_option,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.formats import (
    MAX_COUNTS,
    NAMED,
    format_of,
    rule_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.generated.qemu import (
    OPTIONS,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.lxc import LXC
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.versions import (
    BY_VERSION,
    NEWEST,
    RELEASE,
    deciding_versions,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.desired.gathered import (
    require_valid_sub_keys,
)
from tests import needs
from tests.tools.facts import make_answers, make_schema


@needs.tool("ruff")
def test_the_generated_files_are_fresh() -> None:
    assert make_schema.TARGET.read_text(encoding="utf-8") == make_schema.render()
    assert make_schema.OLDER_TARGET.read_text(encoding="utf-8") == make_schema.render_older()
    assert make_schema.LXC_TARGET.read_text(encoding="utf-8") == make_schema.render_lxc()
    assert make_schema.REQUESTS_TARGET.read_text(encoding="utf-8") == make_schema.render_requests()
    assert make_schema.NAMES_TARGET.read_text(encoding="utf-8") == make_schema.render_names()
    assert make_schema.GUESTS_TARGET.read_text(encoding="utf-8") == make_schema.render_guests()
    assert make_schema.RIGHTS_TARGET.read_text(encoding="utf-8") == make_schema.render_rights()
    assert make_answers.TARGET.read_text(encoding="utf-8") == make_answers.render()


@pytest.mark.parametrize(
    ("form", "mistake"),
    [
        ("{reads: exitstatus}", "the schema does not type exitstatus"),
        ("{reads: pid, more: {pstart: whole}}", "the schema has pstart as whole: move it to reads"),
        ("{read: pid}", "read is not a part of a record"),
    ],
)
def test_fields_of_answers_come_from_the_schema(form: str, mistake: str) -> None:
    text = f"{{reads: {{'nodes/*/tasks': {{rows: {form}}}}}, writes: {{}}}}"
    with pytest.raises(make_answers.DeclarationError, match=mistake):
        make_answers.render(text)


def test_an_answer_of_an_unknown_path_is_a_mistake() -> None:
    text = "{reads: {'nodes/*/turtles': unchanged}, writes: {}}"
    with pytest.raises(make_answers.DeclarationError, match="has no such path"):
        make_answers.render(text)


def _facts(rules: Any) -> Any:
    """Return rules without defaults, which judge nothing."""
    if isinstance(rules, dict):
        return {key: _facts(value) for key, value in rules.items() if key != "default"}
    return rules


@pytest.mark.parametrize("version", [*make_schema.OLDER, make_schema.VERSION])
def test_the_rules_of_each_version_are_those_of_its_schema(version: str) -> None:
    major, minor = map(int, version.split("."))
    whole = make_schema.options(make_schema.OLDER.get(version, version))
    assert _facts(dict(BY_VERSION[major, minor])) == _facts(whole)


def test_the_facts_of_8_4_are_those_of_the_reference(shared: Path) -> None:
    """What the simulator serves as 8.4, and our rules come from, is the official schema."""
    text = (shared / "pve" / "schema-8.4.json").read_text(encoding="utf-8")
    reference = json.loads(text)["paths"]["/nodes/{node}/qemu"]["POST"]["params"]
    assert {name for name in BY_VERSION[8, 4] if name not in reference} <= {"skiplock"}
    assert {name for name in reference if name not in BY_VERSION[8, 4]} <= make_schema.CALL_ONLY


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (None, [(8, 4), (9, 1), (9, 2)]),
        ((7, 4), [(8, 4)]),
        ((8, 4), [(8, 4)]),
        ((9, 0), [(8, 4), (9, 1)]),
        ((9, 1), [(9, 1)]),
        ((9, 2), [(9, 2)]),
        ((10, 1), [(9, 2)]),
    ],
)
def test_a_server_is_judged_by_its_version_or_its_neighbours(
    server: Any, expected: list[Any]
) -> None:
    assert list(deciding_versions(server)) == expected


BY_SERVER: list[tuple[str, str, set[tuple[int, int]]]] = [
    ("cores", "4", {(8, 4), (9, 1), (9, 2)}),
    ("cores", "0", set()),
    ("allow-ksm", "0", {(9, 1), (9, 2)}),
    ("allow-ksm", "perhaps", set()),
    ("intel-tdx", "type=tdx", {(9, 1), (9, 2)}),
    ("machine", "q35,aw-bits=48", {(9, 1), (9, 2)}),
    ("machine", "q35,aw-bits=480", set()),
    ("agent", "1,freeze-fs=0", {(9, 1), (9, 2)}),
    ("agent", "1,freeze-fs-on-backup=0", {(8, 4), (9, 1), (9, 2)}),
    ("scsi0", "local-lvm:8,cyls=4", {(8, 4)}),
    ("scsi0", "local-lvm:8,bps=much", set()),
    ("net0", "virtio,host-tunnel=1", {(9, 2)}),
    ("cpu", "host,level=30", {(9, 2)}),
    ("cpu", "host,guest-phys-bits=40", {(9, 1), (9, 2)}),
    ("cpu", "custom-mine", {(8, 4), (9, 1), (9, 2)}),
    ("ipconfig0", "ip=10.0.0.5/255.255.255.0", set()),
    ("ipconfig0", "ip=10.0.0.5/7", set()),
    ("efidisk0", "local-lvm:1,efitype=4m,ms-cert=2023", {(9, 1), (9, 2)}),
    ("tpmstate0", "local-lvm:1,version=v2.0,format=raw", {(9, 1), (9, 2)}),
    ("serial0", "/dev/a,b", {(8, 4), (9, 1)}),
]


@pytest.mark.parametrize(("key", "value", "takers"), BY_SERVER, ids=lambda value: str(value)[:40])
def test_who_takes_what(key: str, value: str, takers: set[tuple[int, int]]) -> None:
    assert set(taken_by(key, value)) == takers
    assert disputed({key: value, "memory": "512"}) == (
        {key} if 0 < len(takers) < len(BY_VERSION) else set()
    )
    assert bool(find_refusals({key: value})) == (not takers)
    for version in BY_VERSION:
        assert bool(find_refusals({key: value}, version)) == (version not in takers)


NEW_NAMES: list[tuple[str, str]] = [
    ("nosuch", "1"),
    ("net0", "virtio,nosuch=1"),
    ("cpu", "host,nosuch=1"),
    ("cpu", "nonsense"),
    ("cpu", "host,flags=+nonsense"),
    ("ostype", "win99"),
    ("scsi0", "local-lvm:8,cache=bogus"),
    ("scsi31", "local-lvm:8"),
    ("hotplug", "network,teleport"),
    ("ipconfig0", "ip=dhcp,nosuch=1"),
]


@pytest.mark.parametrize(("key", "value"), NEW_NAMES)
def test_a_name_that_no_known_version_has_is_left_to_a_newer_one(key: str, value: str) -> None:
    """PVE of the issue refused C(host-tunnel) of a newer one: what is only a name may come with any
    release.
    """
    assert taken_by(key, value) == []
    assert disputed({key: value}) == {key}
    assert unknown_option(key, value)
    assert not find_refusals({key: value})
    for server in (*BY_VERSION, RELEASE):
        assert find_refusals({key: value}, server)
    for newer in ((*RELEASE[:2], RELEASE[2] + 1), (NEWEST[0], NEWEST[1] + 1), (NEWEST[0] + 1, 0)):
        assert not find_refusals({key: value}, newer)
        assert find_refusals({"cores": "0"}, newer)


def test_a_later_release_of_a_version_may_have_what_the_next_one_has() -> None:
    tunnel = {"net0": "virtio,host-tunnel=1"}
    assert find_refusals(tunnel, (9, 1, 11))
    assert not find_refusals(tunnel, (9, 1, 12))
    assert find_refusals(tunnel, (8, 4, 20))


def test_a_version_between_two_known_ones_gets_the_benefit_of_the_doubt() -> None:
    assert not find_refusals({"allow-ksm": "0", "scsi0": "local-lvm:8,cyls=4"}, (9, 0))
    assert find_refusals({"cores": "0"}, (9, 0))


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        (
            "net0",
            "virtio,bridge=vmbr0,bridge=vmbr1",
            "duplicate key in comma-separated list property: bridge",
        ),
        ("net0", "virtio,model=e1000", "duplicate key in comma-separated list property: model"),
        ("net0", "virtio,bridge=", "missing key in comma-separated list property"),
        (
            "ipconfig0",
            "ip=dhcp,ip=10.0.0.5/24",
            "duplicate key in comma-separated list property: ip",
        ),
        ("ipconfig0", "dhcp", "value without key, but schema does not define a default key"),
        ("agent", "1,,fstrim_cloned_disks=1", None),
        ("cpu", "host, ,flags=+aes", None),
        ("cpu", "host, flags=+aes", " flags: property is not defined in schema"),
    ],
)
def test_a_property_string_is_read_as_pve_reads_it(key: str, text: str, reason: str | None) -> None:
    """A part of blanks is skipped, a key twice or without a value is not (JSONSchema.pm,
    parse_property_string).
    """
    assert find_refusals({key: text}, NEWEST).get(key) == reason


@pytest.mark.parametrize(
    ("key", "name", "text", "refusal"),
    [
        (
            "net0",
            "queues",
            "65",
            ("value must have a maximum value of 64", "is out of range", "PVE takes 0 to 64"),
        ),
        (
            "net0",
            "firewall",
            "2",
            ("type check ('boolean') failed - got '2'", "is not a boolean", "Use true or false"),
        ),
        (
            "net0",
            "mtu",
            "x",
            ("type check ('integer') failed - got 'x'", "is not an integer", "Write a number"),
        ),
        ("net0", "macaddr", "x", ("value does not look like a valid unicast MAC address", "", "")),
    ],
)
def test_a_refusal_has_the_words_of_pve_and_words_for_people(
    key: str, name: str, text: str, refusal: tuple[str, str, str]
) -> None:
    assert find_part_refusal(key, name, text) == refusal
    with pytest.raises(ValidationFailed) as raised:
        require_valid_sub_keys(key, {name: text})
    assert (refusal[1] or refusal[0]) in raised.value.answer
    assert raised.value.next_step == (refusal[2] or "Write it as PVE does")


def test_a_sub_key_goes_by_the_name_that_every_version_takes() -> None:
    for text in ("1,freeze-fs=0", "1,guest-fsfreeze=0", "1,freeze-fs-on-backup=0"):
        assert parse(text, format_of("agent") or {}) == {"enabled": "1", "freeze-fs-on-backup": "0"}
    assert find_part_refusal("agent", "freeze-fs-on-backup", "0") is None
    assert find_part_refusal("scsi0", "cyls", "x")


def test_every_named_format_that_we_describe_is_one_of_the_schema() -> None:
    named = {rule["format"] for rule in OPTIONS.values() if isinstance(rule.get("format"), str)}
    assert set(NAMED) <= named


def test_devices_are_counted_as_in_the_schema(shared: Path) -> None:
    schema: dict[str, Any] = json.loads(
        (shared / "pve" / "schema-9.2.json").read_text(encoding="utf-8")
    )
    families = {name.removesuffix("[n]") for name in OPTIONS if name.endswith("[n]")}
    assert families == set(MAX_COUNTS)
    text = json.dumps(schema)
    for family in ("scsi", "virtio", "sata", "ide"):  # the disks of resize are listed by name
        assert f'"{family}{MAX_COUNTS[family] - 1}"' in text
        assert f'"{family}{MAX_COUNTS[family]}"' not in text


@pytest.mark.parametrize("key", ["net0", "scsi3", "cpu", "ipconfig7", "agent"])
def test_a_numbered_option_has_the_rule_of_its_family(key: str) -> None:
    assert rule_of(key)
    assert format_of(key)


def test_what_pve_refuses_we_refuse_first(shared: Path) -> None:
    """PVE's own verdicts on parameter sets for creating and changing a VM are ours too."""
    vectors = json.loads((shared / "pve" / "vectors.json").read_text(encoding="utf-8"))
    judged = 0
    for vector in vectors:
        if vector["method"] not in ("create_vm", "update_vm"):
            continue
        judged += 1
        options = {
            key: value
            for key, value in vector["params"].items()
            if key not in ("node", "vmid", "pool")
        }
        refused = find_refusals(options, NEWEST)
        expected = {key for key in vector.get("errors") or {} if key not in ("vmid", "pool")}
        assert set(refused) == expected, (options, refused)
    assert judged > 100


# Answers of a recorded PVE 9.2 to the creation of a container.
REFUSED_OF_CONTAINERS = {
    "hostname": ("bad_name", "value does not look like a valid DNS name"),
    "memory": ("8", "value must have a minimum value of 16"),
    "cores": ("0", "value must have a minimum value of 1"),
    "net0": ("bridge=vmbr0", "name: property is missing and it is not optional"),
    "net1": ("name=eth0,tag=5000", "tag: value must have a maximum value of 4094"),
    "net2": (
        "name=eth0,ip=10.0.0.1",
        "ip: value does not look like a valid ipv4 network configuration",
    ),
    "mp0": ("images:1", "mp: property is missing and it is not optional"),
    "mp1": ("images:1,mp=/a/../b", "mp: /a/../b contains illegal character sequences"),
    "features": ("nesting=2", "nesting: type check ('boolean') failed - got '2'"),
    "tags": ("a b;!c", "invalid characters in tag '!c'"),
}


def test_options_of_containers_have_the_answers_of_a_recorded_pve() -> None:
    options = {key: text for key, (text, _reason) in REFUSED_OF_CONTAINERS.items()}
    reasons = {key: reason for key, (_text, reason) in REFUSED_OF_CONTAINERS.items()}
    assert find_refusals(options, (9, 2), LXC) == reasons


def test_options_of_containers_by_version() -> None:
    oci = {"entrypoint": "/bin/app", "env": "A=1"}
    assert find_refusals(oci, (9, 2), LXC) == {}
    assert find_refusals(oci, (9, 1), LXC) == {}
    assert sorted(find_refusals(oci, (8, 4), LXC)) == ["entrypoint", "env"]
    net = {"net0": "name=eth0,host-managed=1"}
    assert find_refusals(net, (8, 4), LXC)
    assert not find_refusals(net, (9, 1), LXC)
    assert rule_of("scsi0", schema=LXC) is None
    assert rule_of("mp256", schema=LXC) is None
