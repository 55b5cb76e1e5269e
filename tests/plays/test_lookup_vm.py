# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.vm`, in playbooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plays.inventory_helpers import (
    LISTING,
    NODE_VMS,
    Lister,
    configure,
    one_line,
    replaced,
    run,
)
from tests.simulator.process import Simulator


def play(
    directory: Path,
    tasks: list[dict[str, Any]],
    environ: dict[str, str] | None = None,
    **variables: Any,
) -> Any:
    """Run the tasks on this machine."""
    file = directory / "play.yml"
    variables["ansible_python_interpreter"] = "{{ ansible_playbook_python }}"
    file.write_text(
        json.dumps(
            [{"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": tasks}]
        )
    )
    return run("ansible-playbook", str(file), cwd=directory, environ=environ)


def say(expression: str) -> dict[str, Any]:
    """Return a task that shows the value of an expression."""
    return {"ansible.builtin.debug": {"msg": "said={{ " + expression + " }}"}}


def test_lookup(listed: Lister, simulator: Simulator, tmp_path: Path) -> None:
    configure(simulator, 10000, name="web", tags="tenant_acme")
    configure(simulator, 10001, name="web", tags="tenant_globex")
    of = {**listed.connection}
    lookup = "lookup('pve.fleet.vm', {}, **of).{}"
    tasks = [
        {"ansible.builtin.debug": {"msg": "one={{ " + lookup.format("'10002'", "vmid") + " }}"}},
        {
            "ansible.builtin.debug": {
                "msg": "two={{ " + lookup.format("'web', tenant='globex'", "vmid") + " }}"
            }
        },
        {"ansible.builtin.debug": {"msg": "{{ " + lookup.format("'web'", "vmid") + " }}"}},
    ]
    play = tmp_path / "play.yml"
    play.write_text(
        json.dumps(
            [{"hosts": "localhost", "gather_facts": False, "vars": {"of": of}, "tasks": tasks}]
        )
    )
    simulator.reset_log()
    done = run("ansible-playbook", str(play), cwd=tmp_path)
    assert "one=10002" in done.stdout
    assert "two=10001" in done.stdout
    assert done.returncode != 0
    assert "several VMs have the name" in done.stdout + done.stderr
    assert "(Conflict)" in done.stdout + done.stderr
    # The nodes of both VMs are asked for the name, and for a VMID none is.
    assert simulator.counts() == {LISTING: 3, NODE_VMS: 4}


def test_a_vm_under_the_name_of_a_removed_one(
    listed: Lister, simulator: Simulator, tmp_path: Path
) -> None:
    """The listing has names by number, from statistics that pmxcfs keeps (pve-manager,
    API2Tools.pm, extract_vm_stats).
    """
    configure(simulator, 10004, name="old")
    replaced(simulator, 10004, name="new", tags="tenant_acme")
    assert listed().by_vmid(10004)["proxmox_name"] == "old"
    tasks = [
        say("lookup('pve.fleet.vm', 'new', tenant='acme', **of).vmid"),
        say("lookup('pve.fleet.vm', 'old', **of)"),
    ]
    done = play(tmp_path, tasks, of=listed.connection)
    assert "said=10004" in done.stdout, done.stdout + done.stderr
    assert "no VM has that name or VMID" in done.stdout + done.stderr


def test_a_name_that_only_the_listing_has_twice(
    listed: Lister, simulator: Simulator, tmp_path: Path
) -> None:
    configure(simulator, 10004, name="web")
    configure(simulator, 10005, name="web")
    replaced(simulator, 10004, name="new")
    done = play(tmp_path, [say("lookup('pve.fleet.vm', 'web', **of).vmid")], of=listed.connection)
    assert "said=10005" in done.stdout, done.stdout + done.stderr


def test_the_list_of_a_node_is_read_once(
    listed: Lister, simulator: Simulator, tmp_path: Path
) -> None:
    names = [one["proxmox_name"] for one in listed().hosts.values()]
    expression = "query('pve.fleet.vm', *names, **of) | length"
    simulator.reset_log()
    done = play(tmp_path, [say(expression)], of=listed.connection, names=names)
    assert done.stdout.count(f"said={len(names)}") == 1, done.stdout + done.stderr
    assert simulator.counts() == {LISTING: 1, NODE_VMS: 3}


def test_a_node_that_does_not_answer_hides_no_vm(
    listed: Lister, simulator: Simulator, tmp_path: Path
) -> None:
    name = listed().by_vmid(10004)["proxmox_name"]
    simulator.fault(path="/nodes/[^/]+/qemu$", status=595, message="no route to host", times=None)
    tasks = [say(f"lookup('pve.fleet.vm', '{name}', **of).vmid")]
    done = play(tmp_path, tasks, of={**listed.connection, "retries": 1})
    assert "said=10004" in done.stdout, done.stdout + done.stderr


def test_in_a_template_with_everything_from_the_environment(
    listed: Lister, simulator: Simulator, tmp_path: Path
) -> None:
    environ = {f"PROXMOX_{name.upper()}": str(value) for name, value in listed.connection.items()}
    (tmp_path / "out.j2").write_text(
        "{% for number in range(10000, 10008) %}{% set vm = lookup('pve.fleet.vm', number) %}"
        "{{ vm.vmid }} {{ vm.name }} {{ vm.node }} {{ vm.status }}\n{% endfor %}"
    )
    tasks = [
        {
            "ansible.builtin.template": {
                "src": str(tmp_path / "out.j2"),
                "dest": str(tmp_path / "out"),
            }
        }
    ]
    simulator.reset_log()
    done = play(
        tmp_path,
        [*tasks, say("query('pve.fleet.vm', 10000, 10001) | map(attribute='vmid') | list")],
        environ,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = listed().hosts.values()
    lines = (tmp_path / "out").read_text().splitlines()
    assert sorted(lines) == sorted(
        f"{one['proxmox_vmid']} {one['proxmox_name']} {one['proxmox_node']} {one['proxmox_status']}"
        for one in shown
        if 10000 <= one["proxmox_vmid"] < 10008
    )
    assert "said=[10000, 10001]" in done.stdout


def test_a_listing_is_for_its_login_only(listed: Lister, tmp_path: Path) -> None:
    wrong = {**listed.connection, "token_secret": "11111111-0000-4000-8000-000000000000"}
    tasks = [
        say("lookup('pve.fleet.vm', '10000', **of).vmid"),
        say("lookup('pve.fleet.vm', '10000', **wrong).vmid"),
    ]
    done = play(tmp_path, tasks, of=listed.connection, wrong=wrong)
    assert done.stdout.count("said=10000") == 1
    assert "(AuthenticationError)" in done.stdout + done.stderr


def test_a_vm_that_was_made_since_then_is_found(
    listed: Lister, simulator: Simulator, tmp_path: Path
) -> None:
    of = listed.connection
    made = {
        "name": "fresh",
        "vmid": 20000,
        "blank": True,
        "node": "pve1",
        "disks": [],
        "nics": [],
        "state": "stopped",
        **of,
    }
    tasks = [
        say("lookup('pve.fleet.vm', '10000', **of).vmid"),
        {"pve.fleet.vm": made},
        say("lookup('pve.fleet.vm', 'fresh', **of).vmid"),
    ]
    done = play(tmp_path, tasks, of=of)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("said=20000") == 1


def test_the_most_similar_name(listed: Lister, simulator: Simulator, tmp_path: Path) -> None:
    configure(simulator, 10000, name="shop", tags="tenant_acme")
    for arguments, hint in (
        ("'shpo'", "no VM has that name or VMID (did you mean 'shop'?)"),
        ("'shop', tenant='acmee'", "no VM of tenant acmee (did you mean 'acme'?) has that name"),
        ("'none', tenant='acme'", "no VM of tenant acme has that name or VMID."),
    ):
        done = play(
            tmp_path, [say(f"lookup('pve.fleet.vm', {arguments}, **of)")], of=listed.connection
        )
        assert hint in one_line(done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("arguments", "category"),
    [
        ("'nosuch', **of", "NotFound"),
        ("'10000', tenant='t9', **of", "NotFound"),
        ("' ', **of", "ConfigurationError"),
        ("'10000'", "ConfigurationError"),
        (
            "'10000', host=of.host, ca_path=of.ca_path, token_id=of.token_id, token_secret='wrong'",
            "AuthenticationError",
        ),
        (
            "'10000', host='127.0.0.1:9', retries=1, token_id=of.token_id, token_secret='x'",
            "NetworkError",
        ),
    ],
)
def test_a_refusal_is_one_line(
    listed: Lister, tmp_path: Path, arguments: str, category: str
) -> None:
    done = play(tmp_path, [say(f"lookup('pve.fleet.vm', {arguments})")], of=listed.connection)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert f"({category})" in said
    assert "Traceback" not in said
    assert listed.connection["token_secret"] not in said


def test_the_tenant_of_the_environment(
    listed: Lister, simulator: Simulator, tmp_path: Path
) -> None:
    configure(simulator, 10000, name="web", tags="customer-acme")
    configure(simulator, 10001, name="web", tags="customer-globex")
    environ = {"PROXMOX_TENANT": "acme", "PROXMOX_TENANT_PREFIX": "customer-"}
    vm = "lookup('pve.fleet.vm', 'web', **of)"
    done = play(tmp_path, [say(f"{vm}.vmid ~ ' ' ~ {vm}.tenant")], environ, of=listed.connection)
    assert "said=10000 acme" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "environ", "place"),
    [
        ("tenant=''", {}, "tenant"),
        ("tenant=none", {}, "tenant"),
        ("tenant_prefix=' '", {}, "tenant_prefix"),
        ("port=8006", {"PROXMOX_TENANT": ""}, "PROXMOX_TENANT"),
    ],
)
def test_a_tenant_without_a_value_is_refused(
    listed: Lister, tmp_path: Path, options: str, environ: dict[str, str], place: str
) -> None:
    task = say(f"lookup('pve.fleet.vm', '10000', {options}, **of).vmid")
    done = play(tmp_path, [task], environ, of=listed.connection)
    assert done.returncode != 0
    assert f"{place} was refused: it is given without a value" in done.stdout + done.stderr


def test_a_site(listed: Lister, tmp_path: Path) -> None:
    sites = [{"name": name, **listed.connection} for name in ("north", "south")]
    done = play(
        tmp_path,
        [
            say("lookup('pve.fleet.vm', '10000', sites=sites, site='south').vmid"),
            say("lookup('pve.fleet.vm', '1')"),
        ],
        sites=sites,
    )
    assert "said=10000" in done.stdout
    assert "No Proxmox VE endpoint is configured" in done.stdout + done.stderr
