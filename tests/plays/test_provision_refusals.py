# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role provision refuses, and how it reports what the module refuses."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cases import repeated
from tests.certificates import Authority
from tests.demo.lab import Lab
from tests.plays.provision_helpers import PROVISION, Player, vm, writes


@pytest.fixture
def free_port() -> int:
    """A port on which no server listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def other_ca(tmp_path: Path) -> Path:
    """A CA that did not sign the certificate of the cluster."""
    return Authority(tmp_path, "other CA").file


# What the role refuses before any request.


class Refusal(NamedTuple):
    """A case that is refused, and a part of the message."""

    case: dict[str, Any]
    text: str


REFUSED: dict[str, Refusal] = {
    "an unknown option": Refusal(
        {"vms": [vm("a", coers=2)]}, "vms[0] (a): unknown option 'coers' (did you mean 'cores'?)"
    ),
    "no number": Refusal(
        {"vms": [vm("a", cores="many")]}, "vms[0] (a): cores: 'many' is not a whole number"
    ),
    "no choice": Refusal(
        {"vms": [vm("a", disks=[{"cache": "big"}])]},
        "vms[0] (a): disks[0].cache: 'big' is not one of none",
    ),
    "an unknown option of a NIC": Refusal(
        {"vms": [vm("a", nics=[{"brigde": "vmbr0"}])]},
        "vms[0] (a): unknown option 'nics[0].brigde' (did you mean 'bridge'?)",
    ),
    "no name": Refusal({"vms": [{"cores": 2}]}, "vms[0] (without a name): No VM was chosen"),
    "no list": Refusal({"vms": 7}, "option 'provision_vms'"),
    "an unknown default": Refusal(
        {"vms": [], "defaults": {"coers": 2}},
        "defaults: unknown option 'coers' (did you mean 'cores'?)",
    ),
    "a default name": Refusal(
        {"vms": [], "defaults": {"name": "a"}}, "defaults: unknown option 'name'"
    ),
    "no state": Refusal(
        {"vms": [], "state": "Started"},
        (
            "provision_state: 'Started' is not one of present, started, stopped"
            " (did you mean 'started'?)"
        ),
    ),
    "an unknown connection": Refusal(
        {"vms": [], "connection": {"hots": "x"}},
        "Unsupported parameters for (pve.fleet.vms) module: hots (did you mean 'host'?)",
    ),
    "a double": Refusal(
        {"vms": [vm("a", tenant="acme"), vm("A", tenant="Acme")]}, "more than one VM acme/a"
    ),
    "a double number": Refusal(
        {"vms": [vm("a", vmid=200), vm("b", vmid=200)]}, "more than one VM VMID 200"
    ),
    "a tenant without a value": Refusal(
        {"vms": [vm("a", tenant="")]}, "vms[0].tenant was refused: it is given without a value"
    ),
    "a default tenant without a value": Refusal(
        {"vms": [vm("a")], "defaults": {"tenant": " "}},
        "defaults.tenant was refused: it is given without a value",
    ),
    "tenants without a value": Refusal(
        {"vms": [vm("a", tenant="acme")], "tenants": [""]}, "tenants is given without a value"
    ),
    "tenants of an empty variable": Refusal(
        {"vms": [vm("a", tenant="acme")], "tenants": ""}, "tenants is given without a value"
    ),
    "removal of tenants without a value": Refusal(
        {"vms": [vm("a", tenant="acme")], "tenants": [""], "all": True, "tasks": "absent"},
        "tenants is given without a value",
    ),
    "an unknown tenant": Refusal(
        {"vms": [vm("a", tenant="acme")], "tenants": ["acme", "ac"]},
        "tenants names ac, but no VM of the list has that tenant: its tenants are acme",
    ),
    "a removal of everything": Refusal(
        {"vms": [vm("a", tenant="acme")], "tasks": "absent"},
        "Name the tenants in provision_tenants, or set provision_all=true",
    ),
    "a removal of a part of a name": Refusal(
        {"vms": [vm("a", tenant="acme")], "tasks": "absent", "tenants": "acm"}, "tenants names acm"
    ),
}


# One case of each origin: module, specification of the role, and tasks of the role.
ORIGINS = (
    "an unknown option",
    "no list",
    "an unknown default",
    "a double",
    "an unknown tenant",
    "a removal of everything",
)


@pytest.mark.parametrize(
    "names", repeated([ORIGINS, sorted(REFUSED.keys() - set(ORIGINS))]), ids=["origins", "others"]
)
def test_wrong_estate_is_refused_with_the_name_of_the_variable_before_any_request(
    player: Player, lab: Lab, names: Sequence[str]
) -> None:
    mark = lab.mark()
    outcomes = player.cases(*({"name": name, **REFUSED[name].case} for name in names))
    messages = {name: outcome.refusal for name, outcome in outcomes.items()}
    missing = {name: messages[name] for name in names if REFUSED[name].text not in messages[name]}
    assert missing == {}
    assert lab.requests_since(mark) == []


def test_estate_must_be_given_once(player: Player, lab: Lab) -> None:
    mark = lab.mark()
    assert "was the estate given with -e @FILE?" in player.play(PROVISION).expect(2).output
    assert (
        "has no value. Write a list of VMs"
        in player.play(PROVISION, provision_vms=None).expect(2).output
    )
    assert (
        "has no value. Write a dictionary"
        in player.play(PROVISION, provision_vm=None).expect(2).output
    )
    both = player.play(PROVISION, provision_vms=[vm("a")], provision_vm={"cores": 1}).expect(2)
    assert "Both are: remove one." in both.output
    assert lab.requests_since(mark) == []


def test_misspelt_variable_of_the_tenants_is_refused(player: Player, lab: Lab) -> None:
    mark = lab.mark()
    refused = player.play(
        PROVISION, provision_vms=[vm("a", tenant="acme")], provision_tenant="acme"
    )
    message = "provision_tenant is not a variable of pve.fleet (did you mean 'provision_tenants'?)"
    assert message in refused.expect(2).output
    assert lab.requests_since(mark) == []


# What the module refuses, as the role reports it.

MAPS: dict[str, Any] = {
    "classes": {"web": {"cores": 1, "memory": "1G"}},
    "networks": {"back": {"bridge": "vmbr1", "vlan": 120}},
    "storage_classes": {"fast": {"storage": "ceph"}},
}


class Failure(NamedTuple):
    """Options that cannot work, the category of the failure, and a part of the message."""

    options: dict[str, Any]
    category: str
    text: str


# Of these the module makes out, before any request, that they are nothing for a VM: it refuses the
# whole list.
MISTAKEN: dict[str, Failure] = {
    "unknown-class": Failure({"class": "wbe"}, "ConfigurationError", "known are web"),
    "unknown-network": Failure({"nics": [{"network": "backk"}]}, "ConfigurationError", "back"),
    "unknown-storage-class": Failure(
        {"disks": [{"storage_class": "slow"}]}, "ConfigurationError", "known are fast"
    ),
    "bad_name": Failure({}, "ValidationFailed", "bad_name"),
    "memory-unit": Failure({"memory": "4Q"}, "ValidationFailed", "4Q"),
    "memory-small": Failure({"memory": "1M"}, "ValidationFailed", "memory"),
    "memory-large": Failure({"memory": "3T"}, "ValidationFailed", "memory"),
    "disk-unit": Failure({"disks": [{"name": "scsi1", "size": "20X"}]}, "ValidationFailed", "20X"),
    "disk-small": Failure({"disks": [{"name": "scsi1", "size": "1M"}]}, "ValidationFailed", "size"),
    "disk-large": Failure(
        {"disks": [{"name": "scsi1", "size": "200T"}]}, "ValidationFailed", "size"
    ),
    "no-cpu": Failure({"cores": 0}, "ValidationFailed", "cores"),
    "many-cpus": Failure({"cores": 2000}, "ValidationFailed", "cores"),
    "wrong-vlan": Failure(
        {"nics": [{"bridge": "vmbr0", "vlan": 5000}]}, "ValidationFailed", "5000"
    ),
}

# These do not fit this cluster: it has to be asked, and each fails by itself.
UNFIT: dict[str, Failure] = {
    "unknown-node": Failure({"node": "pve9"}, "ConfigurationError", "pve1"),
    "unknown-storage": Failure(
        {"disks": [{"name": "scsi1", "size": "5G", "storage": "cpeh"}]},
        "ConfigurationError",
        "ceph",
    ),
    "unknown-bridge": Failure({"nics": [{"bridge": "vmbr9"}]}, "ConfigurationError", "vmbr0"),
    "unknown-template": Failure({"source": "debian-31"}, "NotFound", "debian-13"),
    "ambiguous-template": Failure({"source": "twin"}, "Conflict", "2 templates have that name"),
    "unknown-pool": Failure({"pool": "acne"}, "ConfigurationError", "acme"),
    "foreign": Failure({"tenant": "acme"}, "Conflict", "another tenant"),
}


def misfits(
    messages: dict[str, tuple[str, str]], wanted: dict[str, Failure]
) -> dict[str, tuple[str, str]]:
    """Return the failures that lack the category, the text or, as another sentence, the next
    step.
    """
    return {
        name: (category, message)
        for name, (category, message) in messages.items()
        if category != wanted[name].category
        or wanted[name].text not in message
        or not re.search(r"\. \w", message)
    }


def test_each_wrong_vm_is_named_and_nothing_is_written(player: Player, lab: Lab) -> None:
    lab.make_template("twin")
    lab.make_template("twin")
    foreign = lab.make_vm("foreign", tags="tenant_globex")
    mark = lab.mark()
    options = {name: dict(wrong.options) for name, wrong in UNFIT.items()}
    options["foreign"]["vmid"] = foreign  # by its name alone, it does not exist for this tenant
    unfit = [vm(name, **wrong) for name, wrong in options.items()]
    outcome = player.cases({"name": "unfit", "vms": unfit, **MAPS})["unfit"]
    assert misfits({name: outcome.failure_of(name) for name in UNFIT}, UNFIT) == {}
    assert {row["action"] for row in outcome.result} == {"failed"}
    assert "7 of 7 guests failed" in outcome.refusal
    assert len(outcome.refusal) < 4000
    assert writes(lab, mark) == []


def test_list_with_a_mistake_is_refused_as_a_whole_before_any_request(
    player: Player, lab: Lab
) -> None:
    mark = lab.mark()
    mistaken = [vm(name, **wrong.options) for name, wrong in MISTAKEN.items()]
    outcome = player.cases(
        {"name": "mistaken", "vms": [vm("right"), *mistaken, vm("too")], **MAPS}
    )["mistaken"]
    assert misfits({name: outcome.failure_of(name) for name in MISTAKEN}, MISTAKEN) == {}
    assert [row["name"] for row in outcome.result] == ["right", *MISTAKEN, "too"]
    assert "refused, and nothing was changed" in outcome.refusal
    assert outcome.failure_of("right")[1] == outcome.failure_of("too")[1] == outcome.refusal
    assert lab.requests_since(mark) == []


def test_connection_that_does_not_work(
    stranger: Player, lab: Lab, free_port: int, other_ca: Path
) -> None:
    right = lab.connection
    wrong = "00000000-0000-4000-8000-999999999999"
    cases: dict[str, Failure] = {
        "no endpoint": Failure({}, "ConfigurationError", "PROXMOX_HOST"),
        "malformed endpoint": Failure(
            {**right, "host": "ht!tp://x y"}, "ConfigurationError", "host"
        ),
        "no credentials": Failure({"host": right["host"]}, "ConfigurationError", "token"),
        "wrong token": Failure({**right, "token_secret": wrong}, "AuthenticationError", "token"),
        "wrong CA": Failure({**right, "ca_path": str(other_ca)}, "NetworkError", "ca_path"),
        "unreachable port": Failure(
            {**right, "host": f"127.0.0.1:{free_port}", "retries": 1}, "NetworkError", "port"
        ),
    }
    mark = lab.mark()
    outcomes = stranger.cases(
        *(
            {"name": name, "vms": [vm("a")], "connection": case.options}
            for name, case in cases.items()
        )
    )
    messages = {name: outcome.failure_of("a") for name, outcome in outcomes.items()}
    assert misfits(messages, cases) == {}
    assert len({message for category, message in messages.values()}) == len(cases)
    assert writes(lab, mark) == []
