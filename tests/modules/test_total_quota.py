# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant over three sites: its quota in one run, in several runs at once and with a dark site, and
its guests whose site was changed.
"""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.options import (
    parse_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import NetworkError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import fleet_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.run import run_at_sites
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.create import total_quota
from tests.cases import repeated
from tests.labs.sites import SITES, Labs, sites_of
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.module_runner import run_module


def settings(**more: Any) -> dict[str, Any]:
    return {"acme": {"sites": list(SITES), "quota": {"vms": 3, "memory": "3G"}, **more}}


def guest(name: str, site: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "site": site, "tenant": "acme", "memory": "256M", "blank": True, **more}


def run(
    labs: Labs, *vms: dict[str, Any], dark: str = "", check: bool = False, **more: Any
) -> dict[str, Any]:
    """Run module vms; the site `dark` does not answer."""
    sites = sites_of(labs, dark)
    options = {"tenant_settings": settings(), "vms": list(vms), "retries": 1, **more}
    return run_module("vms", {"sites": sites, **options}, check=check)


def of_acme(labs: Labs) -> list[tuple[str, str]]:
    """Return the site and the name of each guest of the tenant."""
    found: list[tuple[str, str]] = []
    for site, lab in labs.items():
        rows = lab.client.get("cluster", "resources", type="vm")
        found += [(site, str(row["name"])) for row in rows if "tenant_acme" in row.get("tags", "")]
    return sorted(found)


def writes(labs: Labs) -> list[Any]:
    return [write for lab in labs.values() for write in lab.simulator.writes()]


def test_one_run_stays_within_the_quota_of_all_sites(labs: Labs) -> None:
    vms = [guest(f"web{number}", SITES[number % 3]) for number in range(4)]
    foreseen = run(labs, *vms, check=True)
    assert writes(labs) == []
    made = run(labs, *vms)
    for result in (foreseen, made):
        assert [row["action"] == "failed" for row in result["vms"]] == [False, False, False, True]
        error = result["vms"][3]["error"]
        assert error["category"] == "QuotaExceeded"
        assert error["quota"]["vms"] == {"used": 3, "wanted": 1, "limit": 3}
        assert error["sites"] == list(SITES)
        assert "over the sites berlin, munich, paris" in result["vms"][3]["msg"]
    assert made["diff"] == foreseen["diff"]
    assert of_acme(labs) == [("berlin", "web0"), ("munich", "web1"), ("paris", "web2")]
    again = run(labs, *vms[:3])
    assert not again["changed"]


def test_growth_counts_over_all_sites(labs: Labs) -> None:
    assert not run(labs, guest("a", "berlin", memory="1G"), guest("b", "munich")).get("failed")
    for lab in labs.values():
        lab.simulator.reset_log()
    refused = run(labs, guest("b", "munich", memory="2304M"))
    assert refused["vms"][0]["error"]["quota"].keys() == {"memory"}
    assert writes(labs) == []
    assert run(labs, guest("b", "munich", memory="2G"))["changed"]


def test_a_site_has_its_own_quota_too(labs: Labs) -> None:
    own = settings(site_quotas={"munich": {"vms": 1}})
    made = run(labs, guest("a", "munich"), guest("b", "munich"), tenant_settings=own)
    assert [row["action"] for row in made["vms"]] == ["created", "failed"]
    assert made["vms"][1]["error"]["quota"]["vms"]["limit"] == 1


def test_the_last_use_of_a_dark_site_counts(labs: Labs, tmp_path: Path) -> None:
    path = tmp_path / "use.json"
    file: dict[str, Any] = {"usage_file": str(path)}
    refused = run(labs, guest("c", "berlin"), dark="munich", **file)
    assert refused["vms"][0]["error"]["category"] == "NodeUnhealthy"
    assert "site munich, which does not answer" in refused["vms"][0]["msg"]
    assert writes(labs) == []
    vms = (guest("a", "munich"), guest("b", "munich", memory="512M"))
    before = path.read_text()
    assert "munich" not in before
    assert run(labs, *vms, check=True, **file)["changed"]
    assert path.read_text() == before
    assert not run(labs, *vms, **file).get("failed")
    assert path.stat().st_mode & 0o777 == 0o600
    kept = json.loads(path.read_text())
    assert kept["munich"]["tenant_acme"]["figures"] == {"vms": 2, "memory": 768 << 20}
    assert kept["munich"]["tenant_acme"]["guests"] == ["qemu/a", "qemu/b"]
    made = run(labs, guest("c", "berlin"), guest("d", "paris"), dark="munich", **file)
    assert [row["action"] for row in made["vms"]] == ["created", "failed"]
    error = made["vms"][1]["error"]
    assert error["quota"]["vms"] == {"used": 3, "wanted": 1, "limit": 3}
    assert "site munich does not answer, its use at 20" in made["vms"][1]["msg"]
    assert json.loads(path.read_text())["munich"] == kept["munich"]


@contextmanager
def silent_server() -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a server that ends each connection, and the connections so far."""
    seen: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, address = server.accept()
                except OSError:
                    return
                seen.append(str(address))
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}", seen
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("module", ["vms", "drift_info", "report_info", "audit_info"])
def test_a_dark_site_is_asked_once_in_a_task(labs: Labs, module: str) -> None:
    """Whatever the number of its guests is, and also if the quota over sites needs its use."""
    given: dict[str, Any] = {"tenant_settings": settings()}
    given["vms"] = [guest(f"g{number}", SITES[number % 3]) for number in range(6)]
    if module in ("report_info", "audit_info"):
        given = {"tenants": settings()}
    with silent_server() as (host, seen):
        sites = sites_of(labs, "munich")
        sites[1]["host"] = host
        result = run_module(module, {"sites": sites, "retries": 1, **given}, check=True)
    assert "munich" in str(result)
    assert len(seen) == 1, result.get("msg")
    for lab in (labs["berlin"], labs["paris"]):
        assert lab.simulator.writes() == []


def test_the_quota_of_a_dark_site_counts_without_its_last_use(labs: Labs) -> None:
    own = settings(site_quotas={"munich": {"vms": 2, "memory": "1G"}})
    assert run(labs, guest("a", "berlin"), tenant_settings=own)["changed"]
    grown = run(labs, guest("a", "berlin", memory="4G"), dark="munich", tenant_settings=own)
    assert grown["vms"][0]["error"]["category"] == "QuotaExceeded"
    assert "site munich does not answer, its quota counts" in grown["vms"][0]["msg"]
    unknown = run(labs, guest("a", "berlin", memory="1G"), dark="munich")
    assert "neither its last use nor its quota is known" in unknown["vms"][0]["msg"]
    assert run(labs, guest("a", "berlin", memory="1G"), dark="munich", tenant_settings=own)[
        "changed"
    ]


def test_each_site_has_the_same_limits(labs: Labs) -> None:
    own = settings(quota={"vms": 9}, allowed={"cpu_types": ["x86-64-v2-AES"]})
    vms = [guest("a", site, cpu="host") for site in SITES]
    vms.append(guest("b", "paris", cpu="x86-64-v2-AES"))
    for check in (True, False):
        refused = run(labs, *vms, tenant_settings=own, check=check)
        assert [row["action"] for row in refused["vms"]] == [
            "failed",
            "failed",
            "failed",
            "created",
        ]
        assert refused["vms"][0]["error"]["reason"] == "not allowed"
    assert of_acme(labs) == [("paris", "b")]


def test_a_container_without_a_limit_of_cores_is_refused(labs: Labs) -> None:
    """It can use all cores of its node (pve-container: LXC.pm, vmstatus)."""
    box: dict[str, Any] = {"name": "box1", "site": "paris", "tenant": "acme"}
    box |= {"source": "debian-13-standard", "rootfs": {"storage": "ceph", "size": 4}}
    options: dict[str, Any] = {"tenant_settings": settings(quota={"cores": 4})}
    refused = run(labs, containers=[box], **options)
    assert "it has no limit of cores" in refused["msg"]
    assert writes(labs) == []
    made = run(labs, guest("a", "berlin", cores=3), containers=[{**box, "cores": 2}], **options)
    assert [row["action"] for row in made["vms"]] == ["created", "failed"]


def test_a_malformed_usage_file_is_refused(labs: Labs, tmp_path: Path) -> None:
    path = tmp_path / "use.json"
    path.write_text("{")
    refused = run(labs, guest("a", "berlin"), usage_file=str(path))
    assert refused["failed"]
    assert f"Could not read the usage file {path}" in refused["msg"]
    assert writes(labs) == []


def test_a_site_that_goes_dark_during_the_count(
    labs: Labs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new guest gives way, because the use of that site is unknown."""
    real = total_quota.read_cluster_now

    def read(client: Any, desired: Any) -> Any:
        if client.site == "munich":
            raise NetworkError(attempted="Could not list the guests", answer="no route to host")
        return real(client, desired)

    monkeypatch.setattr(total_quota, "read_cluster_now", read)
    made = run(labs, guest("a", "berlin"))
    assert made["failed"]
    assert "was removed again: site munich stopped answering" in made["vms"][0]["msg"]
    assert of_acme(labs) == []


def listings(lab: Lab) -> int:
    """Return how often the guests of a site were listed."""
    return sum("/cluster/resources" in str(line) for line in lab.simulator.log())


def reset_logs(labs: Labs) -> None:
    for lab in labs.values():
        lab.simulator.reset_log()


WITHOUT_QUOTA: dict[str, Any] = {"tenant_settings": {"acme": {"sites": list(SITES)}}}


@pytest.mark.parametrize("more", [{}, WITHOUT_QUOTA], ids=["quota", "no quota"])
def test_a_guest_whose_site_was_changed_is_refused(labs: Labs, more: dict[str, Any]) -> None:
    assert not run(labs, guest("a", "berlin"), **more).get("failed")
    for check in (True, False):
        reset_logs(labs)
        refused = run(labs, guest("a", "munich"), guest("b", "munich"), check=check, **more)
        row = refused["vms"][0]
        assert [one["action"] for one in refused["vms"]] == ["failed", "created"]
        assert row["error"]["reason"] == "at another site"
        assert row["error"]["site"] == "berlin"
        assert "VM 'a' was not created at site munich: it exists at site berlin (VM" in row["msg"]
        assert "Move it with pve.fleet.relocate, or set its site to berlin" in row["msg"]
        assert listings(labs["paris"]) == (1 if check or more else 2)  # the count of a new guest
    assert of_acme(labs) == [("berlin", "a"), ("munich", "b")]
    reset_logs(labs)
    assert not run(labs, guest("a", "berlin"), guest("b", "munich"), **more)["changed"]
    assert listings(labs["paris"]) == (0 if more else 1)


def test_a_guest_that_the_list_has_at_both_sites_is_created(labs: Labs) -> None:
    """Also a container of the name, because guests of two kinds are two guests."""
    assert run(labs, guest("a", "berlin"))["changed"]
    box: dict[str, Any] = {
        "name": "a",
        "site": "paris",
        "tenant": "acme",
        "source": "debian-13-standard",
    }
    box |= {"rootfs": {"storage": "ceph", "size": 4}, "memory": 256}
    made = run(labs, guest("a", "berlin"), guest("a", "munich"), containers=[box])
    assert [row["action"] for row in made["vms"]] == ["unchanged", "created", "created"]
    gone = guest("a", "berlin", state="absent")
    replaced = run(labs, gone, guest("a", "munich"), containers=[box])
    assert [row["action"] for row in replaced["vms"]] == ["removed", "unchanged", "unchanged"]


@pytest.mark.parametrize("over_sites", [True, False])
def test_a_guest_whose_site_was_changed_is_not_pruned(labs: Labs, over_sites: bool) -> None:
    """Its disks would be lost, and an empty guest would take its place."""
    more: dict[str, Any] = {"tenant": "acme", "prune": True}
    if not over_sites:
        more["tenant_settings"] = {}
    guests = [guest("a", "berlin"), guest("b", "berlin")]
    assert not run(labs, *guests, **more).get("failed")
    before = of_acme(labs)
    vms = [guest("a", "munich"), guests[1]]
    reset_logs(labs)
    for check in (True, False):
        refused = run(labs, *vms, check=check, **more)
        actions = [row["action"] for row in refused["vms"]]
        assert actions == ["failed", "unchanged", "kept"]
        assert refused["vms"][0]["error"]["reason"] == "at another site"
    assert writes(labs) == []
    assert of_acme(labs) == before
    dark = run(labs, *vms, dark="munich", **more)
    assert [row["action"] for row in dark["vms"]] == ["failed", "unchanged", "kept"]
    assert of_acme(labs) == before
    assert run(labs, guests[1], guest("b", "munich"), **more)["vms"][-1]["action"] == "removed"
    assert of_acme(labs) == [("berlin", "b"), ("munich", "b")]


def test_a_new_guest_of_a_dark_site_that_had_it_is_refused(labs: Labs, tmp_path: Path) -> None:
    file: dict[str, Any] = {"usage_file": str(tmp_path / "use.json")}
    assert not run(labs, guest("a", "munich"), **file).get("failed")
    refused = run(labs, guest("a", "berlin"), dark="munich", **file)
    assert refused["vms"][0]["error"]["reason"] == "at another site"
    assert "at site munich (by its use at 20" in refused["vms"][0]["msg"]
    unknown = run(labs, guest("b", "berlin"), dark="munich", **WITHOUT_QUOTA)
    assert unknown["vms"][0]["error"]["site"] == "munich"
    assert of_acme(labs) == [("munich", "a")]


def test_a_guest_without_a_name_in_the_listing_of_another_site(labs: Labs) -> None:
    """Its node returns the name; while the node is down, the guest may be any new guest.

    The listing takes names from statistics (pve-manager: PVE/API2Tools.pm, extract_vm_stats).
    """
    with open_lab("--lag-s", "3000") as berlin:
        late = {**labs, "berlin": berlin}
        assert run(late, guest("a", "berlin", node="pve2"), **WITHOUT_QUOTA)["changed"]
        moved = run(late, guest("a", "munich"), **WITHOUT_QUOTA)
        assert moved["vms"][0]["error"]["reason"] == "at another site"
        assert run(late, guest("b", "munich"), **WITHOUT_QUOTA)["changed"]
        berlin.simulator.steer("/nodes/pve2", {"online": False})
        refused = run(late, guest("c", "munich"), **WITHOUT_QUOTA)
    assert refused["vms"][0]["error"]["reason"] == "name not readable"
    assert "not created at site munich: at site berlin, it may be VM" in refused["msg"]
    assert of_acme(labs) == [("munich", "b")]


@pytest.mark.parametrize(
    ("tenant", "words"),
    [
        ({"site": "berlin"}, "both site and sites are given"),
        ({"site_quotas": {"munch": {"vms": 1}}}, "site_quotas names site munch"),
        ({"vmid_ranges": {"rome": [1000, 2000]}}, "vmid_ranges names site rome"),
        (
            {"vmid_ranges": {"berlin": [10000, 20000], "munich": [20000, 30000]}},
            "the vmid_ranges of berlin and munich overlap",
        ),
        ({"vmid_ranges": {"berlin": [10000]}}, "vmid_ranges.berlin is not a range"),
        ({"sites": [], "site_quotas": {"berlin": {"vms": 1}}}, "site_quotas needs sites"),
        ({"sites": ["berlin"]}, "its sites are berlin, not paris"),
    ],
    ids=str,
)
def test_mistakes_are_refused_before_the_first_request(
    labs: Labs, tenant: dict[str, Any], words: str
) -> None:
    for lab in labs.values():
        lab.simulator.reset_log()
    refused = run(labs, guest("a", "paris"), tenant_settings=settings(**tenant))
    assert refused["refused"]
    assert words in refused["msg"]
    assert not any(lab.simulator.log() for lab in labs.values())


def test_each_site_has_vmids_of_its_own(labs: Labs) -> None:
    ranges = {"berlin": [20000, 20999], "munich": [30000, 30999]}
    own = settings(vmid_ranges=ranges)
    made = run(labs, guest("a", "berlin"), guest("a", "munich"), tenant_settings=own)
    vmids = [row["vmid"] for row in made["vms"]]
    assert [vmid // 1000 for vmid in vmids] == [20, 30]


def race_once(labs: Labs, all_vms: list[list[dict[str, Any]]], quota: int) -> list[bool]:
    """Run module vms with each of these lists at once; return whether each run succeeded."""
    gate = threading.Barrier(len(all_vms))

    def one(vms: list[dict[str, Any]]) -> bool:
        tenants = settings(quota={"vms": quota})
        params = parse_options(fleet_spec(), {"tenant_settings": tenants, "vms": vms})
        with ExitStack() as stack:
            clients = [
                ([site], stack.enter_context(connect({**lab.connection}, {})))
                for site, lab in labs.items()
            ]
            gate.wait(300)
            return run_at_sites(params, clients).failure is None

    with ThreadPoolExecutor(len(all_vms)) as pool:
        return list(pool.map(one, all_vms))


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("rounds", repeated([3, 50], more=0))
def test_racing_runs_never_exceed_the_quota(labs: Labs, rounds: int) -> None:
    """Four runs at once in each round, at random sites: 200 runs in the longer form."""
    draw = random.Random(rounds)
    for number in range(rounds):
        quota = draw.randint(1, 4)
        all_vms = [
            [
                guest(f"r{number}-{index}-{part}", draw.choice(SITES))
                for part in range(draw.randint(1, 2))
            ]
            for index in range(4)
        ]
        race_once(labs, all_vms, quota)
        remaining = of_acme(labs)
        assert len(remaining) <= quota, (number, remaining)
        for lab in labs.values():
            lab.simulator.reset()


def audited(labs: Labs, dark: str = "") -> dict[str, Any]:
    sites = sites_of(labs, dark)
    tenants = settings(quota={"vms": 2}, site_quotas={"paris": {"vms": 0}})
    own = {
        "tenants": {**tenants, "globex": {"site": "munich"}},
        "volumes": False,
        "networks": False,
    }
    return run_module("audit_info", {"sites": sites, "retries": 1, **own})


def test_the_audit_shows_a_tenant_over_sites_as_one(labs: Labs) -> None:
    vms = [guest("a", "berlin"), guest("b", "munich"), guest("c", "paris")]
    stray = guest("d", "paris", tenant="globex")
    assert not run(labs, *vms, stray, tenant_settings={}).get("failed")
    result = audited(labs)
    (acme, globex) = result["tenants"]
    assert [(row["site"], row["vms"]) for row in acme["sites"]] == [(site, 1) for site in SITES]
    assert (acme["vms"], acme["quota"], globex["vms"]) == (3, {"vms": 2}, 0)
    found = [
        (one["site"], one["kind"], one["subject"])
        for one in result["findings"]
        if one["kind"] in ("over_quota", "unknown_tenant")
    ]
    vmid = next(
        one
        for one in labs["paris"].client.get("cluster", "resources", type="vm")
        if one["name"] == "d"
    )["vmid"]
    assert found == [
        ("paris", "unknown_tenant", str(vmid)),
        ("paris", "over_quota", "vms"),
        ("", "over_quota", "vms"),
    ]
    line = (
        "over_quota: tenant 'acme' has vms 3 over the sites berlin, munich, paris, its quota is 2"
    )
    assert line in result["report"]
    assert "Tenant acme: 3 guests, 1 at berlin, 1 at munich, 1 at paris" in result["report"]


def test_the_audit_names_a_site_that_does_not_answer(labs: Labs) -> None:
    assert not run(labs, guest("a", "berlin"), guest("b", "munich")).get("failed")
    result = audited(labs, dark="munich")
    dark = [one for one in result["findings"] if one["site"] == "munich"]
    assert [one["kind"] for one in dark] == ["unknown"]
    assert not result["passed"]
    assert [row["vms"] for row in result["tenants"][0]["sites"]] == [1, None, 0]
    assert "Tenant acme: 1 guest, 1 at berlin, unknown at munich, 0 at paris" in result["report"]


def test_the_audit_names_a_site_that_is_not_in_the_registry(labs: Labs) -> None:
    assert not run(labs, guest("a", "berlin")).get("failed")
    tenants = {"acme": {"sites": [*SITES[:2], "pari"], "quota": {"vms": 2}}}
    given = {"sites": sites_of(labs), "tenants": tenants, "volumes": False, "networks": False}
    result = run_module("audit_info", given)
    (unknown,) = [one for one in result["findings"] if one["kind"] == "unknown"]
    assert (unknown["site"], unknown["tenant"], unknown["subject"]) == ("", "acme", "pari")
    assert "none of the sites berlin, munich, paris (did you mean 'paris'?)" in unknown["message"]
    assert not result["passed"]
    # The mistakes that module vms refuses are refused here, too.
    tenants["acme"]["vmid_ranges"] = {"berlin": [1000, 2000], "munich": [1500, 2500]}
    refused = run_module("audit_info", given)
    assert "the vmid_ranges of berlin and munich overlap" in refused["msg"]


def test_metrics_have_the_quota_over_sites_once(labs: Labs, tmp_path: Path) -> None:
    assert not run(labs, guest("a", "berlin"), guest("b", "munich")).get("failed")
    sites = [{"name": site, **labs[site].connection} for site in SITES]
    tenants = {**settings(site_quotas={"munich": {"vms": 2}}), "globex": {"quota": {"vms": 7}}}
    options = {"sites": sites, "tenants": tenants, "path": str(tmp_path / "pve.prom")}
    assert not run_module("metrics", options).get("warnings")
    assert not run_module("metrics", options).get("warnings")
    lines = (tmp_path / "pve.prom").read_text().splitlines()
    assert [line for line in lines if line.startswith("proxmox_tenant_quota_vms")] == [
        'proxmox_tenant_quota_vms{site="berlin",tenant="globex"} 7.0',
        'proxmox_tenant_quota_vms{site="munich",tenant="acme"} 2.0',
        'proxmox_tenant_quota_vms{site="munich",tenant="globex"} 7.0',
        'proxmox_tenant_quota_vms{site="paris",tenant="globex"} 7.0',
        'proxmox_tenant_quota_vms{tenant="acme"} 3.0',
    ]
    used = [line for line in lines if line.startswith("proxmox_tenant_vms") and "acme" in line]
    assert sum(float(line.split()[-1]) for line in used) == 2
