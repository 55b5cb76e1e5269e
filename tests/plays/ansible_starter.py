# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that forks commands of Ansible: loading them takes longer than most plays.

A fork has the state of a command whose imports have just ended. Ansible reads its configuration
during them, so a command that has another environment is executed as usual.
"""

from __future__ import annotations

import ast
import atexit
import base64
import contextlib
import dataclasses
import functools
import hashlib
import importlib.util
import io
import marshal
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

from ansible import __file__ as ansible_file
from ansible import constants
from ansible.cli.inventory import InventoryCLI
from ansible.cli.playbook import PlaybookCLI
from ansible.executor import module_common
from ansible.plugins import loader
from ansible.utils.collection_loader import AnsibleCollectionConfig, _collection_finder
from ansible.utils.path import cleanup_tmp_file

from tests.compiled import keep_compiled
from tests.plays.commands import UNREAD
from tests.plays.kept_templates import KeptTemplates
from tests.simulator.forks import end_as_usual, serve
from tests.workers import HOME_VARIABLE

COMMANDS = {"ansible-playbook": PlaybookCLI, "ansible-inventory": InventoryCLI}
UNCHECKED = (1).to_bytes(4, "little")
# What a command or the collection imports only while it runs.
LATER = """
ansible.executor.task_executor ansible.plugins.action.copy ansible.plugins.action.include_vars
ansible.plugins.action.normal ansible.plugins.action.set_fact ansible.plugins.strategy.linear
concurrent.futures.thread cryptography.x509 email.parser http.client multiprocessing.synchronize
proxmoxer requests tomllib urllib3 xml.dom.minidom
""".split()
# The plugins of Ansible itself that commands read for their options, or that most plays use.
KINDS = (
    loader.action_loader,
    loader.become_loader,
    loader.cache_loader,
    loader.callback_loader,
    loader.connection_loader,
    loader.filter_loader,
    loader.inventory_loader,
    loader.lookup_loader,
    loader.shell_loader,
    loader.test_loader,
    loader.vars_loader,
)
# Those of this collection whose options are in their documentation, by directory.
CONFIGURED = {
    loader.callback_loader: "callback",
    loader.connection_loader: "connection",
    loader.inventory_loader: "inventory",
    loader.lookup_loader: "lookup",
}


def settings() -> dict[str, str]:
    """The environment, without what the imports of Ansible do not look at."""
    return {name: value for name, value in os.environ.items() if not name.startswith(UNREAD)}


def run(args: list[str], loaded: dict[str, str]) -> int:
    """Be the command that the first argument names."""
    if settings() != loaded:
        os.execvp(args[0], args)
    # As a program in the directory of the interpreter would have it.
    sys.path[0] = str(Path(sys.executable).parent)
    sys.argv = args
    # The imports made a directory for this process, to be removed at its end: of the starter.
    atexit.unregister(cleanup_tmp_file)
    beside = Path(constants.DEFAULT_LOCAL_TMP).parent
    constants.DEFAULT_LOCAL_TMP = tempfile.mkdtemp(
        prefix=f"ansible-local-{os.getpid()}", dir=beside
    )
    atexit.register(cleanup_tmp_file, constants.DEFAULT_LOCAL_TMP, warn=True)
    payloads = Path(constants.DEFAULT_LOCAL_TMP) / "ansiballz_cache"
    take_payloads(payloads)
    try:
        COMMANDS[args[0]].cli_executor(args)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        give_payloads(payloads)
        end_as_usual()
    return 0


def kept(what: str) -> Path:
    """The directory in which commands with the same collections keep something for each other."""
    paths = os.environ["ANSIBLE_COLLECTIONS_PATH"]
    digest = hashlib.sha256(paths.encode()).hexdigest()
    return Path(os.environ[HOME_VARIABLE]) / what / digest


def kept_payloads() -> Path:
    """The directory with the modules that commands of this collection have packed."""
    return kept("payloads")


def keep_templates() -> None:
    """Keep what Jinja compiles, if this ansible-core has its environment there: since 2.19."""
    with contextlib.suppress(ImportError, AttributeError):
        from ansible._internal._templating import _jinja_bits

        KeptTemplates(kept("templates"), _jinja_bits).keep()


def load_failures() -> None:
    """Have the expressions compiled that texts of failures are compared with."""
    name = "ansible_collections.pve.fleet.plugins.module_utils._foundation.core.failures.classify"
    importlib.import_module(name).classify("GET", "/", 400, "no such text")


def take_payloads(cache: Path) -> None:
    """Have the modules that other commands have packed.

    Ansible packs a module at its first task of each command, which takes longer than the task.
    """
    cache.mkdir()
    for file in kept_payloads().iterdir():
        os.link(file, cache / file.name)


def give_payloads(cache: Path) -> None:
    """Leave what this command has packed to others."""
    for file in cache.glob("*-ZIP_*"):
        kept = kept_payloads() / file.name
        if not file.name.endswith((".lock", "-part")) and not kept.exists():
            compile_payload(file)
            with contextlib.suppress(FileExistsError):
                os.link(file, kept)


def compile_payload(file: Path) -> None:
    """Put compiled files beside the sources in a packed module: a node compiles all of them at each
    task, which is half of the processor time of a module.
    """
    kind = getattr(module_common, "_CachedModule", None)  # since ansible-core 2.19
    if kind is None:
        return
    packed = kind.load(str(file))
    data = io.BytesIO(base64.b64decode(packed.zip_data))
    with zipfile.ZipFile(data, "a", zipfile.ZIP_DEFLATED) as archive:
        for name in archive.namelist():
            source = archive.read(name)
            code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
            # PEP 552: a file that is not compared with its source.
            head = importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(source)
            archive.writestr(f"{name}c", head + code)
    zip_data = base64.b64encode(data.getvalue())
    dataclasses.replace(packed, zip_data=zip_data).dump(str(file))


routing = functools.cache(_collection_finder._meta_yml_to_dict)


def remember_routing(collection: str, file: Path) -> None:
    """Parse what a collection redirects; Ansible calls with the same arguments."""
    routing(file.read_bytes(), (collection, "runtime.yml"))


def load_rooms(collection: Path) -> None:
    """Import what tasks of the collection import, but for what belongs to the process of a
    command: plugin_utils keep its standard error.
    """
    loader.init_plugin_loader()
    for file in sorted((collection / "plugins" / "module_utils").rglob("*.py")):
        if file.name != "__init__.py":
            parts = file.relative_to(collection).with_suffix("").parts
            importlib.import_module(".".join(("ansible_collections.pve.fleet", *parts)))
    load_failures()
    for kind, folder in CONFIGURED.items():
        for file in sorted((collection / "plugins" / folder).glob("[!_]*.py")):
            load_options(kind, file)
    # A command sets it up once more, with its own arguments.
    _collection_finder._AnsibleCollectionFinder._remove()
    AnsibleCollectionConfig._collection_finder = None


def load_options(kind: loader.PluginLoader, file: Path) -> None:
    """Parse the documentation of a plugin of the collection, from which Ansible has its options."""
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DOCUMENTATION":
            documented = SimpleNamespace(DOCUMENTATION=ast.literal_eval(node.value))
            name = f"ansible_collections.pve.fleet.plugins.{file.parent.name}.{file.stem}"
            kind._load_config_defs(name, documented, str(file))


@functools.cache
def load() -> None:
    """Import what every command needs, and compile the collection. The first call does it."""
    for name in LATER:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    _collection_finder._meta_yml_to_dict = routing
    for kind in KINDS:
        for _plugin in kind.all(class_only=True):
            pass
    below = Path(os.environ["ANSIBLE_COLLECTIONS_PATH"]) / "ansible_collections" / "pve" / "fleet"
    remember_routing(
        "ansible.builtin", Path(ansible_file).parent / "config/ansible_builtin_runtime.yml"
    )
    remember_routing("pve.fleet", below / "meta/runtime.yml")
    compiled = keep_compiled(Path(os.environ[HOME_VARIABLE]))
    for file in sorted((below / "plugins").rglob("*.py")):
        compiled.compile(
            source=file.read_bytes(), filename=str(file), mode="exec", flags=0, dont_inherit=True
        )
    load_rooms(below)
    kept_payloads().mkdir(parents=True, exist_ok=True)
    keep_templates()


def main() -> None:
    """Start from this environment."""
    loaded = settings()
    serve(functools.partial(run, loaded=loaded), lambda _args: load())


if __name__ == "__main__":
    main()
