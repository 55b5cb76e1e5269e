# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the guides are those of the code."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http import transport
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.transport import (
    tls_context,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import resolve
from tests.tools import tables


@pytest.mark.parametrize("page", sorted({page for page, _table in tables.TABLES}))
def test_a_page_has_the_tables_of_the_code(repo: Path, page: str) -> None:
    text = (repo / page).read_text(encoding="utf-8")
    assert tables.with_tables(page, text) == text, "run python -m tests.tools.tables"


def test_a_page_without_a_mark_is_found() -> None:
    with pytest.raises(ValueError, match="no marks for the table 'options by purpose'"):
        tables.with_tables("docs/vm.md", "nothing")


def test_every_declared_option_is_in_the_table_of_reboots() -> None:
    for part, given in (("", tables.OPTIONS), ("disks", tables.DISKS), ("nics", tables.NICS)):
        named = {name.partition(":")[0] for name in tables.changes(part, given)}
        assert named >= tables.declared(part).keys()


def test_a_change_that_the_guest_can_refuse_has_its_own_row() -> None:
    rows = dict(row.strip("| ").split(" | ", 1) for row in tables.reboots().splitlines()[2:])
    assert rows["`memory`, more"] == "reboot | at once | reboot"
    assert rows["`memory`, less"] == "reboot | if the guest releases it | reboot"
    assert rows["`balloon`, to 0"] == rows["`balloon`, from 0"] == "reboot | reboot | reboot"
    released = "if the guest releases it"
    assert rows["`state: absent` of a card"] == f"{released} | {released} | reboot"


def test_the_table_of_privileges_names_what_preflight_checks() -> None:
    rows = dict(row.strip("| ").split(" | ", 1) for row in tables.privileges().splitlines()[2:])
    assert "`VM.Config.*` on the VM or its pool" in rows["`vm`"]
    assert rows["`vm_info`"] == "`VM.Audit` on the VM or its pool"
    assert "`Sys.Audit` or `Group.Allocate` on `/access/groups`" in rows["`group_info`"]


@pytest.mark.parametrize("verify", [True, False])
def test_old_versions_of_tls_are_refused(verify: bool) -> None:
    options: dict[str, Any] = {"host": "pve1", "token_id": "fleet@pve!ansible", "token_secret": "c"}
    context = tls_context(resolve({**options, "validate_certs": verify}, {}))
    assert context.minimum_version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def test_a_python_that_allows_old_versions_does_not_use_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Debian's Python has no minimum of its own (python3.11 3.11.2-6+deb12u6)."""
    lenient = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    lenient.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    monkeypatch.setattr(transport, "_verifying_context", lambda _connection: lenient)
    options: dict[str, Any] = {"host": "pve1", "token_id": "fleet@pve!ansible", "token_secret": "c"}
    assert tls_context(resolve(options, {})).minimum_version == ssl.TLSVersion.TLSv1_2
