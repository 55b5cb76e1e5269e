# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The change that makes a container the desired one, by recorded configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.quantities import GIB
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.desired.parse import (
    read_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.plan.decide import (
    root_only,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.plan.planner import (
    CONTAINER_PLANNER,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.config.change import (
    ConfigChange,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.config.changes import (
    all_changes,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.config.hotplug import (
    waits_for_stop,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.kind import (
    CONTAINER,
)

# A recorded configuration of PVE 9.2, its notes without the last line feed.
CONFIG = {
    "arch": "amd64",
    "cores": "2",
    "description": "first\nct",
    "features": "nesting=1",
    "hostname": "web1",
    "memory": "256",
    "mp0": "images:100/vm-100-disk-1.raw,mp=/data,backup=1,size=1G",
    "nameserver": "10.99.0.1",
    "net0": "name=eth0,bridge=vmbr0,gw=10.99.0.1,hwaddr=BC:24:11:F9:8C:36,ip=10.99.0.50/24"
    ",type=veth",
    "onboot": "1",
    "ostype": "alpine",
    "rootfs": "images:100/vm-100-disk-0.raw,size=1G",
    "searchdomain": "lab.test",
    "startup": "order=2,up=5",
    "swap": "128",
    "tags": "db;web",
    "unprivileged": "1",
}
# The options that describe it.
AS_IT_IS: dict[str, Any] = {
    "name": "web1",
    "cores": 2,
    "memory": 256,
    "swap": "128M",
    "description": "first\nct\n",
    "features": {"nesting": True, "fuse": False},
    "rootfs": {"size": "1G", "storage": "images"},
    "mounts": [{"path": "/data", "size": 1, "backup": True, "readonly": False}],
    "nics": [{"bridge": "vmbr0", "ip": "10.99.0.50/24", "gateway": "10.99.0.1", "firewall": False}],
    "nameservers": ["10.99.0.1"],
    "search_domain": "lab.test",
    "startup": "order=2,up=5",
    "tags": ["web", "DB"],
    "onboot": True,
    "console": True,
    "tty": 2,
    "cmode": "tty",
    "unprivileged": True,
    "ostype": "alpine",
    "protection": False,
}


def change(
    target: Mapping[str, str] | None = None, /, *, new: bool = False, **options: Any
) -> ConfigChange:
    """Return the change of a container by these options; the container of CONFIG by default."""
    target = CONFIG if target is None else target
    return CONTAINER_PLANNER.changes(
        read_options({"name": "web1", **options}).desired, target, new=new
    )


def test_a_container_as_described_is_not_changed() -> None:
    assert change(**AS_IT_IS).keys == set()
    assert change().keys == set()


@pytest.mark.parametrize(
    ("options", "sets"),
    [
        ({"cores": 4}, {"cores": "4"}),
        ({"name": "web2"}, {"hostname": "web2"}),
        ({"features": {"fuse": True}}, {"features": "fuse=1,nesting=1"}),
        ({"startup": "order=2,up=6"}, {"startup": "2,up=6"}),
        ({"tags": ["new"]}, {"tags": "db;new;web"}),
        ({"environment": {"A": "1"}}, {"env": "A=1"}),
    ],
)
def test_only_what_differs_is_written(options: dict[str, Any], sets: dict[str, str]) -> None:
    assert change(**options).sets == sets


def test_a_changed_nic_keeps_its_mac_and_its_address() -> None:
    assert change(nics=[{"vlan": 7}]).sets["net0"] == (
        "bridge=vmbr0,gw=10.99.0.1,hwaddr=BC:24:11:F9:8C:36,ip=10.99.0.50/24,name=eth0,tag=7"
        ",type=veth"
    )
    without_gateway = change(nics=[{"ip": "dhcp"}]).sets["net0"]
    assert "ip=dhcp" in without_gateway
    assert "gw=" not in without_gateway


def test_a_new_nic_has_a_name_and_a_bridge() -> None:
    assert change(nics=[{"name": "net1", "ip": "dhcp"}]).sets == {
        "net1": "bridge=vmbr0,ip=dhcp,name=eth1,type=veth"
    }


def test_an_exact_list_of_nics_removes_the_others() -> None:
    assert change(nics=[{"name": "net0"}], nics_exact=True).keys == set()
    assert change(nics=[], nics_exact=True).deletes == {"net0"}


def test_options_of_a_mount_keep_its_volume() -> None:
    found = change(mounts=[{"readonly": True}])
    assert found.sets == {"mp0": "images:100/vm-100-disk-1.raw,backup=1,mp=/data,ro=1,size=1G"}


def test_volumes_grow_move_detach_and_go() -> None:
    found = change(rootfs={"size": "2G"}, mounts=[{"storage": "other"}])
    assert found.drives.grown == {"rootfs": 2 * GIB}
    assert found.drives.moved == {"mp0": "other"}
    assert found.drives.storages == {"other": "rootdir"}
    assert found.sets == {}
    after = CONTAINER_PLANNER.applied(found, CONFIG)
    assert after["rootfs"] == "images:100/vm-100-disk-0.raw,size=2G"
    assert after["mp0"] == "other:moved,backup=1,mp=/data,size=1G"
    detached = change(mounts=[{"name": "mp0", "state": "detached"}])
    assert detached.deletes == detached.drives.detached == {"mp0"}
    assert change(mounts=[], mounts_exact=True).drives.detached == {"mp0"}
    absent = change(mounts=[{"name": "mp0", "state": "absent"}])
    assert not absent.deletes
    assert absent.drives.removed == {"mp0"}
    unused = {**CONFIG, "unused0": "images:100/vm-100-disk-7.raw"}
    gone = change(unused, mounts=[{"name": "unused0", "state": "absent"}])
    assert gone.drives.removed == {"unused0"}


def test_a_new_mount_is_allocated() -> None:
    found = change(mounts=[{"name": "mp1", "path": "/srv", "size": "1536M", "storage": "images"}])
    assert found.sets == {"mp1": "images:1.5,mp=/srv"}
    assert CONTAINER_PLANNER.applied(found, CONFIG)["mp1"] == "images:new,mp=/srv,size=1536M"
    default = change(mounts=[{"name": "mp1", "path": "/srv"}])
    assert default.sets == {"mp1": "local-lvm:4,mp=/srv"}


def test_a_new_container_is_unprivileged_and_has_a_root_file_system() -> None:
    assert change({}, new=True).sets == {
        "hostname": "web1",
        "unprivileged": "1",
        "rootfs": "local-lvm:4",
    }
    own = change({}, new=True, unprivileged=False, rootfs={"size": 8, "storage": "images"})
    assert own.sets == {"hostname": "web1", "unprivileged": "0", "rootfs": "images:8"}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"unprivileged": False}, "it is unprivileged, which PVE fixes at creation"),
    ({"mounts": [{"size": "512K"}]}, "size"),
    ({"rootfs": {"size": 2}}, "cannot shrink to 2 GiB"),
    ({"mounts": [{"name": "mp4", "size": 1}]}, "it does not exist yet and has no path"),
    ({"mounts": [{"volume": "/srv/other"}]}, "it mounts images:100/vm-100-disk-1.raw"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=str)
def test_what_pve_cannot_change_is_refused(options: dict[str, Any], message: str) -> None:
    target = {**CONFIG, "rootfs": "images:100/vm-100-disk-0.raw,size=8G"}
    with pytest.raises(ValidationFailed, match=message):
        change(target, **options)


def test_a_refused_volume_is_shown_as_it_is_wanted() -> None:
    options = {"rootfs": {"size": "2G"}, "mounts": [{"path": "/data", "size": "512M"}]}
    found = all_changes(read_options({"name": "web1", **options}).desired, CONFIG)
    assert found.drives.grown == {"rootfs": 2 * GIB}
    assert found.drives.refused.keys() == {"mp0"}
    assert "size=512M" in found.drives.after["mp0"]


def test_refused_differences_are_kept_beside_the_others() -> None:
    desired = read_options({"name": "web1", "unprivileged": False, "cores": 3}).desired
    found = all_changes(desired, CONFIG)
    assert set(found.drives.refused) == {"unprivileged"}
    assert found.sets == {"cores": "3"}


def test_variables_are_merged_and_never_shown() -> None:
    target = {**CONFIG, "env": "A=1\0SECRET=hunter2"}
    assert change(target, environment={"A": "1"}).keys == set()
    assert change(target, environment={"B": "x=y", "A": None}).sets == {
        "env": "SECRET=hunter2\0B=x=y"
    }
    gone = change(target, environment={"A": None, "SECRET": None})
    assert gone.deletes == {"env"}
    assert CONTAINER.formatted(target)["env"] == {"A": "(set)", "SECRET": "(set)"}


def test_the_configuration_is_shown_with_types() -> None:
    shown = CONTAINER.formatted(CONFIG)
    assert (shown["cores"], shown["onboot"], shown["features"]) == (2, True, {"nesting": True})
    assert shown["mp0"] == {"storage": "images", "mp": "/data", "backup": True, "size": "1G"}


@pytest.mark.parametrize(
    ("options", "target", "refused"),
    [
        ({"features": {"nesting": False}}, CONFIG, None),
        ({"features": {"keyctl": True}}, CONFIG, "changing feature flags (except nesting)"),
        ({"features": {"nesting": True}}, {}, None),
        ({"mounts": [{"name": "mp1", "volume": "/srv", "path": "/srv"}]}, CONFIG, "type bind is"),
        ({"mounts": [{"name": "mp1", "volume": "/dev/sdb1", "path": "/b"}]}, CONFIG, "type device"),
        ({"devices": [{"path": "/dev/kvm"}]}, CONFIG, "configuring device passthrough"),
        ({"hookscript": "local:snippets/a.sh"}, CONFIG, "changing the hookscript"),
        ({"cores": 8, "memory": "1G"}, CONFIG, None),
    ],
)
def test_what_only_root_can_change(
    options: dict[str, Any], target: dict[str, str], refused: str | None
) -> None:
    found = root_only(change(target, **options), target, unprivileged=True)
    assert bool(found) == bool(refused)
    assert all(str(refused) in why for why in found.values())


def test_features_of_a_privileged_container_need_root() -> None:
    found = root_only(change(features={"nesting": False}), CONFIG, unprivileged=False)
    assert "privileged container" in found["features"]


# Recorded answers of C(pending) after a change of a running container.
LIVE: list[tuple[str, str | None, str | None, bool]] = [
    ("cores", "2", "4", False),
    ("memory", "256", "320", False),
    ("hostname", "web1", "later", False),
    ("features", "nesting=1", "nesting=0", True),
    ("nameserver", "10.0.0.1", None, True),
    ("onboot", "1", None, False),
    ("mp0", CONFIG["mp0"], None, True),
    ("mp1", None, "images:1,mp=/a", False),
    ("mp0", CONFIG["mp0"], CONFIG["mp0"] + ",ro=1", True),
    ("net1", None, "name=eth1,bridge=vmbr1", False),
    ("net1", "name=eth1,bridge=vmbr1", None, False),
    ("net12", "name=eth1,bridge=vmbr1", None, True),
    ("unused0", "images:100/vm-100-disk-3.raw", None, False),
]


@pytest.mark.parametrize(("key", "old", "new", "waits"), LIVE)
def test_which_changes_wait_for_a_restart(
    key: str, old: str | None, new: str | None, waits: bool
) -> None:
    assert waits_for_stop(key, old, new, CONFIG) == waits
