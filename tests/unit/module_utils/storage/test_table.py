# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of storages beside the schema of PVE, and the users of a storage."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.storages.types import (
    CONTENT,
    MAY_BE_EMPTY,
    SINCE,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    NotSupported,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage import (
    precheck,
    usage,
    values,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.table import (
    STORAGE,
    states_of,
)
from tests.simulator.schema.definition import load_paths
from tests.simulator.storage import hooks, kinds

# `mkdir` is deprecated, its successors are there; no type has `authsupported`.
WITHOUT = {"storage", "mkdir", "authsupported"}
FIELDS = {one.property: one for one in STORAGE.fields}
SECRETS = {one.property: one for one in STORAGE.secrets}


def properties(path: str, method: str) -> dict[str, Any]:
    return dict(load_paths("9.2")[path][method]["params"])


def test_every_property_of_the_schema_is_an_option() -> None:
    assert FIELDS.keys() | SECRETS.keys() == properties("/storage", "POST").keys() - WITHOUT
    choices = properties("/storage", "POST")["type"]["enum"]
    assert sorted(choices) == list(CONTENT)


def test_what_the_schema_does_not_update_is_fixed() -> None:
    update = properties("/storage/{storage}", "PUT").keys()
    for name, one in FIELDS.items():
        if name not in update:
            assert all(one.is_fixed_in(kind) for kind in CONTENT if one.exists_in(kind)), name


@pytest.mark.parametrize("kind", CONTENT)
def test_each_type_has_the_options_of_its_plugin(kind: str) -> None:
    """The simulator's lists are checked by recordings (make fidelity)."""
    secrets = {name for name, one in SECRETS.items() if one.exists_in(kind)}
    assert secrets == set(hooks.SECRETS.get(kind, ()))
    options = {name for name, one in FIELDS.items() if one.exists_in(kind)}
    assert (options | secrets) - {"type"} == kinds.known(kind) - {"mkdir"}
    fixed = {name for name in options if FIELDS[name].is_fixed_in(kind)}
    assert fixed - {"type"} == set(kinds.fixed(kind))
    required = {name for name in options if FIELDS[name].is_required_in(kind)}
    assert required - {"type"} == set(kinds.REQUIRED.get(kind, ()))
    assert CONTENT[kind] == kinds.CONTENT[kind] - {"none"}
    assert (kind in MAY_BE_EMPTY) == ("none" in kinds.CONTENT[kind])


def test_newer_options_are_those_that_the_older_schema_lacks() -> None:
    older = load_paths("8.4")["/storage"]["POST"]["params"]
    newer = {one.option for name, one in FIELDS.items() if name not in older}
    assert newer == set(SINCE)


def test_an_older_version_is_named() -> None:
    with pytest.raises(NotSupported, match=r"PVE 8\.4 does not have zfs_base_path"):
        precheck.require_supported(["zfs_base_path"], (8, 4), "x")
    precheck.require_supported(["zfs_base_path"], (9, 2), "x")


@pytest.mark.parametrize(
    ("option", "text", "shown"),
    [
        ({}, None, {}),
        ({"keep_last": 3, "keep_daily": 0}, "keep-last=3", {"keep_last": 3}),
        ({"keep_last": 0}, "keep-all=1", {"keep_all": True}),
        ({"keep_all": True}, "keep-all=1", {"keep_all": True}),
    ],
)
def test_retention(option: dict[str, Any], text: str | None, shown: dict[str, Any]) -> None:
    found = values.retention(option)
    assert values.PRUNE_BACKUPS.send(found) == text
    assert values.read_retention(text) == found
    assert values.show_retention(found) == shown


def test_directories() -> None:
    found = values.directories({"iso": "/a/b/", "backup": None})
    assert found == values.read_directories(values.send_directories(found)) == {"iso": "a/b"}
    assert values.send_directories({}) is None
    with pytest.raises(ValidationFailed, match="is not a content type"):
        values.directories({"floppy": "a"})


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"scsi0": "fast:vm-100-disk-0,size=2G"}, True),
        ({"ide2": "file=fast:iso/x.iso,media=cdrom"}, True),
        ({"cicustom": "user=fast:snippets/a.yml,meta=local:snippets/b.yml"}, True),
        ({"rootfs": "fast:vm-100-disk-0"}, True),
        ({"mp3": "volume=fast:vm-100-disk-1,mp=/x"}, True),
        ({"unused0": "fast:vm-100-disk-0"}, True),
        ({"vmstatestorage": "fast"}, True),
        ({"scsi0": "fast2:vm-100-disk-0", "scsi1": "notfast:vm-100-disk-0"}, False),
        ({"description": "fast:vm", "args": "fast:x", "scsihw": "virtio-scsi-pci"}, False),
    ],
)
def test_a_configuration_names_a_storage(config: dict[str, Any], found: bool) -> None:
    assert usage.names_storage(config, "fast") is found


def test_backup_jobs_and_storages_that_use_a_storage() -> None:
    jobs: list[dict[str, Any]] = [
        {"id": "a", "storage": "fast"},
        {"id": "b", "storage": "slow", "fleecing": "1,storage=fast"},
        {"id": "c", "storage": "slow", "fleecing": {"enabled": 1, "storage": "fast"}},
        {"id": "d", "storage": "slow"},
    ]
    found = usage.find_backup_jobs(jobs, "fast")
    assert found == ["backup job a", "backup job b", "backup job c"]
    rows = [{"storage": "lvm1", "base": "fast:0.0.1.x"}, {"storage": "lvm2"}]
    assert usage.find_based_storages(rows, "fast") == ["storage lvm1"]


def test_many_users_are_counted() -> None:
    found = usage.StorageUsage(tuple(f"guest {vmid} (x)" for vmid in range(100, 120)))
    with pytest.raises(Conflict, match="10 more") as caught:
        precheck.require_unused(found.users, "x", "it stays")
    assert len(caught.value.details["users"]) == 20


def test_states_of_an_inactive_storage_have_no_figures() -> None:
    rows = [
        {"storage": "s", "node": "b", "status": "unknown", "maxdisk": 5},
        {"storage": "s", "node": "a", "status": "available", "maxdisk": 5, "disk": 3, "shared": 1},
    ]
    first, second = states_of(rows)["s"]
    assert (first["node"], first["free"], first["shared"]) == ("a", 2, True)
    assert (second["active"], second["total"], second["free"]) == (False, None, None)
