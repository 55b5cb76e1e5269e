"""Sends recorded requests to a server and compares its answers with Proxmox VE's."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from ..process import Simulator
from .likeness import BACKUP, MAC, SHA, UPID, compare, compare_refusals, normal, pair

_SECRET = "00000000-0000-4000-8000-00000000000"
# The credentials that a recording names, for the accounts of its cluster.
TOKENS = {
    "root@pam!test": f"root@pam!test={_SECRET}1",
    "alice@pve!t1 (privsep=1, no token ACL)": f"alice@pve!t1={_SECRET}2",
    "bob@pve!t1 (PVEAuditor on /)": f"bob@pve!t1={_SECRET}3",
    "bad token secret": f"root@pam!test={_SECRET}9",
    "unknown token id": f"root@pam!nope={_SECRET}1",
    "unknown user": f"nosuch@pve!x={_SECRET}1",
    "malformed token": "garbage",
    "disabled user": f"carol@pve!t={_SECRET}1",
}
PASSWORDS = {
    "root@pam ticket": ("root@pam", "labpw123"),
    "alice@pve ticket": ("alice@pve", "alicepw12"),
}
_NO_CSRF = " without CSRF"
_FORM = "application/x-www-form-urlencoded"

# Seconds for a task to end that has ended in the recording.
TASK_PATIENCE = 90.0

Line = dict[str, Any]
# One figure for each of status, errors, keys and values: how many exchanges agree, of how many.
Figures = dict[str, tuple[int, int]]
NAMES = ("status", "errors", "keys", "values")


@dataclass(slots=True)
class Verdict:
    """The agreements of one exchange, by figure, and the differences."""

    request: str
    marks: dict[str, bool]
    why: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """The answer of the server; the body is None if it is not JSON."""

    status: int
    reason: str
    body: Any


class Replay:
    """A story on a server: values from one answer are used in the requests that follow."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        context = ssl.create_default_context(cafile=simulator.ca)
        self.connection = http.client.HTTPSConnection(
            simulator.host, simulator.port, timeout=180, context=context
        )
        self.credentials: dict[str, dict[str, str]] = {}
        self.known: dict[str, str] = {}
        """The recorded UPIDs, digests and addresses, each with its counterpart on this server."""

    def run(self, lines: Iterable[Line]) -> list[Verdict]:
        """Send every request in its order; the verdict on each."""
        verdicts = []
        for line in lines:
            if "control" in line:
                self._steer(dict(line["control"]))
            elif line.get("replay") is not False:
                verdicts.append(self._judge(line))
        return verdicts

    def _steer(self, what: dict[str, Any]) -> None:
        if "vm" in what:
            self.simulator.steer(f"/vms/{what.pop('vm')}", what)
        else:
            self.simulator.steer("/guests", what["guests"])

    # -- requests
    # ------------------------------------------------------------------------------------

    def _headers(self, label: str) -> dict[str, str]:
        if label not in self.credentials:
            self.credentials[label] = self._log_in(label)
        return self.credentials[label]

    def _log_in(self, label: str) -> dict[str, str]:
        if label in TOKENS:
            return {"Authorization": f"PVEAPIToken={TOKENS[label]}"}
        if label == "bogus ticket":
            return {"Cookie": "PVEAuthCookie=PVE:root@pam:00000000::bogus"}
        account = PASSWORDS.get(label.removesuffix(_NO_CSRF))
        if account is None:
            return {}
        form = urlencode({"username": account[0], "password": account[1]})
        ticket = self._request("POST", "/access/ticket", form, {"Content-Type": _FORM}).body["data"]
        headers = {"Cookie": f"PVEAuthCookie={ticket['ticket']}"}
        if not label.endswith(_NO_CSRF):
            headers["CSRFPreventionToken"] = ticket["CSRFPreventionToken"]
        return headers

    def _request(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        encoded = None if body is None else body.encode()
        self.connection.request(method, f"/api2/json{path}", encoded, headers)
        response = self.connection.getresponse()
        content = response.read()
        try:
            parsed = json.loads(content)
        except ValueError:
            parsed = None
        return Answer(response.status, response.reason, parsed)

    def _send(self, line: Line) -> Answer:
        path = quote(self._translate(line["path"]), safe="/?&=:@!$,;+*'()%~")
        headers = dict(self._headers(line["auth"]))
        form = _form(self._translate(line.get("params")))
        if line["method"] in ("GET", "DELETE"):
            return self._request(line["method"], f"{path}?{form}" if form else path, None, headers)
        body, kind = form, _FORM
        if "json_body" in line:
            body, kind = json.dumps(self._translate(line["json_body"])), "application/json"
        elif "raw_request_body" in line:
            body = line["raw_request_body"]
            kind = "application/json" if body.lstrip()[:1] in ("{", "[") else _FORM
        if body:
            headers["Content-Type"] = kind
        return self._request(line["method"], path, body, headers)

    def _translate(self, value: Any) -> Any:
        """The value with this server's values in place of the recorded ones."""
        if isinstance(value, str):
            for old, new in self.known.items():
                value = value.replace(old, new)
            return value
        if isinstance(value, dict):
            return {key: self._translate(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._translate(item) for item in value]
        return value

    # -- answers
    # -------------------------------------------------------------------------------------

    def _learn(self, recorded: Any, actual: Any) -> None:
        if isinstance(recorded, str) and isinstance(actual, str):
            for pattern in (UPID, SHA, MAC):
                for old, new in zip(
                    pattern.findall(recorded), pattern.findall(actual), strict=False
                ):
                    if old != new:
                        self.known[old] = new
        elif isinstance(recorded, dict) and isinstance(actual, dict):
            for key in recorded.keys() & actual.keys():
                self._learn(recorded[key], actual[key])
        elif isinstance(recorded, list) and isinstance(actual, list):
            for one, other in pair(recorded, actual)[0]:
                self._learn(one, other)

    def _learn_backups(self, recorded: Any, actual: Any) -> None:
        """Pair the names of backups in their order for each guest."""
        before, after = _backups(recorded), _backups(actual)
        for stem in {BACKUP.sub(r"\1", name) for name in before}:
            old = [name for name in before if name.startswith(stem) and name not in self.known]
            new = [
                name for name in after if name.startswith(stem) and name not in self.known.values()
            ]
            self.known.update(zip(old, new, strict=False))

    def _judge(self, line: Line) -> Verdict:
        time.sleep(line.get("delay_before", 0))
        answer = self._send(line)
        if (
            "/tasks/" in line["path"]
            and line["path"].endswith("/status")
            and line.get("note") != "running task"
        ):
            answer = self._ended(line, answer)
        self._learn(line["body"], answer.body)
        self._learn_backups(line["body"], answer.body)
        return judge(line, answer)

    def _ended(self, line: Line, answer: Answer) -> Answer:
        """The answer when the task has ended."""
        end = time.monotonic() + TASK_PATIENCE
        while time.monotonic() < end and _runs(answer.body):
            time.sleep(0.02)
            answer = self._send(line)
        return answer


def _form(params: dict[str, Any] | None) -> str:
    given = {name: value for name, value in (params or {}).items() if value is not None}
    return urlencode(given, doseq=True)


def _runs(body: Any) -> bool:
    data = body.get("data") if isinstance(body, dict) else None
    return isinstance(data, dict) and data.get("status") == "running"


def _backups(body: Any) -> list[str]:
    return sorted({match.group(0) for match in BACKUP.finditer(json.dumps(body))})


def judge(line: Line, answer: Answer) -> Verdict:
    """Compare a recorded exchange with an answer."""
    request = f"{line['method']} {line['path']} {json.dumps(line.get('params'))}"
    verdict = Verdict(request, {"status": answer.status == line["status"]})
    if not verdict.marks["status"]:
        expected = f"{line['status']} {normal(line['reason'])}"
        found = f"{answer.status} {normal(answer.reason)}: {json.dumps(answer.body)[:200]}"
        verdict.why.append(f"status {expected} expected, got {found}")
    if line["status"] >= 400:
        _judge_refusal(line, answer, verdict)
    elif not line.get("loose"):
        _judge_success(line, answer, verdict)
    return verdict


def _judge_refusal(line: Line, answer: Answer, verdict: Verdict) -> None:
    found = compare_refusals(line["body"] or {}, answer.body or {})
    if normal(line["reason"]) != normal(answer.reason):
        found.insert(
            0, f"reason {normal(line['reason'])!r} expected, got {normal(answer.reason)!r}"
        )
    verdict.marks["errors"] = verdict.marks["status"] and not found
    if verdict.marks["status"]:
        verdict.why += found


def _without_lines(body: Any) -> Any:
    """A task's log without its lines; any other body unchanged."""
    data = body.get("data") if isinstance(body, dict) else None
    return [] if isinstance(data, list) else data


def _judge_success(line: Line, answer: Answer, verdict: Verdict) -> None:
    recorded, actual = line["body"], answer.body
    if line["path"].endswith("/log"):  # the lines of a log are not compared
        recorded, actual = [], _without_lines(actual)
    shape, value = compare(recorded, actual)
    verdict.marks["keys"] = verdict.marks["status"] and not shape
    verdict.marks["values"] = verdict.marks["keys"] and not value
    if verdict.marks["status"]:
        verdict.why += shape + value


def figures_of(verdicts: Iterable[Verdict]) -> Figures:
    """How many exchanges agree, by figure."""
    figures = dict.fromkeys(NAMES, (0, 0))
    for verdict in verdicts:
        for name, mark in verdict.marks.items():
            good, total = figures[name]
            figures[name] = (good + mark, total + 1)
    return figures
