# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The remotes of a Proxmox Datacenter Manager as sites: three clusters and a backup server."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from ansible.errors import AnsibleError

from ansible_collections.pve.fleet.plugins.lookup.sites import LookupModule
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry import remotes
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.sites_file import (
    read_sites_file,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.sites import (
    open_clients,
)
from tests.labs.pdm import Manager
from tests.labs.sites import SITES, Labs
from tests.modules.module_runner import run_module

COLONS = ":".join(["00"] * 32)
LOGIN = {"token_id": "ops@pve!auto", "token_secret": "of-no-one"}


@pytest.fixture
def manager(labs: Labs, tmp_path: Path) -> Iterator[Manager]:
    remotes._known.clear()
    pve = {
        site: ("pve", [f"hostname={urlsplit(lab.simulator.url).netloc},fingerprint={COLONS}"])
        for site, lab in labs.items()
    }
    others = {"backups": ("pbs", ["10.99.0.6"])}
    with Manager(tmp_path, {**pve, **others}) as running:
        yield running


def file(labs: Labs, manager: Manager, tmp_path: Path, **more: Any) -> str:
    """Write a sites file: the manager has the addresses, the file has the logins."""
    logins = {
        site: {key: value for key, value in lab.connection.items() if key != "host"}
        for site, lab in labs.items()
    }
    logins["munich"]["state"] = "draining"
    path = tmp_path / "sites.yml"
    content = {"sites_from": "pdm", "pdm": manager.options, "sites": logins, **more}
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_one_list_of_sites_for_modules_and_inventory(
    labs: Labs, manager: Manager, tmp_path: Path
) -> None:
    path = file(labs, manager, tmp_path)
    vms = [
        {"name": f"vm-{site}", "site": site, "tenant": "acme", "memory": "256M", "blank": True}
        for site in SITES
    ]
    made = run_module("vms", {"sites_file": path, "vms": vms})
    assert [row["action"] for row in made["vms"]] == ["created", "failed", "created"]
    assert "site munich is draining" in made["vms"][1]["msg"]
    assert manager.requests == ["/api2/json/remotes/remote"]
    drift = run_module("drift_info", {"sites_file": path, "vms": vms})["drift"]
    assert [row["status"] for row in drift["vms"]] == ["in_sync", "missing", "in_sync"]
    report = run_module("report_info", {"sites_file": path})["report"]
    assert [row["site"] for row in report["sites"]] == list(SITES)
    clients, unusable = open_clients({"sites_file": path}, {}, read_sites_file)
    assert (sorted(clients), unusable) == (list(SITES), [])
    assert manager.requests == ["/api2/json/remotes/remote"]


def fingerprint_of(netloc: str) -> str:
    host, _colon, port = netloc.partition(":")
    certificate = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))
    return hashlib.sha256(certificate).hexdigest().upper()


def pinned(labs: Labs, manager: Manager, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """Write a sites file without a CA: the fingerprints of the manager are the trust."""
    logins = {
        site: {key: lab.connection[key] for key in ("token_id", "token_secret")}
        for site, lab in labs.items()
    }
    netlocs = {site: urlsplit(lab.simulator.url).netloc for site, lab in labs.items()}
    marks = {site: fingerprint_of(netloc) for site, netloc in netlocs.items()}
    assert len(set(marks.values())) == len(SITES)
    for site, netloc in netlocs.items():
        colons = ":".join(marks[site][at : at + 2] for at in range(0, 64, 2))
        manager.remotes[site] = ("pve", [f"hostname={netloc},fingerprint={colons}"])
    return file(labs, manager, tmp_path, sites=logins), netlocs


def test_the_fingerprint_of_the_manager_is_the_trust(
    labs: Labs, manager: Manager, tmp_path: Path
) -> None:
    path, netlocs = pinned(labs, manager, tmp_path)
    # The remote of paris has the certificate of munich.
    manager.remotes["paris"] = (
        "pve",
        [manager.remotes["munich"][1][0].replace(netlocs["munich"], netlocs["paris"])],
    )
    before = len(labs["paris"].simulator.log())
    report = run_module("report_info", {"sites_file": path})["report"]
    reasons = {row["site"]: row["reason"] for row in report["sites"]}
    assert (reasons["berlin"], reasons["munich"]) == (None, None)
    assert f"the certificate of {netlocs['paris']} has another fingerprint" in reasons["paris"]
    # The token was not sent.
    assert len(labs["paris"].simulator.log()) == before


def test_a_pinned_site_writes_with_each_login(labs: Labs, manager: Manager, tmp_path: Path) -> None:
    path, _netlocs = pinned(labs, manager, tmp_path)
    made = run_module("pool", {"sites_file": path, "site": "berlin", "name": "pinned"})
    assert made["changed"]
    # An explicit trust of the site counts, and the fingerprint of the manager does not.
    logins = yaml.safe_load(Path(path).read_text())["sites"]
    logins["berlin"]["ca_path"] = labs["munich"].connection["ca_path"]
    path = file(labs, manager, tmp_path, sites=logins)
    failed = run_module("pool", {"sites_file": path, "site": "berlin", "name": "pinned"})
    assert "is not signed by a trusted CA" in failed["msg"]


def test_the_next_node_of_a_remote_answers(labs: Labs, manager: Manager, tmp_path: Path) -> None:
    path, _netlocs = pinned(labs, manager, tmp_path)
    for site in ("berlin", "munich"):
        manager.remotes[site] = ("pve", ["hostname=127.0.0.1:9", *manager.remotes[site][1]])
    manager.remotes["paris"] = ("pve", ["127.0.0.1:9", "hostname=127.0.0.1:1"])
    report = run_module("report_info", {"sites_file": path, "retries": 1})["report"]
    reasons = {row["site"]: row["reason"] for row in report["sites"]}
    assert (reasons["berlin"], reasons["munich"]) == (None, None)
    assert (
        "127.0.0.1:9 refused the connection (site paris), and"
        " 127.0.0.1:1 refused the connection (site paris)" in reasons["paris"]
    )
    made = run_module("pool", {"sites_file": path, "site": "berlin", "name": "next"})
    assert made["changed"]


def test_a_wrong_certificate_fails_the_task_instead_of_using_the_next_node(
    labs: Labs, manager: Manager, tmp_path: Path
) -> None:
    path, _netlocs = pinned(labs, manager, tmp_path)
    right = manager.remotes["berlin"][1][0]
    wrong = right.partition("fingerprint=")[0] + f"fingerprint={'00' * 32}"
    manager.remotes["berlin"] = ("pve", [wrong, right])
    failed = run_module("pool", {"sites_file": path, "site": "berlin", "name": "next"})
    assert "has another fingerprint" in failed["msg"]
    assert failed["error"]["category"] == "NetworkError"


def test_the_manager_can_be_pinned(labs: Labs, manager: Manager, tmp_path: Path) -> None:
    own = {key: value for key, value in manager.options.items() if key != "ca_path"}
    netloc = urlsplit(own["host"]).netloc
    right = {**own, "fingerprint": fingerprint_of(netloc)}
    report = run_module("report_info", {"sites_file": file(labs, manager, tmp_path, pdm=right)})
    assert len(report["report"]["sites"]) == len(SITES)
    remotes._known.clear()
    wrong = {**own, "fingerprint": "00" * 32}
    failed = run_module("report_info", {"sites_file": file(labs, manager, tmp_path, pdm=wrong)})
    assert f"the certificate of {netloc} has another fingerprint" in failed["msg"]


def test_the_lookup_has_the_sites_of_the_manager(
    labs: Labs, manager: Manager, tmp_path: Path
) -> None:
    path, netlocs = pinned(labs, manager, tmp_path)
    listed = LookupModule().run([path])
    assert [(site["name"], site["host"]) for site in listed] == list(netlocs.items())
    assert all(None not in site.values() for site in listed)
    report = run_module("report_info", {"sites": listed})["report"]
    assert [(row["site"], row["reason"]) for row in report["sites"]] == [
        (site, None) for site in SITES
    ]
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("hello")
    with pytest.raises(AnsibleError, match="is not a list of sites"):
        LookupModule().run([str(wrong)])


def test_a_remote_without_a_login_is_named(labs: Labs, manager: Manager, tmp_path: Path) -> None:
    manager.remotes["rome"] = ("pve", ["pve.rome.example.com"])
    path = file(labs, manager, tmp_path)
    clients, unusable = open_clients({"sites_file": path}, {}, read_sites_file)
    assert sorted(clients) == list(SITES)
    assert [(one.site, "no credentials" in str(one.error)) for one in unusable] == [("rome", True)]
    failed = run_module("report_info", {"sites_file": path})
    assert (
        "Could not log in to pve.rome.example.com:8006 (site rome): no credentials" in failed["msg"]
    )


def test_a_site_of_the_file_can_have_its_own_host(
    labs: Labs, manager: Manager, tmp_path: Path
) -> None:
    manager.remotes = {"berlin": ("pve", ["192.0.2.1"])}
    sites = {
        "berlin": {**labs["berlin"].connection},
        "paris": {**labs["paris"].connection, "labels": {"region": "eu"}},
    }
    path = file(labs, manager, tmp_path, sites=sites)
    report = run_module("report_info", {"sites_file": path})["report"]
    assert [(row["site"], row["reason"]) for row in report["sites"]] == [
        ("berlin", None),
        ("paris", None),
    ]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sites_from": "pbs"}, "sites_from is pbs"),
        ({"pdm": {"host": "x"}}, "pdm has no login"),
        (
            {"sites": {"berlni": {}}},
            "site berlni has no host, and is none of the remotes berlin, munich, paris (did you mean 'berlin'?)",
        ),
        ({"sites": {"berlin": {}}}, "(site berlin): no credentials are given"),
        ({"sites": {"berlin": {"token_id": LOGIN["token_id"]}}}, "(site berlin): "),
        ({"sites": [{"token_id": "x"}]}, "sites is not a list of sites"),
        ({"sites": {"berlin": {**LOGIN, "fingerprint": "AB:CD"}}}, "is not a SHA-256 fingerprint"),
        (
            {"sites": {"berlin": {**LOGIN, "fingerprint": "0" * 64, "ca_path": "ca.pem"}}},
            "site berlin has both fingerprint and ca_path",
        ),
        ({"sites": {"berlin": {**LOGIN, "other_hosts": ["b,port=1"]}}}, "port is unknown"),
    ],
    ids=str,
)
def test_mistakes_in_the_file(
    labs: Labs, manager: Manager, tmp_path: Path, more: dict[str, Any], words: str
) -> None:
    path = file(labs, manager, tmp_path, **more)
    failed = run_module("report_info", {"sites_file": path})
    assert failed["error"]["category"] == "ConfigurationError"
    assert words in failed["msg"]


def test_a_manager_that_refuses_or_is_dark(labs: Labs, manager: Manager, tmp_path: Path) -> None:
    wrong = {**manager.options, "token_secret": "44444444-0000-4000-8000-000000000001"}
    failed = run_module("vms", {"sites_file": file(labs, manager, tmp_path, pdm=wrong), "vms": []})
    assert failed["error"]["category"] == "AuthenticationError"
    assert "Could not read the remotes of 127.0.0.1" in failed["msg"]
    assert wrong["token_secret"] not in str(failed)
    dark = {**manager.options, "host": "127.0.0.1:9", "timeout": 1}
    path = file(labs, manager, tmp_path, pdm=dark)
    failed = run_module("report_info", {"sites_file": path})
    assert failed["error"]["category"] == "NetworkError"
