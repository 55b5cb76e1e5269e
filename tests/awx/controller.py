# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small stand-in for the API of AWX: what the modules of awx.awx need to create, find, change and
associate objects. It accepts and refuses what facts.yml and rules.py say.

It runs no jobs, and knows one user, who may do everything.
"""

from __future__ import annotations

import json
import pickle
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from tests.awx import rules

ENDPOINTS: dict[str, Any] = rules.FACTS["endpoints"]
ENCRYPTED = "$encrypted$"
TOKEN = "token-of-the-test"
_EMPTY: Mapping[str, Any] = {"str": "", "int": 0, "bool": False, "dict": {}, "list": []}
_TYPES: Mapping[str, type] = {"str": str, "int": int, "bool": bool, "dict": dict, "list": list}
_PATH = re.compile(r"^/api/v2/(?P<endpoint>\w+)/(?:(?P<id>\d+)/(?:(?P<part>\w+)/)?)?$")


class Refused(Exception):
    """A request that AWX answers with status 400."""


@dataclass
class Item:
    """An object in AWX."""

    endpoint: str
    id: int
    values: dict[str, Any]
    links: dict[str, list[int]] = field(default_factory=dict)
    survey: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.values[ENDPOINTS[self.endpoint].get("identity", "name")])


@dataclass
class Launched:
    """A job that AWX runs with a credential. It ends after this number of looks."""

    credential: int
    looks: int

    @property
    def status(self) -> str:
        return "running" if self.looks > 0 else "successful"


class Controller:
    """AWX: `with Controller(playbooks) as awx: ... awx.environment`.

    `playbooks` are the files that every project has.
    """

    def __init__(self, playbooks: tuple[str, ...] = ()) -> None:
        self.playbooks = playbooks
        self.items: dict[int, Item] = {}
        self.members: dict[int, dict[str, list[int]]] = {}
        self.launched: dict[int, Launched] = {}
        self.requests: list[str] = []
        self.writes: list[str] = []
        self._lock = threading.Lock()
        self._next = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        for name, kind in rules.FACTS["preloaded_types"].items():
            self._add("credential_types", {"name": name, "kind": kind, "managed": True})
        for name, kind in rules.FACTS["preloaded_credentials"].items():
            self.create_credential(name, kind)

    def __enter__(self) -> Controller:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_unused: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """What the modules of awx.awx read."""
        return {
            "CONTROLLER_HOST": f"http://127.0.0.1:{self._server.server_address[1]}",
            "CONTROLLER_OAUTH_TOKEN": TOKEN,
        }

    # What is there, for tests.

    def saved(self) -> bytes:
        """Return the objects, for `restore` of another controller."""
        return pickle.dumps((self.items, self.members, self._next))

    def restore(self, saved: bytes) -> None:
        self.items, self.members, self._next = pickle.loads(saved)

    def all(self, endpoint: str) -> list[Item]:
        return [item for item in self.items.values() if item.endpoint == endpoint]

    def named(self, endpoint: str, name: str) -> Item:
        (found,) = [item for item in self.all(endpoint) if item.name == name]
        return found

    def create(self, endpoint: str, values: Mapping[str, Any]) -> Item:
        return self._add(endpoint, values)

    def create_user(self, name: str) -> Item:
        return self._add("users", {"username": name})

    def create_credential(self, name: str, kind: str) -> Item:
        number = self.named("credential_types", kind).id
        return self._add("credentials", {"name": name, "credential_type": number})

    def launch(self, credential: Item, looks: int) -> Launched:
        """Return a job that runs with a credential."""
        self._next += 1
        self.launched[self._next] = Launched(credential.id, looks)
        return self.launched[self._next]

    def members_of(self, team: str) -> set[str]:
        """Return the users of a team."""
        users = self.members[self.named("teams", team).roles["member_role"]].get("users", [])
        return {self.items[number].name for number in users}

    def updates_before(self, template: Item) -> list[str]:
        """Return the inventory sources that AWX updates before a job of this template starts.

        The job fails without having started if an update fails: gen_dep_for_job and
        process_job_dep_failures of awx/main/scheduler/task_manager.py.
        """
        return [
            source.name
            for source in self.all("inventory_sources")
            if source.values["update_on_launch"]
            and source.values["inventory"] == template.values["inventory"]
        ]

    def granted(self, team: Item) -> set[tuple[str, str, str]]:
        """Return what a team may do, as endpoint, name and role."""
        found = set()
        for item in self.items.values():
            for role, number in item.roles.items():
                if team.id in self.members[number].get("teams", []):
                    found.add((item.endpoint, item.name, role.removesuffix("_role")))
        return found

    # Requests.

    def answer(self, method: str, url: str, body: Any) -> tuple[int, Any]:
        """Return status and body of the answer to a request."""
        parts = urlsplit(url)
        found = _PATH.match(parts.path)
        if not found:
            return 404, {"detail": "Not found."}
        self.requests.append(f"{method} {parts.path}")
        if method != "GET":
            self.writes.append(f"{method} {parts.path}")
        endpoint, number, part = found["endpoint"], found["id"], found["part"]
        with self._lock:
            try:
                status, answer = self._route(method, endpoint, number, part, parts.query, body)
            except Refused as error:
                return 400, {"__all__": [str(error)], "error": str(error)}
        if method == "GET" and isinstance(answer, list):
            return status, _page(answer, parts)
        return status, answer

    def _route(
        self,
        method: str,
        endpoint: str,
        number: str | None,
        part: str | None,
        query: str,
        body: Any,
    ) -> tuple[int, Any]:
        """Return status and body of the answer; a list is the list of all results."""
        if endpoint == "me":
            return 200, [{"username": "admin", "is_superuser": True}]
        if endpoint == "unified_jobs":
            return 200, self._jobs(dict(parse_qsl(query)))
        if endpoint == "roles":
            return self._role(method, int(number or 0), part, body)
        if number is None:
            return self._list(method, endpoint, dict(parse_qsl(query)), body)
        return self._one(method, self.items.get(int(number)), part, body)

    def _list(
        self, method: str, endpoint: str, query: dict[str, str], body: Any
    ) -> tuple[int, Any]:
        if endpoint != "unified_job_templates" and endpoint not in ENDPOINTS:
            return 404, {"detail": "Not found."}
        if method == "GET":
            return 200, [self._shown(item) for item in self._matching(endpoint, query)]
        if method != "POST":
            return 405, {"detail": "Method not allowed."}
        return 201, self._shown(self._add(endpoint, body))

    def _jobs(self, query: dict[str, str]) -> list[dict[str, Any]]:
        """Return jobs by the filters that are used (awx/main/models/unified_jobs.py: credentials
        are those of any kind of job).
        """
        unknown = query.keys() - {"credentials__id", "id__in", "status__in", "page_size"}
        if unknown:
            raise Refused(f"UnifiedJob has no field named '{min(unknown)}'")
        found: list[dict[str, Any]] = []
        for number, job in self.launched.items():
            values = {"id": number, "status": job.status, "credentials__id": job.credential}
            if all(self._matches(values, key, value) for key, value in query.items()):
                found.append({"id": number, "type": "job", "status": job.status})
            job.looks -= 1
        return found

    def _matching(self, endpoint: str, query: dict[str, str]) -> Iterator[Item]:
        endpoints = [endpoint]
        if endpoint == "unified_job_templates":
            endpoints = rules.FACTS["unified_job_templates"]
        alternatives = {k[4:]: v for k, v in query.items() if k.startswith("or__")}
        wanted = {k: v for k, v in query.items() if not k.startswith("or__")}
        for item in self.items.values():
            if item.endpoint not in endpoints:
                continue
            values = {**item.values, "id": item.id}
            if not all(self._matches(values, key, value) for key, value in wanted.items()):
                continue
            if not alternatives or any(str(values.get(k)) == v for k, v in alternatives.items()):
                yield item

    def _matches(self, values: Mapping[str, Any], key: str, wanted: str) -> bool:
        name, _unused, rest = key.partition("__")
        if name in ("page_size", "order_by", "page"):
            return True
        if key in values:
            return str(values[key]) == wanted
        if rest == "in":
            return str(values.get(name)) in wanted.split(",")
        if rest:
            related = self.items.get(values.get(name) or 0)
            return related is not None and self._matches(related.values, rest, wanted)
        return str(values.get(name)) == wanted

    def _one(self, method: str, item: Item | None, part: str | None, body: Any) -> tuple[int, Any]:
        if item is None:
            return 404, {"detail": "Not found."}
        if part == "survey_spec" and ENDPOINTS[item.endpoint].get("survey"):
            return self._survey(method, item, body)
        if part == "create_approval_template" and method == "POST":
            made = self._add("workflow_approval_templates", body)
            item.values["unified_job_template"] = made.id
            return 201, self._shown(made)
        if part == "users" and item.endpoint == "teams" and method == "GET":
            numbers = self.members[item.roles["member_role"]].get("users", [])
            return 200, [self._shown(self.items[number]) for number in numbers]
        if part == "roles" and item.endpoint == "teams" and method == "GET":
            return 200, self._roles_of(item)
        if part is not None:
            return self._links(method, item, part, body)
        if method == "DELETE":
            self._remove(item)
            return 204, None
        if method == "PATCH":
            item.values = self._checked(item.endpoint, {**item.values, **body}, set(body))
        elif method != "GET":
            return 405, {"detail": "Method not allowed."}
        return 200, self._shown(item)

    def _roles_of(self, team: Item) -> list[dict[str, Any]]:
        """Return the roles that a team was granted (awx/api/views/__init__.py, TeamRolesList)."""
        return [
            {"id": number, "type": "role", "name": role}
            for item in self.items.values()
            for role, number in item.roles.items()
            if team.id in self.members[number].get("teams", [])
        ]

    def _remove(self, item: Item) -> None:
        del self.items[item.id]
        for other in self.items.values():
            for linked in other.links.values():
                linked[:] = [number for number in linked if number != item.id]

    def _survey(self, method: str, item: Item, body: Any) -> tuple[int, Any]:
        if method == "POST":
            errors = rules.survey_errors(body)
            if errors:
                raise Refused(errors[0])
            item.survey = body
        elif method == "DELETE":
            item.survey = {}
        return 200, item.survey

    def _links(self, method: str, item: Item, part: str, body: Any) -> tuple[int, Any]:
        target = ENDPOINTS[item.endpoint].get("associations", {}).get(part)
        if target is None:
            return 404, {"detail": "Not found."}
        linked = item.links.setdefault(part, [])
        if part == "galaxy_credentials" and method == "POST":
            kind = self.items[self.items[body["id"]].values["credential_type"]]
            if kind.values["kind"] != "galaxy":
                raise Refused(f"Credential must be a Galaxy credential, not {kind.name}.")
        return self._association(method, linked, target, body)

    def _role(self, method: str, number: int, part: str | None, body: Any) -> tuple[int, Any]:
        if part not in ("users", "teams") or number not in self.members:
            return 404, {"detail": "Not found."}
        refused = rules.FACTS["roles_not_for_teams"]
        for item in self.all("organizations") if part == "teams" else []:
            if number in [item.roles[role] for role in refused]:
                raise Refused("You cannot assign an Organization participation role to a team.")
        return self._association(method, self.members[number].setdefault(part, []), part, body)

    def _association(
        self, method: str, linked: list[int], target: str, body: Any
    ) -> tuple[int, Any]:
        if method == "GET":
            return 200, [self._shown(self.items[number]) for number in linked]
        number = body["id"]
        if number not in self.items or self.items[number].endpoint != target:
            raise Refused(f"there is no {target} {number}")
        if body.get("disassociate"):
            linked.remove(number)
        elif number not in linked:
            linked.append(number)
        return 204, None

    # Objects.

    def _add(self, endpoint: str, body: Mapping[str, Any]) -> Item:
        values = self._checked(endpoint, body, set(body))
        self._next += 1
        item = Item(endpoint, self._next, values)
        for other in self.all(endpoint):
            if _identity(other) == _identity(item):
                raise Refused(f"{endpoint} with this name already exists")
        for role in ENDPOINTS[endpoint].get("roles", []):
            self._next += 1
            item.roles[f"{role}_role"] = self._next
            self.members[self._next] = {}
        self.items[item.id] = item
        return item

    def _checked(self, endpoint: str, body: Mapping[str, Any], given: set[str]) -> dict[str, Any]:
        """Return the values that AWX stores. Raises Refused. An unknown field is ignored."""
        facts = ENDPOINTS[endpoint]
        values: dict[str, Any] = {}
        for name, kind in facts["fields"].items():
            default = rules.FACTS["defaults"].get(f"{endpoint}.{name}", _EMPTY[kind])
            values[name] = body.get(name, default)
            if values[name] is None:
                values[name] = default
            if values[name] is None:
                continue
            if not isinstance(values[name], _TYPES[kind]):
                raise Refused(f"{name}: {values[name]!r} is not a {kind}")
        for name, target in facts.get("references", {}).items():
            values[name] = self._reference(name, target, body.get(name))
        for name in facts.get("required", []):
            if not values[name]:
                raise Refused(f"{name}: This field is required.")
        check = getattr(self, f"_check_{endpoint}", None)
        if check:
            check(values, given)
        return values

    def _reference(self, name: str, target: str, number: Any) -> int | None:
        if number is None:
            return None
        known = [target]
        if target == "unified_job_templates":
            known = rules.FACTS["unified_job_templates"]
        if number not in self.items or self.items[number].endpoint not in known:
            raise Refused(f"{name}: Invalid pk {number!r} - object does not exist.")
        return int(number)

    def _check_credential_types(self, values: dict[str, Any], _given: set[str]) -> None:
        errors = rules.credential_type_errors(values["inputs"], values["injectors"])
        if errors:
            raise Refused(errors[0])
        for one in values["inputs"].get("fields", []):
            one.setdefault("type", "string")

    def _check_credentials(self, values: dict[str, Any], _given: set[str]) -> None:
        kind = self.items[values["credential_type"]].values
        known = {one["id"]: one["type"] for one in kind["inputs"].get("fields", [])}
        for name, value in values["inputs"].items():
            if name not in known:
                raise Refused(f"inputs: {name} is not a field of {kind['name']}")
            if not isinstance(value, _TYPES["bool" if known[name] == "boolean" else "str"]):
                raise Refused(f"inputs: {name} is not a {known[name]}")

    def _check_notification_templates(self, values: dict[str, Any], _given: set[str]) -> None:
        kind = values["notification_type"]
        defaults = rules.FACTS["notification_defaults"].get(kind, {})
        values["notification_configuration"] = {**defaults, **values["notification_configuration"]}
        errors = rules.notification_errors(kind, values["notification_configuration"])
        errors += rules.message_errors(values["messages"])
        if errors:
            raise Refused(errors[0])

    def _check_job_templates(self, values: dict[str, Any], _given: set[str]) -> None:
        if values["playbook"] not in self.playbooks:
            raise Refused("playbook: Playbook not found for project.")
        project = self.items[values["project"]]
        values["organization"] = project.values["organization"]

    def _check_instance_groups(self, values: dict[str, Any], _given: set[str]) -> None:
        known = {one.name for one in self.all("instances")}
        for name in values["policy_instance_list"]:
            if name not in known:
                raise Refused(f"{name} is not a valid hostname of an existing instance.")

    def _check_inventory_sources(self, values: dict[str, Any], _given: set[str]) -> None:
        if values["source"] == "scm" and not values["source_project"]:
            raise Refused("source_project: Project required for scm type sources.")

    def _check_schedules(self, values: dict[str, Any], given: set[str]) -> None:
        errors = rules.schedule_errors(values["rrule"])
        if errors:
            raise Refused(errors[0])
        if given & {"extra_data", "unified_job_template"}:
            self._check_answers(values)

    def _check_workflow_job_template_nodes(self, values: dict[str, Any], _given: set[str]) -> None:
        number = values["unified_job_template"]
        if not number or self.items[number].endpoint == "workflow_approval_templates":
            return
        self._check_answers(values)
        if values["job_type"] and not self.items[number].values["ask_job_type_on_launch"]:
            raise Refused("job_type: Field is not configured to prompt on launch.")

    def _check_answers(self, values: dict[str, Any]) -> None:
        template = self.items[values["unified_job_template"]]
        survey = template.survey or {"spec": []}
        errors = rules.answer_errors(survey, values["extra_data"])
        # A node may leave required answers to its workflow.
        errors = [error for error in errors if not error.endswith("value missing")]
        if errors:
            raise Refused(f"extra_data: {errors[0]}")

    def _shown(self, item: Item) -> dict[str, Any]:
        url = f"/api/v2/{item.endpoint}/{item.id}/"
        related = {"survey_spec": f"{url}survey_spec/"}
        number = item.values.get("unified_job_template")
        if number:
            related["unified_job_template"] = f"/api/v2/{self.items[number].endpoint}/{number}/"
        summary = {"object_roles": {role: {"id": number} for role, number in item.roles.items()}}
        shown = {
            **item.values,
            "id": item.id,
            "url": url,
            "type": item.endpoint.removesuffix("s"),
            "related": related,
            "summary_fields": summary,
        }
        self._summarize(item, shown)
        if item.endpoint == "credentials":
            shown["inputs"] = self._without_secrets(item)
        if item.endpoint == "notification_templates":
            shown["notification_configuration"] = _without_passwords(item)
        if item.endpoint == "projects":
            shown["scm_revision"] = "0" * 40
        return shown

    def _summarize(self, item: Item, shown: dict[str, Any]) -> None:
        """Add the linked objects that a list contains, at most ten labels (awx/api/serializers.py:
        LabelsListMixin, JobTemplateSerializer, WorkflowJobTemplateNodeSerializer).
        """
        linked = {
            part: [{"id": number, "name": self.items[number].name} for number in numbers]
            for part, numbers in item.links.items()
        }
        if item.endpoint in ("job_templates", "workflow_job_templates"):
            labels = linked.get("labels", [])
            summary = {"count": len(labels), "results": labels[:10]}
            shown["summary_fields"]["labels"] = summary
        if item.endpoint == "job_templates":
            shown["summary_fields"]["credentials"] = linked.get("credentials", [])
        if item.endpoint == "workflow_job_template_nodes":
            for part in ("success_nodes", "failure_nodes", "always_nodes"):
                shown[part] = list(item.links.get(part, []))

    def _without_secrets(self, item: Item) -> dict[str, Any]:
        kind = self.items[item.values["credential_type"]].values
        secret = {one["id"] for one in kind["inputs"].get("fields", []) if one.get("secret")}
        return {
            name: ENCRYPTED if name in secret and value else value
            for name, value in item.values["inputs"].items()
        }


def _without_passwords(item: Item) -> dict[str, Any]:
    kinds = rules.FACTS["notification_types"][item.values["notification_type"]]
    return {
        name: ENCRYPTED if kinds.get(name) == "password" and value else value
        for name, value in item.values["notification_configuration"].items()
    }


def _identity(item: Item) -> tuple[Any, ...]:
    """Return what two objects of one kind must not both have."""
    owners = ("organization", "inventory", "workflow_job_template", "unified_job_template")
    return (item.name, *(item.values.get(owner) for owner in owners))


def _page(results: list[dict[str, Any]], url: SplitResult) -> dict[str, Any]:
    """Return a page of a list: 25 results, or up to 200 (awx/api/pagination.py)."""
    query = dict(parse_qsl(url.query))
    size, number = min(int(query.get("page_size", 25)), 200), int(query.get("page", 1))
    end = number * size
    following = urlencode({**query, "page": number + 1}) if end < len(results) else None
    return {
        "count": len(results),
        "next": following and f"{url.path}?{following}",
        "previous": None,
        "results": results[end - size : end],
    }


def _handler(controller: Controller) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(size)
            status, answer = 401, {"detail": "Authentication credentials were not provided."}
            if self.headers.get("Authorization") == f"Bearer {TOKEN}":
                body = json.loads(text) if text else {}
                status, answer = controller.answer(self.command, self.path, body)
            data = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-API-Product-Name", "AWX")
            self.send_header("X-API-Product-Version", "24.6.1")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve

        def log_message(self, *_unused: Any) -> None:
            return

    return Handler
