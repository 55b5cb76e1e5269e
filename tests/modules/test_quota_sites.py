# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The quota of a tenant over three sites in the modules for one guest: vm, container, clone, restore."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.options import (
    parse_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import NetworkError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    TaskMode,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.create import total_quota
from ansible_collections.pve.fleet.plugins.modules import vm, vms
from tests.cases import repeated
from tests.labs.sites import SITES, Labs, sites_of
from tests.modules.backup_lab import add_nas
from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module

ROOTFS: dict[str, Any] = {"rootfs": {"storage": "ceph", "size": 4}}
BOX: dict[str, Any] = {"name": "box", "source": "debian-13-standard", "memory": 256, **ROOTFS}
BLANK: dict[str, Any] = {"blank": True, "memory": "256M"}


def limits(**more: Any) -> dict[str, Any]:
    return {"quota": {"vms": 3, "memory": "3G"}, "quota_sites": list(SITES), **more}


def run(
    labs: Labs,
    module: str,
    site: str,
    *,
    dark: str = "",
    check: bool = False,
    own: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a module for the tenant at a site, with the limits `own`; the site `dark` does not answer."""
    allowed = limits() if own is None else own
    task: dict[str, Any] = {"sites": sites_of(labs, dark), "site": site, "tenant": "acme"}
    task |= {"retries": 1, **options}
    if module == "restore":
        task["options"] = {**allowed, **options.get("options", {})}
    else:
        task |= allowed
    return run_module(module, task, check=check)


def made(labs: Labs, module: str, site: str, **options: Any) -> dict[str, Any]:
    result = run(labs, module, site, **options)
    assert not result.get("failed"), result["msg"]
    return result


def guests_of_acme(labs: Labs) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for site, lab in labs.items():
        rows = lab.client.get("cluster", "resources", type="vm")
        found += [(site, str(row["name"])) for row in rows if "tenant_acme" in row.get("tags", "")]
    return sorted(found)


def writes(labs: Labs) -> list[Any]:
    return [write for lab in labs.values() for write in lab.simulator.writes()]


def reset_logs(labs: Labs) -> None:
    for lab in labs.values():
        lab.simulator.reset_log()


def back_up(lab: Lab, guest: Mapping[str, Any]) -> None:
    add_nas(lab)
    data = {"vmid": guest["vmid"], "storage": "nas"}
    lab.client.task("POST", "nodes", guest["node"], "vzdump", data=data)


@pytest.fixture
def full(labs: Labs) -> Labs:
    """A tenant with two VMs and a container at three sites, which are all of its quota."""
    web = made(labs, "vm", "berlin", name="web", disks=[{"name": "scsi0", "size": 1}], **BLANK)
    made(labs, "vm", "munich", name="app", **BLANK)
    box = made(labs, "container", "paris", **BOX)
    assert (web["site"], box["site"]) == ("berlin", "paris")
    back_up(labs["berlin"], web["vm"])
    reset_logs(labs)
    return labs


NEW: dict[str, tuple[str, str, dict[str, Any]]] = {
    "vm": ("vm", "paris", {"name": "new", **BLANK}),
    "container": ("container", "munich", {**BOX, "name": "new"}),
    "clone": ("clone", "berlin", {"name": "new", "source": "web", "full": True}),
    "clone of a container": ("clone", "paris", {"name": "new", "source": "box", "full": True}),
    "restore": ("restore", "berlin", {"name": "web", "new_name": "new"}),
}


@pytest.mark.parametrize(("module", "site", "task"), NEW.values(), ids=NEW.keys())
def test_a_new_guest_beyond_the_quota_of_all_sites_is_refused(
    full: Labs, module: str, site: str, task: dict[str, Any]
) -> None:
    before = guests_of_acme(full)
    for check in (True, False):
        refused = run(full, module, site, check=check, **task)
        assert refused["error"]["category"] == "QuotaExceeded", refused["msg"]
        assert refused["error"]["quota"] == {"vms": {"used": 3, "wanted": 1, "limit": 3}}
        assert "over the sites berlin, munich, paris" in refused["msg"]
    assert writes(full) == []
    more = limits(quota={"vms": 4})
    assert run(full, module, site, check=True, own=more, **task)["changed"]
    assert run(full, module, site, own=more, **task)["changed"]
    assert len(guests_of_acme(full)) == len(before) + 1
    reset_logs(full)
    assert not run(full, module, site, own=more, **task)["changed"]
    for other in set(SITES) - {site}:
        assert full[other].simulator.log() == []  # a guest that does not grow


@pytest.mark.parametrize(
    ("module", "task"),
    [
        ("vm", {"name": "web", "memory": "2817M"}),
        ("restore", {"name": "web", "confirm": "web", "options": {"memory": "2817M"}}),
        ("restore", {"name": "web", "confirm": "web", "keep": "copy", "keep_name": "old"}),
    ],
    ids=["vm", "overwritten", "copy"],
)
def test_growth_counts_over_all_sites(full: Labs, module: str, task: dict[str, Any]) -> None:
    for check in (True, False):
        refused = run(full, module, "berlin", check=check, **task)
        assert refused["error"]["category"] == "QuotaExceeded", refused["msg"]
    assert writes(full) == []
    more = limits(quota={"vms": 4, "memory": "4G"})
    assert run(full, module, "berlin", own=more, **task)["changed"]


def test_a_copy_and_the_growth_beside_it_count_together(full: Labs) -> None:
    task: dict[str, Any] = {"name": "web", "confirm": "web", "keep": "copy", "keep_name": "old"}
    task["options"] = {"memory": "512M"}
    for memory, is_refused in (("1279M", True), ("1280M", False)):
        own = limits(quota={"memory": memory})
        result = run(full, "restore", "berlin", own=own, check=True, **task)
        assert bool(result.get("failed")) == is_refused, memory


def test_a_site_has_its_own_quota_too(labs: Labs) -> None:
    own = limits(site_quotas={"munich": {"vms": 0}})
    refused = run(labs, "vm", "munich", name="a", own=own, **BLANK)
    assert refused["error"]["quota"]["vms"]["limit"] == 0
    assert run(labs, "vm", "berlin", name="a", own=own, **BLANK)["changed"]


def test_a_dark_site_counts_with_its_quota(labs: Labs) -> None:
    made(labs, "vm", "berlin", name="a", **BLANK)
    reset_logs(labs)
    task: dict[str, Any] = {"name": "b", "dark": "munich", **BLANK}
    unknown = run(labs, "vm", "paris", **task)
    assert unknown["error"]["category"] == "NodeUnhealthy"
    assert "neither its last use nor its quota is known" in unknown["msg"]
    own = limits(site_quotas={"munich": {"vms": 2, "memory": "1G"}})
    for check in (True, False):
        refused = run(labs, "vm", "paris", own=own, check=check, **task)
        assert refused["error"]["quota"]["vms"] == {"used": 3, "wanted": 1, "limit": 3}
        assert "site munich does not answer, its quota counts" in refused["msg"]
    assert writes(labs) == []
    assert not run(labs, "vm", "berlin", name="a", dark="munich", memory="256M")["changed"]
    own["site_quotas"]["munich"]["vms"] = 1
    assert run(labs, "vm", "paris", own=own, **task)["changed"]


@pytest.mark.parametrize("module", ["vm", "container"])
def test_a_site_that_goes_dark_during_the_count(
    labs: Labs, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """The new guest gives way, because the use of that site is unknown."""
    real = total_quota.read_cluster_now

    def read(client: Any, desired: Any) -> Any:
        if client.site == "munich":
            raise NetworkError(attempted="Could not list the guests", answer="no route to host")
        return real(client, desired)

    monkeypatch.setattr(total_quota, "read_cluster_now", read)
    task = BOX if module == "container" else {"name": "a", **BLANK}
    refused = run(labs, module, "berlin", **task)
    assert "was removed again: site munich stopped answering" in refused["msg"]
    assert guests_of_acme(labs) == []


def test_a_container_without_a_limit_of_cores_is_refused(labs: Labs) -> None:
    """It can use all cores of its node (pve-container: LXC.pm, vmstatus)."""
    own = limits(quota={"cores": 4})
    refused = run(labs, "container", "paris", own=own, **BOX)
    assert "it has no limit of cores" in refused["msg"]
    assert writes(labs) == []
    assert run(labs, "container", "paris", own=own, **BOX, cores=2)["changed"]


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (limits(quota_sites=["munich"]), "does not have the site of the task (berlin)"),
        ({"quota_sites": list(SITES)}, "needs the quota of a tenant"),
        (limits(site_quotas={"rome": {"vms": 1}}), "site_quotas names site rome"),
        (limits(quota_sites=[*SITES, "rome"]), "there is no site 'rome'"),
        ({"quota": {"vms": 1}, "site_quotas": {"munich": {"vms": 1}}}, "needs quota_sites"),
    ],
    ids=["site", "quota", "site_quotas", "unknown site", "no sites"],
)
@pytest.mark.parametrize("module", ["vm", "restore"])
def test_mistakes_are_refused_before_the_first_write(
    labs: Labs, module: str, own: dict[str, Any], words: str
) -> None:
    task: dict[str, Any] = {"name": "a", **BLANK}
    if module == "restore":
        web = made(labs, "vm", "berlin", name="web", **BLANK)
        back_up(labs["berlin"], web["vm"])
        task = {"name": "web", "new_name": "new"}
    reset_logs(labs)
    refused = run(labs, module, "berlin", own=own, **task)
    assert refused["failed"]
    assert words in refused["msg"]
    assert writes(labs) == []


def perform(entry: ModuleEntry, arguments: Mapping[str, Any]) -> bool:
    """Run a module in this thread; return whether it succeeded."""
    given = parse_options(entry.whole_spec, arguments)
    return not entry.perform(given, {}, TaskMode(False, False, 0), lend=Client).failed


def tasks_of(draw: random.Random, name: str, quota: int, labs: Labs) -> tuple[ModuleEntry, Any]:
    """Return a task of module vm or vms that creates a guest at a random site."""
    site, common = draw.choice(SITES), {"sites": sites_of(labs)}
    if draw.random() < 0.5:
        own = limits(quota={"vms": quota})
        return vm.ENTRY, {**common, "name": name, "site": site, "tenant": "acme", **BLANK, **own}
    item = {"name": name, "site": site, "tenant": "acme", **BLANK}
    tenants = {"acme": {"sites": list(SITES), "quota": {"vms": quota}}}
    return vms.ENTRY, {**common, "tenant_settings": tenants, "vms": [item]}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("rounds", repeated([3, 50], more=0))
def test_racing_tasks_of_two_modules_never_exceed_the_quota(labs: Labs, rounds: int) -> None:
    """Four tasks of modules vm and vms at once in each round, at random sites."""
    draw = random.Random(rounds)
    for number in range(rounds):
        quota, gate = draw.randint(1, 3), threading.Barrier(4)
        tasks = [tasks_of(draw, f"r{number}-{index}", quota, labs) for index in range(4)]

        def one(task: tuple[ModuleEntry, Any], gate: threading.Barrier = gate) -> bool:
            gate.wait(300)
            return perform(*task)

        with ThreadPoolExecutor(4) as pool:
            succeeded = list(pool.map(one, tasks))
        remaining = guests_of_acme(labs)
        assert sum(succeeded) <= len(remaining) <= quota, (number, remaining)
        for lab in labs.values():
            lab.simulator.reset()
