# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin: thin, everything it decides is in `module_utils/_operation/inventory`."""

from __future__ import annotations

DOCUMENTATION = r"""
name: proxmox
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: VMs and containers of Proxmox VE, grouped by tenant
description:
  - Makes every VM and container of one or several Proxmox VE clusters a host, from a single request
    to each cluster. With O(kinds) the nodes are hosts too.
  - With O(sites) or O(sites_file), and neither O(site) nor O(host), all sites are read, side by
    side.
  - Groups the hosts by kind, tenant, tag, node, status, pool, site and template, and by what the
    constructed options add.
  - A tenant, pool or tag in O(tenant), O(tenants), O(pools) or O(tags) that no site has is reported
    as a warning, a node in O(nodes) as an error, with the most similar name.
  - The file of the inventory must be named C(*.proxmox.yml), C(*.proxmox.yaml), C(*.pve.yml) or
    C(*.pve.yaml), or have one of these endings as its whole name.
  - Texts that a tenant can set, such as the name of a VM, are never read as templates.
extends_documentation_fragment:
  - pve.fleet.connection.plugin
  - pve.fleet.connection
  - pve.fleet.inventory
  - ansible.builtin.inventory_cache
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [pve.fleet.proxmox]
  use_extra_vars:
    description: Whether expressions see the extra variables of the command line too.
    type: bool
    default: false
    ini: [{section: inventory_plugins, key: use_extra_vars}]
    env: [{name: ANSIBLE_INVENTORY_USE_EXTRA_VARS}]
seealso:
  - module: pve.fleet.vm_info
  - module: pve.fleet.container_info
  - plugin: pve.fleet.agent
    plugin_type: connection
  - plugin: pve.fleet.pct
    plugin_type: connection
"""

EXAMPLES = r"""
# fleet.proxmox.yml: every guest, with host and token from the environment
plugin: pve.fleet.proxmox

# In another file: one tenant, with addresses, for its playbooks
#
# plugin: pve.fleet.proxmox
# host: pve1.example.org
# token_id: automation@pve!inventory
# token_secret: "{{ lookup('ansible.builtin.env', 'FLEET_SECRET') }}"
# tenant: acme
# fetch: [addresses]
# address_subnets: [10.0.0.0/8]
# templates: false

# In another file: two sites, groups by the first part of the name, and a cache
#
# plugin: pve.fleet.proxmox
# sites:
#   - name: north
#     host: pve-north.example.org
#     user: automation@pve
#     token_id: inventory
#     token_secret: 00000000-0000-4000-8000-000000000001
#   - name: south
#     host: pve-south.example.org
#     user: automation@pve
#     token_id: inventory
#     token_secret: 00000000-0000-4000-8000-000000000002
# dead_site: report
# filters:
#   - proxmox_status == 'running'
#   - "'web' in proxmox_tags"
# keyed_groups:
#   - key: proxmox_name | default('') | split('-') | first
#     prefix: role
# compose:
#   vm_memory_gib: proxmox_memory_bytes / 1024 ** 3
# cache: true
# cache_plugin: ansible.builtin.jsonfile
# cache_connection: ~/.cache/pve-fleet
# cache_timeout: 600
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError, AnsibleParserError
from ansible.plugins.inventory import (
    BaseInventoryPlugin,
    Cacheable,
    Constructable,
    get_cache_plugin,
    to_safe_group_name,
)

from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.entry.sites_file import read_sites_file
from ..module_utils._foundation.spec.generated.connection import connection_spec
from ..module_utils._operation.inventory.compatible import (
    COMMON_GROUPS,
    GROUP_OF_NODES,
    all_facts,
    groups_of,
    listed_facts,
)
from ..module_utils._operation.inventory.connections import connection_variables
from ..module_utils._operation.inventory.details import detail_variables
from ..module_utils._operation.inventory.hosts import (
    InventoryGuest,
    group_names,
    plain_name,
    shortened,
    unique_names,
)
from ..module_utils._operation.inventory.kinds import NODE
from ..module_utils._operation.inventory.options import (
    ADDRESS,
    InventoryOptions,
    JinjaExpressions,
    read_options,
    require_known_options,
)
from ..module_utils._operation.inventory.sites import open_clients
from ..module_utils._operation.inventory.sync import InventorySync, fingerprint, run_sync
from ..plugin_utils._trust import TrustMarker, has_template, trusted

_ENDINGS = ("proxmox.yml", "proxmox.yaml", "pve.yml", "pve.yaml")
_OUR_NAME = re.compile(r"""(?m)^\{?\s*["']?plugin["']?\s*:\s*["']?pve\.fleet\.proxmox\b""")
_FILES = ("client_cert", "client_key", "sites_file")
_OWNERS = ("tenant", "tenants", "tenant_prefix")
_PLAIN_NAMES = ("name", "vmid", "name_vmid", "site_name")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Guests and nodes of Proxmox VE as hosts."""

    NAME = "pve.fleet.proxmox"
    inventory: Any

    def verify_file(self, path: str) -> bool:
        """Return whether the file has a name of this plugin; warn if only its content fits."""
        name = os.path.basename(path)
        endings = tuple(f".{ending}" for ending in _ENDINGS)
        if name in _ENDINGS or name.endswith(endings):
            return super().verify_file(path)
        if _is_meant_for_us(path):
            self._warn(
                [f"{path} is not read, because its name does not end in .proxmox.yml or .pve.yml"]
            )
        return False

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Fill the inventory; raises AnsibleParserError with one line that names the next step.

        Without `cache` (`--flush-cache`, `meta: refresh_inventory`) everything is read again;
        cached VMs are shown for a dead site only.
        """
        super().parse(inventory, loader, path, cache)
        config = self._read_config_data(path)
        try:
            definitions = self.option_definitions
            aliases = [alias for one in definitions.values() for alias in one.get("aliases") or ()]
            require_known_options(config, [*definitions, *aliases])
            options = read_options(partial(self._given, config), os.environ, trusted)
            self.set_option("leading_separator", options.expressions.leading_separator)
            connection = {name: self._connection_option(name) for name in connection_spec()}
            extra_vars = self._vars if self.get_option("use_extra_vars") else None
            identity = fingerprint(connection, os.environ, options, read_sites_file, extra_vars)
            old = self._cached(path, identity)
            may_stand = cache and not options.expressions.filters_use_lookups
            sync = old if old is not None and may_stand and self._is_young(old) else None
            if sync is None:
                is_wanted = partial(self._is_wanted, options)
                opened = open_clients(connection, os.environ, read_sites_file)
                sync = run_sync(*opened, options, is_wanted, old, refetch=not cache)
                if self._caches:
                    self._cache[self.get_cache_key(path)] = {
                        "identity": identity,
                        "sync": sync.for_cache(),
                    }
            self._warn(sync.warnings)
            self._populate(sync, options, connection)
        except FleetError as error:
            raise AnsibleParserError(f"{error.message} ({error.category})") from None

    def _read_config_data(self, path: str) -> Any:
        """Read the file; a cache that cannot be opened costs a warning, not the inventory.

        The cache is opened without an expiry time: even an entry that is too old to be shown saves
        reads of unchanged VMs. `_is_young` checks `cache_timeout`.
        """
        self._caches = False
        try:
            with _private_directories():
                config = super()._read_config_data(path)
        except AnsibleError:
            if not self._options.get("cache"):
                raise
            # The options are set: it is the cache that cannot be opened, or not in this way.
            config = self.loader.load_from_file(path)
        if self.get_option("cache"):
            places = {
                "_uri": self.get_option("cache_connection"),
                "_prefix": self.get_option("cache_prefix"),
            }
            known = {key: value for key, value in places.items() if value is not None}
            name = self.get_option("cache_plugin") or "memory"
            try:
                # Up to ansible-core 2.18 this one takes options by its short name only.
                plain = "memory" if name == "ansible.builtin.memory" else name
                with _private_directories():
                    self._cache = get_cache_plugin(plain, **known, _timeout=0)
                self._caches = True
            except AnsibleError as error:
                self._warn([f"the inventory cache cannot be used: {_one_line(error)}"])
        return config

    def update_cache_if_changed(self) -> None:
        """Write the cache; a cache that cannot be written costs a warning, not the inventory."""
        if not self._caches:
            return
        try:
            super().update_cache_if_changed()
        except Exception as error:
            self._warn([f"the inventory cache cannot be written: {_one_line(error)}"])

    def _given(self, config: Mapping[str, Any], name: str) -> Any:
        """Return an option of file or ansible.cfg.

        Ansible makes a list of an empty text, which means unset.

        An empty text for the tenants is refused as an empty list is: it could mean no tenant's VMs
        as well as all. So is one of these options that the file has without a value.
        """
        value = self.get_option(name)
        if value is None and name in _OWNERS and name in config:
            return ""
        if name == "tenants" or not isinstance(value, list) or isinstance(config.get(name), list):
            return value
        has_text = any(str(one).strip() for one in value)
        return value if has_text else None

    def _connection_option(self, name: str) -> Any:
        """Return an option of the connection, rendered if the file has a template (a lookup of the
        secret).
        """
        value = self.get_option(name)
        # Ansible makes of an empty text, which means unset, the directory that a path in the same
        # place is relative to.
        if name in _FILES and value in (os.getcwd(), os.path.dirname(constants.CONFIG_FILE or "")):
            return None
        if has_template(value):
            return self.templar.template(value)
        return value

    def _is_young(self, sync: InventorySync) -> bool:
        """Return whether a sync from the cache may be shown without a request.

        A `cache_timeout` of 0 sets no limit, as in Ansible. A sync that lacks a site may not be
        shown: the site is read again each time.
        """
        if not sync.is_complete:
            return False
        limit = float(self.get_option("cache_timeout") or 0)
        if not limit:
            return True
        return sync.age(time.time()) <= limit

    def _cached(self, path: str, identity: str) -> InventorySync | None:
        """Return the cached sync of exactly these options, of any age, or None."""
        if not self._caches:
            return None
        try:
            found = self._cache[self.get_cache_key(path)]
        except KeyError:
            return None
        except Exception as error:
            self._warn([f"the inventory cache cannot be read and is ignored: {_one_line(error)}"])
            return None
        if not isinstance(found, dict) or found.get("identity") != identity:
            return None
        return InventorySync.from_cache(found.get("sync", ""), time.time())

    def _is_wanted(self, options: InventoryOptions, guest: InventoryGuest) -> tuple[bool, str]:
        """Return whether all filters are true, and why that could not be decided."""
        wanted = options.expressions
        variables = guest.variables
        if wanted.filters and options.compatible_with:
            variables = listed_facts(guest)
        for expression in wanted.filters:
            try:
                answer = str(self._compose(expression, variables)).strip().lower()
                why = (
                    ""
                    if answer in ("true", "false")
                    else f"{answer[:40]!r} is neither true nor false"
                )
            except Exception as error:
                answer, why = "", _one_line(error)
            if why and wanted.strict:
                raise AnsibleParserError(
                    f"Could not decide the filter {expression!r} for the host"
                    f" {guest.key.lstrip('/')}: {why}"
                )
            if answer != "true":
                return False, f"{expression}: {why}" if why else ""
        return True, ""

    def _populate(
        self, sync: InventorySync, options: InventoryOptions, connection: Mapping[str, Any]
    ) -> None:
        """Make hosts, variables and groups."""
        known = list(sync.known)
        if options.fetch:
            known = [_detailed(guest, sync, options) for guest in known]
        if options.guest_connections:
            known = [_connected(guest, options, connection) for guest in known]
        # Names also for guests that are not shown, so that no name changes while a site is dead.
        names, warnings = unique_names(
            known, [self._wanted_name(guest, options) for guest in known]
        )
        guests = known[: len(sync.guests)]
        names = names[: len(guests)]
        groups, more = group_names(
            guests, options.group_by, to_safe_group_name, options.tenant_prefix
        )
        self._warn(
            [*shortened(warnings, "names like these"), *shortened(more, "groups like these")]
        )
        if options.compatible_with:
            guests, groups = self._compatible(guests, groups)
            if NODE in options.kinds:
                self.inventory.add_group(GROUP_OF_NODES)
        for group in sorted({group for found in groups for group in found}):
            self.inventory.add_group(group)
        mark = TrustMarker()
        for guest, name, found in zip(guests, names, groups, strict=True):
            self._add(mark(guest.variables), name, found, options.expressions, mark)

    def _compatible(
        self, guests: list[InventoryGuest], groups: list[list[str]]
    ) -> tuple[list[InventoryGuest], list[list[str]]]:
        """Return the guests with the variables, and the groups, of the other plugin added."""
        for group in COMMON_GROUPS:
            self.inventory.add_group(group)
        more = [[*found, *groups_of(guest)] for guest, found in zip(guests, groups, strict=True)]
        return [replace(guest, variables=all_facts(guest)) for guest in guests], more

    def _add(
        self,
        variables: dict[str, Any],
        name: str,
        groups: list[str],
        wanted: JinjaExpressions,
        mark: TrustMarker,
    ) -> None:
        self.inventory.add_host(name)
        # The inventory's own method walks through each value to mark its origin. For thousands of
        # hosts that takes longer than everything else here.
        self.inventory.hosts[name].vars.update(variables)
        for group in groups:
            # add_child would take a group of the host's name instead
            self.inventory.add_host(name, group)
        address = self._ansible_host(wanted, variables, name, mark)
        if address:
            self.inventory.hosts[name].vars["ansible_host"] = address
        if wanted.compose or wanted.groups or wanted.keyed_groups:
            variables = {**variables, "inventory_hostname": name}
            self._set_composite_vars(wanted.compose, variables, name, strict=wanted.strict)
            self._add_to_composed_groups(wanted, variables, name)
            self._add_host_to_keyed_groups(
                wanted.keyed_groups, variables, name, strict=wanted.strict
            )

    def _add_to_composed_groups(
        self, wanted: JinjaExpressions, variables: dict[str, Any], name: str
    ) -> None:
        whole = self.inventory
        self.inventory = _HostsAsChildren(whole)
        try:
            self._add_host_to_composed_groups(wanted.groups, variables, name, strict=wanted.strict)
        finally:
            self.inventory = whole

    def _ansible_host(
        self, wanted: JinjaExpressions, variables: dict[str, Any], name: str, mark: TrustMarker
    ) -> Any:
        if wanted.ansible_host == ADDRESS:  # without the cost of a template for each host
            return variables.get("proxmox_address")
        if not wanted.ansible_host.strip():
            return None
        try:
            return mark(self._compose(wanted.ansible_host, variables))
        except Exception as error:
            if wanted.strict:
                raise AnsibleError(
                    f"Could not set ansible_host for host {name}: {_one_line(error)}"
                ) from None
            return None

    def _wanted_name(self, guest: InventoryGuest, options: InventoryOptions) -> str:
        """Return the first preferred name that the guest has, or an empty text."""
        for kind in options.hostnames:
            if kind in _PLAIN_NAMES:
                name = plain_name(guest, kind)
            elif kind == "address":
                name = guest.variables.get("proxmox_address") or ""
            else:
                try:
                    name = str(self._compose(kind, guest.variables) or "")
                except Exception as error:
                    if options.expressions.strict:
                        raise AnsibleError(
                            f"Could not name the host {guest.key.lstrip('/')}: {_one_line(error)}"
                        ) from None
                    name = ""
            if name:
                return name
        return ""

    def _warn(self, warnings: list[str]) -> None:
        for warning in warnings:
            self.display.warning(f"pve.fleet.proxmox: {warning}")


def _detailed(
    guest: InventoryGuest, sync: InventorySync, options: InventoryOptions
) -> InventoryGuest:
    details = sync.details.get(guest.key, {})
    return guest.with_variables(
        detail_variables(guest.kind, details, options.fetch, options.addresses)
    )


def _connected(
    guest: InventoryGuest, options: InventoryOptions, connection: Mapping[str, Any]
) -> InventoryGuest:
    return guest.with_variables(connection_variables(guest, connection, options.tenant_prefix))


class _HostsAsChildren:
    """The inventory as constructed groups see it: they call `add_child`, which takes a group if
    there is one of the host's name.

    A VM called `web` in a group called `web` would then end the inventory, and in a group of
    another name bring all hosts of the group `web` into it, other tenants' hosts too.
    """

    def __init__(self, inventory: Any) -> None:
        self._inventory = inventory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inventory, name)

    def add_child(self, group: str, host: str) -> None:
        self._inventory.add_host(host, group)


@contextmanager
def _private_directories() -> Iterator[None]:
    """Let Ansible create the directory of a cache for this user alone: its files are readable by
    everyone.

    An existing directory keeps its mode, because users may share it.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _is_meant_for_us(path: str) -> bool:
    """Return whether a YAML file names this plugin."""
    if not path.endswith((".yml", ".yaml")):
        return False
    try:
        with open(path, encoding="utf-8") as stream:
            return _OUR_NAME.search(stream.read(4096)) is not None
    except (OSError, UnicodeDecodeError):
        return False


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
