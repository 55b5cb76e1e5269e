# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules cluster_options and cluster_options_info against the simulator, which answers as
pve-manager's API2/Cluster.pm and pve-cluster's DataCenterConfig.pm do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.decide import (
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import (
    plan_resource,
    run,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.table import (
    CLUSTER_OPTIONS,
)
from tests.fake_clock import FakeClock
from tests.modules.access_lab import as_foreseen, do, limited, refused, requests
from tests.modules.estate_lab import Lab, open_lab

MODULE = "cluster_options"
PATH = ("cluster", "options")
GET, PUT = "GET /cluster/options", "PUT /cluster/options"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        yield lab


@pytest.fixture
def lab(cluster: Lab, fast: None) -> Lab:
    """The demo cluster as it is at the start."""
    cluster.simulator.clear_faults()
    cluster.simulator.reset()
    return cluster


def put(lab: Lab, **options: Any) -> None:
    """Set options as another program does."""
    data = {name.replace("_", "-"): value for name, value in options.items()}
    lab.client.write("PUT", *PATH, data=data)


def stored(lab: Lab) -> dict[str, Any]:
    """Return the options as PVE has them, without what only depends on the VMs."""
    found: dict[str, Any] = lab.client.get(*PATH)
    return {
        key: value for key, value in found.items() if key not in ("allowed-tags", "description")
    }


def test_a_tag_is_added_and_taken_out_as_foreseen(lab: Lab) -> None:
    put(lab, registered_tags="prod")
    made = as_foreseen(lab, MODULE, registered_tags=["tenant_x"])
    assert made["plan"] == ["Set registered_tags of the cluster options"]
    assert made["diff"]["before"] == {"registered_tags": ["prod"]}
    assert made["diff"]["after"] == {"registered_tags": ["prod", "tenant_x"]}
    assert stored(lab)["registered-tags"] == ["prod", "tenant_x"]
    gone = as_foreseen(lab, MODULE, registered_tags=["tenant_x", "never"], state="absent")
    assert gone["cluster_options"]["registered_tags"] == ["prod"]
    as_foreseen(lab, MODULE, registered_tags=["prod"], state="absent")
    assert "registered-tags" not in stored(lab)


def test_exact_takes_out_what_is_not_listed(lab: Lab) -> None:
    put(
        lab,
        registered_tags="a;b",
        tag_style="color-map=a:000000;b:111111,shape=full",
        user_tag_access="user-allow=list,user-allow-list=a;b",
    )
    as_foreseen(
        lab,
        MODULE,
        registered_tags=["b", "c"],
        tag_style={"color_map": {"c": "222222"}},
        user_tag_access={"user_allow_list": []},
        exact=True,
    )
    assert stored(lab) == {
        "mac_prefix": "BC:24:11",
        "registered-tags": ["b", "c"],
        "tag-style": {"color-map": "c:222222", "shape": "full"},
        "user-tag-access": {"user-allow": "list"},
    }


# What is there, the task, and what is there afterwards.
KEPT: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        {"tag_style": "color-map=a:000000,ordering=config"},
        {"tag_style": {"color_map": {"b": "#FF0000:ffffff"}, "case_sensitive": True}},
        {
            "tag-style": {
                "case-sensitive": 1,
                "color-map": "a:000000;b:FF0000:ffffff",
                "ordering": "config",
            }
        },
    ),
    (
        {"tag_style": "color-map=a:000000;b:111111"},
        {"tag_style": {"color_map": {"a": ""}}},
        {"tag-style": {"color-map": "b:111111"}},
    ),
    (
        {"tag_style": "color-map=a:000000"},
        {"tag_style": {"color_map": {"a": "ffffff"}}, "state": "absent"},
        {},
    ),
    (
        {"user_tag_access": "user-allow=list,user-allow-list=z;a"},
        {"user_tag_access": {"user_allow_list": ["m"]}},
        {"user-tag-access": {"user-allow": "list", "user-allow-list": ["a", "m", "z"]}},
    ),
    (
        {"crs": "ha=static"},
        {"crs": {"ha_rebalance_on_start": True}},
        {"crs": {"ha": "static", "ha-rebalance-on-start": 1}},
    ),
    ({"crs": "ha=static"}, {"crs": {"ha": ""}}, {}),
    (
        {"bwlimit": "clone=100,move=7"},
        {"bwlimit": {"clone": "", "default": "0500.50"}},
        {"bwlimit": "default=500.5,move=7"},
    ),
    (
        {},
        {"migration": {"network": "10.99.0.0/24"}},
        {"migration": {"network": "10.99.0.0/24", "type": "secure"}},
    ),
    (
        {"migration": "insecure"},
        {"migration": {"network": "10.99.0.0/24"}},
        {"migration": {"network": "10.99.0.0/24", "type": "insecure"}},
    ),
    (
        {"next_id": "lower=500"},
        {"next_id": {"upper": "600"}},
        {"next-id": {"lower": "500", "upper": "600"}},
    ),
    ({}, {"mac_prefix": "02:aa:bb"}, {"mac_prefix": "02:AA:BB"}),
    ({"mac_prefix": "02:AA:BB"}, {"mac_prefix": ""}, {}),
    # DataCenterConfig.pm, pve_verify_mac_prefix: up to half a fourth octet.
    ({}, {"mac_prefix": "bc:24:11:0"}, {"mac_prefix": "BC:24:11:0"}),
]


@pytest.mark.parametrize(("there", "task", "then"), KEPT, ids=lambda value: repr(value)[:50])
def test_what_is_not_named_stays(
    lab: Lab, there: dict[str, Any], task: dict[str, Any], then: dict[str, Any]
) -> None:
    if "mac_prefix" in there:
        lab.client.write("PUT", *PATH, data=there)
    elif there:
        put(lab, **there)
    as_foreseen(lab, MODULE, **task)
    assert stored(lab) == {"mac_prefix": "BC:24:11", **then}


class Newer:
    """A PVE with more keys than this module knows; the simulator would refuse them."""

    clock = FakeClock()

    def get(self, *_segments: str, **_more: Any) -> dict[str, Any]:
        crs = {"ha": "static", "ha-future": 1}
        return {"description": "", "crs": crs, "bwlimit": "clone=2,future=5"}


def test_keys_that_this_module_does_not_know_are_kept() -> None:
    task = {"crs": {"ha": "basic"}, "bwlimit": {"clone": "1"}}
    desired = read_desired(CLUSTER_OPTIONS, task)
    plan, _actual = plan_resource(CLUSTER_OPTIONS, desired, cast(Any, Newer()))
    (step,) = plan.steps
    assert step.data == {"crs": "ha=basic,ha-future=1", "bwlimit": "clone=1,future=5"}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"registered_tags": ["a b"]}, "registered_tags"),
    ({"registered_tags": [""]}, "registered_tags"),
    ({"registered_tags": ["a;b"]}, "registered_tags"),
    ({"tag_style": {"color_map": {"a": "red"}}}, "tag_style.color_map"),
    ({"tag_style": {"color_map": {"a b": "ff0000"}}}, "tag_style.color_map"),
    ({"user_tag_access": {"user_allow_list": ["ä"]}}, "user_tag_access.user_allow_list"),
    ({"mac_prefix": "01:00:00"}, "mac_prefix"),
    ({"mac_prefix": "zz"}, "mac_prefix"),
    ({"bwlimit": {"clone": "-1"}}, "bwlimit.clone"),
    ({"bwlimit": {"clone": "1e3"}}, "bwlimit.clone"),
    ({"crs": {"ha_auto_rebalance_margin": "101"}}, "crs.ha_auto_rebalance_margin"),
    ({"crs": {"ha_auto_rebalance_margin": "5"}}, "crs"),
    ({"migration": {"network": "bogus"}}, "migration.network"),
    ({"migration": {"network": "10.0.0.1"}}, "migration.network"),
    ({"next_id": {"lower": "99"}}, "next_id.lower"),
    ({"next_id": {"lower": "1.5"}}, "next_id.lower"),
    ({"next_id": {"lower": "600", "upper": "500"}}, "next_id"),
    ({"next_id": {"lower": "2000000"}}, "next_id"),
    ({"state": "absent", "mac_prefix": ""}, "state"),
    ({"state": "absent", "registered_tags": ["a"], "exact": True}, "state"),
    ({"state": "absent", "tag_style": {"shape": "full"}}, "state"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=lambda value: repr(value)[:60])
def test_refused_before_any_write(lab: Lab, options: dict[str, Any], reason: str) -> None:
    error = refused(lab, MODULE, **options)["error"]
    assert (error["category"], error["reason"]) == ("ValidationFailed", reason)


def test_without_audit_nothing_of_others_is_taken_away(lab: Lab) -> None:
    """PVE answers, but leaves the registered tags out: adding one would remove all others."""
    put(lab, registered_tags="prod")
    lab.client.write("POST", "access", "roles", data={"roleid": "Half", "privs": "Sys.Modify"})
    login = limited(lab, "half", {"/": "Half"})
    result = refused(lab, MODULE, registered_tags=["mine"], **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert result["error"]["privileges"] == ["Sys.Audit"]
    assert lab.run("cluster_options_info", **login)["error"]["reason"] == "not all options"
    assert stored(lab)["registered-tags"] == ["prod"]


def test_without_the_right_to_change(lab: Lab) -> None:
    login = limited(lab, "auditor", {"/": "PVEAuditor"})
    result = lab.run(MODULE, registered_tags=["mine"], **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert "Sys.Modify" in result["msg"]
    assert do(lab, "cluster_options_info", **login)["cluster_options"]["registered_tags"] == []


def test_the_order_of_another_program_is_not_a_difference(lab: Lab) -> None:
    put(
        lab,
        registered_tags="z;a",
        tag_style="color-map=z:000000;a-b:222222;a:111111",
        user_tag_access="user-allow=list,user-allow-list=z;a",
    )
    result = do(
        lab,
        MODULE,
        registered_tags=["a"],
        tag_style={"color_map": {"a": "111111"}},
        user_tag_access={"user_allow_list": ["z", "a"]},
        exact=False,
    )
    assert not result["changed"]
    assert not do(lab, MODULE, registered_tags=["a", "z"], exact=True)["changed"]


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("next-id=lower=500,upper=900", {"next_id": {"upper": 900, "lower": 500}}),
        (
            "crs=ha=static,ha-rebalance-on-start=1",
            {"crs": {"ha_rebalance_on_start": True, "ha": "static"}},
        ),
        (
            "tag-style=ordering=config,shape=full",
            {"tag_style": {"shape": "full", "ordering": "config"}},
        ),
        (
            "migration=network=10.0.0.0/8,type=insecure",
            {"migration": {"type": "insecure", "network": "10.0.0.0/8"}},
        ),
        ("bwlimit=clone=4,move=5", {"bwlimit": {"move": 5, "clone": 4}}),
        ("bwlimit=move=5,clone=4", {"bwlimit": {"clone": 4, "move": 5}}),
    ],
)
def test_the_keys_of_datacenter_cfg_have_no_order(
    lab: Lab, text: str, option: dict[str, Any]
) -> None:
    """PVE sorts the keys when it writes the file (pve-cluster: DataCenterConfig.pm; seen on 9.2.11)."""
    name, _equals, value = text.partition("=")
    lab.client.write("PUT", *PATH, data={name: value})
    lab.simulator.reset_log()
    assert not do(lab, MODULE, **option)["changed"]
    assert requests(lab) == [GET]


def test_the_requests_of_each_run(lab: Lab) -> None:
    lab.simulator.reset_log()
    do(lab, MODULE, registered_tags=["a"], mac_prefix="02:00:00", crs={"ha": "static"})
    assert requests(lab) == [GET, PUT, GET]
    lab.simulator.reset_log()
    do(lab, MODULE, registered_tags=["a"])
    do(lab, "cluster_options_info")
    assert requests(lab) == [GET, GET]


def test_info_has_the_keys_of_the_module(lab: Lab) -> None:
    made = do(lab, MODULE, registered_tags=["b", "a"], bwlimit={"clone": "5"})[MODULE]
    assert do(lab, "cluster_options_info")[MODULE] == made
    assert made["registered_tags"] == ["a", "b"]
    assert made["bwlimit"]["clone"] == 5
    assert made["crs"]["ha"] == "basic"
    assert made["next_id"] == {"lower": 100, "upper": 1000000}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_answer_is_looked_after(lab: Lab, moment: str) -> None:
    lab.simulator.fault(method="PUT", path="/cluster/options", drop=moment)
    lab.simulator.reset_log()
    result = do(lab, MODULE, registered_tags=["a"])
    assert result["done"] == result["plan"]
    writes = [row for row in lab.simulator.writes() if row["method"] == "PUT"]
    assert len(writes) == (2 if moment == "before" else 1)
    assert stored(lab)["registered-tags"] == ["a"]


def other(text: str) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    return ("PUT", PATH, {"registered-tags": text})


def with_pauses(
    monkeypatch: pytest.MonkeyPatch, during: Callable[[float, int], None]
) -> list[float]:
    """Call this in each pause instead of waiting, with its seconds and number; returns them."""
    slept: list[float] = []

    def sleep(_clock: Clock, seconds: float) -> None:
        slept.append(seconds)
        during(seconds, len(slept))

    monkeypatch.setattr(Clock, "sleep", sleep)
    return slept


def test_what_another_run_undoes_is_written_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run has read before this one writes, and writes after it."""

    def other(_seconds: float, number: int) -> None:
        if number == 1:
            put(lab, registered_tags="theirs")

    slept = with_pauses(monkeypatch, other)
    result = do(lab, MODULE, registered_tags=["mine"])
    assert stored(lab)["registered-tags"] == ["mine", "theirs"]
    assert result["done"] == ["Set registered_tags of the cluster options"]
    assert result[MODULE]["registered_tags"] == ["mine", "theirs"]
    assert slept == [1.0, 1.0]


def test_a_run_that_always_loses_ends_with_an_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = with_pauses(monkeypatch, lambda _seconds, _number: put(lab, registered_tags="theirs"))
    result = lab.run(MODULE, registered_tags=["mine"])
    assert result["error"]["category"] == "Conflict"
    assert "did not last" in result["msg"]
    assert result["error"]["done"] == ["Set registered_tags of the cluster options"]
    assert len(slept) == 6


def test_a_request_that_meets_a_lock_is_not_sent_again_as_it_was(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits, another run adds a tag: the next request has both."""
    text = "cfs-lock 'file-datacenter_cfg' error: got lock request timeout"
    lab.simulator.fault(method="PUT", path="/cluster/options", status=500, message=text)

    def other(_seconds: float, number: int) -> None:
        if number == 1:
            put(lab, registered_tags="theirs")

    with_pauses(monkeypatch, other)
    lab.simulator.reset_log()
    do(lab, MODULE, registered_tags=["mine"])
    refused_one, *others = lab.simulator.writes()
    assert refused_one["status"] == 500
    sent = [row["params"]["registered-tags"] for row in others]
    assert sent == ["theirs", "mine;theirs"]


def test_runs_at_the_same_time_keep_the_tags_of_all(cluster: Lab) -> None:
    """The pauses are real here."""
    lab = cluster
    lab.simulator.reset()
    gate = threading.Barrier(4)

    def one(number: int) -> bool:
        with connect(lab.connection, {}) as client:
            gate.wait(30)
            options = {
                "registered_tags": [f"tag{number}"],
                "tag_style": {"color_map": {f"tag{number}": f"00000{number}"}},
            }
            return run(CLUSTER_OPTIONS, options, client).changed

    with ThreadPoolExecutor(4) as workers:
        assert list(workers.map(one, range(4))) == [True] * 4
    there = stored(lab)
    assert there["registered-tags"] == ["tag0", "tag1", "tag2", "tag3"]
    assert there["tag-style"]["color-map"].count("tag") == 4


GENERAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"description": "first\nsecond"}, {"description": ""}),
    ({"console": "html5", "keyboard": "de", "language": "de"}, {"console": "", "language": ""}),
    ({"email_from": "pve@example.com"}, {"email_from": ""}),
    ({"http_proxy": "http://10.0.0.1:3128"}, {"http_proxy": ""}),
    ({"max_workers": 8}, {"max_workers": 0}),
    ({"consent_text": "Authorized\nusers only"}, {"consent_text": ""}),
    (
        {
            "notify": {
                "fencing": "never",
                "package_updates": "always",
                "target_fencing": "mail-to-root",
            }
        },
        {"notify": {"fencing": "", "package_updates": "", "target_fencing": ""}},
    ),
    (
        {"replication": {"type": "insecure", "network": "10.99.0.0/24"}},
        {"replication": {"type": "", "network": ""}},
    ),
    (
        {"location": {"latitude": "48.2082", "longitude": "-16.5", "name": "Vienna"}},
        {"location": {"latitude": "", "longitude": "", "name": ""}},
    ),
    ({"fencing": "hardware"}, {"fencing": ""}),
    ({"ha": {"shutdown_policy": "migrate"}}, {"ha": {"shutdown_policy": ""}}),
    (
        {"webauthn": {"rp": "pve", "id": "example.com", "allow_subdomains": False}},
        {"webauthn": {"rp": "", "id": "", "allow_subdomains": True}},
    ),
    ({"u2f": {"appid": "https://pve.example.com"}}, {"u2f": {"appid": ""}}),
    # A text, not a list or an address: PVE stores it as it is (DataCenterConfig.pm).
    *(({"u2f": {"appid": text}}, {"u2f": {"appid": ""}}) for text in ("b;a", "::ffff:10.0.0.1")),
    ({"notify": {"target_fencing": "b;a"}}, {"notify": {"target_fencing": ""}}),
]


@pytest.mark.parametrize(("given", "emptied"), GENERAL, ids=str)
def test_a_general_option_is_set_and_removed(
    lab: Lab, given: dict[str, Any], emptied: dict[str, Any]
) -> None:
    before = lab.run("cluster_options_info")["cluster_options"]
    made = lab.run(MODULE, **given)
    assert not made.get("failed"), made
    assert made["changed"]
    assert not lab.run(MODULE, **given)["changed"]
    listed = lab.run("cluster_options_info")["cluster_options"]
    assert not lab.run(MODULE, **{name: listed[name] for name in given})["changed"]
    lab.run(MODULE, **emptied)
    after = lab.run("cluster_options_info")["cluster_options"]
    assert [after[name] for name in emptied] == [before[name] for name in emptied]


def test_location_is_not_an_option_of_8_4(old: Lab) -> None:
    """pve-cluster 9.1.4: PVE/DataCenterConfig.pm."""
    result = old.run(MODULE, location={"latitude": "48", "longitude": "16"})
    assert result["error"]["category"] == "NotSupported"


def test_replication_is_not_an_option_of_8_4(old: Lab) -> None:
    result = old.run(MODULE, replication={"type": "insecure"})
    assert result["error"]["category"] == "NotSupported"
    assert old.run("cluster_options_info")["cluster_options"]["replication"]["network"] is None


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"http_proxy": "10.0.0.1"}, "http://10.0.0.1:3128"),
        ({"email_from": "pve"}, "pve@example.com"),
        ({"max_workers": -1}, "max_workers"),
        ({"webauthn": {"rp": "a,b"}}, "comma"),
        ({"consent_text": "x" * 65537}, "too long"),
        ({"replication": {"network": "10.99.0.0"}}, "has no prefix"),
        ({"location": {"latitude": "91", "longitude": "0"}}, "-90 to 90"),
        ({"location": {"latitude": "48"}}, "location.latitude needs location.longitude"),
    ],
    ids=str,
)
def test_a_general_option_is_refused(lab: Lab, options: dict[str, Any], word: str) -> None:
    lab.simulator.reset_log()
    result = lab.run(MODULE, check=True, **options)
    assert result["failed"]
    assert word in result["msg"]
    assert lab.simulator.writes() == []
