# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and results in the controller's process, with the checks and masks of a module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.common import json as formats
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.release import __version__

from ..module_utils._foundation.core.arguments.options import every_refusal
from ..module_utils._foundation.entry.module import ModuleEntry

SINCE_2_19 = tuple(map(int, __version__.split(".")[:2])) >= (2, 19)
if SINCE_2_19:
    # The first one moves the error in the result of a failed module to the place where failed_when
    # finds it.
    from ansible._internal._errors._captured import AnsibleModuleCapturedError as captured
    from ansible.module_utils._internal import _traceback as tracebacks
else:
    captured = tracebacks = None

_PROFILE = "legacy"  # the profile of a module that declares none


@dataclass(frozen=True, repr=False)
class Checked:
    """Arguments after the checks of a module: values, secrets, warnings and an error."""

    params: dict[str, Any]
    secrets: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    error: str = ""
    repeated: bool = True  # whether the result repeats the arguments


def as_a_module_gets(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in the form in which a module reads them from JSON: plain data."""
    return _passed_on(arguments, "CONTROLLER_TO_MODULE", vault_to_text=True)


def as_a_module_returns(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result in the form in which the controller reads a module's JSON."""
    plain = _passed_on(result, "MODULE_TO_CONTROLLER")
    if captured is not None:
        captured.normalize_result_exception(plain)
    return plain


def _passed_on(data: Mapping[str, Any], direction: str, **before_219: Any) -> dict[str, Any]:
    """Return data in the form in which the other side receives it.

    Since version 2.19, ansible-core has a format for each direction.
    """
    plain: dict[str, Any]
    if SINCE_2_19:
        way = formats.Direction[direction]
        text = json.dumps(dict(data), cls=formats.get_module_encoder(_PROFILE, way))
        plain = json.loads(text, cls=formats.get_module_decoder(_PROFILE, way))
    else:
        plain = json.loads(json.dumps(dict(data), cls=formats.AnsibleJSONEncoder, **before_219))
    return plain


def check(
    entry: ModuleEntry, name: str, arguments: Mapping[str, Any], repeated: bool = True
) -> Checked:
    """Return the arguments, checked with the module's own specification.

    `name` is the name of the module in messages.
    """
    checks: dict[str, Any] = dict(entry.checks)
    found = ArgumentSpecValidator(entry.whole_spec, **checks).validate(dict(arguments))
    return Checked(
        params={**arguments, **found.validated_parameters},
        secrets=frozenset(found._no_log_values) | frozenset(entry.hidden(arguments)),
        warnings=tuple(
            f"Both option {one['option']} and its alias {one['alias']} are set."
            for one in found._warnings
        ),
        error=every_refusal(found.errors.errors, name, entry.whole_spec),
        repeated=repeated,
    )


def tracebacks_are_results() -> bool:
    """Return whether a module would put the traceback of an unexpected error into its result."""
    if tracebacks is None:  # before ansible-core 2.19 it always does
        return True
    return bool(tracebacks.is_traceback_enabled(tracebacks.TracebackEvent.ERROR))


def without_secrets(text: str, checked: Checked) -> str:
    """Return the text with the same stars that a module would print."""
    return str(remove_values(text, set(checked.secrets)))


def finished(
    values: Mapping[str, Any], checked: Checked, warnings: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the result of a task, with a module's stars in place of secrets."""
    result = dict(values)
    if checked.repeated:
        result["invocation"] = {"module_args": checked.params}
    all_warnings = list(dict.fromkeys((*checked.warnings, *warnings)))
    if all_warnings:
        result["warnings"] = all_warnings
    kept = {key: value for key, value in result.items() if value is None or isinstance(value, bool)}
    return as_a_module_returns({**remove_values(result, set(checked.secrets)), **kept})
