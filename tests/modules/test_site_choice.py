# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""C(site=auto) at three sites: the rules of the choice, and guests that stay at their sites."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.labs.sites import SITES, Labs, sites_of
from tests.modules.access_lab import ROOT
from tests.modules.module_runner import run_module
from tests.modules.tenant_lab import made

LABELS = {
    "berlin": {"region": "de", "price": 3},
    "munich": {"region": "de", "price": 2},
    "paris": {"region": "fr", "price": 1},
}


def guest(name: str, site: str = "auto", **more: Any) -> dict[str, Any]:
    return {"name": name, "site": site, "tenant": "acme", "memory": "256M", "blank": True, **more}


def run(
    labs: Labs,
    *vms: dict[str, Any],
    dark: str = "",
    state: Mapping[str, str] | None = None,
    module: str = "vms",
    check: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Run a module; the site `dark` does not answer, and `state` has the states of sites."""
    sites = [
        {**one, "labels": LABELS[one["name"]], "state": (state or {}).get(one["name"], "active")}
        for one in sites_of(labs, dark)
    ]
    options = {"tenant_settings": {"acme": {"sites": list(SITES)}}, "retries": 1, **more}
    return run_module(module, {"sites": sites, "vms": list(vms), **options}, check=check)


def sites_in(labs: Labs) -> dict[str, list[str]]:
    """Return the sites of each guest of the tenant, by name."""
    found: dict[str, list[str]] = {}
    for site, lab in labs.items():
        for row in lab.client.get("cluster", "resources", type="vm"):
            if "tenant_acme" in row.get("tags", ""):
                found.setdefault(str(row["name"]), []).append(site)
    return found


def writes(labs: Labs) -> list[Any]:
    return [write for lab in labs.values() for write in lab.simulator.writes()]


def chosen(result: Mapping[str, Any], index: int = 0) -> Any:
    return result["vms"][index]["site_placement"]


def test_the_cheapest_site_is_chosen_and_stays(labs: Labs) -> None:
    rules = {"strategy": "cheapest"}
    foreseen = run(labs, guest("a", site_placement=rules), check=True)
    assert writes(labs) == []
    made = run(labs, guest("a", site_placement=rules))
    for result in (foreseen, made):
        assert chosen(result) == {
            "site": "paris",
            "reasons": ["3 of 3 sites fit", "cheapest: its price is 1"],
            "refused": {
                "berlin": "it fits, but its price is 3",
                "munich": "it fits, but its price is 2",
            },
        }
        assert result["vms"][0]["site"] == "paris"
    assert foreseen["diff"] == made["diff"]
    for lab in labs.values():
        lab.simulator.reset_log()
    again = run(labs, guest("a", site_placement={"exclude": ["paris"]}))
    assert not again["changed"]
    assert again["vms"][0]["site"] == "paris"
    assert "site_placement" not in again["vms"][0]
    assert writes(labs) == []
    assert len(labs["munich"].simulator.log()) == 1  # one listing
    assert sites_in(labs) == {"a": ["paris"]}


def test_rules_refuse_sites_with_their_reasons(labs: Labs) -> None:
    rules = {"labels": {"region": "de"}, "exclude": ["munich"]}
    made = run(labs, guest("a", site_placement=rules))
    assert chosen(made)["refused"] == {
        "munich": "site_placement.exclude names it",
        "paris": "its label region is fr, and de is needed",
    }
    assert sites_in(labs) == {"a": ["berlin"]}
    refused = run(labs, guest("b", site_placement=rules), state={"berlin": "draining"})
    row = refused["vms"][0]
    assert row["error"]["reason"] == "no site fits"
    assert row["error"]["sites"]["berlin"] == "it is draining"
    assert "No site could be chosen" in row["msg"]
    assert "berlin: it is draining" in row["msg"]
    assert not run(labs, guest("a"), state={"berlin": "draining"}).get("failed")


def test_guests_apart_and_together(labs: Labs) -> None:
    """The guests of the same run count, in the order of the list."""
    apart = {"anti_affinity": ["name:db*"], "strategy": "first"}
    vms = [guest(f"db{number}", site_placement=apart) for number in range(4)]
    vms.append(guest("web", site_placement={"affinity": ["name:db2"]}))
    made = run(labs, *vms)
    assert [row.get("site") for row in made["vms"]] == [
        "berlin",
        "munich",
        "paris",
        "auto",
        "paris",
    ]
    reasons = made["vms"][3]["error"]["sites"]
    assert sorted(reasons) == list(SITES)
    assert all("anti-affinity with db" in reason for reason in reasons.values())
    assert "affinity with db2" in chosen(made, 4)["refused"]["berlin"]


def test_guests_with_a_tag_apart_and_together(labs: Labs) -> None:
    apart = {"anti_affinity": ["front"], "strategy": "first"}
    vms = [guest(name, tags=["front"], site_placement=apart) for name in "abcd"]
    vms.append(guest("e", tags=["data"], site_placement={"sites": ["munich"]}))
    vms.append(guest("f", site_placement={"affinity": ["data"]}))
    made = run(labs, *vms)
    places = [row.get("site") for row in made["vms"]]
    assert places == ["berlin", "munich", "paris", "auto", "munich", "munich"]
    reasons = made["vms"][3]["error"]["sites"]
    assert sorted(reasons) == list(SITES)
    assert all("anti-affinity with" in reason for reason in reasons.values()), reasons


def test_a_site_without_the_memory_is_refused(labs: Labs) -> None:
    for node in ("pve1", "pve2", "pve3"):
        labs["berlin"].simulator.steer(f"/nodes/{node}", {"memory": 1 << 28})
    small = guest("a", memory="2G", site_placement={"strategy": "first"})
    made = run(labs, {**small, "state": "started", "placement": {"memory_overcommit": 1.0}})
    assert "memory" in chosen(made)["refused"]["berlin"]
    assert sites_in(labs) == {"a": ["munich"]}


def test_a_site_without_the_storage_or_the_quota_is_refused(labs: Labs) -> None:
    settings = {
        "acme": {"sites": list(SITES), "site": "auto", "site_quotas": {"munich": {"vms": 0}}}
    }
    for site in ("munich", "paris"):
        added = labs[site].run("storage", name="fast", type="dir", path="/fast", content=["images"])
        assert not added.get("failed")
    vm = {
        "name": "a",
        "tenant": "acme",
        "memory": "256M",
        "disks": [{"size": 1, "storage": "fast"}],
    }
    made = run(labs, vm, tenant_settings=settings)
    reasons = chosen(made)["refused"]
    assert reasons["berlin"].startswith("the cluster has ")
    assert "vms: 0 used + 1 wanted, the limit is 0" in reasons["munich"]
    assert sites_in(labs) == {"a": ["paris"]}


@pytest.mark.parametrize(
    ("kind", "slot", "value", "entry"),
    [
        ("pci", "hostpci0", "mapping=gpu", "path=0000:01:00.0,id=8086:1234"),
        ("usb", "usb0", "mapping=gpu", "id=0951:1666"),
        ("dir", "virtiofs0", "dirid=gpu", "path=/var/lib/vz"),
    ],
)
def test_a_site_without_the_mapped_device_is_refused(
    labs: Labs, kind: str, slot: str, value: str, entry: str
) -> None:
    """Berlin has no such mapping, Munich has it for a node without the storage."""
    for site, node in (("munich", "pve1"), ("paris", "pve2")):
        data = {"id": "gpu", "map": [f"node={node},{entry}"]}
        labs[site].client.write("POST", "cluster", "mapping", kind, data=data)
    storage = {"storage": "fast", "type": "dir", "path": "/fast", "content": "images"}
    for site in SITES:
        labs[site].client.write("POST", "storage", data={**storage, "nodes": "pve2"})
    disks = [{"size": 1, "storage": "fast"}]
    vms = [guest(name, options={slot: value}, state="started", disks=disks) for name in "ab"]
    for check in (True, False):
        result = run(labs, vms[0], check=check)
        refused = chosen(result)["refused"]
        assert f"there is no {kind} mapping 'gpu'" in refused["berlin"]
        assert f"mapped device {kind}/gpu is not there" in refused["munich"]
    assert sites_in(labs) == {"a": ["paris"]}
    result = run(labs, *vms)
    assert bool(result.get("failed")) == (kind == "pci")
    if kind == "pci":
        assert "is in use by VM" in result["vms"][1]["error"]["sites"]["paris"]


def test_a_chosen_node_of_a_container_with_a_device_is_warned_about(labs: Labs) -> None:
    """Only root@pam with its password can set devices, and no request lists them (pve-container:
    LXC/Tools.pm, get_device_mode_and_rdev).
    """
    box = {
        "name": "box",
        "tenant": "acme",
        "site": "auto",
        "source": "debian-13-standard",
        "memory": "128M",
        "rootfs": {"size": 1, "storage": "ceph"},
        "devices": [{"name": "dev0", "path": "/dev/nosuch"}],
    }
    sites = [{**one, **ROOT} for one in sites_of(labs)]
    options = {"tenant_settings": {"acme": {"sites": list(SITES)}}, "containers": [box]}
    foreseen = run_module("vms", {"sites": sites, **options}, check=True)
    (warning,) = foreseen["warnings"]
    assert "the paths of dev0 cannot be seen with the API of Proxmox VE" in warning
    assert run_module("vms", {"sites": sites, **options})["changed"]
    box["node"] = "pve1"
    assert not run_module("vms", {"sites": sites, **options}, check=True)["warnings"]


def test_a_saved_plan_fixes_the_site(labs: Labs, tmp_path: Path) -> None:
    """The prices change after the plan was approved."""
    place = str(tmp_path / "plan.json")
    first = {"strategy": "first", "sites": ["munich", "paris"]}
    run(labs, guest("a", site_placement=first), check=True, plan_file=place)
    parts = json.loads(Path(place).read_text())["parts"]
    planned = {part["site"]: [one["guest"]["name"] for one in part["changes"]] for part in parts}
    assert planned == {"berlin": [], "munich": ["a"], "paris": []}
    cheap = guest("a", site_placement={"strategy": "cheapest"})
    for check in (True, False):
        made = run(labs, cheap, apply_plan=place, check=check)
        assert chosen(made)["reasons"] == ["the approved plan has the guest there"]
    assert sites_in(labs) == {"a": ["munich"]}
    refused = run(labs, cheap, guest("b"), apply_plan=place)
    assert refused["vms"][1]["error"]["reason"] == "not the approved plan"
    assert sites_in(labs) == {"a": ["munich"]}


def test_a_site_that_does_not_answer(labs: Labs, tmp_path: Path) -> None:
    """A new guest may exist there; an existing one is managed while other sites are dark."""
    settings = {"acme": {"sites": list(SITES), "quota": {"vms": 9}}}
    more: dict[str, Any] = {"tenant_settings": settings}
    rules = {"sites": ["munich"], "strategy": "first"}
    file: dict[str, Any] = {**more, "usage_file": str(tmp_path / "use.json")}
    assert not run(labs, guest("a", site_placement=rules), **file).get("failed")
    unknown = run(labs, guest("b", site_placement=rules), dark="munich")
    assert unknown["vms"][0]["error"]["reason"] == "site not readable"
    assert "it may exist at site munich, which does not answer" in unknown["vms"][0]["msg"]
    assert sites_in(labs) == {"a": ["munich"]}
    changed = [guest("a", memory="512M"), guest("b", site_placement=rules)]
    made = run(labs, *changed, dark="munich", **file)
    assert [row["action"] for row in made["vms"]] == ["failed", "created"]
    assert made["vms"][0]["site"] == "munich"
    assert made["vms"][0]["error"]["category"] == "NetworkError"
    assert chosen(made, 1)["refused"]["munich"] == "it does not answer"
    assert run(labs, guest("a", memory="512M"), dark="paris")["changed"]
    near = guest("c", site_placement={"affinity": ["name:a"]})
    refused = run(labs, near, dark="munich", **file)
    reasons = refused["vms"][0]["error"]["sites"]
    assert reasons["paris"] == "the affinity may be at site munich, which does not answer"
    gone = run(labs, guest("d", state="absent"), dark="berlin")
    assert gone["vms"][0]["error"]["reason"] == "site not readable"


def test_a_guest_at_two_sites_is_refused_and_not_pruned(labs: Labs) -> None:
    both = [guest("a", "berlin"), guest("a", "munich"), guest("x", "munich")]
    assert not run(labs, *both).get("failed")
    refused = run(labs, guest("a"), guest("b", "munich"), tenant="acme", prune=True)
    assert refused["vms"][0]["error"]["reason"] == "at several sites"
    assert [row["action"] for row in refused["vms"]] == ["failed", "created", "kept", "kept"]
    assert sites_in(labs)["a"] == ["berlin", "munich"]


def test_prune_and_removal_know_the_site(labs: Labs) -> None:
    first = {"strategy": "first"}
    made = run(labs, guest("a", site_placement=first), guest("b", "berlin"))
    assert not made.get("failed")
    kept = run(labs, guest("a"), tenant="acme", prune=True)
    assert [row["action"] for row in kept["vms"]] == ["unchanged", "removed"]
    assert sites_in(labs) == {"a": ["berlin"]}
    gone = [guest("a", state="absent"), guest("new", state="absent")]
    removed = run(labs, *gone)
    assert [row["action"] for row in removed["vms"]] == ["removed", "unchanged"]
    assert sites_in(labs) == {}


def test_drift_and_report_compare_a_guest_at_its_site(labs: Labs) -> None:
    rules = {"sites": ["munich"], "strategy": "first"}
    vms = [guest("a", site_placement=rules), guest("new")]
    assert not run(labs, vms[0]).get("failed")

    def found(**more: Any) -> list[tuple[str, str, str]]:
        drift = run(labs, *vms, module="drift_info", **more)["drift"]
        return [(row["name"], row["site"], row["status"]) for row in drift["vms"]]

    assert sorted(found()) == [("a", "munich", "in_sync"), ("new", "berlin", "missing")]
    assert sorted(found(dark="paris")) == [("a", "munich", "in_sync"), ("new", "paris", "unknown")]
    assert ("a", "munich", "unknown") in found(dark="munich")
    # A guest that a site lacks may be at a site that the task leaves out.
    assert found(of_sites=["munich"]) == [("a", "munich", "in_sync")]
    assert found(of_sites=["berlin"]) == []


@pytest.mark.parametrize(
    ("vm", "more", "words"),
    [
        (guest("a", vmid=4000), {}, "needs a guest with a name and without a vmid"),
        (guest("a"), {"tenant_settings": {}}, "needs sites of its tenant"),
        (guest("a", site_placement={"sites": ["rome"]}), {}, "is not a site of the tenant"),
        (guest("a", site_placement={"affinity": ["name:"]}), {}, "site_placement.affinity"),
        (guest("a", site_placement={"strategy": "random"}), {}, "least_used, round_robin, first"),
        (guest("a"), {"tenant_settings": {"acme": {"sites": ["auto"]}}}, "a site is named auto"),
    ],
    ids=str,
)
def test_mistakes_are_refused_before_the_first_request(
    labs: Labs, vm: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    for lab in labs.values():
        lab.simulator.reset_log()
    refused = run(labs, vm, **more)
    assert refused["failed"]
    assert words in refused["msg"]
    assert not any(lab.simulator.log() for lab in labs.values())


def test_a_name_is_listed_once_for_all_sites(labs: Labs) -> None:
    refused = run(labs, guest("a"), guest("a", "munich"))
    assert "both are VM 'a' of tenant acme" in refused["msg"]


def test_a_tenant_places_its_guests_with_its_own_tokens(labs: Labs) -> None:
    logins = {site: made(lab, "initech") for site, lab in labs.items()}
    sites = [{"name": site, "labels": LABELS[site], **logins[site]} for site in SITES]
    vm = {"name": "a", "memory": "256M", "source": "debian-13"}
    options = {
        "sites": sites,
        "tenant": "initech",
        "tenant_settings": {
            "initech": {
                "sites": list(SITES),
                "site": "auto",
                "pool": "initech",
                "site_placement": {"labels": {"region": "de"}, "strategy": "cheapest"},
            }
        },
        "vms": [vm],
    }
    result = run_module("vms", options)
    assert not result.get("failed"), result["msg"]
    assert chosen(result)["site"] == "munich"
    assert not run_module("vms", options)["changed"]
