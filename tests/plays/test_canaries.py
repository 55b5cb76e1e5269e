# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets planted in every option that takes one, of every module and plugin: none comes out in
what is printed, returned, kept or running, and what is written is private.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.connection import (
    connection_spec,
)
from tests.cases import cases
from tests.certificates import some_certificate
from tests.declared import UNSUPPORTED, module_sample
from tests.modules.access_lab import with_directory
from tests.plays.commands import run
from tests.plays.test_in_process import MINIMAL, Row
from tests.simulator.identity.acme_accounts import TERMS
from tests.simulator.process import DEMO, TOKEN_ID, TOKEN_SECRET, Simulator

pytestmark = pytest.mark.slow

DEAD = "https://127.0.0.1:9"
# What is planted, by the option that takes it; `vms.`, `sites.`, `ipams.` and `dns.` are lists.
PLANTED: Mapping[str, str] = {
    "password": "canary-password-1",
    "token_secret": "canary-token-2",
    "sites.password": "canary-site-password-3",
    "sites.token_secret": "canary-site-token-4",
    "cloud_init.password": "canary-cloud-5",
    "cloud_init.user_data": "#cloud-config\nchpasswd: {list: 'root:canary-user-data-6'}\n",
    "vms.cloud_init.password": "canary-vms-cloud-7",
    "vms.cloud_init.user_data": "#cloud-config\npassword: canary-vms-user-data-8\n",
    "user_password": "canary-user-9",
    "current_secret": "canary-current-14",
    "vault_password": "canary-vault-15",
    "root_password": "canary-root-16",
    "server_password": "canary-server-17",
    "keyring": "[client.admin]\nkey = canary-keyring-18\n",
    "encryption_key": '{"kdf": null, "data": "canary-encryption-19"}',
    "master_pubkey": "canary-master-20",
    "bind_password": "canary-bind-21",
    "client_secret": "canary-client-22",
    "token": "canary-influx-23",
    "otel_headers": "canary-headers-24",
    "smtp_password": "canary-smtp-25",
    "ipams.token": "canary-ipam-26",
    "dns.key": "canary-dns-27",
    # Proxmox VE takes a text in base64 only (pve-common: Certificate.pm, check_pem).
    "private_key": "-----BEGIN PRIVATE KEY-----\ncanary/private/28\n-----END PRIVATE KEY-----",
    "key": "canary-subscription-29",
    "data": "CF_Token=canary-acme-30",
    "text": "#cloud-config\npassword: canary-snippet-31\n",
    "eab_hmac_key": "canary-eab-32",
    "plan_key": "canary-plan-33",
}
# Proxmox VE compares a certificate with no key.
CERTIFICATE = some_certificate()
# Proxmox VE connects to no server then, except to one for OpenTelemetry.
_OFF = {"disable": True}
_STORAGE: Mapping[str, Any] = {**_OFF, "server": "192.0.2.9", "username": "u@pbs"}
_REALM: Mapping[str, Any] = {"server1": "ldap.example.com", "base_dn": "dc=example,dc=com"}
# The tasks of modules whose secrets belong to some types only, each with its secrets.
TYPED: Mapping[str, tuple[tuple[Mapping[str, Any], tuple[str, ...]], ...]] = {
    "storage": (
        ({"name": "c1", "type": "cifs", "share": "iso", **_STORAGE}, ("server_password",)),
        ({"name": "c2", "type": "rbd", "monhost": ["192.0.2.9"], **_OFF}, ("keyring",)),
        (
            {"name": "c3", "type": "pbs", "datastore": "d", **_STORAGE},
            ("server_password", "encryption_key", "master_pubkey"),
        ),
    ),
    "realm": (
        (
            {"name": "c1", "type": "ldap", "user_attr": "uid", "bind_dn": "cn=a", **_REALM},
            ("bind_password",),
        ),
        (
            {"name": "c2", "type": "openid", "issuer_url": "https://a.example", "client_id": "p"},
            ("client_secret",),
        ),
    ),
    "metric_server": (
        (
            {"name": "c1", "type": "influxdb", "server": "192.0.2.9", "server_port": 8086, **_OFF},
            ("token",),
        ),
        (
            {"name": "c2", "type": "opentelemetry", "server": "10.99.0.6", "server_port": 4318},
            ("otel_headers",),
        ),
    ),
    "volume": (({"volume": "local:snippets/user.yml", "node": "pve1"}, ("text",)),),
    "acme_account": (
        (
            {"name": "c1", "contact": ["a@example.com"], "tos_url": TERMS, "eab_kid": "k"},
            ("eab_hmac_key",),
        ),
    ),
    "acme_plugin": (({"name": "c1", "type": "dns", "api": "cf"}, ("data",)),),
    "node_certificate": (({"node": "pve1", "certificates": CERTIFICATE}, ("private_key",)),),
    "storage_scan_info": (
        (
            {"node": "pve1", "type": "pbs", "server": "10.99.0.6", "username": "u@pbs"},
            ("server_password",),
        ),
    ),
    # A key of a subscription has a form of its own: the refused task has the canary.
    "subscription": (({"node": "pve1", "state": "absent"}, ()),),
    "sdn": (
        (
            {
                "ipams": [{"name": "c1", "type": "netbox", "url": "https://10.99.0.6/api"}],
                "dns": [{"name": "c2", "type": "powerdns", "url": "https://10.99.0.6/api"}],
            },
            ("ipams.token", "dns.key"),
        ),
    ),
    "notification_endpoint": (
        (
            {
                "name": "c1",
                "type": "smtp",
                "server": "mail.example.com",
                "from_address": "a@example.com",
                "mailto": ["b@example.com"],
                "username": "u",
            },
            ("smtp_password",),
        ),
        ({"name": "c2", "type": "gotify", "server": "https://a.example"}, ("token",)),
    ),
}
# The specification of module vms does not have them: they are of VMs in a list.
OF_VMS = ("vms.cloud_init.password", "vms.cloud_init.user_data")
# What no option shows to be secret.
BESIDE = ("canary-url-10", "canary-key-11", "canary-class-12", "canary-broken-13")
# The password of root@pam in the demo cluster, with which some tasks log in.
RIGHT_PASSWORD = "fleetpw123"
CANARIES = (
    *(re.findall(r"canary[-/][a-z-]+[-/]\d+", text)[0] for text in PLANTED.values()),
    *BESIDE,
    TOKEN_SECRET,
    RIGHT_PASSWORD,
)
# Proxmox VE refuses every token.
ROOT_ONLY = ("acme_account", "acme_account_info")
# They return a site or a check that fails as a row.
REPORTING = ("drift_info", "preflight_info", "audit_info", "metrics", "report_info", "usage")
# As processes of their own, the other modules go by the same code: in `make test-long` all.
AS_MODULES = cases(full=tuple(MINIMAL), short=("token", "vm_info", "vms"))


def spec_of(module: str) -> Mapping[str, Any]:
    name = f"ansible_collections.pve.fleet.plugins.modules.{module}"
    entry = importlib.import_module(name).ENTRY
    spec: Mapping[str, Any] = entry.whole_spec
    return spec


def secret_options(spec: Mapping[str, Any], base: str = "") -> Iterator[str]:
    """Return the options with `no_log`, as `option.option`."""
    for name, option in spec.items():
        if option.get("no_log"):
            yield base + name
        yield from secret_options(option.get("options") or {}, f"{base}{name}.")


def planted(options: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return options with a value where the path leads; lists get it in their only item."""
    name, _dot, rest = path.partition(".")
    if not rest:
        return {**options, name: value}
    inner = options.get(name) or {}
    if name in ("sites", "vms", "ipams", "dns"):
        item = inner[0] if inner else {"name": "planted"}
        return {**options, name: [planted(item, rest, value)]}
    return {**options, name: planted(inner, rest, value)}


def own_secrets(module: str) -> list[str]:
    """Return the secret options of a module without those of the connection."""
    found = [
        path
        for path in secret_options(spec_of(module))
        if path.partition(".")[0] not in connection_spec()
    ]
    return [*found, *OF_VMS] if module == "vms" else found


# The secrets of the connection go by the same code in all modules of a kind.
KINDS_AND_SECRETS = tuple(
    module for module in MINIMAL if module in module_sample() or own_secrets(module)
)


def tasks_of(module: str, place: Path) -> Iterator[dict[str, Any]]:
    """Yield the options of tasks that work, with the module's own secrets in them."""
    for options, paths in TYPED.get(module, ((MINIMAL[module], tuple(own_secrets(module))),)):
        yield with_secrets(options, paths, place)


def with_secrets(options: Mapping[str, Any], paths: Iterable[str], place: Path) -> dict[str, Any]:
    """Return the options with secrets in them, and with the options that these need."""
    options = dict(options)
    for path in paths:
        if path in ("current_secret", "vault_password"):  # the refused task has them
            continue
        options = planted(options, path, PLANTED[path])
        if path == "text":
            options["snippet_directory"] = str(place / "snippets")
        if path.endswith("user_data"):
            for name, value in (
                ("snippets", {"user": "local:snippets/user.yml"}),
                ("snippet_directory", str(place / "snippets")),
            ):
                options = planted(options, path.replace("user_data", name), value)
    return options


def rows(module: str, place: Path) -> list[Row]:
    """Return the tasks of a module: those that work, and what can go wrong before and after."""
    return [
        row
        for number, options in enumerate(tasks_of(module, place))
        for row in rows_of(module, f"{module} {number}", options, place)
    ]


def rows_of(module: str, label: str, options: dict[str, Any], place: Path) -> list[Row]:
    """Return the rows of one task."""
    by_password = {"user": "root@pam", "token_id": "", "token_secret": ""}
    everything = {**options, "nosuch": 1}
    for path, value in PLANTED.items():
        if path in {*secret_options(spec_of(module)), *own_secrets(module)}:
            everything = planted(everything, path, value)
    login = {**by_password, "password": RIGHT_PASSWORD}
    first = login if module in ROOT_ONLY else {}
    wrong = {**by_password, "password": PLANTED["password"]}
    site = {"name": "a", "user": "root@pam", "password": PLANTED["sites.password"]}
    other = {"name": "b", "token_secret": PLANTED["sites.token_secret"]}
    sites = {"host": "", "sites": [{**site, "host": DEAD}, {**other, "host": DEAD}]}
    key = str(place / "client.pem")
    return [
        Row(f"{label}: foreseen", module, {**options, **first}, {"check_mode": True}),
        Row(f"{label}: works", module, {**options, **login}),
        Row(f"{label}: again", module, {**options, **first}),
        Row(f"{label}: refused", module, everything),
        Row(f"{label}: wrong token", module, {**options, "token_secret": PLANTED["token_secret"]}),
        Row(f"{label}: wrong password", module, {**options, **wrong}),
        Row(f"{label}: unreachable", module, {**options, **wrong, "host": DEAD, "retries": 1}),
        Row(f"{label}: unknown site", module, {**options, **sites, "site": "c"}),
        Row(f"{label}: dead site", module, {**options, **sites, "site": "a", "retries": 1}),
        Row(
            f"{label}: URL",
            module,
            {**options, "host": f"https://root:canary-url-10@127.0.0.1:{DEAD[-1]}"},
        ),
        Row(f"{label}: client key", module, {**options, "client_cert": key, "client_key": key}),
    ]


PARTICULAR = [
    Row("rotate", "token", {"owner": "ops@pve", "name": "auto", "state": "rotated"}),
    Row(
        "a class",
        "vm",
        {
            "name": "both",
            "class": "web",
            "classes": {"web": {"cloud_init": {"password": "canary-class-12"}, "cores": "x"}},
        },
    ),
    Row(
        "broken user data",
        "vm",
        {
            "name": "both",
            "cloud_init": {
                "user_data": "#cloud-config\npassword: [canary-broken-13\n",
                "snippets": {"user": "local:snippets/user.yml"},
                "snippet_directory": "/nowhere",
            },
        },
    ),
]


def text_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def watched_processes(found: list[str]) -> Iterator[None]:
    """Note the command lines of all processes with a canary, while this lasts."""
    end = threading.Event()

    def look() -> None:
        while not end.wait(0.1):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = file.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                except OSError:
                    continue
                # Other tests on this machine use the demo cluster with its token too.
                found.extend(line for one in CANARIES if "canary" in one and one in line)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        end.set()
        watcher.join()


def environment(place: Path) -> dict[str, str]:
    """Return an environment in which everything that is written is written below one directory."""
    homes = {
        "HOME": "home",
        "TMPDIR": "tmp",
        "XDG_CACHE_HOME": "home/.cache",
        "ANSIBLE_HOME": "home/.ansible",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": "facts",
    }
    for name in homes.values():
        (place / "written" / name).mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        **{name: str(place / "written" / path) for name, path in homes.items()},
        "ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_LOG_PATH": str(place / "written" / "ansible.log"),
        "ANSIBLE_PIPELINING": "0",
    }


def written(place: Path) -> dict[str, bytes]:
    """Return the files that were written, and their content."""
    return {
        str(file): file.read_bytes()
        for file in (place / "written").rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def leaked(text: str) -> list[str]:
    """Return the canaries in a text, each with what stands around it."""
    return [
        text[max(0, text.index(canary) - 120) : text.index(canary) + 60]
        for canary in CANARIES
        if canary in text
    ]


def connection_of(simulator: Simulator) -> dict[str, str]:
    return {
        "host": simulator.url,
        "ca_path": simulator.ca,
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
    }


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short path: ansible-core 2.21 has a socket below TMPDIR, whose path may
    have 108 characters.
    """
    with TemporaryDirectory(prefix="canary-") as path:
        yield Path(path)


def prepare(place: Path) -> None:
    (place / "snippets").mkdir()
    (place / "snippets" / "user.yml").write_text("#cloud-config\nusers: []\n", encoding="utf-8")
    (place / "client.pem").write_text("canary-key-11 is not a key\n", encoding="utf-8")


def play(place: Path, table: list[Row], simulator: Simulator, *arguments: str) -> tuple[str, Any]:
    """Play the rows; return what was printed, and the results by the names of the rows."""
    names = {f"r{number}": row.name for number, row in enumerate(table)}
    tasks = [{**row.task, "register": name} for name, row in zip(names, table, strict=True)]
    results = "{{ {" + ", ".join(f"'{name}': {name}" for name in names) + "} | to_json }}"
    after = [
        {"ansible.builtin.set_fact": {"kept": "{{ " + " ~ ".join(list(names)[1:4]) + " }}"}},
        {
            "ansible.builtin.set_fact": {
                "ones": "{{ [" + ", ".join(one for one in names if names[one] != "rotate") + "] }}",
                "cacheable": True,
            },
            "no_log": True,
        },
        {"keep": {"content": results, "dest": "results.json"}, "no_log": True},
    ]
    login = {"host": simulator.url, "ca_path": simulator.ca, "token_id": TOKEN_ID}
    plays = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "module_defaults": {"group/pve.fleet.all": {**login, "token_secret": TOKEN_SECRET}},
            "tasks": [*tasks, *after],
        }
    ]
    (place / "rows.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    done = run(
        ["ansible-playbook", "-vvvvv", "--diff", "rows.yml", *arguments],
        place,
        environment(place),
        usual=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    found = json.loads((place / "results.json").read_text(encoding="utf-8"))
    return done.stdout + done.stderr, {names[key]: value for key, value in found.items()}


@pytest.mark.parametrize(
    ("way", "modules"),
    [
        pytest.param("here", KINDS_AND_SECRETS, id="here"),
        pytest.param("as a module", AS_MODULES, id="as a module", marks=pytest.mark.long),
        pytest.param("here", tuple(MINIMAL), id="every module", marks=pytest.mark.long),
    ],
)
def test_no_canary_of_a_module_comes_out(place: Path, way: str, modules: Iterable[str]) -> None:
    prepare(place)
    table = [Row("make", "vm", MINIMAL["vm"])]
    for module in modules:
        table += rows(module, place)
    table += PARTICULAR
    on_the_way: list[str] = []
    quick = ("--lag-s", "0", "--auth-delay-s", "0", "--task-ms", "default=10")
    with Simulator("--cluster", DEMO, *quick) as simulator, watched_processes(on_the_way):
        with connect(connection_of(simulator), {}) as client:
            with_directory(client, simulator)
        switch = f"pve_fleet_in_process={str(way == 'here').lower()}"
        printed, results = play(place, table, simulator, "-e", switch)
    for name, result in results.items():
        kind = name.partition(": ")[2]
        if kind in ("foreseen", "works", "again"):
            unsupported = name.partition(" ")[0] in UNSUPPORTED
            assert result["failed"] is unsupported, (name, result["msg"])
        elif kind and not name.startswith(REPORTING):
            assert result["failed"], name
        assert leaked(text_of(result)) == [], name
        assert "Traceback" not in text_of(result), name
    assert leaked(printed) == []
    assert on_the_way == []
    secret = results["rotate"]["secret"]
    assert len(secret) == 36
    assert secret not in printed
    for file, content in written(place).items():
        text = content.decode("utf-8", "replace")
        assert leaked(text) == [], file
        assert secret not in text, file


def test_what_a_module_keeps_is_private(place: Path) -> None:
    prepare(place)
    table = [Row("make", "vm", MINIMAL["vm"]), *rows("vm", place)[:2], PARTICULAR[0]]
    with Simulator("--cluster", DEMO, "--lag-s", "0", "--auth-delay-s", "0") as simulator:
        play(place, table, simulator, "-e", "pve_fleet_in_process=false")
    assert not list((place / "written/home/.cache").rglob("pve*"))
    mode = stat.S_IMODE((place / "snippets" / "user.yml").stat().st_mode)
    assert mode & 0o007 == 0, oct(mode)


def test_every_secret_option_is_planted() -> None:
    """A new module, or a new option with `no_log`, has a canary."""
    options = {path for module in MINIMAL for path in secret_options(spec_of(module))}
    assert options | set(OF_VMS) == set(PLANTED)


def inventory(place: Path, **options: Any) -> Path:
    file = place / "fleet.proxmox.yml"
    file.write_text(json.dumps({"plugin": "pve.fleet.proxmox", **options}), encoding="utf-8")
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def cluster() -> Iterator[Simulator]:
    with Simulator("--cluster", DEMO, "--lag-s", "0", "--auth-delay-s", "0") as simulator:
        yield simulator


def logins(cluster: Simulator) -> dict[str, dict[str, Any]]:
    """Return ways to log in, some of them wrong, by the end that they come to."""
    right = {"host": cluster.url, "ca_path": cluster.ca}
    token = {**right, "token_id": TOKEN_ID}
    user = {**right, "user": "root@pam"}
    site = {"name": "a", **user, "password": PLANTED["sites.password"]}
    return {
        "right token": {**token, "token_secret": TOKEN_SECRET},
        "right password": {**user, "password": RIGHT_PASSWORD},
        "wrong token": {**token, "token_secret": PLANTED["token_secret"]},
        "wrong password": {**user, "password": PLANTED["password"]},
        "unreachable": {**user, "host": DEAD, "retries": 1, "password": PLANTED["password"]},
        "wrong site": {"sites": [site], "site": "a"},
        "unknown site": {"sites": [site], "site": "b"},
        "URL": {"host": "https://root:canary-url-10@127.0.0.1:9"},
    }


def test_no_canary_of_the_inventory_comes_out(place: Path, cluster: Simulator) -> None:
    """By token and by password, with the cache, and where the login fails."""
    prepare(place)
    cache = place / "written" / "cache"
    kept = {
        "cache": True,
        "cache_plugin": "ansible.builtin.jsonfile",
        "cache_connection": str(cache),
        "fetch": ["config", "addresses", "snapshots"],
    }
    cluster.steer("/vms/9000", {"config": {"cipassword": "canary-cloud-5"}})
    for name, login in logins(cluster).items():
        file = inventory(place, **login, **kept)
        command = ["ansible-inventory", "-vvvvv", "-i", str(file), "--list"]
        done = run(command, place, environment(place), usual=False)
        assert leaked(done.stdout + done.stderr) == [], name
        if name.startswith("right"):
            assert "debian-13" in done.stdout, done.stderr
    assert list(cache.iterdir())
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    for path, content in written(place).items():
        assert leaked(content.decode("utf-8", "replace")) == [], path


def test_no_canary_of_the_lookup_comes_out(place: Path, cluster: Simulator) -> None:
    prepare(place)
    tasks = [
        {
            "name": name,
            "ansible.builtin.debug": {"msg": "{{ lookup('pve.fleet.vm', '9000', **of) }}"},
            "vars": {"of": login},
            "ignore_errors": True,
        }
        for name, login in logins(cluster).items()
    ]
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    (place / "play.yml").write_text(json.dumps(play), encoding="utf-8")
    command = ["ansible-playbook", "-vvvvv", "play.yml"]
    done = run(command, place, environment(place), usual=False)
    assert done.returncode == 0
    assert "debian-13" in done.stdout
    assert leaked(done.stdout + done.stderr) == []
    for file, content in written(place).items():
        assert leaked(content.decode("utf-8", "replace")) == [], file


def test_every_plugin_is_here(repo: Path) -> None:
    """A new plugin has tests of its own above.

    `mistakes` is about names of variables and their choices, `edited` about the
    checksum of a file, `hosts` about names of hosts: they read no secret. `sites` returns the
    secrets of a sites file to the caller.
    """
    plugins = {
        f"{kind}/{file.stem}"
        for kind in ("inventory", "lookup")
        for file in (repo / "plugins" / kind).glob("*.py")
    }
    without_secrets = {"lookup/edited", "lookup/hosts", "lookup/mistakes", "lookup/sites"}
    assert plugins == {"inventory/proxmox", "lookup/vm", *without_secrets}
