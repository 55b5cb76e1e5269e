# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what Jinja compiles for all commands of Ansible of one run of the tests.

Ansible runs each task in a process of its own, which compiles the templates of the task again: a
quarter of the processor time of a play.
"""

from __future__ import annotations

import hashlib
import marshal
import os
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2.environment import TemplateExpression

# The file of the expression whose nodes are compiled.
_expression: ContextVar[Path | None] = ContextVar("_expression", default=None)


class KeptTemplates:
    """Compiled templates and expressions in a directory, without those that have an error.

    `bits` is the module of ansible-core with its environment of Jinja. Raises AttributeError if that
    is another one than it was in ansible-core 2.19.
    """

    def __init__(self, directory: Path, bits: Any) -> None:
        self._directory = directory
        self._environment = bits.AnsibleEnvironment
        self._compile: Callable[..., CodeType] = self._environment.compile
        self._compile_expression: Callable[..., Any] = self._environment.compile_expression
        self._settings = bits._TEMPLATE_OVERRIDE_FIELD_NAMES
        self._context = bits._TemplateCompileContext
        self._embeds = bits._TemplateConfig.allow_embedded_templates

    def keep(self) -> None:
        """Make Ansible in this process, and in its forks, use what others have compiled."""
        self._directory.mkdir(parents=True, exist_ok=True)
        kept = self

        def compile_kept(self: Any, source: Any, *args: Any, **more: Any) -> CodeType:
            return kept.compile(self, source, *args, **more)

        def compile_expression(self: Any, source: str, undefined_to_none: bool = True) -> Any:
            return kept.compile_expression(self, source, undefined_to_none)

        self._environment.compile = compile_kept
        self._environment.compile_expression = compile_expression

    def compile(self, environment: Any, source: Any, *args: Any, **more: Any) -> CodeType:
        """Stand in for Environment.compile, whose other arguments are those of an included file."""
        file = _expression.get()
        if isinstance(source, str):
            file = self._file(environment, "template", source)
        if file is None or args or more:
            return self._compile(environment, source, *args, **more)
        return _read(file) or _written(file, self._compile(environment, source))

    def compile_expression(
        self, environment: Any, source: str, undefined_to_none: bool
    ) -> TemplateExpression:
        """Stand in for Environment.compile_expression, which parses and then calls compile()."""
        file = self._file(environment, "expression", source)
        code = _read(file)
        if code is None:
            token = _expression.set(file)
            try:
                return self._compile_expression(environment, source, undefined_to_none)
            finally:
                _expression.reset(token)
        names = environment.make_globals(None)
        template = environment.template_class.from_code(environment, code, names, None)
        return TemplateExpression(template, undefined_to_none)

    def _file(self, environment: Any, kind: str, source: str) -> Path:
        """Return the file for a text: the result also depends on the settings of its reader."""
        context = self._context.current(optional=True)
        settings = [getattr(environment, name) for name in self._settings]
        settings += [self._embeds, sorted(environment.extensions)]
        settings += [context is not None and context.escape_backslashes, kind, str(source)]
        return self._directory / hashlib.sha256(repr(settings).encode()).hexdigest()


def _read(file: Path) -> CodeType | None:
    if not file.exists():
        return None
    code: CodeType = marshal.loads(file.read_bytes())
    return code


def _written(file: Path, code: CodeType) -> CodeType:
    # Another process may do the same: each writes a file of its own.
    own = file.with_name(f"{file.name}.{os.getpid()}")
    own.write_bytes(marshal.dumps(code))
    own.replace(file)
    return code
