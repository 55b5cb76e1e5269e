# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory with `compatible_with: community.proxmox`, beside what the inventory plugin of
community.proxmox 2.0.0 lists of the same simulated cluster.

What it lists is recorded in community_proxmox.yml. Where it is installed (`make bench` does that),
it is asked again.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bench.environment import HOME
from tests.plays.inventory_helpers import (
    CONFIG,
    LISTING,
    Listed,
    Lister,
    ask,
    call,
    configure,
    wait_until,
)
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

RECORDED = Path(__file__).with_name("community_proxmox.yml")
COMPATIBLE: dict[str, Any] = {"compatible_with": "community.proxmox"}
# One with a snapshot and every kind of option, one that is stopped, the template.
SHOWN = (10000, 10001, 9000)
# They follow from the time at which the cluster was made up.
VOLATILE = ("proxmox_digest", "proxmox_meta")


class Indented(yaml.SafeDumper):
    """Indents lists, as the linter demands."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def prepare(simulator: Simulator) -> None:
    """Give two VMs of the cluster what the other ones lack."""
    simulator.steer("/settings", {"task_ms": {"default": 0}})
    configure(
        simulator,
        10000,
        tags="web;tenant_acme",
        description="a=b,c=d",
        scsihw="virtio-scsi-single",
        boot="order=scsi0;net0",
        ipconfig0="ip=10.0.0.5/24,gw=10.0.0.1",
    )
    call(simulator, "POST", f"{_path(simulator, 10000)}/snapshot", snapname="before")
    call(simulator, "POST", f"{_path(simulator, 10001)}/status/stop")
    wait_until(lambda: _status(simulator, 10001) == "stopped")


def _path(simulator: Simulator, vmid: int) -> str:
    rows = ask(simulator, "/cluster/resources?type=vm")
    (node,) = [row["node"] for row in rows if row["vmid"] == vmid]
    return f"/nodes/{node}/qemu/{vmid}"


def _status(simulator: Simulator, vmid: int) -> str:
    rows = {row["vmid"]: row["status"] for row in ask(simulator, "/cluster/resources?type=vm")}
    return str(rows[vmid])


@pytest.fixture
def expected(request: pytest.FixtureRequest, simulator: Simulator, tmp_path: Path) -> Listed:
    """What the other plugin lists, as it is recorded, or by itself."""
    prepare(simulator)
    if request.param == "recorded":
        return Listed(0, "", yaml.safe_load(RECORDED.read_text(encoding="utf-8")))
    command = HOME / "bin" / "ansible-inventory"
    if not command.exists():
        pytest.skip("community.proxmox is not installed; make bench installs it")
    return ask_the_other_plugin(command, simulator, tmp_path)


def ask_the_other_plugin(command: Path, simulator: Simulator, directory: Path) -> Listed:
    user, _mark, token = TOKEN_ID.partition("!")
    file = directory / "other.proxmox.yml"
    options = {"url": simulator.url, "user": user, "token_id": token, "token_secret": TOKEN_SECRET}
    file.write_text(
        json.dumps({"plugin": "community.proxmox.proxmox", "want_facts": True, **options})
    )
    environ = {**os.environ, "REQUESTS_CA_BUNDLE": simulator.ca}
    environ.pop("ANSIBLE_COLLECTIONS_PATH", None)
    environ["ANSIBLE_INVENTORY_ENABLED"] = "community.proxmox.proxmox"
    done = subprocess.run(
        [str(command), "-i", str(file), "--list"],
        env=environ,
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Listed(0, done.stderr, unmarked(json.loads(done.stdout)))


def unmarked(value: Any) -> Any:
    """Return a value without the marks of texts that are not templates."""
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "__ansible_unsafe" in value:
        return value["__ansible_unsafe"]
    return {key: unmarked(one) for key, one in value.items()}


def worth_recording(found: Listed) -> dict[str, Any]:
    """Return the part of a list that is recorded."""
    hosts = {
        name: {key: value for key, value in facts.items() if key not in VOLATILE}
        for name, facts in found.hosts.items()
        if facts.get("proxmox_vmid") in SHOWN
    }
    groups = {name: {"hosts": found.group(name)} for name in sorted(found.groups)}
    return {"_meta": {"hostvars": hosts}, **groups}


def reachable(interfaces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return interfaces without loopback and link-local addresses, which are never facts here."""
    found = []
    for one in interfaces:
        left = [
            text for text in one["ip-addresses"] if not text.startswith(("127.", "::1", "fe80"))
        ]
        if left:
            found.append({**one, "ip-addresses": left})
    return found


@pytest.mark.parametrize("expected", ["recorded", "installed"], indirect=True)
def test_facts_and_groups_are_those_of_the_other_plugin(expected: Listed, listed: Lister) -> None:
    ours = listed(**COMPATIBLE, fetch=["config", "snapshots", "addresses"])
    assert ours.code == 0, ours.errors
    theirs = worth_recording(expected)
    assert len(theirs["_meta"]["hostvars"]) == len(SHOWN)
    for name, facts in theirs.pop("_meta")["hostvars"].items():
        if "proxmox_agent_interfaces" in facts:
            facts["proxmox_agent_interfaces"] = reachable(facts["proxmox_agent_interfaces"])
        assert {fact: ours.hosts[name].get(fact) for fact in facts} == facts
    nodes = theirs.pop("proxmox_nodes")
    assert nodes == {"hosts": ["pve1", "pve2", "pve3"]}
    assert len(theirs) >= 10
    assert {group: {"hosts": ours.group(group)} for group in theirs} == theirs
    more = {group for group in ours.groups if group.startswith("proxmox_")} - set(theirs)
    assert more == set()


def test_the_record_is_what_the_other_plugin_lists(simulator: Simulator, tmp_path: Path) -> None:
    command = HOME / "bin" / "ansible-inventory"
    if not command.exists():
        pytest.skip("community.proxmox is not installed; make bench installs it")
    prepare(simulator)
    found = worth_recording(ask_the_other_plugin(command, simulator, tmp_path))
    if os.environ.get("RECORD"):
        head = RECORDED.read_text(encoding="utf-8").partition("---\n")[0]
        text = yaml.dump(found, Dumper=Indented, width=110)
        RECORDED.write_text(f"{head}---\n{text}", encoding="utf-8")
    assert yaml.safe_load(RECORDED.read_text(encoding="utf-8")) == found


def test_the_listing_alone_is_enough_for_groups_and_simple_facts(
    listed: Lister, simulator: Simulator
) -> None:
    prepare(simulator)
    found = listed(**COMPATIBLE)
    assert simulator.counts() == {LISTING: 1}
    assert found.group("proxmox_all_stopped") == [found.host_of(10001)]
    assert found.by_vmid(10000)["proxmox_tags"] == "web;tenant_acme"
    assert found.host_of(10000) in found.group("tag_web")


def test_expressions_and_filters_see_the_facts(listed: Lister, simulator: Simulator) -> None:
    prepare(simulator)
    found = listed(
        **COMPATIBLE,
        fetch=["config"],
        filters=["'web' in proxmox_tags.split(';')", "proxmox_vmtype == 'qemu'"],
        compose={"bridge": "proxmox_net0.bridge"},
        groups={"webservers": "'web' in proxmox_tags_parsed"},
        group_by=[],
    )
    assert found.host_of(10000) in found.group("webservers")
    assert found.by_vmid(10000)["bridge"] == "vmbr0"
    assert all(name.startswith(("proxmox_", "webservers")) for name in found.groups)
    assert simulator.counts()[CONFIG] == len(found.hosts)


def test_a_name_of_another_plugin_is_refused(listed: Lister) -> None:
    found = listed(compatible_with="community.general")
    assert found.code != 0
    assert "compatible_with" in found.errors
    assert "Use community.proxmox" in " ".join(found.errors.split())


def test_without_the_option_nothing_of_it_is_there(listed: Lister) -> None:
    found = listed(fetch=["config"])
    assert not any(name.startswith("proxmox_") for name in found.groups)
    assert not any("proxmox_vmtype" in one for one in found.hosts.values())
    assert all(isinstance(one["proxmox_tags"], list) for one in found.hosts.values())
