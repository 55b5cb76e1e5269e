"""Replays the recorded stories, which hold more than the scorer takes: uploads, other nodes'
answers, polling.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import requests
import urllib3

SHARED = Path(__file__).resolve().parents[3] / "shared" / "pve"
TOKEN = "00000000-0000-4000-8000-00000000000"

urllib3.disable_warnings()


def scorer() -> ModuleType:
    """The scorer's comparison functions."""
    spec = importlib.util.spec_from_file_location("shared_replay", SHARED / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Story:
    """One story that is sent to a server, line by line."""

    def __init__(self, url: str, control: str, path: Path) -> None:
        self.replay = scorer()
        self.server = self.replay.Server(url, control)
        self.path = path
        self.passwords = {
            "root@pam": "labpw123",
            "alice@pve": "alicepw12",
            "carl@pve": "carlpw1234",
        }
        self.tokens: dict[str, str] = {}
        self.tickets: dict[str, tuple[str, str]] = {}

    def lines(self) -> Iterator[dict[str, Any]]:
        """The exchanges; what lies outside the API is passed over."""
        for text in self.path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if "method" in line:
                yield line

    def session(self, auth: str) -> requests.Session:
        """A session with the credentials that the label names."""
        session = requests.Session()
        session.verify, session.trust_env = False, False
        user = auth.split(" ")[0]
        if auth in self.replay.TOKENS:
            session.headers["Authorization"] = "PVEAPIToken=" + self.replay.TOKENS[auth]
        elif "ticket" in auth and user in self.tickets:
            ticket, csrf = self.tickets[user]
            session.cookies.set("PVEAuthCookie", ticket)
            session.headers["CSRFPreventionToken"] = csrf
        elif "ticket" in auth:
            data = {"username": user, "password": self.passwords[user]}
            answer = session.post(self.server.api + "/access/ticket", data=data, timeout=60).json()[
                "data"
            ]
            self.tickets[user] = (answer["ticket"], answer["CSRFPreventionToken"])
            return self.session(auth)
        elif auth in self.tokens:
            session.headers["Authorization"] = (
                f"PVEAPIToken={auth.split(' ')[0]}={self.tokens[auth]}"
            )
        return session

    def send(self, line: dict[str, Any]) -> tuple[int, str, Any]:
        """The answer to one line."""
        params = self.server.translate(line.get("params"))
        url = self.server.api + self.server.translate(line["path"])
        kwargs: dict[str, Any] = {}
        if "multipart" in line:
            files: list[Any] = []
            for part in line["multipart"]:
                if "filename" in part:
                    data = bytes.fromhex(part.get("fill") or "00") * part["bytes"]
                    files.append((part["name"], (part["filename"], data, part["content_type"])))
                else:
                    files.append((part["name"], (None, part["value"])))
            kwargs["files"] = files
        elif line["method"] in ("GET", "DELETE"):
            kwargs["params"] = params
        elif "json_body" in line:
            kwargs["json"] = line["json_body"]
        else:
            kwargs["data"] = params
        answer = self.session(line["auth"]).request(line["method"], url, timeout=180, **kwargs)
        try:
            body = answer.json()
        except ValueError:
            body = None
        self._remember(line, answer.status_code, body)
        return answer.status_code, str(answer.raw.reason), body

    def _remember(self, line: dict[str, Any], status: int, body: Any) -> None:
        data = body.get("data") if isinstance(body, dict) else None
        if status != 200 or not isinstance(data, dict):
            return
        if line["path"] == "/access/ticket":
            user = line["params"]["username"]
            self.passwords[user] = line["params"]["password"]
            self.tickets[user] = (data["ticket"], data["CSRFPreventionToken"])
        elif data.get("value") and data.get("full-tokenid"):
            name = data["full-tokenid"]
            if name in self.tokens:
                self.tokens[f"{name} new secret"] = data["value"]
            else:
                self.tokens[name] = data["value"]

    def judge(self, line: dict[str, Any]) -> list[str]:
        """What is different from the recording."""
        status, reason, body = self.send(line)
        waits = "/tasks/" in line["path"] and line["path"].endswith("/status")
        end = time.time() + 60
        while (
            waits
            and time.time() < end
            and status == 200
            and body["data"].get("status") == "running"
        ):
            time.sleep(0.05)
            status, reason, body = self.send(line)
        while line.get("poll") and time.time() < end - 54 and self._differs(line, body):
            time.sleep(0.1)
            status, reason, body = self.send(line)
        self.server.learn(line["body"], body)
        normal = self.replay.normal
        if status != line["status"]:
            return [
                (
                    f"status {line['status']} {normal(line['reason'])} expected, got {status}"
                    f" {normal(reason)}: {body}"
                )
            ]
        if line["status"] >= 400:
            return self._refusal(line, reason, body)
        if line["path"].endswith("/log") or line.get("text"):
            return []
        shape, value = self.replay.compare(line["body"], body)
        return list(shape + value)

    def _differs(self, line: dict[str, Any], body: Any) -> bool:
        shape, value = self.replay.compare(line["body"], body)
        return bool(shape or value)

    def _refusal(self, line: dict[str, Any], reason: str, body: Any) -> list[str]:
        normal = self.replay.normal
        expected, actual = line["body"] or {}, body or {}
        found = []
        if normal(line["reason"]) != normal(reason):
            found.append(f"reason {normal(line['reason'])!r} expected, got {normal(reason)!r}")
        if normal(expected.get("message", "")) != normal(actual.get("message", "")):
            found.append(
                f"message {expected.get('message')!r} expected, got {actual.get('message')!r}"
            )
        first, second = (
            {k: normal(v) for k, v in (x.get("errors") or {}).items()} for x in (expected, actual)
        )
        if first != second:
            found.append(f"errors {first} expected, got {second}")
        return found
