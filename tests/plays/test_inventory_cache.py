# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory's cache, through the real `ansible-inventory`."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cases import repeated
from tests.plays.inventory_helpers import (
    AGENT,
    CONFIG,
    LISTING,
    SNAPSHOTS,
    Lister,
    call,
    configure,
    one_line,
    run,
)
from tests.simulator.process import Simulator

FILE_CACHE = """
DOCUMENTATION = '''
name: {name}
short_description: A cache in files
description: A cache in files.
author: tests
options:
  _uri:
    description: The directory.
    type: path
  _prefix:
    description: The prefix.
    type: str
  _timeout:
    description: The timeout.
    type: int
    default: 86400
'''
import {library} as library
from ansible.plugins.cache import BaseFileCacheModule

class CacheModule(BaseFileCacheModule):
    def _load(self, filepath):
        with open(filepath, "rb") as stream:
            return library.load(stream) if "{library}" == "pickle" else library.safe_load(stream)

    def _dump(self, value, filepath):
        with open(filepath, "wb") as stream:
            if "{library}" == "pickle":
                library.dump(value, stream)
            else:
                stream.write(library.safe_dump(value).encode())
"""


def restart(simulator: Simulator, vmid: int) -> None:
    """Stop the VM and start it again, behind the API."""
    for running in (False, True):
        simulator.steer(f"/vms/{vmid}", {"running": running})


def grow_older(options: dict[str, Any], seconds: float = 2.0) -> None:
    """Let that time pass for what is cached: its files and the times within them."""
    files = list(Path(options["cache_connection"]).iterdir())
    assert files
    for file in files:
        written = file.stat().st_mtime - seconds
        content = json.loads(file.read_text(encoding="utf-8"))
        # Since ansible-core 2.19 the file holds the content as a text.
        if "__payload__" in content:
            older = json.dumps(older_sync(json.loads(content["__payload__"]), seconds))
            content["__payload__"] = older
        else:
            content = older_sync(content, seconds)
        file.write_text(json.dumps(content), encoding="utf-8")
        os.utime(file, (written, written))


def older_sync(cached: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return what the inventory keeps in the cache, with earlier times."""
    sync = json.loads(cached["sync"])
    sync["taken"] -= seconds
    sync["read"] = {site: read - seconds for site, read in sync["read"].items()}
    for details in sync["details"].values():
        details["taken"] -= seconds
    return {**cached, "sync": json.dumps(sync)}


def asked(simulator: Simulator, route: str) -> list[int]:
    """Return the VMIDs for which this was asked."""
    found = [
        entry["path"] for entry in simulator.log() if f"{entry['method']} {entry['route']}" == route
    ]
    return sorted(int(path.split("/")[4]) for path in found)


class TestCache:
    @pytest.fixture
    def cache(self, tmp_path: Path) -> dict[str, Any]:
        """Options of a cache in files."""
        return {
            "cache": True,
            "cache_plugin": "ansible.builtin.jsonfile",
            "cache_connection": str(tmp_path / "cache"),
            "fetch": ["addresses"],
        }

    def test_details_of_containers_and_nodes_come_from_it(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        nic = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:07:01,ip=10.99.0.77/24,type=veth"
        body = {"node": "pve2", "running": True, "config": {"hostname": "proxy1", "net0": nic}}
        simulator.ask("POST", "/containers/710", body)
        cache.update(cache_timeout=1, kinds=["container", "node"])
        first = listed(**cache)
        requests = {LISTING, "GET /nodes/{node}/lxc/{vmid}/interfaces", "GET /cluster/status"}
        assert requests == simulator.counts().keys()
        grow_older(cache)
        second = listed(**cache)
        assert simulator.counts() == {LISTING: 1}
        for found in (first, second):
            assert found.hosts["proxy1"]["ansible_host"] == "10.99.0.77"
            assert found.hosts["pve1"]["ansible_host"]

    def test_it_is_looked_at_before_any_request(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        first = listed(**cache)
        second = listed(**cache)
        assert simulator.counts() == {}
        assert second.data == first.data

    def test_other_options_are_another_inventory(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        listed(**cache)
        assert len(listed(**cache, statuses=["stopped"]).hosts) == 1
        assert simulator.counts() == {LISTING: 1}

    def test_only_what_changed_is_fetched_again(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        first = listed(**cache)
        configure(simulator, 10000, tags="web")
        restart(simulator, 10001)
        old = first.by_vmid(10002)["proxmox_node"]
        simulator.steer("/vms/10002", {"node": "pve1" if old != "pve1" else "pve2"})
        call(
            simulator,
            "POST",
            "/nodes/pve1/qemu",
            vmid=20000,
            name="new",
            agent="1",
            net0="virtio,bridge=vmbr0",
        )
        call(simulator, "POST", "/nodes/pve1/qemu/20000/status/start")
        grow_older(cache)
        second = listed(**cache, cache_timeout=1)
        assert asked(simulator, AGENT) == [10000, 10001, 10002, 20000]
        assert simulator.counts() == {LISTING: 1, AGENT: 4}
        assert second.by_vmid(10000)["proxmox_tags"] == ["web"]
        assert second.by_vmid(10003)["ansible_host"] == first.by_vmid(10003)["ansible_host"]
        assert second.by_vmid(20000)["ansible_host"]
        simulator.reset_log()
        grow_older(cache)
        assert listed(**cache, cache_timeout=1).hosts.keys() == second.hosts.keys()
        assert simulator.counts() == {LISTING: 1}

    def test_a_silent_agent_is_asked_again_while_its_vm_boots(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        for vmid in (10000, 10001):
            simulator.steer(f"/vms/{vmid}", {"agent": "silent"})
        restart(simulator, 10001)
        listed(**cache)
        grow_older(cache)
        listed(**cache, cache_timeout=1)
        assert asked(simulator, AGENT) == [10001]

    def test_a_change_that_the_listing_does_not_show_is_seen_at_the_maximal_age(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        cache.update(fetch=["config"], cache_timeout=1)
        listed(**cache)
        configure(simulator, 10000, description="changed")
        grow_older(cache)
        assert "description" not in listed(**cache).by_vmid(10000)["proxmox_config"]
        assert simulator.counts() == {LISTING: 1}
        grow_older(cache)
        assert (
            listed(**cache, fetch_max_age=1).by_vmid(10000)["proxmox_config"]["description"].strip()
            == "changed"
        )
        assert simulator.counts() == {LISTING: 1, CONFIG: 13}

    def test_flush_cache_fetches_everything_again(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any], tmp_path: Path
    ) -> None:
        cache.update(fetch=["config"])
        listed(**cache)
        configure(simulator, 10000, description="changed")
        play = tmp_path / "play.yml"
        play.write_text("[{hosts: all, gather_facts: false, tasks: []}]")
        simulator.reset_log()
        # ansible-inventory has this option since ansible-core 2.19 only
        done = run(
            "ansible-playbook",
            "--flush-cache",
            "-i",
            str(tmp_path / "fleet.proxmox.yml"),
            str(play),
        )
        assert done.returncode == 0, done.stderr
        assert simulator.counts() == {LISTING: 1, CONFIG: 13}
        assert listed(**cache).by_vmid(10000)["proxmox_config"]["description"].strip() == "changed"
        assert simulator.counts() == {}

    def test_a_playbook_sees_what_it_changed_after_refresh_inventory(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any], tmp_path: Path
    ) -> None:
        cache.update(fetch=["config"])
        name = listed(**cache).host_of(10000)
        change = {
            "name": name,
            "vmid": 10000,
            "tags": ["fresh"],
            "description": "refreshed",
            **listed.connection,
        }
        tasks = [
            {"pve.fleet.vm": change},
            {
                "ansible.builtin.debug": {
                    "msg": "before={{ proxmox_config.description | default('none') }}"
                }
            },
            {"ansible.builtin.meta": "refresh_inventory"},
            {
                "ansible.builtin.debug": {
                    "msg": "after={{ proxmox_config.description }} {{ 'tag_fresh' in group_names }}"
                }
            },
        ]
        own = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        play = tmp_path / "play.yml"
        play.write_text(
            json.dumps([{"hosts": name, "gather_facts": False, "vars": own, "tasks": tasks}])
        )
        done = run("ansible-playbook", "-i", str(tmp_path / "fleet.proxmox.yml"), str(play))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "before=none" in done.stdout
        assert "after=refreshed" in done.stdout
        assert "True" in done.stdout

    def test_the_same_digest_spares_the_snapshots(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        cache.update(fetch=["config", "snapshots"], cache_timeout=1)
        node = listed().by_vmid(10001)["proxmox_node"]
        call(simulator, "POST", f"/nodes/{node}/qemu/10001/snapshot", snapname="before")
        first = listed(**cache)
        assert [one["name"] for one in first.by_vmid(10001)["proxmox_snapshots"]] == ["before"]
        for vmid in (10001, 10002):
            restart(simulator, vmid)
        call(
            simulator,
            "POST",
            f"/nodes/{first.by_vmid(10002)['proxmox_node']}/qemu/10002/snapshot",
            snapname="later",
        )
        grow_older(cache)
        second = listed(**cache)
        assert asked(simulator, CONFIG) == [10001, 10002]
        assert asked(simulator, SNAPSHOTS) == [10002]
        assert [one["name"] for one in second.by_vmid(10001)["proxmox_snapshots"]] == ["before"]
        assert [one["name"] for one in second.by_vmid(10002)["proxmox_snapshots"]] == ["later"]

    def test_it_expires(self, listed: Lister, simulator: Simulator, cache: dict[str, Any]) -> None:
        listed(**cache, cache_timeout=1)
        grow_older(cache)
        listed(**cache, cache_timeout=1)
        assert simulator.counts() == {LISTING: 1}

    def test_a_dead_api(self, listed: Lister, simulator: Simulator, cache: dict[str, Any]) -> None:
        first = listed(**cache)
        simulator.fault(path="/cluster/resources", status=596, times=None)
        grow_older(cache)
        refused = listed(**cache, cache_timeout=1, retries=1)
        assert refused.code != 0
        found = listed(**cache, cache_timeout=1, retries=1, stale="allow")
        assert found.code == 0
        assert found.hosts.keys() == first.hosts.keys()
        assert "last good inventory" in one_line(found.errors)

    def test_an_unreadable_cache(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        listed(**cache)
        for file in (listed.directory / "cache").iterdir():
            file.write_text("{broken")
        found = listed(**cache)
        assert len(found.hosts) == 13
        assert simulator.counts()[LISTING] == 1
        assert "cache cannot be" in one_line(found.errors)

    def test_a_cache_of_something_else(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        listed(**cache)
        for file in (listed.directory / "cache").iterdir():
            file.write_text('{"identity": 1}')
        assert len(listed(**cache).hosts) == 13
        assert simulator.counts()[LISTING] == 1

    def test_a_cache_file_that_cannot_be_opened(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        listed(**cache)
        for file in (listed.directory / "cache").iterdir():
            file.unlink()
            file.mkdir()
        found = listed(**cache)
        assert len(found.hosts) == 13
        assert re.search(
            "cache cannot be|cache plugin while trying to read", one_line(found.errors)
        )
        assert "Traceback" not in found.errors

    def test_a_cache_that_cannot_be_made(
        self, listed: Lister, cache: dict[str, Any], tmp_path: Path
    ) -> None:
        (tmp_path / "cache").write_text("a file")
        found = listed(**cache)
        assert len(found.hosts) == 13
        assert "cache cannot be used" in one_line(found.errors)

    def test_no_secret_is_in_it(self, listed: Lister, cache: dict[str, Any]) -> None:
        listed(**cache)
        texts = [file.read_text() for file in (listed.directory / "cache").iterdir()]
        assert texts
        assert not [text for text in texts if listed.connection["token_secret"] in text]

    def test_filters_on_extra_variables_do_not_share_it(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        configure(simulator, 10000, tags="tenant_acme")
        configure(simulator, 10001, tags="tenant_globex")
        cache.update(fetch=[], use_extra_vars=True, filters=["proxmox_tenant == wanted"])
        for wanted, vmid in (("acme", 10000), ("globex", 10001)):
            found = listed("-e", f"wanted={wanted}", **cache)
            assert vmid in [one["proxmox_vmid"] for one in found.hosts.values()]
            assert {one["proxmox_tenant"] for one in found.hosts.values()} == {wanted}

    def test_a_filter_that_looks_elsewhere_is_evaluated_again(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        """Since ansible-core 2.19 a filter may look up the environment.

        Older ones leave the VMs out.
        """
        configure(simulator, 10000, tags="tenant_acme")
        configure(simulator, 10001, tags="tenant_globex")
        cache.update(
            filters=["proxmox_tenant == lookup('ansible.builtin.env', 'PYTEST_TEAM')"],
            stale="allow",
            retries=1,
        )
        for dead in (False, True):
            if dead:
                simulator.fault(path="/cluster/resources", status=596, times=None)
            for team in ("acme", "globex"):
                found = listed(environ={"PYTEST_TEAM": team}, **cache)
                assert found.code == 0
                assert {one["proxmox_tenant"] for one in found.hosts.values()} <= {team}
                assert found.hosts or "lookups were disabled" in one_line(found.errors) or dead

    def test_what_could_not_be_decided_is_said_again(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        for _time in range(2):
            found = listed(**cache, filters=["proxmox_lock != 'x' and nonsense"])
            assert found.hosts == {}
            assert "left out 13 hosts" in one_line(found.errors)
        assert simulator.counts() == {}

    @pytest.mark.parametrize(
        "plugin", repeated(["pickled", "memory", "ansible.builtin.memory", "as_yaml"], first=2)
    )
    def test_other_cache_plugins(
        self,
        listed: Lister,
        simulator: Simulator,
        cache: dict[str, Any],
        tmp_path: Path,
        plugin: str,
    ) -> None:
        plugins = tmp_path / "cache_plugins"
        plugins.mkdir()
        for name, library in (("pickled", "pickle"), ("as_yaml", "yaml")):
            (plugins / f"{name}.py").write_text(FILE_CACHE.format(name=name, library=library))
        cache.update(cache_plugin=plugin)
        environ = {"ANSIBLE_CACHE_PLUGINS": str(plugins)}
        first = listed(environ=environ, **cache)
        assert len(first.hosts) == 13
        assert "WARNING" not in first.errors
        second = listed(environ=environ, **cache)
        assert second.hosts.keys() == first.hosts.keys()
        # which does not outlive the command
        assert bool(simulator.counts()) is ("memory" in plugin)
        assert "WARNING" not in second.errors


class TestStale:
    """What `stale: allow` shows of a site that does not answer."""

    @pytest.fixture
    def options(self, listed: Lister, tmp_path: Path) -> dict[str, Any]:
        """Two sites that are the same cluster, and a cache that is always old."""
        return {
            "connect": False,
            "sites": [
                {"name": name, **listed.connection, "retries": 1} for name in ("north", "south")
            ],
            "cache": True,
            "cache_plugin": "ansible.builtin.jsonfile",
            "cache_connection": str(tmp_path / "cache"),
            "cache_timeout": 1,
            "fetch": ["addresses"],
        }

    def test_only_the_dead_site_is_shown_as_it_was(
        self, listed: Lister, simulator: Simulator, options: dict[str, Any]
    ) -> None:
        first = listed(**options)
        grow_older(options)
        configure(simulator, 10000, tags="changed")
        simulator.fault(path="/cluster/resources", status=596, nth=1, times=1)
        found = listed(**options, stale="allow")
        assert found.code == 0
        assert found.hosts.keys() == first.hosts.keys()
        tags = [one["proxmox_tags"] for one in found.hosts.values() if one["proxmox_vmid"] == 10000]
        assert sorted(tags) == sorted([["changed"], first.by_name("10000_north")["proxmox_tags"]])
        assert "the last good inventory of site" in one_line(found.errors)
        assert {name: one.get("ansible_host") for name, one in found.hosts.items()} == {
            name: one.get("ansible_host") for name, one in first.hosts.items()
        }
        # What was shown of a dead site does not become the last good inventory.
        assert listed(**options, stale="allow").by_name("10000_north")["proxmox_tags"] == [
            "changed"
        ]

    def test_a_site_that_stays_dead_keeps_the_cache_of_others(
        self, listed: Lister, simulator: Simulator, options: dict[str, Any], tmp_path: Path
    ) -> None:
        """The details of the other site are not fetched again, and what the dead one was last is
        kept.
        """
        with Simulator(
            "--nodes", "1", "--vms", "3", "--lag-s", "0", "--auth-delay-s", "0"
        ) as south:
            options["sites"][1].update(
                host=south.url, ca_path=str(shutil.copy(south.ca, tmp_path / "south.pem"))
            )
            first = listed(**options)
            assert len(first.group("site_south")) == 4
        for again in (
            "the cache of a whole sync",
            "that of one without the site",
            "none at the beginning",
            "then one",
        ):
            grow_older(options)
            if "none" in again:
                shutil.rmtree(tmp_path / "cache")
            found = listed(**options, dead_site="report")
            # both sites have a template of one name
            if "none" not in again and "then" not in again:
                assert sorted(found.hosts) == first.group("site_north")
            assert len(found.hosts) == 13
            assert simulator.counts().get(AGENT, 0) == (12 if "none" in again else 0), again
            assert simulator.counts()[LISTING] == 1
            assert "site south cannot be read" in one_line(found.errors)
            if "whole" in again:
                stale = listed(**options, stale="allow")
                assert {name: one.get("ansible_host") for name, one in stale.hosts.items()} == {
                    name: one.get("ansible_host") for name, one in first.hosts.items()
                }

    def test_a_flushed_cache_stands_in_all_the_same(
        self, listed: Lister, simulator: Simulator, options: dict[str, Any], tmp_path: Path
    ) -> None:
        listed(**options, stale="allow")
        simulator.fault(path="/cluster/resources", status=596, times=None)
        play = tmp_path / "play.yml"
        play.write_text("[{hosts: site_south, gather_facts: false, tasks: []}]")
        inventory = str(tmp_path / "fleet.proxmox.yml")
        done = run("ansible-playbook", "--flush-cache", "--list-hosts", "-i", inventory, str(play))
        assert done.returncode == 0, done.stderr
        assert "hosts (13)" in done.stdout

    def test_without_a_cache_there_is_nothing_to_show(
        self, listed: Lister, simulator: Simulator, options: dict[str, Any]
    ) -> None:
        simulator.fault(path="/cluster/resources", status=596, times=None)
        assert listed(**options, stale="allow").code != 0

    def test_refused_credentials_are_an_error(
        self, listed: Lister, options: dict[str, Any]
    ) -> None:
        listed(**options)
        grow_older(options)
        options["sites"][1]["token_secret"] = "11111111-0000-4000-8000-000000000000"
        found = listed(**options, stale="allow")
        assert found.code != 0
        assert "(AuthenticationError)" in one_line(found.errors)
