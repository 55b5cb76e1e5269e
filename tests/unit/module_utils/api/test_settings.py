# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Endpoints and settings in tables."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.doc_fragments.connection import ModuleDocFragment
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.endpoint import (
    parse_endpoint,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import (
    ALIASES,
    ENVIRONMENT,
    resolve,
    site_names,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.connection import (
    connection_spec,
)

TOKEN = {"token_id": "root@pam!ci", "token_secret": "s3cret"}


@pytest.mark.parametrize(
    ("text", "port", "netloc"),
    [
        ("pve1", None, "pve1:8006"),
        ("pve1", 443, "pve1:443"),
        ("pve1", "443", "pve1:443"),
        (" pve1.example.org ", None, "pve1.example.org:8006"),
        ("pve1:443", None, "pve1:443"),
        ("pve1:443", 8006, "pve1:443"),
        ("https://pve1", None, "pve1:8006"),
        ("https://pve1/", None, "pve1:8006"),
        ("HTTPS://pve1:443/api2", None, "pve1:443"),
        ("https://pve1:443/api2/json/", None, "pve1:443"),
        ("pve1/api2/json", None, "pve1:8006"),
        ("10.0.0.1", None, "10.0.0.1:8006"),
        ("fd00::1", None, "[fd00::1]:8006"),
        ("[fd00::1]", None, "[fd00::1]:8006"),
        ("[fd00::1]:443", None, "[fd00::1]:443"),
        ("https://[fd00::1]/api2/json", None, "[fd00::1]:8006"),
        ("::1", 9000, "[::1]:9000"),
    ],
)
def test_endpoint_forms(text: str, port: Any, netloc: str) -> None:
    endpoint = parse_endpoint(text, port)
    assert str(endpoint) == netloc
    assert endpoint.url == f"https://{netloc}/api2/json"


@pytest.mark.parametrize(
    "text",
    [
        "http://pve1",
        "ftp://pve1",
        "pve1:",
        "pve1:0",
        "pve1:99999",
        "pve1:http",
        "pve 1",
        "https://",
        "://pve1",
        "/api2/json",
        "https://pve1/other",
        "https://pve1/api2/json?x=1",
        "root:secret@pve1",
        "https://root:secret@pve1:8006",
        "http://root:secret@pve1",
        "https://root:secret@pve1/other",
        "https://root:s/secret@pve1",
        "https://root:s?secret@pve1",
        "https://root:secret@[fd00::1",
        "https://root:secret@pve1:99999",
        "10.0.0.300",
        "fd00::1::2",
        "[fd00::1",
        "-pve1",
        "pve..1",
    ],
)
def test_malformed_endpoints(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_endpoint(text)
    assert caught.value.reason == "malformed endpoint"
    assert caught.value.next_step
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        (
            {"host": "a", **TOKEN},
            {},
            {"token_id": "root@pam!ci", "token_secret": "s3cret", "user": "root@pam"},
        ),
        (
            {"host": "a", "user": "bob@pve", "token_id": "ci", "token_secret": "x"},
            {},
            {"token_id": "bob@pve!ci"},
        ),
        (
            {"host": "a", "user": "b@pve", "password": "p"},
            {},
            {"user": "b@pve", "password": "p", "token_id": ""},
        ),
        (
            {"host": "a", "user": "b@pve", "password": "p", **TOKEN},
            {},
            {"password": "", "token_id": "root@pam!ci"},
        ),
        (
            {"host": "a", "user": "b@pve", "password": "p"},
            {"PROXMOX_TOKEN_ID": "x@pve!ci", "PROXMOX_TOKEN_SECRET": "y"},
            {"password": "p", "token_id": ""},
        ),
        (
            {"api_host": "a", "api_token_id": "r@pam!ci", "api_token_secret": "x"},
            {},
            {"token_secret": "x"},
        ),
        (
            {"host": "", **TOKEN},
            {"PROXMOX_HOST": "", "PROXMOX_URL": "https://u:1"},
            {"host": "u", "port": 1},
        ),
        ({**TOKEN}, {"PVE_ENDPOINT": "https://p:8006/api2/json"}, {"host": "p"}),
        ({**TOKEN}, {"PVE_ENDPOINT": "p", "PROXMOX_HOST": "h"}, {"host": "h"}),
        (
            {**TOKEN, "host": "o"},
            {"PROXMOX_HOST": "h", "PROXMOX_PORT": "9"},
            {"host": "o", "port": 9},
        ),
        (
            {},
            {
                "PROXMOX_HOST": "h",
                "PROXMOX_USER": "u@pam",
                "PROXMOX_TOKEN_ID": "ci",
                "PROXMOX_TOKEN_SECRET": " x\n",
            },
            {"token_id": "u@pam!ci", "token_secret": "x"},
        ),
        ({"host": "a", **TOKEN}, {"PROXMOX_VALIDATE_CERTS": "no"}, {"validate_certs": False}),
        ({"host": "a", **TOKEN}, {"PROXMOX_VALIDATE_CERTS": ""}, {"validate_certs": True}),
        ({"host": "a", **TOKEN}, {"PVE_INSECURE_SKIP_VERIFY": "true"}, {"validate_certs": False}),
        ({"host": "a", **TOKEN}, {"PVE_INSECURE_SKIP_VERIFY": "0"}, {"validate_certs": True}),
        (
            {"host": "a", "validate_certs": True, **TOKEN},
            {"PVE_INSECURE_SKIP_VERIFY": "1"},
            {"validate_certs": True},
        ),
        ({"host": "a", **TOKEN}, {"PVE_CA_BUNDLE": "/ca"}, {"ca": "/ca"}),
        (
            {"host": "a", **TOKEN},
            {"PVE_NODE_SELECTOR": "n"},
            {"node": "", "preferred_nodes": ("n",)},
        ),
        (
            {"host": "a", **TOKEN},
            {"PVE_NODE_SELECTOR": " n1, n2,n1,"},
            {"preferred_nodes": ("n1", "n2")},
        ),
        (
            {"host": "a", **TOKEN},
            {"PVE_NODE_SELECTOR": "n1", "PROXMOX_NODE": "n"},
            {"node": "n", "preferred_nodes": ()},
        ),
        ({**TOKEN}, {"PROXMOX_ENDPOINT": "https://e:8006"}, {"host": "e"}),
        ({**TOKEN}, {"PVE_ENDPOINT": "p", "PROXMOX_ENDPOINT": "e"}, {"host": "e"}),
        ({**TOKEN}, {"PROXMOX_ENDPOINT": "e", "PROXMOX_URL": "u"}, {"host": "u"}),
        ({**TOKEN}, {"PROXMOX_ENDPOINT": "", "PVE_ENDPOINT": "p"}, {"host": "p"}),
        (
            {"host": "a", "password": "p"},
            {"PROXMOX_USERNAME": "u@pam", "PVE_USERNAME": "v@pam"},
            {"user": "u@pam"},
        ),
        (
            {"host": "a", "password": "p"},
            {"PROXMOX_USERNAME": "u@pam", "PROXMOX_USER": "w@pam"},
            {"user": "w@pam"},
        ),
        ({"host": "a", **TOKEN}, {"PROXMOX_DEFAULT_CLUSTER": "prod"}, {"host": "a", "site": ""}),
        (
            {**TOKEN},
            {"PROXMOX_HOST": "h", "PROXMOX_DEFAULT_CLUSTER": "prod"},
            {"host": "h", "site": ""},
        ),
        (
            {"host": "a", **TOKEN},
            {},
            {"retries": None, "retry_timeout": 30.0, "lock_timeout": 60.0},
        ),
        (
            {"host": "a", **TOKEN},
            {"PROXMOX_RETRY_TIMEOUT": "90"},
            {"retry_timeout": 90.0, "retries": None},
        ),
        ({"host": "a", **TOKEN}, {"PROXMOX_RETRIES": "2"}, {"retry_timeout": 30.0, "retries": 2}),
        (
            {"host": "a", "retry_timeout": 5, **TOKEN},
            {"PROXMOX_RETRY_TIMEOUT": "90"},
            {"retry_timeout": 5.0},
        ),
        ({"host": "a", **TOKEN}, {}, {"max_answer_size": 128 << 20}),
        ({"host": "a", **TOKEN}, {"PROXMOX_MAX_ANSWER_SIZE": "1G"}, {"max_answer_size": 1 << 30}),
        ({"host": "a", "max_answer_size": "8", **TOKEN}, {}, {"max_answer_size": 8 << 20}),
        ({"host": "a", "node": "x", **TOKEN}, {"PROXMOX_NODE": "n"}, {"node": "n"}),
        ({"host": "a", "timeout": 5, **TOKEN}, {}, {"timeout": 5.0, "connect_timeout": 5.0}),
        (
            {"host": "a", **TOKEN},
            {"PROXMOX_TIMEOUT": "60"},
            {"timeout": 60.0, "connect_timeout": 10.0},
        ),
    ],
)
def test_resolve(
    options: dict[str, Any], environ: dict[str, str], expected: dict[str, Any]
) -> None:
    connection = resolve(options, environ)
    found = {**vars(connection), "host": connection.endpoint.host, "port": connection.endpoint.port}
    assert {key: found[key] for key in expected} == expected


LOGIN = {"host": "a", "user": "u@pam", "password": "p"}


@pytest.mark.parametrize(
    ("option", "attribute", "text", "options"),
    [
        ("host", "endpoint", "pve7", TOKEN),
        ("user", "user", "v@pam", {"host": "a", "password": "p"}),
        ("password", "password", "hush", {"host": "a", "user": "u@pam"}),
        ("token_id", "token_id", "v@pam!t1", {"host": "a", "token_secret": "x"}),
        ("token_secret", "token_secret", "hush", {"host": "a", "token_id": "v@pam!t1"}),
        ("ca_path", "ca", "/ca.pem", LOGIN),
    ],
)
def test_every_variable_of_an_option_means_the_same(
    option: str, attribute: str, text: str, options: dict[str, Any]
) -> None:
    names = ENVIRONMENT[option]
    assert len(names) > 1
    assert len({str(getattr(resolve(options, {name: text}), attribute)) for name in names}) == 1
    contradiction = {name: text if name == names[0] else "w@pam!o1" for name in names}
    assert getattr(resolve(options, contradiction), attribute) == getattr(
        resolve(options, {names[0]: text}), attribute
    )


@pytest.mark.parametrize(
    ("options", "reason", "hint"),
    [
        ({**TOKEN}, "missing endpoint", "host"),
        ({"host": "http://a", **TOKEN}, "malformed endpoint", "https"),
        ({"host": "a"}, "no credentials", "token_id"),
        ({"host": "a", "user": "root@pam"}, "no credentials", "token_id"),
        ({"host": "a", "password": "p"}, "no credentials", "user"),
        ({"host": "a", "token_id": "root@pam!ci"}, "no credentials", "token_secret"),
        ({"host": "a", "token_secret": "x"}, "no credentials", "token_id"),
        ({"host": "a", "token_id": "ci", "token_secret": "x"}, "no credentials", "user@realm!id"),
        (
            {"host": "a", "token_id": "root!ci", "token_secret": "x"},
            "malformed credentials",
            "realm",
        ),
        ({"host": "a", "user": "root", "password": "x"}, "malformed credentials", "realm"),
        (
            {"host": "a", "token_id": "root@pam!ci", "token_secret": "a b"},
            "malformed credentials",
            "secret",
        ),
        ({"host": "a", "timeout": "soon", **TOKEN}, "malformed value", "Correct"),
        ({"host": "a", "retries": 0, **TOKEN}, "malformed value", "Correct"),
        ({"host": "a", "max_answer_size": "1K", **TOKEN}, "malformed value", "Correct"),
        ({"host": "a", "max_answer_size": "much", **TOKEN}, "malformed value", "Correct"),
        ({"host": "a", "client_key": "k", **TOKEN}, "client certificate", "client_cert"),
        ({"host": "a", "site": "b", **TOKEN}, "host and site", "one"),
        ({"site": "b", **TOKEN}, "unknown site", "sites"),
    ],
)
def test_failures_name_the_next_step(options: dict[str, Any], reason: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve(options, {})
    assert caught.value.reason == reason
    assert hint in caught.value.next_step
    assert "s3cret" not in str(caught.value.as_result())


def test_a_malformed_variable_is_named() -> None:
    with pytest.raises(ConfigurationError, match="PROXMOX_VALIDATE_CERTS"):
        resolve({"host": "a", **TOKEN}, {"PROXMOX_VALIDATE_CERTS": "maybe"})


def test_a_malformed_port_of_the_environment_is_named() -> None:
    with pytest.raises(ConfigurationError, match="from PROXMOX_HOST and PROXMOX_PORT"):
        resolve({**TOKEN}, {"PROXMOX_HOST": "a", "PROXMOX_PORT": "x"})


@pytest.mark.parametrize(
    ("options", "environ", "netloc"),
    [
        ({"port": 8443}, {"PROXMOX_HOST": "pve1:8006"}, "pve1:8443"),
        ({"port": 8443}, {"PROXMOX_URL": "https://[::1]:8006/api2/json"}, "[::1]:8443"),
        ({"port": 8443, "sites": {"a": {"host": "pve1:8006"}}}, {}, "pve1:8443"),
        ({"host": "pve1:8443"}, {"PROXMOX_PORT": "9"}, "pve1:8443"),
        ({"host": "pve1:8443", "port": 8443}, {}, "pve1:8443"),
        ({}, {"PROXMOX_HOST": "pve1:8006", "PROXMOX_PORT": "8006"}, "pve1:8006"),
    ],
)
def test_port_of_the_nearer_source_counts(
    options: dict[str, Any], environ: dict[str, str], netloc: str
) -> None:
    assert str(resolve({**options, **TOKEN}, environ).endpoint) == netloc


@pytest.mark.parametrize(
    ("options", "environ", "message"),
    [
        (
            {"host": "pve1:8006", "port": 8443},
            {},
            "and port is 8443 (from option host and option port). Give the port once.",
        ),
        ({}, {"PROXMOX_HOST": "a:1", "PROXMOX_PORT": "2"}, "(from PROXMOX_HOST and PROXMOX_PORT)"),
        ({"sites": [{"name": "x", "host": "a:1", "port": 2}]}, {}, "site x: option host and site"),
        (
            {"host": "a", "token_id": "ops@pve!ci", "user": "root@pam"},
            {},
            "option token_id is a token of ops@pve, and option user is root@pam. Remove the user",
        ),
        ({"sites": [{"name": "x"}], "sites_file": "f"}, {}, "both sites and sites_file are given"),
        (
            {"sites": [{"name": "x", "host": "a", "endpoint": "b"}]},
            {},
            "has host twice, also as an alias",
        ),
    ],
)
def test_contradiction_in_one_source_is_refused(
    options: dict[str, Any], environ: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve({**TOKEN, **options}, environ)
    assert message in caught.value.message


def test_user_with_password_beside_a_token_of_another_user() -> None:
    """A file of environment variables may have both logins: the token is used."""
    environ = {"PROXMOX_USER": "root@pam", "PROXMOX_PASSWORD": "p"}
    connection = resolve({"host": "a"}, {**environ, **TOKEN_ENVIRONMENT})
    assert connection.user == "ops@pve"
    connection = resolve({"host": "a", **TOKEN, "token_id": "ops@pve!ci"}, environ)
    assert connection.user == "ops@pve"


def test_secrets_do_not_show() -> None:
    connection = resolve({"host": "a", "user": "u@pam", "password": "hush"}, {})
    assert "hush" not in repr(connection)
    assert "s3cret" not in repr(resolve({"host": "a", **TOKEN}, {}))


TOKEN_ENVIRONMENT = {"PROXMOX_TOKEN_ID": "ops@pve!ci", "PROXMOX_TOKEN_SECRET": "x"}
SITES: list[dict[str, Any]] = [
    {"name": "north", "host": "n:1", "user": "n@pam", "password": "np", "node": "pve1"},
    {"name": "south", "endpoint": "s", **TOKEN, "default": True, "validate_certs": False},
]


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        ({"sites": SITES}, {}, ("south", "s:8006")),
        ({"sites": SITES, "site": "north"}, {}, ("north", "n:1")),
        ({"sites": SITES}, {"PROXMOX_SITE": "north"}, ("north", "n:1")),
        ({"sites": SITES}, {"PROXMOX_DEFAULT_CLUSTER": "north"}, ("north", "n:1")),
        (
            {"sites": SITES},
            {"PROXMOX_DEFAULT_CLUSTER": "north", "PROXMOX_SITE": "south"},
            ("south", "s:8006"),
        ),
        ({"sites": SITES, "site": "south"}, {"PROXMOX_SITE": "north"}, ("south", "s:8006")),
        ({"sites": SITES}, {"PROXMOX_HOST": "e", "PROXMOX_PORT": "7"}, ("south", "s:8006")),
        ({"sites": SITES, "host": "o", **TOKEN}, {"PROXMOX_SITE": "north"}, ("", "o:8006")),
        ({"sites": SITES[:1]}, {}, ("north", "n:1")),
        ({"sites": {"only": {"host": "x", **TOKEN}}}, {}, ("only", "x:8006")),
    ],
)
def test_sites(options: dict[str, Any], environ: dict[str, str], expected: tuple[str, str]) -> None:
    connection = resolve(options, environ)
    assert (connection.site, str(connection.endpoint)) == expected


def test_a_site_brings_its_own_credentials_and_node() -> None:
    environ = {"PROXMOX_TOKEN_ID": "e@pam!ci", "PROXMOX_TOKEN_SECRET": "env"}
    connection = resolve({"sites": SITES, "site": "north"}, environ)
    assert (connection.user, connection.password, connection.token_id, connection.node) == (
        "n@pam",
        "np",
        "",
        "pve1",
    )


def test_sites_file() -> None:
    files = {"/etc/sites.yml": {"sites": SITES}}
    connection = resolve({"site": "north"}, {"PROXMOX_SITES_FILE": "/etc/sites.yml"}, files.get)
    assert str(connection.endpoint) == "n:1"
    assert site_names({"sites_file": "/etc/sites.yml"}, {}, files.get) == ["north", "south"]


@pytest.mark.parametrize(
    ("options", "reason", "text"),
    [
        ({"sites": SITES, "site": "west"}, "unknown site", "north, south"),
        ({"sites": [SITES[0], {**SITES[1], "default": False}]}, "no site chosen", "north, south"),
        ({"sites": [SITES[1], {**SITES[1], "name": "b"}]}, "two default sites", "more than one"),
        ({"sites": [SITES[0], SITES[0]]}, "malformed sites", "twice"),
        ({"sites": [{"host": "a"}]}, "malformed sites", "name"),
        ({"sites": [{"name": "a", "hots": "a"}]}, "malformed sites", "hots"),
        ({"sites": ["a"]}, "malformed sites", "list"),
        (
            {"sites": [{"name": "a", "state": "shut"}]},
            "malformed sites",
            "active, draining, closed",
        ),
        ({"sites": [{"name": "a", "labels": ["eu"]}]}, "malformed sites", "labels of site a"),
        ({"sites": [{"name": "a", "labels": {"eu": [1]}}]}, "malformed sites", "labels of site a"),
    ],
)
def test_wrong_sites(options: dict[str, Any], reason: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve(options, {})
    assert caught.value.reason == reason
    assert text in caught.value.message


def test_labels_and_state_of_a_site() -> None:
    site = {**SITES[0], "labels": {"region": "eu", "price": 3}, "state": "draining"}
    found = resolve({"sites": [site]}, {})
    assert found.labels == (("price", "3"), ("region", "eu"))
    assert found.state == "draining"
    assert resolve({"sites": [SITES[0]]}, {}).state == "active"


def test_a_closed_site_is_only_used_by_its_name() -> None:
    sites = [SITES[0], {**SITES[1], "default": False, "state": "closed"}]
    assert site_names({"sites": sites}, {}) == ["north"]
    assert resolve({"sites": sites, "site": "south"}, {}).state == "closed"


class TestOneTable:
    """The specification, the documentation and the table of settings name the same things."""

    DOCS = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]

    def test_options_and_aliases(self) -> None:
        spec = connection_spec()
        assert set(spec) == set(self.DOCS)
        for name, option in spec.items():
            assert option.get("aliases", []) == self.DOCS[name].get("aliases", []), name
            assert option["type"] == self.DOCS[name]["type"], name
            assert all(ALIASES[alias] == name for alias in option.get("aliases", [])), name
        suboptions = self.DOCS["sites"]["suboptions"]
        assert set(spec["sites"]["options"]) == set(suboptions)

    # documented with the node of a site, because no module has them
    OF_A_SITE = ("node", "preferred_nodes")

    def test_environment(self) -> None:
        documented = {
            name: [
                word.partition(")")[0]
                for line in option["description"]
                if "Environment" in line
                for word in line.split("E(")[1:]
            ]
            for name, option in self.DOCS.items()
        }
        expected = {
            name: list(names) for name, names in ENVIRONMENT.items() if name not in self.OF_A_SITE
        }
        assert {name: names for name, names in documented.items() if names} == expected

    def test_secrets_are_masked(self) -> None:
        spec = connection_spec()
        for options in (spec, spec["sites"]["options"]):
            assert [name for name, one in options.items() if one.get("no_log")] == [
                "password",
                "token_secret",
            ]


SECRET = "00000000-0000-4000-8000-0000000000f1"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"token_id": SECRET, "token_secret": "root@pam!ci"}, "token_secret are swapped"),
        ({"token_id": SECRET, "token_secret": "ci", "user": "root@pam"}, "are swapped"),
        ({"token_id": f"root@pam!ci={SECRET}", "token_secret": "x"}, "'root@pam!ci' in token_id"),
        ({"token_id": f"PVEAPIToken=root@pam!ci={SECRET}", "token_secret": "x"}, "'root@pam!ci'"),
        ({"token_id": f"root@pam!0{SECRET}", "token_secret": SECRET}, "not a valid name"),
        ({"token_id": SECRET, "token_secret": SECRET}, "has no user"),
        ({"token_id": f"{SECRET}!ci", "token_secret": SECRET}, "not a user with a realm"),
        ({"user": SECRET, "password": "root@pam"}, "user and password are swapped"),
        ({"user": "correct horse", "password": "root@pam"}, "user and password are swapped"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_shown(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        resolve({"host": "pve1", **given}, {})
    message = str(refused.value)
    assert words in message
    assert SECRET not in message
    assert "correct horse" not in message


def test_swapped_credentials_of_the_environment_are_not_shown() -> None:
    environment = {
        "PROXMOX_HOST": "pve1",
        "PROXMOX_TOKEN_ID": SECRET,
        "PROXMOX_TOKEN_SECRET": "root@pam!ci",
    }
    with pytest.raises(ConfigurationError, match="swapped") as refused:
        resolve({}, environment)
    assert SECRET not in str(refused.value)
