# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The formats that the API schema names have the same texts here and in the simulator, which
follows the source of Proxmox VE: pve-common's JSONSchema.pm, and the files that register others.
"""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema import named, requests
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.check import Refusal
from tests.simulator.network import firewall_rules  # registers its formats
from tests.simulator.schema.formats import FORMATS, FormatError, check_named

assert firewall_rules
TEXTS = (
    "a ab a-b a_b a.b a/b -a a- 0 1 9 64 100 4095 4096-4097 2-5 5-2 1a Größe host UTC Europe/Berlin"
    " Europe/Kiew US/Eastern 10.0.0.1 10.0.0.1/24 10.0.0.0/24 10.0.0.0/4 10.0.0.1-10.0.0.9"
    " 10.0.0.1,fd00::1 255.255.255.0 fd00::1 fe80::1%eth0 fe80::1%! fd00::/64 +set +dc/set"
    " alice@pve alice@pve!deploy @pve a@b.c a..b@c a@b..c root 65000:1 65000:4294967296 80,443"
    " dc/office 80:90 90:80 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 https nosuch tcp icmpv6 143"
    " echo-request TOS-host-redirect any images images=a/b images=../x 16k 3k BC:24:11:00:00:01 "
    "BD:24:11:00:00:01 BC:24 eth0.5 eth0 local:iso/x.iso /srv /srv;x [fd00::1]:80 nas.example.com:8"
    " a:b vm:100 mon"
    " 49.0001.1921.6800.1002.00 ftp,irc ftp,x 100-0 aa/bb/cc aa/bb/cc/dd"
).split() + ["", "a b", "10.0.0.1 x"]
# A new disk is written SIZE or STORAGE:SIZE, which the simulator reads before the format; an empty
# text is never sent.
ELSEWHERE = {"pve-volume-id-or-qm-path", "pve-hotplug-features"}
NAMES = sorted(name for name in named._CHECKS if name in FORMATS and name not in ELSEWHERE)


def is_accepted(name: str, text: str) -> bool:
    try:
        return check_named(name, text)
    except FormatError:
        return False


@pytest.mark.parametrize("name", NAMES)
def test_a_format_has_the_texts_that_it_has_in_the_simulator(name: str) -> None:
    found = {text: named.find_breach(name, text) is None for text in TEXTS}
    assert found == {text: is_accepted(name, text) for text in TEXTS}


def test_a_list_and_an_optional_value_have_the_format_of_their_items() -> None:
    assert named.find_breach("pve-node-list", "pve1, pve2;pve3") is None
    assert named.find_breach("pve-node-list", "pve1,pve_2") == (
        "value does not look like a valid node name 'pve_2'"
    )
    assert named.find_breach("email-opt", "") is None
    assert named.find_breach("email-opt", "no-address")
    assert named.find_breach("of-a-newer-version", "anything") is None


@pytest.mark.parametrize(
    ("path", "data", "message"),
    [
        ("cluster/backup", {"mailto": "a@b,no one@"}, "mailto was refused"),
        ("cluster/backup/nightly", {"comment": "x" * 513}, "At most 512 characters"),
        ("access/users", {"password": "short"}, "password was refused: '***' is too short"),
        ("nodes/pve1/time", {"timezone": "Europe/Kiew"}, "invalid time zone"),
        ("cluster/acme/plugins", {"api": "nosuch"}, "is not one of PVE's values"),
        ("cluster/options", {"bwlimit": "clone=-1"}, "bwlimit was refused"),
        ("nodes/pve1/lxc/100/firewall/rules", {"icmp-type": "nosuch"}, "icmp_type was refused"),
        ("cluster/mapping/usb", {"map": ["node=pve1,id=1"]}, "map was refused"),
    ],
)
def test_a_parameter_that_breaks_its_rule_is_refused(
    path: str, data: dict[str, object], message: str
) -> None:
    with pytest.raises(Exception, match=message.replace("*", r"\*")):
        requests.require_accepted(tuple(path.split("/")), data, {}, lambda: (9, 2, 11))


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("nodes/pve1/qemu/100/config", {"description": "x" * 9000}),  # _foundation/schema/check.py
        ("nodes/pve1/qemu/100/clone", {"description": "x" * 9000}),  # a rule of other paths
        ("cluster/acme/plugins", {"api": "of-a-newer-version"}),
        ("/srv/snippets/user.yml", {"content": "no content type"}),  # no call of the API
        ("nodes/pve1/qemu/100/resize", {"disk": "scsi0", "size": "+1G"}),
    ],
)
def test_a_parameter_without_a_rule_and_a_newer_word_are_sent(
    path: str, data: dict[str, object]
) -> None:
    requests.require_accepted(tuple(path.split("/")), data, {}, lambda: (99, 0))


def test_a_refusal_is_in_the_words_of_proxmox_ve() -> None:
    rule = {"minLength": 8, "maxLength": 9}
    short = requests.refusal_of_parameter("short", rule)
    assert isinstance(short, Refusal)
    assert short.reason == "value must be at least 8 characters long"
