# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module entry: the only room that knows AnsibleModule and the module's own process."""

from __future__ import annotations

import importlib.util
import os
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.common.validation import check_type_dict

from ..._guests.kinds.words import kind_name
from ..api.client import Client
from ..api.endpoint import credentials_in
from ..api.layers.caching import CachingReader
from ..api.path_templates import count_requests
from ..api.settings import ConnectionSettings, misplaced_secrets, resolve, unchosen_sites
from ..cluster.find.names import check_names, given_names, with_known_nodes
from ..cluster.state import fetch_cluster_state
from ..cluster.tenant import PREFIX, require_named_owners
from ..core.arguments.options import (
    every_refusal,
    hidden_values,
    mistaken_for_connection,
    require_numbers,
)
from ..core.errors import AuthenticationError, ConfigurationError, FleetError, ValidationFailed
from ..core.formatting import as_sentence, printable, printable_data, printable_in_json
from ..core.result import Result
from ..core.texts.plan_lines import with_lines
from ..plans.task import TaskPlans, line_of, read_task_plans
from ..spec.generated.connection import connection_spec
from ..spec.generated.plan import plan_spec
from .required_tenant import require_accepted_by_site
from .sites_file import read_sites_file

Run = Callable[[dict[str, Any], Client, bool], Result]
"""`run(params, client, check_mode)`: the work of a module.

`params` does not contain the options of the connection.
"""

RunAtSites = Callable[[dict[str, Any], Sequence[tuple[Collection[str], Client]], bool], Result]
"""The same for a task about several sites; each group of sites has one client."""

Lend = Callable[[ConnectionSettings], AbstractContextManager[Client]]
"""Provides a client for one run."""

Secrets = Callable[[Mapping[str, Any]], Iterable[str]]
"""Finds secrets in unchecked arguments that the specification cannot mark, such as secrets of a
class.
"""

OnFailure = Callable[[Mapping[str, Any], FleetError], Mapping[str, Any]]
"""Returns the values of a result besides `msg` and `error`, if the work itself returned none."""

LIBRARIES = ("proxmoxer", "requests")
_OF_CONNECTION = tuple(connection_spec())
Conditions = Callable[[FleetError], list[dict[str, Any]]]
"""Returns the conditions of a task that failed."""

_URLS = ("host", "api_host", "endpoint", "url", "source_url")
_NOT_STARTED = (126, 127)  # exit codes of a shell that cannot run the interpreter
VERBOSE = 3  # from this verbosity on, a result lists the requests
# If this environment variable is set, a result counts the requests. The callback plugin metrics
# sets it.
COUNTING = "PVE_FLEET_COUNT_REQUESTS"
_EXPORTED = "estate"
# Texts that callbacks and roles print as they are.
_FOR_PEOPLE = frozenset(("msg", "diff", "exception", "report", "table", "plan", "done"))


@dataclass(frozen=True)
class SiteSupport:
    """The sites of a task that can work on several.

    `names` returns the sites in the arguments of the task; an empty name is the site of the task
    itself. Without a name, or if `every` is set, a task that chooses no site works on all sites.
    Without `run`, the task works at its own site, which `names` returns first, and its client knows
    the clients of the other sites.
    """

    run: RunAtSites | None = None
    names: Callable[[dict[str, Any]], Sequence[str]] = lambda _params: [""]
    every: bool = False


@dataclass(frozen=True)
class TaskMode:
    """The mode of a task: check mode, diff mode, and the number of C(-v)."""

    check: bool
    diff: bool
    verbosity: int


@dataclass(frozen=True)
class ModuleEntry:
    """A module: its work, its options without the connection, and AnsibleModule's checks of them.

    `checks` are keywords of AnsibleModule (`required_if`, `mutually_exclusive`, ...). `secrets`
    finds secret values besides the options with `no_log`. `conditions` returns the conditions of a
    failure, if the module returns conditions. `returned_secrets` are keys of a result whose values
    are not printed. `libraries` are libraries that only this module needs. With `returns_site`, the
    result names the site, because VMIDs are unique in a site only. `name` is the module's name; a
    module without a name always needs a tenant if the connection requires one. `names` are the
    kinds of names by option, see `check_names`. With `plans`, its plan can be kept for an approval;
    one file has a plan for each value of the option `plan_subject`. A module declares its entry as
    `ENTRY`, which its own process and the controller both read.
    """

    run: Run
    spec: Mapping[str, dict[str, Any]]
    checks: Mapping[str, Any] = field(default_factory=dict)
    supports_check_mode: bool = True
    secrets: Secrets = lambda _arguments: ()
    conditions: Conditions | None = None
    on_failure: OnFailure | None = None
    returned_secrets: tuple[str, ...] = ()
    sites: SiteSupport | None = None
    libraries: tuple[str, ...] = ()
    returns_site: bool = False
    name: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    plans: bool = False
    plan_subject: str = ""

    @property
    def whole_spec(self) -> dict[str, dict[str, Any]]:
        """The argument specification with the connection."""
        return {**connection_spec(), **(plan_spec() if self.plans else {}), **self.spec}

    def main(self) -> None:
        """Run the module as its own process, and end it with `exit_json` or `fail_json`."""
        module = _Module(self)
        library = self.missing_library()
        if library:
            error = ConfigurationError(reason=f"missing library {library}")
            module.fail_json(**{**self.failed(error), "msg": missing_required_lib(library)})
        outcome = self.perform(
            module.params,
            os.environ,
            TaskMode(module.check_mode, module._diff, module._verbosity),
            lend=Client,
            given=module.given,
        )
        for warning in outcome.warnings:
            module.warn(warning)
        if outcome.failed:
            module.fail_json(**outcome.values)
        module.exit_json(**outcome.values)

    def hidden(self, arguments: Mapping[str, Any]) -> set[str]:
        """Return the secret values besides the options with `no_log`.

        They include a login in a URL, a secret in place of a token's ID, and the values of a
        dictionary that is written as text, because Ansible hides only the whole text.
        """
        found = set(self.secrets(arguments))
        for name, option in self.spec.items():
            if option.get("no_log") and option.get("type") == "dict":
                found |= _values_in(arguments.get(name))
        sites = arguments.get("sites")
        for given in (arguments, *(sites if isinstance(sites, list) else ())):
            if not isinstance(given, Mapping):
                continue
            found |= misplaced_secrets(given)
            for name in _URLS:
                found |= credentials_in(str(given.get(name) or ""))
        return found

    def missing_library(self) -> str:
        """Return a library that the module needs and this Python lacks, or an empty text."""
        for library in (*LIBRARIES, *self.libraries):
            if importlib.util.find_spec(library) is None:
                return library
        return ""

    def failed(self, error: FleetError) -> dict[str, Any]:
        """Return the result of a failed task: `changed`, `msg`, `error`, and conditions if any."""
        values = {"changed": error.came_after_changes, **error.as_result()}
        return (
            values if self.conditions is None else {**values, "conditions": self.conditions(error)}
        )

    def refused(self, msg: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a task whose arguments Ansible refuses, with its message. `given`
        are the arguments of the task.
        """
        hint = mistaken_for_connection(self.spec, given)
        msg = f"{msg.rstrip('.')}. {as_sentence(hint)}" if hint else msg
        values = self.failed(ValidationFailed(reason="arguments"))
        return {**values, "msg": msg}

    def no_result(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a module that could not start or crashed, from Ansible's result."""
        if found.get("rc") in _NOT_STARTED:
            return self.failed(ConfigurationError(reason="interpreter"))
        return self.failed(FleetError(reason="no result"))

    def perform(
        self,
        arguments: Mapping[str, Any],
        environ: Mapping[str, str],
        mode: TaskMode,
        *,
        lend: Lend,
        given: Mapping[str, Any] | None = None,
    ) -> TaskOutcome:
        """Return the outcome of a run with these checked arguments.

        It raises no exception: failures and bugs are outcomes, too.

        `given` are the arguments as the user wrote them, before Ansible adds defaults.
        """
        clients: list[Client] = []
        failed = True
        mistaken = mistaken_for_connection(self.spec, given or {})
        warnings: tuple[str, ...] = (as_sentence(mistaken),) if mistaken else ()
        try:
            require_named_owners(arguments, given)
            require_numbers(self.spec, arguments)
            params = {key: value for key, value in arguments.items() if key in self.spec}
            places = self._places(arguments, params, environ)
            for connection in places:
                require_accepted_by_site(self.name, params, connection)
            plans = self._plans(arguments, places, check_mode=mode.check)
            warnings += tuple(text for connection in places for text in connection.warnings)
            with ExitStack() as stack:
                clients = [plans.bound(stack.enter_context(lend(one))) for one in places]
                client, more_warnings = self._check_names(params, clients[0])
                warnings += tuple(more_warnings)
                at_sites = list(zip(places.values(), [client, *clients[1:]], strict=True))
                plans.require_reachable()
                result = plans.concluded(self._run(params, at_sites, mode.check))
            values = self._with_plan(result.as_dict(diff=mode.diff), plans)
            if self.returns_site:
                is_at_one = self.sites is None or self.sites.run is None
                values["site"] = _site_of(list(places)[: 1 if is_at_one else None])
            failed = result.failure is not None
            warnings += tuple(map(as_sentence, result.warnings))
        except FleetError as failure:
            error = with_known_nodes(failure, clients)
            if mistaken and isinstance(error, (ConfigurationError, AuthenticationError)):
                error = error.on(next_step=as_sentence(mistaken))
            more = self.on_failure(arguments, error) if self.on_failure is not None else {}
            values = {**more, **self.failed(error)}
        except Exception as error:
            values = {**self.failed(unexpected(error)), "exception": traceback.format_exc()}
        if clients and mode.verbosity >= VERBOSE:
            values["requests"] = [line for client in clients for line in client.record()]
        if environ.get(COUNTING):
            rows = (row for client in clients for row in list(client.requests))
            values["request_counts"] = count_requests(rows)
        return TaskOutcome(failed, _printable_texts(values), tuple(map(printable, warnings)))

    def _plans(
        self,
        arguments: Mapping[str, Any],
        places: Mapping[ConnectionSettings, Any],
        *,
        check_mode: bool,
    ) -> TaskPlans:
        """Return the plan files of the task. Raises FleetError before the first request."""
        if not (self.plans and (arguments.get("plan_file") or arguments.get("apply_plan"))):
            return TaskPlans(self.name)
        secret_values = hidden_values(self.whole_spec, arguments) | self.hidden(arguments)
        secret_values.update(
            *(one.secrets for one in places)
        )  # a site can get the login of another
        now = time.time()
        plans = read_task_plans(self.name, arguments, secret_values, now, check_mode=check_mode)
        plans.subject = str(arguments.get(self.plan_subject) or "")
        plans.arguments = self._declared(arguments)
        plans.require_sites(places)
        return plans

    def _declared(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that differ from their defaults, without the connection."""
        return {
            name: arguments[name]
            for name, option in self.spec.items()
            if name in arguments and arguments[name] != option.get("default")
        }

    def _with_plan(self, values: dict[str, Any], plans: TaskPlans) -> dict[str, Any]:
        """Return the result with the plan that is now in its file, or that was applied."""
        if plans.document is not None and plans.apply_plan:
            guests = [{**one, "kind": kind_name(one["kind"])} for one in plans.guests()]
            values["approval"] = {"digest": plans.document.digest, "guests": guests}
        document = plans.write(values.get("report") or ())
        if document is None:
            return values
        values["approval"] = {"plan_file": plans.plan_file, "digest": document.digest}
        values["report"] = with_lines(values["report"], [line_of(document, plans.plan_file)])
        return values

    def _places(
        self, arguments: Mapping[str, Any], params: dict[str, Any], environ: Mapping[str, str]
    ) -> dict[ConnectionSettings, list[str]]:
        """Return the connections of a task, each with its sites."""
        options = {key: arguments.get(key) for key in _OF_CONNECTION}
        names: Sequence[str] = [""]
        if self.sites is not None:
            names = self.sites.names(params)
            if self.sites.every or not names:
                names = unchosen_sites(options, environ, read_sites_file) or [""]
        found: dict[ConnectionSettings, list[str]] = {}
        for name in names:
            own = {**options, "site": name} if name else options
            found.setdefault(resolve(own, environ, read_sites_file), []).append(name)
        return found

    def _check_names(self, params: Mapping[str, Any], client: Client) -> tuple[Client, list[str]]:
        """Return the client of the work, and warnings about names in options. Raises NotFound for a
        name that names nothing. The work of a module that only reads gets the same listing.
        """
        given = given_names(self.names, params)
        if not given:
            return client, []
        reader = CachingReader.around(client)
        prefix = params.get("tenant_prefix") or PREFIX
        warnings = check_names(reader, fetch_cluster_state(reader), given, prefix)
        return (reader if self.name.endswith("_info") else client), warnings

    def _run(
        self, params: dict[str, Any], clients: list[tuple[list[str], Client]], check_mode: bool
    ) -> Result:
        """Return the result of the work, at one site or at several."""
        (first, client), *others = clients
        if self.sites is None or (first == [""] and not others):
            return self.run(params, client, check_mode)
        if self.sites.run is not None:
            return self.sites.run(params, clients, check_mode)
        by_site = {name: one for names, one in clients for name in names if name}
        return self.run(params, client.with_other_sites(by_site), check_mode)


def _printable_texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without escape sequences.

    Ansible prints values that are not for people as JSON, which escapes most control characters. An
    exported estate keeps all of them: it is applied again.
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key == _EXPORTED:
            found[key] = value
            continue
        convert = printable if key in _FOR_PEOPLE else printable_in_json
        found[key] = printable_data(value, convert)
    return found


def _site_of(connections: Sequence[ConnectionSettings]) -> str:
    """Return the name of the site, or the host of its endpoint; an empty text for several sites."""
    if len(connections) > 1:
        return ""
    (connection,) = connections
    return connection.site or connection.endpoint.host


def _values_in(text: Any) -> set[str]:
    """Return the values of a dictionary that is written as a text, such as C(a=1, b=2)."""
    if not isinstance(text, str):
        return set()
    try:
        values = check_type_dict(text)
    except TypeError:
        return {text}
    return {str(value) for value in values.values()}


class _Module(AnsibleModule):
    """A module that hides more secrets, from the start, and returns every failure in the same
    form.
    """

    given: Mapping[str, Any]

    def __init__(self, entry: ModuleEntry) -> None:
        self._entry = entry
        super().__init__(
            argument_spec=entry.whole_spec,
            supports_check_mode=entry.supports_check_mode,
            **entry.checks,
        )

    def _load_params(self) -> None:
        super()._load_params()
        self.given = dict(self.params)
        self.no_log_values.update(self._entry.hidden(self.params))

    def fail_json(self, msg: str, **values: Any) -> Any:
        """Fail.

        If Ansible itself refuses the arguments, the result gets an `error` like our own failures,
        and the message lists every mistake.
        """
        if "error" not in values:
            entry, check = self._entry, getattr(self, "validation_result", None)
            if check is not None:
                msg = every_refusal(check.errors.errors, self._name, entry.whole_spec) or msg
            values = {**entry.refused(str(msg), self.given), **values}
        super().fail_json(values.pop("msg", msg), **values)


@dataclass(frozen=True)
class TaskOutcome:
    """The arguments of `exit_json` (or of `fail_json` for a failure), and the warnings."""

    failed: bool
    values: dict[str, Any]
    warnings: tuple[str, ...] = ()


def unexpected(error: BaseException) -> FleetError:
    """Return the error for a bug in this collection."""
    return FleetError(
        f"An unexpected {type(error).__name__} occurred: {error}",
        "This is a bug in the collection pve.fleet: please report it with the output of -vvv",
        type(error).__name__,
    )
