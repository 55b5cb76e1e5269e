# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each parameter of each writing call: the collection refuses the values that the server refuses.

The simulator checks with the API schema of 9.2 and its own copy of the formats of pve-common,
pve-access-control, pve-network and pve-storage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.requests import (
    require_accepted,
)
from tests.simulator.schema.formats import FORMATS
from tests.simulator.schema.named_hashes import HASHES
from tests.simulator.schema.validate import check_prop
from tests.tools.facts.make_schema import OWN, UNUSED
from tests.tools.facts.pack_schema import paths_of

# Values that have a format, and values that do not: each is tried with each parameter.
VALUES = (
    *("no such value!", "-", "a,b", "Größe", "x" * 3000, "0", "1", "-1", "+5", "1.5", "1G", "99"),
    *("200", "65536", "yes", "a", "é", "ab", "aa", "x1", "a b", "a;b", "a:b", "a/b", "a=b", "ops"),
    *("a.b_c", "example.com", "a@b", "a@pve", "a@pve!tok", "root@pam", "Europe/Kiev2", "/a/b"),
    *("10.0.0.1", "fd00::1", "fe80::1%eth0", "10.0.0.0/24", "fd00::/64", "AA:BB:CC:DD:EE:FF"),
    *("1-5", "5-1", "2-4094", "http://a", "https://b/c", "vm:100", "local", "local:iso/x.iso"),
    *("enabled=1,storage=local", "storage=!", "keep-last=3", "keep-last=-1", "max-workers=0"),
    *("8086:1521", "1-1.2", "65000:1", "16k", "17k", "iso", "images", "daily", "mon..fri 8:00"),
)
# Parameters that other code of the collection checks, or that it never sends.
ELSEWHERE = {
    "certificates|key": "_infrastructure/node/identity/certificate.py reads the certificate",
    "dhcp-range|subnet": "_infrastructure/sdn/forms.py builds them from addresses",
    "dow|maxworkers": "never sent",
    "schedule": "_core/calendar.py reads calendar events",
    "target-?storage": "_guests/guest/plan/intent.py builds it from known storages",
}
# The simulator checks these in the handlers of the firewall and of nodes, as PVE does;
# tests/modules/test_values_foreseen.py compares both.
BY_HANDLER = re.compile(r"(IPorCIDR.*|pve-fw-.*)")


def parameters() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield each parameter of the writing calls of the collection."""
    for path, methods in sorted(paths_of("9.2").items()):
        segments = path.strip("/").split("/")
        writes_guest = segments[2:3] in (["qemu"], ["lxc"]) and segments[4:] in ([], ["config"])
        if writes_guest or UNUSED.search(path):
            continue
        for method in ("POST", "PUT"):
            for name, rule in methods.get(method, {"params": {}})["params"].items():
                is_own = name in OWN or f"{{{name}}}" in segments
                if not is_own and rule.get("type") != "boolean":
                    yield path, method, name, rule


def is_refused(path: str, name: str, value: Any) -> bool:
    segments = tuple("x" if part.startswith("{") else part for part in path.strip("/").split("/"))
    try:
        require_accepted(segments, {name: value}, {}, lambda: (9, 2))
    except ValidationFailed:
        return True
    return False


def differences(parameter: tuple[str, str, str, dict[str, Any]]) -> Iterator[str]:
    path, method, name, rule = parameter
    for text in VALUES:
        value = [text] if rule.get("type") == "array" else text
        errors: dict[str, str] = {}
        check_prop(value, rule, name, errors)
        if bool(errors) != is_refused(path, name, value):
            yield f"{method} {path} {name}={text[:20]!r}: the server says {errors.get(name)}"


def test_each_parameter_is_judged_as_by_the_server() -> None:
    found: list[str] = []
    for parameter in parameters():
        _path, _method, name, rule = parameter
        named = str(rule.get("format") or "")
        is_elsewhere = any(re.fullmatch(pattern, name) for pattern in ELSEWHERE)
        if not is_elsewhere and not BY_HANDLER.fullmatch(named):
            found += differences(parameter)
    assert [line for line in found if not LENIENT.search(line)] == []


# A parameter that differs between 8.4 and 9.2, or between VMs and containers, has the wider rule. The
# port of SMTP is checked behind the schema of the server.
LENIENT = re.compile(
    r"POST /nodes/\{node\}/(ceph/osd wal_dev_size='0'|qemu/\{vmid\}/(clone|migrate) bwlimit='1.5')"
    r"|PUT /nodes/\{node\}/time timezone="
    r"|(POST|PUT) /cluster/notifications/endpoints/smtp(/\{name\})? port="
)


def test_no_named_format_is_unknown() -> None:
    """A format that the simulator does not know would accept each value on both sides."""
    known = FORMATS.keys() | HASHES.keys()
    found: set[str] = set()
    for _path, _method, name, rule in parameters():
        for one in (rule, rule.get("items") or {}):
            named = str(one.get("format") or "")
            base = re.sub("-(list|opt)$", "", named)
            is_checked = named in known or base in known or isinstance(one.get("format"), dict)
            if named and not is_checked and not BY_HANDLER.fullmatch(named):
                found.add(f"{name}: {named}")
    assert found == set(UNCHECKED)


UNCHECKED = {
    "allowed_ips: FullRangeCIDR": "never sent",
    "devices: string-list": "pve-common accepts any text",
    "id: pve-replication-job-id": "the key of a replication job",
    "privs: pve-priv-list": "the role is checked by its known privileges",
    "route-map-in: pve-sdn-route-map-id": "never sent",
    "route-map-out: pve-sdn-route-map-id": "never sent",
    "route_filter: pve-sdn-prefix-list-id": "never sent",
}


@pytest.mark.parametrize("pattern", ELSEWHERE)
def test_each_exception_is_a_parameter(pattern: str) -> None:
    assert any(re.fullmatch(pattern, name) for _path, _method, name, _rule in parameters())
