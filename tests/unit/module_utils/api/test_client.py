# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The session and the client against a server that answers from a list."""

from __future__ import annotations

import gzip
import random
import socket
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import (
    Client,
    connect,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import encode
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import resolve
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import errors
from tests.certificates import Authority
from tests.fake_clock import FakeClock
from tests.renegotiating import renegotiating
from tests.scripted import Reply, Scripted, refusal

UPID = "UPID:pve1:0000C3A1:0001F2E3:65A1B2C3:qmclone:100:root@pam!test:"


class QuickClient(Client):
    """A client whose clock is known to be the tests' own."""

    clock: FakeClock


def client_for(script: Scripted, **options: Any) -> QuickClient:
    return QuickClient(
        resolve({**script.options, **options}, {}), clock=FakeClock(), rng=random.Random(1)
    )


def caught(action: Any) -> errors.FleetError:
    with pytest.raises(errors.FleetError) as raised:
        action()
    return raised.value


class TestRequests:
    def test_token_path_and_query(self, script: Scripted) -> None:
        script.replies = [Reply([{"node": "pve1"}])]
        client = client_for(script)
        assert client.get(
            "nodes", "pve 1", "storage", "a/b", params={"check-all": True}, limit=3
        ) == [{"node": "pve1"}]
        seen = script.seen[0]
        assert seen.path == "/api2/json/nodes/pve%201/storage/a%2Fb"
        assert seen.query == {"check-all": "1", "limit": "3"}
        assert seen.headers["authorization"] == "PVEAPIToken=root@pam!test=very-secret-token"
        assert client.counts() == {"GET": 1}
        (row,) = client.record()
        assert (row["method"], row["path"], row["status"], row["try"]) == (
            "GET",
            "/nodes/pve 1/storage/a/b",
            200,
            1,
        )

    def test_form_of_a_write(self, script: Scripted) -> None:
        client = client_for(script)
        client.write(
            "PUT",
            "nodes",
            "pve1",
            "qemu",
            100,
            "config",
            data={"onboot": False, "cores": 2, "name": None},
        )
        assert script.seen[0].form == {"onboot": "0", "cores": "2"}
        client.write("DELETE", "nodes", "pve1", "qemu", 100, data={"purge": 1})
        assert script.seen[1].query == {"purge": "1"}

    def test_one_connection_is_reused(self, script: Scripted) -> None:
        client = client_for(script)
        for _unused in range(5):
            client.get("any")
        assert script.connections == 1

    @pytest.mark.parametrize("part", ["", ".", ".."])
    def test_a_path_cannot_be_left(self, script: Scripted, part: str) -> None:
        assert caught(lambda: client_for(script).get("nodes", part)).category == "ValidationFailed"
        assert script.seen == []

    def test_version_is_asked_once(self, script: Scripted) -> None:
        script.replies = [Reply({"version": "9.2.11"})]
        client = client_for(script)
        assert (client.version(), client.version()) == ((9, 2), (9, 2))
        assert len(script.seen) == 1

    def test_what_cannot_be_encoded_is_refused(self) -> None:
        assert encode({"map": ["a", "b"]}) == {"map": ["a", "b"]}  # the key is repeated
        for value in ([1], {"a": "b"}, ("a",)):
            with pytest.raises(errors.ValidationFailed):
                encode({"tags": value})


class TestTrust:
    def test_the_environment_does_not_override_the_ca(
        self, script: Scripted, monkeypatch: pytest.MonkeyPatch, certificates: Any
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates[1].file))
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        client_for(script).get("any")
        client_for(script, ca_path="", validate_certs=False).get("any")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates[0].file))
        assert (
            caught(lambda: client_for(script, ca_path=certificates[1].file).get("any")).category
            == "NetworkError"
        )

    def test_pem_text(self, script: Scripted) -> None:
        client_for(script, ca_path=script.ca.read_text()).get("any")

    @pytest.mark.parametrize("ca", ["", "other"])
    def test_wrong_ca(self, script: Scripted, certificates: Any, ca: str) -> None:
        error = caught(
            lambda: client_for(script, ca_path=str(certificates[1].file) if ca else "").get("any")
        )
        assert (error.category, error.reason, error.retryable) == (
            "NetworkError",
            "certificate not trusted",
            False,
        )
        assert error.dispatched is False
        assert "ca_path" in error.next_step
        assert script.seen == []

    def test_wrong_name(self, script: Scripted) -> None:
        error = caught(lambda: client_for(script, host=f"localhost:{script.port}").get("any"))
        assert error.reason == "certificate name"

    def test_missing_ca(self, script: Scripted) -> None:
        error = caught(lambda: client_for(script, ca_path="/nowhere/ca.pem").get("any"))
        assert (error.category, error.reason) == ("ConfigurationError", "unreadable certificate")
        assert error.answer == "/nowhere/ca.pem: No such file or directory"

    def test_broken_ca(self, script: Scripted, tmp_path: Path) -> None:
        (tmp_path / "ca.pem").write_text("nothing")
        assert (
            "ca.pem: "
            in caught(
                lambda: client_for(script, ca_path=str(tmp_path / "ca.pem")).get("any")
            ).answer
        )
        text = "-----BEGIN CERTIFICATE-----\nnothing"
        assert "nothing" not in caught(lambda: client_for(script, ca_path=text).get("any")).answer

    def test_plain_http(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as plain:
            import threading

            def answer() -> None:
                peer, _unused = plain.accept()
                peer.recv(100)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                peer.close()

            threading.Thread(target=answer, daemon=True).start()
            options = {
                "host": f"127.0.0.1:{plain.getsockname()[1]}",
                "token_id": "a@pve!t1",
                "token_secret": "s",
            }
            error = caught(lambda: connect({**options, "retries": 1}, {}).get("any"))
        assert (error.category, error.reason) == ("NetworkError", "no TLS")


class TestRenegotiation:
    """With TLS 1.2 a server can ask for another handshake after a request was sent."""

    @pytest.fixture(params=["expired", "of another CA"])
    def script(
        self, request: pytest.FixtureRequest, certificates: tuple[Authority, Authority]
    ) -> Iterator[Scripted]:
        ours, other = certificates
        expired = request.param == "expired"
        later = ours.issue("expired", days_ago=30) if expired else other.issue("stranger")
        with renegotiating(ours.file, ours.issue("good"), later) as script:
            yield script

    @pytest.mark.parametrize("verified", [True, False])
    def test_read(self, script: Scripted, verified: bool) -> None:
        client = client_for(script, validate_certs=verified)
        client.get("first")
        error = caught(lambda: client.get("second"))
        assert (error.category, error.reason) == ("NetworkError", "renegotiation")
        assert (error.dispatched, error.retryable) == (None, False)
        assert "another TLS handshake in the middle of a connection" in error.answer
        assert "Proxmox VE never does this" in error.next_step
        assert [one.path for one in script.seen] == ["/api2/json/first", "/api2/json/second"]
        assert script.connections == 1

    def test_write_may_have_happened(self, script: Scripted) -> None:
        """It was sent before the server asked for the handshake."""
        client = client_for(script)
        client.get("first")
        error = caught(lambda: client.write("POST", "second"))
        assert (error.reason, error.retryable) == ("renegotiation", False)
        assert error.dispatched is not False
        assert "Whether it happened is unknown" in error.next_step
        assert [one.method for one in script.seen] == ["GET", "POST"]

    def test_new_connection_is_verified_by_itself(self, script: Scripted) -> None:
        client = client_for(script)
        client.get("first")
        caught(lambda: client.get("second"))
        client.get("third")
        assert script.connections == 2


class TestNetwork:
    def test_refused_is_tried_three_times(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            clock = FakeClock()
            options = {
                "host": f"127.0.0.1:{taken.getsockname()[1]}",
                "token_id": "a@pve!t1",
                "token_secret": "s",
            }
            client = connect(options, {}, clock=clock)
            error = caught(lambda: client.get("any"))
        assert (error.reason, error.tries, error.dispatched) == ("connection refused", 3, False)
        assert 1 <= clock.slept[0] <= 1.25
        assert 2 <= clock.slept[1] <= 2.5
        assert len(clock.slept) == 2
        assert len(client.requests) == 3

    def test_unknown_host(self) -> None:
        options = {"host": "pve.invalid", "token_id": "a@pve!t1", "token_secret": "s", "retries": 1}
        error = caught(lambda: connect(options, {}).get("any"))
        assert (error.category, error.reason) == ("NetworkError", "unknown host")

    @pytest.mark.parametrize("status", [502, 503, 596, 599])
    def test_a_read_is_repeated(self, script: Scripted, status: int) -> None:
        script.replies = [Reply(status=status, reason="bad", body=b""), Reply({"version": "8.4"})]
        assert client_for(script).get("any") == {"version": "8.4"}

    def test_a_read_is_repeated_after_a_drop(self, script: Scripted) -> None:
        script.replies = [Reply(drop=True), Reply("yes")]
        assert client_for(script).get("any") == "yes"

    def test_timeout(self, script: Scripted) -> None:
        script.replies = [Reply(delay=1.0)]
        error = caught(lambda: client_for(script, timeout=0.2, retries=1).get("any"))
        assert (error.category, error.reason) == ("NetworkError", "timeout")

    @pytest.mark.parametrize("place", [0, 20, 150])
    def test_timeout_limits_the_whole_answer(self, script: Scripted, place: int) -> None:
        """A server sends a byte at a time: of the status line, of a header, of the body."""
        script.replies = [Reply("x" * 200, pauses=(place, 0.05))]
        began = time.monotonic()
        error = caught(lambda: client_for(script, timeout=0.4, retries=1).get("any"))
        assert time.monotonic() - began < 3
        assert (error.category, error.reason) == ("NetworkError", "timeout")
        assert "no complete answer within 0.4 s. Raise timeout" in error.message

    def test_timeout_is_whole_again_for_the_next_answer(self, script: Scripted) -> None:
        script.replies = [Reply("first", delay=0.6), Reply("second", delay=0.6)]
        client = client_for(script, timeout=1.0, retries=1)
        assert [client.get("any"), client.get("any")] == ["first", "second"]
        assert script.connections == 1

    def test_redirects_are_not_followed(self, script: Scripted) -> None:
        script.replies = [
            Reply(status=302, reason="Found", headers={"Location": "https://127.0.0.1:1/"})
        ]
        error = caught(lambda: client_for(script).get("any"))
        assert (error.category, error.reason) == ("ConfigurationError", "redirect")
        assert len(script.seen) == 1

    def test_something_else_answers(self, script: Scripted) -> None:
        script.replies = [Reply(body=b"<html>hello</html>")]
        error = caught(lambda: client_for(script).get("any"))
        assert (error.reason, error.tries) == ("not the API", 1)

    @pytest.mark.parametrize(
        ("body", "text"),
        [
            (rb'{"data": "a\ud800b"}', "a?b"),
            (b'{"data": "a\xed\xa0\x80b"}', "a?b"),
            (rb'{"data": "\ud83d\ude00"}', "\U0001f600"),
        ],
        ids=["escaped", "bytes", "a whole pair"],
    )
    def test_half_of_a_surrogate_pair_becomes_a_question_mark(
        self, script: Scripted, body: bytes, text: str
    ) -> None:
        script.replies = [Reply(body=body)]
        assert client_for(script).get("any") == text

    def test_an_offline_node_is_named(self, script: Scripted) -> None:
        script.replies = [Reply(status=595, reason="No route to host", body=b"")]
        error = caught(lambda: client_for(script).get("nodes", "pve3", "status"))
        assert error.reason == "node unreachable"
        assert "pve3" in error.message


class TestLargeAnswers:
    """The memory of an answer is limited, also if it is compressed."""

    @staticmethod
    def compressed(size: int, status: int = 200) -> Reply:
        body = gzip.compress(b'{"data": "' + b"x" * size + b'"}')
        headers = {"Content-Encoding": "gzip", "Location": "https://127.0.0.1:1/"}
        return Reply(body=body, status=status, headers=headers)

    def test_compressed_answer_is_read(self, script: Scripted) -> None:
        script.replies = [self.compressed(100_000)]
        assert client_for(script).get("any") == "x" * 100_000
        assert script.seen[0].headers["accept-encoding"] == "gzip"

    @pytest.mark.parametrize(
        "reply",
        [
            Reply("x" * (1 << 20)),
            compressed(1 << 20),
            compressed(1 << 20, 500),
            compressed(1 << 20, 302),
        ],
        ids=["plain", "compressed", "error", "redirect"],
    )
    def test_too_large_answer_is_refused(self, script: Scripted, reply: Reply) -> None:
        script.replies = [reply]
        error = caught(lambda: client_for(script, max_answer_size="1M").get("any"))
        assert (error.category, error.reason, error.tries) == (
            "NetworkError",
            "answer too large",
            1,
        )
        assert "the answer is larger than 1 MiB. Raise max_answer_size" in error.message
        assert len(script.seen) == 1

    def test_compressed_answer_never_fills_the_memory(self, script: Scripted) -> None:
        """200 MiB in an answer of 200 KiB: the decompression stops at the limit."""
        script.replies = [self.compressed(200 << 20)]
        client = client_for(script, max_answer_size="1M")
        tracemalloc.start()
        try:
            caught(lambda: client.get("any"))
            _now, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 20 << 20

    def test_write_with_too_large_answer_is_checked(self, script: Scripted) -> None:
        script.replies = [Reply("x" * (1 << 20))]
        client = client_for(script, max_answer_size="1M")
        assert client.write("POST", "any", confirm=lambda: "it is there") == "it is there"

    def test_damaged_compression_is_reported(self, script: Scripted) -> None:
        script.replies = [Reply(body=b"no gzip", headers={"Content-Encoding": "gzip"})]
        error = caught(lambda: client_for(script, retries=1).get("any"))
        assert error.reason == "connection broken"


class TestAnswers:
    # The status of a guest: {"managed": 0} in recordings (shared/pve/around).
    @pytest.mark.parametrize(
        ("path", "data", "words"),
        [
            (
                "nodes/pve1/qemu/100/status/current",
                {"status": "running", "ha": True},
                "ha is a flag",
            ),
            (
                "cluster/acme/account/default",
                {"account": {"contact": True}},
                "contact of account is",
            ),
            ("cluster/sdn/vnets", [{"vnet": "front", "tag": [None]}], "tag of row 1 is a list"),
            (
                "cluster/sdn/vnets/front/subnets",
                [{"vnet": "front", "subnet": "z-1-x"}],
                "not an IP network",
            ),
            ("cluster/sdn/fabrics/all", {"fabrics": [{"ip_prefix": True}]}, "not an IP network"),
            ("cluster/sdn/fabrics/all", {"nodes": [{"ip": "x"}]}, "not an IP address"),
        ],
    )
    def test_a_part_of_another_form_is_named(
        self, script: Scripted, path: str, data: Any, words: str
    ) -> None:
        script.replies = [Reply(data)]
        assert words in caught(lambda: client_for(script).get(*path.split("/"))).message

    def test_the_message_survives(self, script: Scripted) -> None:
        script.replies = [
            refusal(500, "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist")
        ]
        error = caught(
            lambda: client_for(script).get(
                "nodes", "pve1", "qemu", 999, "config", attempted="Could not look"
            )
        )
        assert error.message.startswith(
            "Could not look: Configuration file 'nodes/pve1/qemu-server/999.conf' does not"
        )
        assert (error.category, error.status, error.tries) == ("NotFound", 500, 1)

    def test_parameters_are_reported(self, script: Scripted) -> None:
        script.replies = [
            refusal(
                400, "Parameter verification failed.", {"cores": "value must have a minimum of 1"}
            )
        ]
        error = caught(lambda: client_for(script).write("PUT", "x", data={"cores": 0}))
        assert error.as_result()["error"]["parameters"] == {
            "cores": "value must have a minimum of 1"
        }
        assert "cores: value must have a minimum of 1" in error.message

    def test_secrets_are_starred(self, script: Scripted) -> None:
        script.replies = [refusal(500, "what is very-secret-token ?")]
        error = caught(lambda: client_for(script).get("any"))
        assert "very-secret-token" not in str(error.as_result())
        assert "very-secret-token" not in repr(client_for(script))

    def test_wrong_token(self, script: Scripted) -> None:
        script.replies = [Reply(status=401, reason="Authentication failed!", body=b"")]
        error = caught(lambda: client_for(script).get("any"))
        assert (error.category, error.tries) == ("AuthenticationError", 1)
        assert "root@pam!test" in error.message


class TestTickets:
    TICKET = Reply({"ticket": "PVE:alice@pve:1::abc==", "CSRFPreventionToken": "csrf-1"})
    LATER = Reply({"ticket": "PVE:alice@pve:2::abc==", "CSRFPreventionToken": "csrf-2"})
    OPTIONS: dict[str, Any] = {
        "token_id": "",
        "token_secret": "",
        "user": "alice@pve",
        "password": "alicepw12",
    }

    def test_login_on_first_need(self, script: Scripted) -> None:
        script.replies = [self.TICKET, Reply()]
        client = client_for(script, **self.OPTIONS)
        client.get("any")
        client.write("POST", "pools")
        login, read, write = script.seen
        assert login.form == {"username": "alice@pve", "password": "alicepw12"}
        assert read.headers["cookie"] == "PVEAuthCookie=PVE:alice@pve:1::abc=="
        assert "csrfpreventiontoken" not in read.headers
        assert write.headers["csrfpreventiontoken"] == "csrf-1"

    def test_renewed_before_two_hours(self, script: Scripted) -> None:
        script.replies = [self.TICKET, Reply(1), self.LATER, Reply(2)]
        client = client_for(script, **self.OPTIONS)
        client.get("any")
        client.clock.now += 6700
        assert client.get("any") == 2
        assert script.seen[-1].headers["cookie"].startswith("PVEAuthCookie=PVE:alice@pve:2")

    @pytest.mark.parametrize(
        "reason", ["Authentication failed!", "permission denied - invalid PVE ticket"]
    )
    def test_renewed_once_when_refused(self, script: Scripted, reason: str) -> None:
        script.replies = [
            self.TICKET,
            Reply(status=401, reason=reason, body=b""),
            self.LATER,
            Reply(UPID),
        ]
        assert client_for(script, **self.OPTIONS).write("POST", "pools") == UPID
        assert [one.path[-6:] for one in script.seen] == ["ticket", "/pools", "ticket", "/pools"]

    def test_wrong_password_is_asked_once(self, script: Scripted) -> None:
        script.replies = [refusal(401, "authentication failure")]
        client = client_for(script, **self.OPTIONS)
        for _unused in range(2):
            error = caught(lambda: client.get("any"))
            assert (error.category, error.reason) == ("AuthenticationError", "user or password")
            assert "alicepw12" not in str(error.as_result())
        assert len(script.seen) == 1

    def test_write_is_sent_after_a_lost_answer_to_its_login(self, script: Scripted) -> None:
        """pveproxy of a real cluster (9.2.11) closed connections of root@pam without an answer."""
        script.replies = [Reply(drop=True), self.TICKET, Reply(UPID)]
        assert client_for(script, **self.OPTIONS).write("POST", "pools") == UPID
        assert [one.path[-6:] for one in script.seen] == ["ticket", "ticket", "/pools"]

    def test_lost_answers_to_a_login_are_not_a_lost_write(self, script: Scripted) -> None:
        script.replies = [Reply(drop=True)]
        write = client_for(script, **self.OPTIONS).write
        error = caught(lambda: write("POST", "pools"))
        assert (error.category, error.dispatched) == ("NetworkError", False)
        assert "unknown" not in error.message

    def test_second_factor(self, script: Scripted) -> None:
        script.replies = [Reply({"ticket": "x", "NeedTFA": 1})]
        assert (
            caught(lambda: client_for(script, **self.OPTIONS).get("any")).reason == "second factor"
        )


class TestOutage:
    BUSY = Reply(status=503, reason="Service Unavailable", body=b"")

    def test_the_first_request_survives_what_a_later_one_does(self, script: Scripted) -> None:
        """Twenty seconds of 503: pauses of 1, 2, 4 and 8 seconds, each a little longer, and what is
        left.
        """
        for before in ([], [Reply({"version": "9.2"})]):
            script.replies = [*before, *[self.BUSY] * 5, Reply("there")]
            client = client_for(script)
            found = [client.get("any") for _one in (*before, "last")]
            assert found[-1] == "there"
            assert sum(client.clock.slept) > 20

    def test_the_budget_is_an_option(self, script: Scripted) -> None:
        script.replies = [self.BUSY]
        client = client_for(script, retry_timeout=90)
        assert caught(lambda: client.get("any")).status == 503
        assert sum(client.clock.slept) == pytest.approx(90)

    def test_tries_that_are_set_are_all(self, script: Scripted) -> None:
        script.replies = [self.BUSY]
        assert caught(lambda: client_for(script, retries=2).get("any")).tries == 2
        assert len(script.seen) == 2

    def test_a_node_that_is_down_is_not_waited_for(self, script: Scripted) -> None:
        script.replies = [Reply(status=595, reason="No route to host", body=b"")]
        assert caught(lambda: client_for(script).get("nodes", "pve9", "qemu")).tries == 3


class TestWrites:
    LOST = Reply(drop=True)
    LOCKED = refusal(500, "VM is locked (backup)")

    def test_a_lost_answer_is_not_repeated(self, script: Scripted) -> None:
        script.replies = [self.LOST, Reply(UPID)]
        error = caught(
            lambda: client_for(script).write("POST", "pools", attempted="Could not create the pool")
        )
        assert error.category == "NetworkError"
        assert error.dispatched is None
        assert "unknown" in error.next_step
        assert len(script.seen) == 1

    def test_a_look_says_it_happened(self, script: Scripted) -> None:
        script.replies = [self.LOST, Reply(UPID)]
        assert client_for(script).write("POST", "pools", confirm=lambda: "seen") == "seen"
        assert len(script.seen) == 1

    def test_a_look_says_it_did_not_happen(self, script: Scripted) -> None:
        script.replies = [self.LOST, Reply(UPID)]
        assert client_for(script).write("POST", "pools", confirm=lambda: None) == UPID
        assert len(script.seen) == 2

    @pytest.mark.parametrize("first", [LOST, LOCKED], ids=["lost", "locked"])
    def test_a_look_before_it_is_sent_again(self, script: Scripted, first: Reply) -> None:
        script.replies = [first, Reply("again")]
        looks: list[int] = []

        def look() -> None:
            looks.append(len(script.seen))

        client = client_for(script)
        assert client.write("PUT", "x", confirm=lambda: None, again=look) == "again"
        assert looks == [1]

        def refuse() -> None:
            raise errors.Conflict(answer="another run has changed it")

        script.replies = [first, Reply("again")]
        error = caught(lambda: client.write("PUT", "x", confirm=lambda: None, again=refuse))
        assert error.category == "Conflict"
        assert len(script.seen) == 3

    def test_tries_end(self, script: Scripted) -> None:
        script.replies = [self.LOST]
        error = caught(lambda: client_for(script).write("POST", "pools", confirm=lambda: None))
        assert error.tries == len(script.seen) == 7

    def test_not_dispatched_is_repeated(self, script: Scripted) -> None:
        script.replies = [Reply(status=595, reason="No route to host", body=b""), Reply(UPID)]
        assert client_for(script).write("POST", "nodes", "pve3", "qemu") == UPID

    def test_a_lock_has_its_own_budget(self, script: Scripted) -> None:
        script.replies = [self.LOCKED] * 12 + [Reply(UPID)]
        client = client_for(script, lock_timeout=60)
        assert client.write("PUT", "x") == UPID
        assert all(0.5 <= pause <= 5 for pause in client.clock.slept)

    def test_the_lock_budget_ends(self, script: Scripted) -> None:
        script.replies = [self.LOCKED]
        client = client_for(script, lock_timeout=10)
        error = caught(lambda: client.write("PUT", "x"))
        assert (error.category, error.reason) == ("Locked", "locked (backup)")
        assert sum(client.clock.slept) == pytest.approx(10)

    @pytest.mark.parametrize("status", [400, 403, 501, 500])
    def test_a_refusal_is_final(self, script: Scripted, status: int) -> None:
        script.replies = [refusal(status, "no")]
        caught(lambda: client_for(script).write("POST", "x"))
        assert len(script.seen) == 1


class TestTasks:
    RUNNING = Reply({"status": "running"})
    DONE = Reply({"status": "stopped", "exitstatus": "OK"})

    @staticmethod
    def log(*lines: str) -> Reply:
        return Reply([{"n": number, "t": line} for number, line in enumerate(lines, 1)])

    def test_polls_grow_and_end_without_a_sleep(self, script: Scripted) -> None:
        script.replies = [Reply(UPID), *[self.RUNNING] * 100, self.DONE]
        client = client_for(script)
        result = client.task("POST", "nodes", "pve1", "qemu", 100, "clone")
        slept = client.clock.slept
        assert (result.node, result.type, result.exitstatus) == ("pve1", "qmclone", "OK")
        assert slept[0] == pytest.approx(0.08)
        assert slept == sorted(slept)
        assert max(slept) == 2.0
        assert len(slept) == 100
        waited = 0.0
        for pause in slept:
            assert pause <= max(0.1, waited / 20) + 1e-6, (
                "an end is seen late by a twentieth at most"
            )
            waited += pause
        assert script.seen[-1].path.startswith("/api2/json/nodes/pve1/tasks/UPID%3Apve1")

    def test_a_null_answer_is_over(self, script: Scripted) -> None:
        assert client_for(script).task("PUT", "x").exitstatus == "OK"

    def test_failure_has_exit_status_and_log(self, script: Scripted) -> None:
        lines = [f"line {number}" for number in range(30)]
        failed = Reply({"status": "stopped", "exitstatus": "something odd"})
        script.replies = [failed, self.log(*lines)]
        error = caught(lambda: client_for(script).wait(UPID, attempted="Could not clone VM 100"))
        assert (error.category, error.upid, error.reason) == ("TaskFailed", UPID, "something odd")
        assert error.log == tuple(lines[-10:])
        assert error.message.startswith(
            "Could not clone VM 100: something odd. The log of the task tells more"
        )

    def test_warnings_are_a_success(self, script: Scripted) -> None:
        ended = Reply({"status": "stopped", "exitstatus": "WARNINGS: 2"})
        script.replies = [ended, self.log("start", "WARN: one", "warning: two", "TASK WARNINGS: 2")]
        assert client_for(script).wait(UPID).warnings == ("one", "two")

    def test_a_warning_of_several_lines_is_whole(self, script: Scripted) -> None:
        """Source: qemu-server, QemuServer.pm, check_efi_vars: one marked line, and others
        below it.
        """
        lines = [
            "WARN: EFI disk without 'ms-cert=2023k' option, suggesting that not all UEFI 2023",
            "certificates from Microsoft are enrolled yet.",
            "Use 'Disk Action > Enroll Updated Certificates' in the UI or, while the VM is",
            "shut down, run 'qm enroll-efi-keys 100' to enroll the new certificates.",
            "",
            "Starting VM 101",
            "WARN: Skipping VM 102, already running.",
            "removed volume",
            "WARN: the storage is nearly full",
            "Removed volume 'local:iso/a.iso'",
            "WARN: On Zen 5 systems, the CPU firmware is outdated. See:",
            "https://security-tracker.debian.org/tracker/CVE-2025-62626",
            "TASK WARNINGS: 4",
        ]
        script.replies = [
            Reply({"status": "stopped", "exitstatus": "WARNINGS: 2"}),
            self.log(*lines),
        ]
        certificates, skipped, full, firmware = client_for(script).wait(UPID).warnings
        assert certificates.startswith(
            "EFI disk without 'ms-cert=2023k' option, suggesting that not all UEFI 2023 cert"
        )
        assert certificates.endswith("run 'qm enroll-efi-keys 100' to enroll the new certificates.")
        assert (skipped, full) == (
            "Skipping VM 102, already running.",
            "the storage is nearly full",
        )
        assert firmware.endswith("See: https://security-tracker.debian.org/tracker/CVE-2025-62626")

    def test_timeout_names_the_task(self, script: Scripted) -> None:
        script.replies = [self.RUNNING]
        client = client_for(script)
        error = caught(lambda: client.wait(UPID, timeout=5))
        assert (error.category, error.upid) == ("TaskTimeout", UPID)
        assert sum(client.clock.slept) == pytest.approx(5)

    def test_a_broken_network_does_not_send_again(self, script: Scripted) -> None:
        script.replies = [
            Reply(UPID),
            Reply(drop=True),
            Reply(status=596, reason="x", body=b""),
            self.DONE,
        ]
        assert client_for(script).task("POST", "x").exitstatus == "OK"
        assert [one.method for one in script.seen] == ["POST", "GET", "GET", "GET"]

    def test_a_network_that_stays_broken(self, script: Scripted) -> None:
        script.replies = [Reply(UPID), Reply(drop=True)]
        error = caught(lambda: client_for(script).task("POST", "x"))
        assert (error.category, error.upid, error.dispatched) == ("NetworkError", UPID, True)
        assert [one.method for one in script.seen].count("POST") == 1

    def test_a_locked_task_is_done_again(self, script: Scripted) -> None:
        text = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"
        locked = Reply({"status": "stopped", "exitstatus": text})
        script.replies = [
            Reply(UPID),
            locked,
            self.log(f"TASK ERROR: {text}"),
            Reply(UPID),
            self.DONE,
        ]
        assert client_for(script).task("POST", "x").exitstatus == "OK"

    def test_a_task_that_is_unknown(self, script: Scripted) -> None:
        script.replies = [refusal(400, "Parameter verification failed.", {"upid": "no such task"})]
        assert caught(lambda: client_for(script).wait(UPID)).category == "NotFound"

    @pytest.mark.parametrize("text", ["", None, "UPID:pve1", "x", 5])
    def test_what_is_not_an_upid(self, script: Scripted, text: Any) -> None:
        assert caught(lambda: client_for(script).wait(text)).reason == "no UPID"


def test_client_certificate_that_cannot_be_read(script: Scripted, tmp_path: Path) -> None:
    error = caught(lambda: client_for(script, client_cert=str(tmp_path / "none.pem")).get("any"))
    assert (error.category, "client_cert" in error.next_step) == ("ConfigurationError", True)
