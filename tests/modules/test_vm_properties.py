"""Whatever a VM is and whatever it should be: check mode foresees exactly what happens, and then
nothing is left to do.

The number of cases is PVE_FLEET_CASES (10,000 in `make test-long`), spread over shards that run
side by side. Unless it is set, there are 200 in `make test`, and 200 in `make test-slow`.
PVE_FLEET_SHRINK=1 looks for the smallest case that fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from hypothesis import HealthCheck, Phase, given, seed, settings

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import parse_tags
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.propstring import parse
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.formats import format_of
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.read import read_actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import run as converge
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.config.actual import (
    HIDDEN,
    drives,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from tests.cases import repeated
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.vm_strategies import START, WANTED, maybe, st

CASES = int(os.environ.get("PVE_FLEET_CASES", "400"))
SHARDS = max(8, CASES // 250)
SHRINK = bool(os.environ.get("PVE_FLEET_SHRINK"))
VALIDATOR = ArgumentSpecValidator(vm_spec())


@pytest.fixture(scope="module")
def quick() -> Iterator[Lab]:
    """A cluster whose tasks take no time."""
    with open_lab("--task-ms", "default=0") as opened:
        yield opened


class Writes:
    """A client's record of what it wrote."""

    def __init__(self, lab: Lab) -> None:
        self.client = lab.client

    def __enter__(self) -> Writes:
        self.start = len(self.client.requests)
        return self

    def __exit__(self, *_unused: object) -> None:
        self.seen = [row for row in self.client.requests[self.start :] if row[0] != "GET"]


def run(lab: Lab, options: Mapping[str, Any], *, check: bool = False) -> Result:
    checked = VALIDATOR.validate(dict(options))
    assert not checked.error_messages, checked.error_messages
    return converge(checked.validated_parameters, lab.client, check)


def foreseeable(shown: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown without the MAC address that PVE gives to a NIC which is new on the
    other side.
    """
    result = {}
    for key, value in shown.items():
        mate = other.get(key)
        if (
            isinstance(value, dict)
            and "macaddr" in value
            and isinstance(mate, dict)
            and "macaddr" not in mate
        ):
            value = {part: content for part, content in value.items() if part != "macaddr"}
        result[key] = value
    return result


def judge(before: Actual, after: Actual, diff: Mapping[str, Any]) -> None:
    """Compare the diff with what the server had before and has now."""
    keys = {
        key
        for key in before.target.keys() | after.target.keys()
        if before.target.get(key) != after.target.get(key)
    }
    keys = {key for key in keys if key not in HIDDEN and not key.startswith("unused")}
    real_before, real_after = VM.formatted(before.target, keys), VM.formatted(after.target, keys)
    for key in ("status", "node", "pool"):
        if getattr(before, key) != getattr(after, key):
            real_before[key], real_after[key] = getattr(before, key), getattr(after, key)
    said_before, said_after = dict(diff["before"]), dict(diff["after"])
    assert said_before.pop("restarted", False) is False
    said_after.pop("restarted", None)
    # PVE knows the version
    if str((said_after.get("machine") or {}).get("type")).endswith("-newest"):
        family = said_after.pop("machine")["type"].removesuffix("newest")
        assert real_after.pop("machine")["type"].startswith(family)
    assert foreseeable(real_before, said_before) == said_before
    assert foreseeable(real_after, said_after) == said_after


def kept(before: Actual, after: Actual, wanted: Mapping[str, Any]) -> None:
    """MAC addresses and volumes survive; what was to go is gone."""
    gone = {
        item["name"]
        for key in ("disks", "nics")
        for item in wanted.get(key, [])
        if item.get("state", "present") != "present"
    }
    moved = {item["name"] for item in wanted.get("disks", []) if item.get("storage")}
    old, new = drives(before.target), drives(after.target)
    for slot, drive in old.items():
        if slot not in gone | moved:
            assert new[slot]["file"] == drive["file"]
    nics = {key for key in before.target if key.startswith("net") and key[3:].isdigit()}
    for nic in nics - gone:
        assert (
            VM.formatted(after.target, [nic])[nic]["macaddr"]
            == VM.formatted(before.target, [nic])[nic]["macaddr"]
        )
    assert not gone & after.target.keys()


# Which options of PVE each option of the module may touch, and which sub-keys where it is not the
# whole.
TOUCHES: dict[str, dict[str, set[str] | None]] = {
    "memory": {"memory": {"current"}},
    "tenant": {"tags": None},
    "ostype": {"ostype": None, "machine": None},  # a version for Windows
    "serial_console": {"serial0": None},
    "cpu": {"cpu": {"cputype"}},
    "agent": {"agent": {"enabled", "fstrim_cloned_disks"}},
    "startup": {"startup": {"order", "up", "down"}},
}
CLOUD_INIT = {
    "user": "ciuser",
    "ssh_keys": "sshkeys",
    "upgrade": "ciupgrade",
    "nameservers": "nameserver",
    "search_domain": "searchdomain",
}
NIC_PARTS = {
    "model": "model",
    "bridge": "bridge",
    "vlan": "tag",
    "firewall": "firewall",
    "link_down": "link_down",
    "rate": "rate",
    "mtu": "mtu",
}
DISK_PARTS = {"storage": "file", "size": "size"}


def mentioned(wanted: Mapping[str, Any], before: Actual) -> dict[str, set[str] | None]:
    """Return the options of PVE that a desired state names, with the sub-keys, or None for all of
    them.
    """
    found: dict[str, set[str] | None] = {}
    for key in wanted.keys() - {
        "nics",
        "disks",
        "cloud_init",
        "options",
        "state",
        "reboot",
        "tags_exact",
    }:
        found.update(TOUCHES.get(key, {key: None}))
    for key, value in (wanted.get("options") or {}).items():
        found[key] = set(value) if isinstance(value, dict) else None
    if "cloud_init" in wanted:
        found.update({CLOUD_INIT[key]: None for key in wanted["cloud_init"]} | {"ide2": None})
    for item in wanted.get("nics", []):
        found[item["name"]] = {NIC_PARTS[key] for key in item if key in NIC_PARTS}
        if "ip" in item:
            found[f"ipconfig{item['name'][3:]}"] = {"ip", "gw"}
    for item in wanted.get("disks", []):
        found[item["name"]] = {DISK_PARTS.get(key, key) for key in item}
    for item in (*wanted.get("nics", []), *wanted.get("disks", [])):
        if item.get("state", "present") != "present":
            found[item["name"]] = found["boot"] = None  # PVE takes it out of the order by itself
            found[f"ipconfig{item['name'][3:]}"] = None
        elif item["name"] not in before.target:
            found[item["name"]] = None
    return found


def untouched(before: Actual, after: Actual, wanted: Mapping[str, Any]) -> None:
    """What the desired state does not mention is as it was, inside disks and NICs too."""
    allowed = mentioned(wanted, before)
    for key in (before.target.keys() | after.target.keys()) - HIDDEN:
        old, new = before.target.get(key, ""), after.target.get(key, "")
        if old == new or key.startswith("unused"):
            continue
        assert key in allowed, f"{key} was not mentioned: {old!r} became {new!r}"
        parts = allowed[key]
        if parts is not None:
            fmt = format_of(key) or {}
            was, is_now = parse(old, fmt), parse(new, fmt)
            changed = {
                name for name in was.keys() | is_now.keys() if was.get(name) != is_now.get(name)
            }
            assert changed <= parts, (
                f"{changed - parts} of {key} was not mentioned: {old!r} became {new!r}"
            )
    assert parse(before.target["smbios1"], {})["uuid"] == parse(after.target["smbios1"], {})["uuid"]
    assert set(parse_tags(before.target.get("tags"))) <= set(
        parse_tags(after.target.get("tags"))
    ) or (wanted.get("tags_exact") and "tags" in wanted)


def case(
    lab: Lab,
    vmid: int,
    start: dict[str, Any],
    running: bool,
    pending: dict[str, Any] | None,
    wanted: dict[str, Any],
) -> None:
    """Make a VM as `start` says, converge it to `wanted`, and look at everything."""
    client = lab.client
    node = "pve1"
    tags = ";".join(filter(None, [start.get("tags"), "tenant_acme"]))
    client.task(
        "POST",
        "nodes",
        node,
        "qemu",
        data={"vmid": vmid, "name": f"p{vmid}", **start, "tags": tags},
    )
    try:
        if running:
            client.task("POST", "nodes", node, "qemu", vmid, "status", "start")
            if pending:
                client.write("PUT", "nodes", node, "qemu", vmid, "config", data=pending)
        before = read_actual(client, VM, vmid, node)
        options = {"vmid": vmid, **wanted}
        with Writes(lab) as check:
            foreseen = run(lab, options, check=True)
        assert check.seen == []
        with Writes(lab) as apply:
            made = run(lab, options)
        assert made.changed is foreseen.changed is bool(apply.seen)
        assert made.diff == foreseen.diff
        assert made.values["plan"] == foreseen.values["plan"]
        assert made.values["pending"] == foreseen.values["pending"]
        assert made.values["applied"] == foreseen.values["applied"]
        after = read_actual(client, VM, vmid, node)
        assert isinstance(made.diff, dict)
        judge(before, after, made.diff)
        kept(before, after, wanted)
        untouched(before, after, wanted)
        with Writes(lab) as again:
            second = run(lab, options)
        assert again.seen == []
        assert not second.changed, second.values["plan"]
    finally:
        client.write("PUT", "nodes", node, "qemu", vmid, "config", data={"protection": 0})
        if client.get("nodes", node, "qemu", vmid, "status", "current")["status"] != "stopped":
            client.task("POST", "nodes", node, "qemu", vmid, "status", "stop")
        client.task(
            "DELETE",
            "nodes",
            node,
            "qemu",
            vmid,
            data={"purge": 1, "destroy-unreferenced-disks": 1},
        )


@pytest.mark.parametrize("shard", repeated(range(SHARDS), more=2))
def test_any_vm_becomes_any_desired_state(quick: Lab, shard: int) -> None:
    numbers = iter(range(500000 + shard * 10000, 510000 + shard * 10000))

    @seed(shard)
    @settings(
        max_examples=CASES // SHARDS,
        deadline=None,
        database=None,
        # Shrinking costs minutes against a server: ask for it when there is something to shrink.
        phases=[Phase.generate, Phase.shrink] if SHRINK else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(START, st.booleans(), maybe(st.sampled_from([{"cores": 3}, {"memory": 777}])), WANTED)
    def check(
        start: dict[str, Any], running: bool, pending: dict[str, Any] | None, wanted: dict[str, Any]
    ) -> None:
        case(quick, next(numbers), dict(start), running, pending, wanted)

    check()
