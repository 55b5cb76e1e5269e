# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelt variables and wrong values are refused by playbooks and roles before any request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.variables import (
    FAMILIES,
)
from tests.cases import repeated
from tests.demo.lab import Lab
from tests.modules.test_unknown_names import NAMING
from tests.plays.provision_helpers import Player

ROOT = Path(__file__).parents[2]
PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
REQUIRED = {name: family.required for name, family in FAMILIES.items()}
# The playbooks in which the settings of tenants in an estate have a meaning.
READ_TENANTS = ("audit", "drift", "metrics", "provision", "report", "tenant", "rotate")


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    return Player(tmp_path, lab.environment)


def refusal(lab: Lab, player: Player, playbook: str, *arguments: str) -> str:
    """Return the output of a playbook that fails before its first request."""
    mark = lab.mark()
    output = player.play(playbook, *arguments).expect(2).output
    assert lab.requests_since(mark) == []
    assert "Traceback" not in output
    return output


@pytest.mark.parametrize(
    ("playbook", "arguments", "cause"),
    [
        (
            "tenant",
            ("-e", "tenant_name=acme", "-e", "tenant_state=Absent"),
            "tenant_state: 'Absent' is not one of present, absent (did you mean 'absent'?)",
        ),
        (
            "export",
            ("-e", "export_directory=.", "-e", "export_tennant=acme"),
            "export_tennant is not a variable of pve.fleet (did you mean 'export_tenant'?)",
        ),
        (
            "provision",
            ("-e", "provison_tenants=acme", "-e", '{"provision_vms": []}'),
            "provison_tenants is not a variable of pve.fleet (did you mean 'provision_tenants'?)",
        ),
        (
            "provision",
            ("-e", "provision_state=Started", "-e", '{"provision_vms": []}'),
            (
                "provision_state: 'Started' is not one of present, started, stopped"
                " (did you mean 'started'?)"
            ),
        ),
        (
            "snapshot",
            ("-e", "snapshot_policy_tennant=acme"),
            "snapshot_policy_tennant is not a variable of pve.fleet",
        ),
        ("awx_setup", ("-e", "awx_project_ulr=x"), "(did you mean 'awx_project_url'?)"),
    ],
)
def test_a_mistake_is_refused_before_any_request(
    lab: Lab, player: Player, playbook: str, arguments: tuple[str, ...], cause: str
) -> None:
    output = refusal(lab, player, f"pve.fleet.{playbook}", *arguments)
    assert f"Nothing was done. {cause}" in output or cause in output
    assert "pve_fleet_unchecked_variables" in output


@pytest.mark.parametrize("playbook", READ_TENANTS)
def test_wrong_settings_of_a_tenant_are_refused(lab: Lab, player: Player, playbook: str) -> None:
    estate = {
        "provision_vms": [],
        "tenants": {"acme": {"quotas": {"vms": 1}}},
        "tenant_name": "acme",
        "metrics_path": str(player.directory / "a.prom"),
        "report_directory": str(player.directory),
    }
    (player.directory / "estate.yml").write_text(yaml.safe_dump(estate), encoding="utf-8")
    output = refusal(lab, player, f"pve.fleet.{playbook}", "-e", "@estate.yml")
    cause = "The settings of tenant acme were refused: unknown option 'quotas'"
    assert f"{cause} (did you mean 'quota'?)" in output


@pytest.mark.parametrize(
    ("playbook", "arguments"),
    [
        ("backup", ("-e", "backup_tenant=acme", "-e", "backup_storage=local")),
        ("rebalance", ()),
        ("rollback", ("-e", "snapshot_policy_vms=web1", "-e", "snapshot_policy_name=before")),
        ("rotate", ("-e", "tenant_name=acme")),
        ("tidy", ("-e", "tidy_tenant=acme")),
    ],
)
def test_a_plan_that_would_not_be_followed_is_refused(
    lab: Lab, player: Player, playbook: str, arguments: tuple[str, ...]
) -> None:
    plan = ("-e", "apply_plan=plan.json")
    output = refusal(lab, player, f"pve.fleet.{playbook}", *arguments, *plan)
    assert "Nothing was done." in output
    assert "apply_plan" in output


@pytest.mark.parametrize("playbook", [name for name in PLAYBOOKS if REQUIRED.get(name)])
def test_a_variable_that_is_missing_is_named(lab: Lab, player: Player, playbook: str) -> None:
    output = refusal(lab, player, f"pve.fleet.{playbook}")
    for name, next_step in REQUIRED[playbook].items():
        assert f"{name} is not set. {next_step}" in output


def test_every_playbook_checks_its_variables() -> None:
    """The check is the first task, so that nothing precedes it."""
    # They read artifacts, and have no variables of users.
    of_workflows = {"awx_failed", "awx_site", "awx_sites", "awx_undo"}
    for name in sorted(set(PLAYBOOKS) - of_workflows):
        text = (Path(__file__).parents[2] / "playbooks" / f"{name}.yml").read_text(encoding="utf-8")
        (play,) = yaml.safe_load(text)
        first = str(play["tasks"][0])
        if "rolespec_validate" in first:  # the first task of the role makes the check
            first = _checks_of(play["tasks"][0])
        assert "pve.fleet.mistakes" in first, name


def test_no_playbook_ends_without_an_error_if_no_host_matches() -> None:
    """Ansible skips such a play: the lookup `pve.fleet.hosts` fails instead."""
    for path in sorted((ROOT / "playbooks").glob("**/*.yml")):
        text = path.read_text(encoding="utf-8")
        for line in re.findall("^  hosts: .*{{.*", text, re.MULTILINE):
            assert "query('pve.fleet.hosts', " in line, path.name


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (
            ("-e", "maintenance_hosts=kind_nod"),
            "no host of the inventory matches 'kind_nod' (did you mean 'kind_node'?)",
        ),
        (("-e", "maintenance_hosts=kind_node:!pve1"), "matches 'kind_node:!pve1'"),
        (("--limit", "web1"), "no host that matches 'kind_node' is left by --limit web1"),
    ],
)
def test_a_play_without_hosts_fails(
    lab: Lab, player: Player, arguments: tuple[str, ...], cause: str
) -> None:
    inventory = {"kind_node": {"hosts": {"pve1": None}}, "vms": {"hosts": {"web1": None}}}
    (player.directory / "inventory.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    mark = lab.mark()
    command = player.play("pve.fleet.maintenance", "-i", "inventory.yml", *arguments)
    assert command.status != 0
    assert cause in " ".join(command.output.split())
    assert lab.requests_since(mark) == []


def _checks_of(task: dict[str, Any]) -> str:
    """Return the checks of the role that a task runs: of its tasks, or of its variables."""
    (role,) = [value["name"] for value in task.values() if isinstance(value, dict)]
    folder = ROOT / "roles" / str(role).rpartition(".")[2]
    files = [*folder.glob("tasks/*.yml"), *folder.glob("vars/*.yml")]
    return "".join(file.read_text("utf-8") for file in files)


# A role, its entry point, and a misspelt variable of it.
ROLES = [
    ("provision", "main", "provision_vmss"),
    ("provision", "drift", "provision_drift_fiel"),
    ("tenant", "main", "tenant_nmae"),
    ("tenant", "absent", "tenant_confrim"),
    ("image", "main", "image_ulr"),
    ("preflight", "main", "preflight_task"),
    ("report", "main", "report_titel"),
    ("snapshot_policy", "snapshot", "snapshot_policy_vm"),
]


def role_tasks(role: str, entry_point: str, variable: str) -> dict[str, Any]:
    """Return tasks that fail unless the role refuses the variable for its name."""
    include = {
        "name": f"Run {role}",
        "ansible.builtin.include_role": {"name": f"pve.fleet.{role}", "tasks_from": entry_point},
        "vars": {variable: "x", "report_directory": "/nowhere"},
    }
    cause = f"{variable} is not a variable of pve.fleet .did you mean"
    refused = f"ansible_failed_result.msg is search('{cause}')"
    excused = "ansible_failed_result.msg is not search('registry|domain')"
    return {
        "name": f"Try {role}",
        "block": [include, {"name": "Note", "ansible.builtin.debug": {"msg": f"{role} ACCEPTED"}}],
        "rescue": [{"name": "Check", "ansible.builtin.assert": {"that": [refused, excused]}}],
    }


def test_every_role_checks_its_variables(lab: Lab, player: Player) -> None:
    play = {
        "name": "Roles with variables that nothing reads",
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"image_registry": "registry.example.com", "tenant_domain": "example.com"},
        "tasks": [role_tasks(*one) for one in ROLES],
    }
    (player.directory / "roles.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    mark = lab.mark()
    output = player.play("roles.yml").expect().output
    assert "ACCEPTED" not in output
    assert lab.requests_since(mark) == []


# A role, its entry point, a wrong value, and the value that was meant.
VALUES = [
    ("provision", "main", {"provision_state": "Started"}, "started"),
    ("provision", "main", {"provision_reboot": "ifneeded"}, "if_needed"),
    ("tenant", "main", {"tenant_credentials": "vaulted"}, "vault"),
    ("tenant", "absent", {"tenant_strays": "removed"}, "remove"),
    ("image", "main", {"image_content": "imports"}, "import"),
    ("image", "main", {"image_compression": "gzip"}, "gz"),
    ("snapshot_policy", "snapshot", {"snapshot_policy_state": "Absent"}, "absent"),
]


def test_every_role_suggests_a_value(lab: Lab, player: Player) -> None:
    """Ansible's own message prints the whole specification of the role, without a suggestion."""
    tasks: list[dict[str, Any]] = []
    for role, entry_point, variables, meant in VALUES:
        include = {
            "name": f"Run {role}",
            "ansible.builtin.include_role": {
                "name": f"pve.fleet.{role}",
                "tasks_from": entry_point,
            },
            "vars": {"provision_vms": [], "tenant_name": "acme", **variables},
        }
        (variable,) = variables
        cause = f"{variable}: .{variables[variable]}. is not one of .* .did you mean .{meant}."
        checks = [
            f"ansible_failed_result.msg is search('{cause}')",
            "'argument_spec_data' not in ansible_failed_result",
        ]
        accepted = {"name": "Note", "ansible.builtin.debug": {"msg": f"{variable} ACCEPTED"}}
        check = {"name": "Check", "ansible.builtin.assert": {"that": checks}}
        tasks.append({"name": variable, "block": [include, accepted], "rescue": [check]})
    play = {"name": "Values", "hosts": "localhost", "gather_facts": False, "tasks": tasks}
    (player.directory / "values.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    mark = lab.mark()
    output = player.play("values.yml").expect().output
    assert "ACCEPTED" not in output
    assert lab.requests_since(mark) == []


def test_no_role_leaves_its_choices_to_ansible() -> None:
    for path in (Path(__file__).parents[2] / "roles").glob("*/meta/argument_specs.yml"):
        for name, entry_point in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].items():
            for variable, rule in entry_point["options"].items():
                assert "choices" not in rule, (path, name, variable)


def test_variables_of_others_can_be_named(lab: Lab, player: Player) -> None:
    more = ("-e", "provision_notes=x", "-e", "pve_fleet_unchecked_variables=provision_n*")
    player.play("pve.fleet.provision", "-e", '{"provision_vms": []}', *more).expect()


BACKUP = {"backup_tenant": "acme"}
DRILL = {"drill_directory": "DIRECTORY"}
FAILOVER = {
    "failover_directory": "DIRECTORY",
    "failover_lost": True,
    "failover_storages": ["local"],
}
SNAPSHOT = {"snapshot_policy_tenant": "acme", "snapshot_policy_name": "s1"}
IMAGE = {"image_name": "golden", "image_url": "http://127.0.0.1:9/golden.qcow2"}
VERSION = {**IMAGE, "image_version": "1", "image_nodes": ["pve1"], "image_storages": ["ceph"]}
ESTATE = {"tenants": {"acme": {}}, "provision_vms": [{"name": "web1", "tenant": "acme"}]}
RELOCATE = {"relocate_to_site": "munich"}
MOVE_ALL = {**RELOCATE, "relocate_tenant": "acme"}
REPORT = {"report_directory": "DIRECTORY"}
# A variable of a playbook or role that names something, the variables beside it, and the hint.
NAMES_NOTHING: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("export", {"export_tenant": "acne"}, {"export_directory": "."}, "acme"),
    ("tidy", {"tidy_tenant": "acne"}, {}, "acme"),
    ("drill", {"drill_tenant": "acne"}, {"drill_directory": "DIRECTORY"}, "acme"),
    ("drill", {"drill_vms": ["wbe1"]}, {"drill_directory": "DIRECTORY"}, "web1"),
    ("drill", {"drill_node": "pve11"}, {"drill_directory": "DIRECTORY"}, "pve1"),
    ("drill", {"drill_pool": "acne"}, {"drill_directory": "DIRECTORY"}, "acme"),
    ("drill", {"drill_storage": "cehp"}, {"drill_directory": "DIRECTORY"}, "ceph"),
    ("rebalance", {"rebalance_tenants": ["acne"]}, {}, "acme"),
    ("rebalance", {"rebalance_placement": {"exclude": ["pve11"]}}, {}, "pve1"),
    ("power", {"power_tenants": ["acne"]}, {"power_state": "stopped"}, "acme"),
    (
        "power",
        {"power_exclude": ["wbe1"]},
        {"power_state": "stopped", "power_tenants": ["acme"]},
        "web1",
    ),
    ("export", {"export_pool": "acne"}, {"export_directory": "."}, "acme"),
    ("export", {"export_vms": ["wbe1"]}, {"export_directory": "."}, "web1"),
    ("export", {"export_tags": ["wbe"]}, {"export_directory": "."}, "web"),
    ("status", {"status_nodes": ["pve11"]}, {}, "pve1"),
    ("status", {"status_tenants": ["acne"]}, {}, "acme"),
    ("backup", {"backup_tenant": "acne"}, {"backup_storage": "local"}, "acme"),
    ("backup", {"backup_vms": ["wbe1"]}, {**BACKUP, "backup_storage": "local"}, "web1"),
    ("backup", {"backup_storage": "lcoal"}, BACKUP, "local"),
    ("drill", {"drill_tags": ["wbe"]}, DRILL, "web"),
    ("drill", {"drill_storages": ["lcoal"]}, DRILL, "local"),
    ("drill", {"drill_storage_map": {"lcoal-lvm": "ceph"}}, DRILL, "local-lvm"),
    ("drill", {"drill_network": "vmbr00"}, DRILL, "vmbr0"),
    ("failover", {"failover_vms": ["wbe1"]}, FAILOVER, "web1"),
    ("failover", {"failover_exclude": ["wbe1"]}, FAILOVER, "web1"),
    ("failover", {"failover_tenant": "acne"}, FAILOVER, "acme"),
    ("failover", {"failover_storages": ["lcoal"]}, FAILOVER, "local"),
    ("failover", {"failover_storage": "cehp"}, FAILOVER, "ceph"),
    ("failover", {"failover_storage_map": {"lcoal-lvm": "ceph"}}, FAILOVER, "local-lvm"),
    ("failover", {"failover_networks": {"vmbr0": "vmbr00"}}, FAILOVER, "vmbr0"),
    ("failover", {"failover_network": "vmbr00"}, FAILOVER, "vmbr0"),
    ("failover", {"failover_pools": {"acne": "acme"}}, FAILOVER, "acme"),
    ("failover", {"failover_copy_pool": "acne"}, FAILOVER, "acme"),
    ("failover", {"failover_node": "pve11"}, FAILOVER, "pve1"),
    (
        "failover",
        {"failover_placement": {"exclude": ["pve11"]}},
        {**FAILOVER, "failover_pools": {"acme": "acme"}},
        "pve1",
    ),
    ("snapshot", {"snapshot_policy_vms": ["wbe1"]}, SNAPSHOT, "web1"),
    ("snapshot", {"snapshot_policy_tags": ["wbe"]}, SNAPSHOT, "web"),
    ("snapshot", {"snapshot_policy_tenant": "acne"}, SNAPSHOT, "acme"),
    ("rollback", {"snapshot_policy_vms": ["wbe1"]}, SNAPSHOT, "web1"),
    ("image", {"image_storage": "lcoal"}, IMAGE, "local"),
    ("image", {"image_node": "pve11"}, IMAGE, "pve1"),
    ("image", {"image_nodes": ["pve11"]}, VERSION, "pve1"),
    ("image", {"image_storages": ["cehp"]}, VERSION, "ceph"),
    ("image", {"image_disk_storage": "cehp"}, IMAGE, "ceph"),
    ("provision", {"provision_tenants": ["acne"]}, ESTATE, "acme"),
    ("replace_images", {"provision_tenants": ["acne"]}, ESTATE, "acme"),
    ("deprovision", {"provision_tenants": ["acne"]}, ESTATE, "acme"),
    ("drift", {"provision_tenants": ["acne"]}, ESTATE, "acme"),
    ("relocate", {"relocate_vms": ["wbe1"]}, RELOCATE, "web1"),
    ("relocate", {"relocate_exclude": ["wbe1"]}, MOVE_ALL, "web1"),
    (
        "relocate",
        {"relocate_confirm": ["wbe1"]},
        {**MOVE_ALL, "relocate_state": "returned"},
        "web1",
    ),
    ("relocate", {"relocate_tenant": "acne"}, RELOCATE, "acme"),
    ("relocate", {"relocate_tags": ["wbe"]}, MOVE_ALL, "web"),
    ("relocate", {"relocate_node": "pve11"}, MOVE_ALL, "pve1"),
    ("relocate", {"relocate_storage": "cehp"}, MOVE_ALL, "ceph"),
    ("relocate", {"relocate_storage_map": {"local-lvm": "cehp"}}, MOVE_ALL, "ceph"),
    ("relocate", {"relocate_storage_map": {"lcoal-lvm": "ceph"}}, MOVE_ALL, "local-lvm"),
    ("relocate", {"relocate_networks": {"vmbr0": "vmbr00"}}, MOVE_ALL, "vmbr0"),
    ("relocate", {"relocate_networks": {"vmbr00": "vmbr1"}}, MOVE_ALL, "vmbr0"),
    ("relocate", {"relocate_pools": {"acme": "acne"}}, MOVE_ALL, "acme"),
    ("relocate", {"relocate_pools": {"acne": "acme"}}, MOVE_ALL, "acme"),
    ("relocate", {"relocate_archive_storage": "lcoal"}, MOVE_ALL, "local"),
    ("relocate", {"relocate_endpoints": {"pve11": "10.0.0.1"}}, MOVE_ALL, "pve1"),
    ("relocate", {"relocate_replication_targets": {"pve1": "pve11"}}, MOVE_ALL, "pve1"),
    ("relocate", {"relocate_replication_targets": {"pve11": "pve1"}}, MOVE_ALL, "pve1"),
    ("relocate", {"relocate_site": "munihc"}, MOVE_ALL, "munich"),
    ("relocate", {"relocate_to_site": "munihc"}, MOVE_ALL, "munich"),
    ("failover", {"failover_from_site": "munihc"}, FAILOVER, "munich"),
    ("status", {"status_sites": ["munihc"]}, {}, "munich"),
    ("report", {"report_sites": ["munihc"]}, REPORT, "munich"),
    ("report", {"report_placement": {"exclude": ["pve11"]}}, REPORT, "pve1"),
    ("drift", {"provision_drift_sites": ["munihc"]}, ESTATE, "munich"),
    ("cluster", {"cluster_sites": ["munihc"]}, {"cluster_pools": [{"name": "acme"}]}, "munich"),
    ("cluster", {"cluster_nodes": [{"node": "pve11", "description": "x"}]}, {}, "pve1"),
    ("cluster", {"cluster_pools": [{"name": "p1", "storages": ["cehp"]}]}, {}, "ceph"),
    ("maintenance", {"maintenance_nodes": "pve11"}, {}, "pve1"),
    ("maintenance", {"maintenance_sites": "munihc"}, {}, "none"),
    ("maintenance", {"maintenance_placement": {"exclude": ["pve11"]}}, {}, "pve1"),
    ("maintenance", {"maintenance_tenant_windows": {"acne": "22:00-23:00"}}, {}, "acme"),
    ("rebalance", {"rebalance_tenant_windows": {"acne": "22:00-23:00"}}, {}, "acme"),
    ("preflight", {"preflight_nodes": ["pve11"]}, {}, "pve1"),
    ("preflight", {"preflight_pool": "acne"}, {}, "acme"),
    ("preflight", {"preflight_bridges": ["vmbr00"]}, {}, "vmbr0"),
    ("preflight", {"preflight_storages": [{"name": "cehp"}]}, {}, "ceph"),
    ("preflight", {"preflight_vms": ["wbe1"]}, {}, "web1"),
    ("preflight", {"preflight_templates": ["debian-31"]}, {}, "debian-13"),
    ("preflight", {"preflight_tenant": "acne"}, {}, "acme"),
]
# Variables with such a name that the list above lacks, with the reason.
OTHER_NAMES = {
    r"cluster_(?:ceph_pools|storages|notification_endpoints)": "the objects of the cluster file",
    r"(?:provision|relocate)_parallel_per_\w+": "numbers",
    r"provision_(?:vms|networks)": "the list itself, and options of module vms",
    r"failover_(?:lost|replica)_nodes": "reached by SSH first, see test_failover_replicas.py",
    r"export_on_nodes": "true or false",
    r"pve_fleet_dead_site": "a choice",
    r"tenant_confirm": "compared with tenant_name, see test_tenant_role.py",
    r"awx_\w+": "objects of AWX, and texts for its surveys",
}


# The last words of variables, beside those of options.
NAMED = re.compile(rf"{NAMING.pattern}|_(?:sites?|tenant_windows|confirm|endpoints|targets)$")


def test_every_variable_that_seems_to_name_something_is_tried() -> None:
    tried = {name for _playbook, named, *_rest in NAMES_NOTHING for name in named}
    known = {name for family in FAMILIES.values() for name in family.variables}
    missing = []
    for name in sorted(known - tried):
        if NAMED.search(name) and not any(re.fullmatch(one, name) for one in OTHER_NAMES):
            missing.append(name)
    assert missing == []


# A tag only widens nothing, so it is a warning.
WARNED = ("export_tags", "snapshot_policy_tags", "relocate_tags", "preflight_tenant")


@pytest.fixture(scope="module")
def munich() -> Iterator[Lab]:
    """Another site."""
    with Lab(task_ms="default=10", lag_s=0, auth_delay_s=0) as lab:
        yield lab


@dataclass(frozen=True)
class Fleet:
    """Two sites, the first one in the environment of the player, and the nodes as an inventory."""

    vienna: Lab
    munich: Lab
    player: Player

    def variables(self, playbook: str, named: dict[str, Any]) -> dict[str, Any]:
        """Return the connection for a variable that names a site."""
        if playbook == "maintenance":
            nodes: dict[str, Any] = {"hosts": dict.fromkeys(("pve1", "pve2"))}
            nodes["vars"] = {"ansible_connection": "local"}
            file = self.player.directory / "hosts.yml"
            file.write_text(yaml.safe_dump({"kind_node": nodes}), encoding="utf-8")
            self.player.environment["ANSIBLE_INVENTORY"] = str(file)
            return {}
        file = self.player.directory / "sites.yml"
        labs = {"vienna": self.vienna, "munich": self.munich}
        sites = [{"name": name, **one.connection} for name, one in labs.items()]
        file.write_text(json.dumps({"sites": sites}, default=str))
        if playbook == "relocate":
            return {"relocate_connection": {"sites_file": str(file)}, "relocate_site": "vienna"}
        if any(name.endswith(("_site", "_sites")) for name in named):
            self.player.environment["PROXMOX_SITES_FILE"] = str(file)
        return {}


@pytest.fixture
def fleet(lab: Lab, munich: Lab, player: Player) -> Fleet:
    return Fleet(lab, munich, player)


# A message names the most similar name, or all of them.
LISTED = ("did you mean", "backups are:", "pools are", "online are", "the cluster has", "it has")
HINT = "|".join((*LISTED, "the node has", "the sites"))


@pytest.mark.parametrize(
    ("playbook", "named", "others", "hint"),
    repeated((pytest.param(*one) for one in NAMES_NOTHING), first=11),
    ids=str,
)
def test_a_variable_that_names_nothing_is_refused(
    fleet: Fleet, playbook: str, named: dict[str, Any], others: dict[str, Any], hint: str
) -> None:
    lab, player = fleet.vienna, fleet.player
    options = {"pool": "acme", "net0": "virtio,bridge=vmbr0", "scsi0": "local-lvm:1"}
    vmid = lab.make_vm("web1", tags="tenant_acme;web", **options)
    if playbook == "failover":  # whose guests are archives
        lab.call("POST", "/nodes/pve1/vzdump", vmid=vmid, storage="local")
        lab.call("DELETE", f"/nodes/pve1/qemu/{vmid}")
    given = {**fleet.variables(playbook, named), **others, **named}
    variables = json.dumps(given).replace("DIRECTORY", str(player.directory))
    mark, warned = lab.mark(), any(name in named for name in WARNED)
    played = player.play(f"pve.fleet.{playbook}", "-e", variables, "--check")
    assert (played.status == 0) == warned, played.output
    output = " ".join(played.output.split())
    assert re.search(rf"({HINT}) '?\b{hint}\b", output), output
    assert not [one for one in lab.requests_since(mark) if one.is_write]


def test_a_refusal_names_the_variables_of_the_playbook(lab: Lab, player: Player) -> None:
    """Also in the line that Ansible prints above the result since ansible-core 2.19."""
    given = {"failover_storages": "local", "failover_lost": True}
    more = {"failover_directory": str(player.directory / "failover")}
    refused = player.play("pve.fleet.failover", **given, **more).expect(2).output
    assert "Check failover_storages and failover_max_age" in refused
    assert "Check storages" not in refused
