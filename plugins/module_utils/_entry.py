# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module entry: the only room that knows AnsibleModule, a process and its end."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ._api.client import Client, connect
from ._core.errors import ConfigurationError, FleetError
from ._core.result import Result
from ._spec.connection import CONNECTION_OPTIONS, connection_spec

Run = Callable[[dict[str, Any], Client, bool], Result]
"""`run(params, client, check_mode)`: the work of a module, without the options of the connection in `params`."""

_VERBOSE = 3


def main_entry(run: Run, spec: Mapping[str, Any], *, supports_check_mode: bool = True, **checks: Any) -> None:
    """Run a module to its end: arguments, client, `run`, and one of `exit_json` and `fail_json`.

    `spec` is the argument specification without the connection, `checks` are AnsibleModule's own (`required_if`,
    `mutually_exclusive`, ...).
    """
    module = AnsibleModule(
        argument_spec={**connection_spec(), **spec}, supports_check_mode=supports_check_mode, **checks
    )
    _require_libraries(module)
    client: Client | None = None
    try:
        options = {key: module.params.get(key) for key in CONNECTION_OPTIONS}
        client = connect(options, os.environ, read_file=read_sites_file)
        params = {key: value for key, value in module.params.items() if key in spec}
        result = run(params, client, module.check_mode)
    except FleetError as error:
        _fail(module, client, error.as_result())
    except Exception as error:
        _fail(module, client, {**unexpected(error), "exception": traceback.format_exc()})
    else:
        for warning in result.warnings:
            module.warn(warning)
        module.exit_json(**result.as_dict(diff=module._diff), **_record(module, client))
    finally:
        if client is not None:
            client.close()


def unexpected(error: BaseException) -> dict[str, Any]:
    """Return `msg` and `error` for a mistake of ours."""
    return {
        "msg": f"An unexpected {type(error).__name__} occurred: {error}. "
        "This is a mistake in the collection pve.fleet: please report it with the output of -vvv.",
        "error": {
            "category": "InternalError",
            "reason": type(error).__name__,
            "status": None,
            "path": None,
            "upid": None,
            "retryable": False,
            "tries": None,
        },
    }


def read_sites_file(path: str) -> Any:
    """Return the data of a YAML file with sites; raises ConfigurationError when it cannot be read."""
    attempted = f"Could not read the sites file {path}"
    try:
        import yaml
    except ImportError:
        raise _sites_error(attempted, "the Python library PyYAML is missing", "Install PyYAML") from None
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as stream:
            return yaml.safe_load(stream)
    except (OSError, UnicodeDecodeError) as error:
        raise _sites_error(attempted, str(error), "Correct sites_file") from error
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" (line {line + 1})"
        # The text of the error may quote a secret, so only the place is told.
        raise _sites_error(attempted, f"it is not valid YAML{where}", "Correct the file") from None


def _sites_error(attempted: str, answer: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(
        attempted=attempted, answer=answer, next_step=next_step, reason="unreadable sites file", dispatched=False
    )


def _require_libraries(module: AnsibleModule) -> None:
    """End with Ansible's own text when a library is missing."""
    from importlib.util import find_spec

    for library in ("proxmoxer", "requests"):
        if find_spec(library) is None:
            module.fail_json(
                msg=missing_required_lib(library),
                error=ConfigurationError(reason=f"missing library {library}").as_result()["error"],
            )


def _fail(module: AnsibleModule, client: Client | None, result: dict[str, Any]) -> None:
    module.fail_json(**result, **_record(module, client))


def _record(module: AnsibleModule, client: Client | None) -> dict[str, Any]:
    """Return the record of requests, for high verbosity only."""
    if client is None or module._verbosity < _VERBOSE:
        return {}
    return {"requests": client.record()}
