"""Faults that are put into the traffic and into tasks on purpose, and the log of the requests."""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .contents import Received

DROPS = ("before", "after")


class BadFault(ValueError):
    """A fault rule that says nothing sensible."""


@dataclass(slots=True)
class Fault:
    """One rule: the requests or tasks that it matches, and its effect on them."""

    method: str | None = None
    path: str | None = None
    nth: int = 1
    times: int | None = 1
    status: int | None = None
    message: str | None = None
    drop: str | None = None
    delay_ms: float = 0.0
    cut: int | None = None
    steer: list[Any] | None = None
    task: str | None = None
    id: str | None = None
    fail: str | None = None
    warn: str | None = None
    seen: int = 0
    done: int = 0
    pattern: re.Pattern[str] | None = field(default=None, repr=False)

    def meets(self, method: str, path: str) -> bool:
        """Whether this request is the one (or one of those) that the rule is for; counts it."""
        if (
            self.task
            or self.method not in (None, method)
            or (self.pattern and not self.pattern.search(path))
        ):
            return False
        return self._is_due()

    def meets_task(self, kind: str, ident: str) -> bool:
        """Whether the rule is for this task; counts it."""
        return self.task == kind and self.id in (None, ident) and self._is_due()

    def _is_due(self) -> bool:
        self.seen += 1
        if self.seen < self.nth or (self.times is not None and self.done >= self.times):
            return False
        self.done += 1
        return True

    def as_dict(self) -> dict[str, Any]:
        """The rule with its counts of matches and effects."""
        return {
            name: getattr(self, name)
            for name in (*_KEYS, "seen", "done")
            if getattr(self, name) is not None
        }


_OF_REQUESTS = ("method", "path", "status", "message", "drop", "delay_ms", "cut", "steer")
_OF_TASKS = ("task", "id", "fail", "warn")
_KEYS = ("nth", "times", *_OF_REQUESTS, *_OF_TASKS)


def parse_fault(data: Any) -> Fault:
    """The rule that a JSON object describes; raises BadFault."""
    if not isinstance(data, dict):
        raise BadFault("a fault is a JSON object")
    unknown = sorted(set(data) - set(_KEYS))
    if unknown:
        raise BadFault(
            f"unknown key '{unknown[0]}' in a fault; known are {', '.join(sorted(_KEYS))}"
        )
    fault = Fault(**data)
    if set(data) & set(_OF_TASKS):
        return _checked_task_fault(fault, data)
    if fault.drop not in (None, *DROPS):
        raise BadFault("'drop' is 'before' or 'after'")
    _check_steer(fault.steer)
    effects = (fault.status, fault.drop, fault.cut, fault.steer)
    if all(effect is None for effect in effects) and not fault.delay_ms:
        raise BadFault("a fault needs one of status, drop, cut, delay_ms, steer")
    if fault.method:
        fault.method = fault.method.upper()
    if fault.path:
        try:
            fault.pattern = re.compile(fault.path)
        except re.error as error:
            raise BadFault(f"'path' is not a regular expression: {error}") from None
    return fault


def _check_steer(steer: Any) -> None:
    """Raise BadFault unless it is a list of control requests: [method, path, body]."""
    if steer is None:
        return
    if not isinstance(steer, list):
        raise BadFault("'steer' is a list of control requests: [method, path, body]")
    for one in steer:
        if not isinstance(one, list) or len(one) != 3:
            raise BadFault("'steer' is a list of control requests: [method, path, body]")
        if not isinstance(one[0], str) or not isinstance(one[1], str):
            raise BadFault("'steer' is a list of control requests: [method, path, body]")


def _checked_task_fault(fault: Fault, data: dict[str, Any]) -> Fault:
    foreign = sorted(set(data) & set(_OF_REQUESTS))
    if foreign:
        raise BadFault(f"'{foreign[0]}' is for requests, and this fault is for tasks")
    if not fault.task:
        raise BadFault("a fault of tasks needs 'task', their type, for example qmclone")
    texts = [text for text in (fault.fail, fault.warn) if text]
    if len(texts) != 1 or not isinstance(texts[0], str):
        raise BadFault("a fault of tasks needs either 'fail' or 'warn', a text")
    if fault.id is not None:
        fault.id = str(fault.id)
    return fault


class FaultPlan:
    """The rules, asked in order; the first that meets a request or a task has it."""

    def __init__(self) -> None:
        self.rules: list[Fault] = []

    def pick(self, method: str, path: str) -> Fault | None:
        """The fault for this request."""
        for rule in self.rules:
            if rule.meets(method, path):
                return rule
        return None

    def break_connections(self) -> bool:
        """Whether a rule can break a connection or delay its answers."""
        return any(rule.drop or rule.delay_ms or rule.cut is not None for rule in self.rules)

    def pick_task(self, kind: str, ident: str) -> Fault | None:
        """The fault for this task."""
        for rule in self.rules:
            if rule.meets_task(kind, ident):
                return rule
        return None


class Seen(NamedTuple):
    """A request and the status of its answer; `started` is in seconds since the epoch."""

    method: str
    path: str
    route: str
    status: int
    started: float
    who: str
    params: Any


class RequestLog:
    """All requests, in order, with counts by route."""

    def __init__(self, kept: int = 200000) -> None:
        self.entries: deque[tuple[int, float, Seen]] = deque(maxlen=kept)
        self.counts: Counter[str] = Counter()
        self.total = 0

    def add(self, seen: Seen) -> None:
        """Note one request that ends now."""
        self.total += 1
        self.counts[f"{seen.method} {seen.route}"] += 1
        self.entries.append((self.total, time.time() - seen.started, seen))

    def as_list(self) -> list[dict[str, Any]]:
        """The requests as JSON objects."""
        return [
            {
                "n": number,
                "time": round(seen.started, 4),
                "method": seen.method,
                "path": seen.path,
                "route": seen.route,
                "status": seen.status,
                "ms": round(taken * 1000, 2),
                "user": seen.who,
                "params": _public(seen.params),
            }
            for number, taken, seen in self.entries
        ]

    def reset(self) -> None:
        """Forget everything."""
        self.entries.clear()
        self.counts.clear()
        self.total = 0


_SECRETS = ("password", "cipassword", "confirmation-password", "otp", "secret")


def _public(params: Any) -> Any:
    if not isinstance(params, dict):
        return None
    return {name: _public_value(name, value) for name, value in params.items()}


def _public_value(name: str, value: Any) -> Any:
    if name in _SECRETS:
        return "********"
    if isinstance(value, Received):
        return f"{value.size} bytes"
    return value
