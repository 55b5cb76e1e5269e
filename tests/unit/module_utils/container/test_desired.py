# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module container become a desired container, or are refused without a request."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.quantities import GIB
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.generated.lxc import (
    OPTIONS,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.container import (
    container_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated import (
    container_rules,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.desired import (
    parse as values,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.desired.parse import (
    read_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.hardware import (
    ContainerHardware,
)


def hardware(**options: Any) -> ContainerHardware:
    """Return the hardware of a container with these options."""
    return read_options({"name": "ct", **options}).desired.hardware


def test_every_declared_check_has_its_function() -> None:
    declared = {kind for kinds in values.CHECKS.values() for kind in kinds.values()}
    assert declared <= values.FUNCTIONS.keys()


def test_plain_options_have_the_form_of_pve() -> None:
    found = hardware(
        cores=2,
        cpulimit=1.5,
        memory="2G",
        swap=0,
        onboot=True,
        nameservers=["10.0.0.1", "10.0.0.2"],
        search_domain="lab.test",
        startup="order=2,up=5",
        tty=3,
    )
    assert found.scalars == {
        "cores": "2",
        "cpulimit": "1.5",
        "memory": "2048",
        "swap": "0",
        "onboot": "1",
        "nameserver": "10.0.0.1 10.0.0.2",
        "searchdomain": "lab.test",
        "tty": "3",
    }
    assert found.property_strings == {"startup": {"order": "2", "up": "5"}}


def test_an_empty_text_removes_what_pve_can_do_without() -> None:
    found = hardware(cores="", timezone="", nameservers=[], hookscript="")
    assert found.unset == {"cores", "timezone", "nameserver", "hookscript"}
    assert hardware(memory="").scalars == {}


def test_a_nic_has_its_address_in_one_property_string() -> None:
    nic = {"network": "dmz", "vlan": 7, "ip": "10.0.0.5/24", "gateway": "10.0.0.1", "ip6": "manual"}
    assert hardware(nics=[nic]).property_strings["net0"] == {
        "bridge": "vmbr1",
        "tag": "7",
        "ip": "10.0.0.5/24",
        "gw": "10.0.0.1",
        "ip6": "manual",
        "gw6": None,
    }
    assert hardware(nics=[{"name": "net3", "state": "absent"}]).unset == {"net3"}


def test_volumes_have_slots_sizes_and_sub_keys() -> None:
    found = hardware(
        rootfs={"size": "8G", "storage": "local-zfs", "mount_options": ["noatime", "discard"]},
        mounts=[{"path": "/data", "size": 2, "backup": True, "options": {"keepattrs": True}}],
    )
    rootfs, data = found.disks
    assert (rootfs.slot, rootfs.size, rootfs.storage) == ("rootfs", 8 * GIB, "local-zfs")
    assert rootfs.options == {"mountoptions": "noatime;discard"}
    assert (data.slot, data.size, data.state) == ("mp0", 2 * GIB, "present")
    assert data.options == {"mp": "/data", "backup": "1", "keepattrs": "1"}


def test_features_devices_and_variables() -> None:
    found = hardware(
        features={"nesting": True, "mount": ["nfs", "cifs"]},
        devices=[{"path": "/dev/dri/renderD128", "mode": "0660", "gid": 104}],
        environment={"DEBUG": True, "PORT": 80, "OLD": None},
    )
    assert found.property_strings["features"] == {"nesting": "1", "mount": "nfs;cifs"}
    assert found.property_strings["dev0"] == {
        "path": "/dev/dri/renderD128",
        "mode": "0660",
        "gid": "104",
    }
    assert found.environment == {"DEBUG": "true", "PORT": "80", "OLD": None}
    assert "PORT" not in repr(found)


def test_a_clone_of_a_snapshot() -> None:
    source = read_options({"name": "ct", "source": "base", "snapshot": "s1"}).desired.guest.source
    assert source is not None
    assert (source.name, source.snapshot) == ("base", "s1")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"memory": "8M"}, "memory was refused"),
    ({"cores": 0}, "cores was refused"),
    ({"name": "bad_name"}, "name was refused"),
    ({"root_password": "abc"}, "root_password was refused"),
    ({"ssh_keys": ["not a key"]}, "ssh_keys was refused"),
    ({"mounts": [{"name": "scsi0", "path": "/a"}]}, "Use a name such as mp0"),
    ({"mounts": [{"name": "mp0"}, {"name": "mp0"}]}, "is listed twice"),
    ({"mounts": [{"name": "unused0"}]}, "It can only be absent"),
    ({"mounts": [{"volume": "/srv", "size": 1}]}, "beside an existing volume"),
    ({"mounts": [{"path": "/a/../b"}]}, "illegal character sequences"),
    ({"rootfs": {"options": {"volume": "local:1"}}}, "has an option of its own"),
    ({"rootfs": {"mount_options": ["a b"]}}, "is not a single word"),
    ({"nics": [{"name": "eth0"}]}, "the name in the container is interface"),
    ({"nics": [{"ip": "10.0.0.1"}]}, "ip was refused"),
    ({"nics": [{"ip": "dhcp", "gateway": "10.0.0.1"}]}, "needs a static ip"),
    ({"nics": [{"vlan": 5000}]}, "net0.tag was refused"),
    ({"devices": [{"name": "mp0", "path": "/dev/a"}]}, "Use a name such as dev0"),
    ({"environment": {"A-B": "1"}}, "is not a variable that PVE takes"),
    ({"environment": {"A": "1\n2"}}, "is not a variable that PVE takes"),
    ({"options": {"memory": 1024}}, "Use memory"),
    ({"options": {"mp0": "local:1,mp=/a"}}, "Use mounts, nics and devices"),
    ({"options": {"lock": "backup"}}, "The API does not set it"),
    ({"onboot": True, "options": {"onboot": 0}}, "Set it once"),
    ({"tty": 7}, "tty was refused"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=str)
def test_bad_input_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationFailed, match=message):
        hardware(**options)


def test_an_unknown_network_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="network 'nope' could not be resolved"):
        hardware(nics=[{"network": "nope"}])


# Options of the schema with a rule of their own -> the option of the module.
WITH_RULES = {
    "description": "description",
    "dev[n]": "devices",
    "env": "environment",
    "features": "features",
    "hostname": "name",
    "memory": "memory",
    "mp[n]": "mounts",
    "net[n]": "nics",
    "rootfs": "rootfs",
    "startup": "startup",
    "swap": "swap",
    "tags": "tags",
    "template": "state",
    "unused[n]": "mounts",
}


def test_every_option_of_the_schema_has_an_option_of_the_module() -> None:
    """All but `lock`, which PVE sets itself."""
    declared = {pve: own for own, pve in container_rules.SCALARS[""].items()} | WITH_RULES
    assert set(OPTIONS) - set(declared) == {"lock"}
    assert set(declared.values()) <= container_spec().keys()
