"""Runs a module through its real `main()` in this process and returns the JSON it prints."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

from ansible.module_utils import basic


@contextlib.contextmanager
def _arguments(arguments: Mapping[str, Any]) -> Iterator[None]:
    """Give a module its arguments: the way for it came with ansible-core 2.17.7 and 2.18.1."""
    try:
        from ansible.module_utils.testing import patch_module_args
    except ImportError:
        before = basic._ANSIBLE_ARGS
        basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": dict(arguments)}).encode()
        try:
            yield
        finally:
            basic._ANSIBLE_ARGS = before
    else:
        with patch_module_args(dict(arguments)):
            yield


def _log_nothing(_module: basic.AnsibleModule) -> None:
    """Stand in for AnsibleModule._log_invocation."""


def run_module(
    name: str, arguments: Mapping[str, Any], *, check: bool = False, verbosity: int = 0
) -> dict[str, Any]:
    """Return the result of module `name`, always with its diff."""
    module = importlib.import_module(f"ansible_collections.pve.fleet.plugins.modules.{name}")
    extra = {"_ansible_check_mode": check, "_ansible_diff": True, "_ansible_verbosity": verbosity}
    out = io.StringIO()
    warnings: list[str] = []
    # In the controller's process Ansible shows warnings at once instead of returning them.
    with (
        mock.patch.object(basic.AnsibleModule, "warn", lambda _self, text: warnings.append(text)),
        # To the log of the system, which no test reads.
        mock.patch.object(basic.AnsibleModule, "_log_invocation", _log_nothing),
        _arguments({**arguments, **extra}),
        contextlib.redirect_stdout(out),
    ):
        code: object = None
        try:
            module.main()
        except SystemExit as end:
            code = end.code
    result: dict[str, Any] = json.loads(out.getvalue())
    assert bool(code) == bool(result.get("failed")), result
    return {**result, "warnings": warnings}
