# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options of the inventory plugin, apart from the connection."""

from __future__ import annotations


class ModuleDocFragment:
    """The fragment `pve.fleet.inventory`."""

    DOCUMENTATION = r"""
options:
  tenant:
    description:
      - Show the guests of this tenant only.
      - A guest belongs to a tenant when exactly one of its tags is O(tenant_prefix) followed by the
        name of the tenant, and nothing more. A guest without such a tag, or with two, belongs to no
        tenant and is left out.
      - Mutually exclusive with O(tenants).
      - Left out, the guests of every tenant are shown, so it is an error when it is given without a
        value, also in the environment.
      - Environment variable E(PROXMOX_TENANT).
    type: str
    ini: [{section: inventory_proxmox, key: tenant}]
  tenants:
    description:
      - Show the guests of these tenants only. An empty list or variable is an error.
      - Environment variable E(PROXMOX_TENANTS), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: tenants}]
  tenant_prefix:
    description:
      - How the tag of a tenant begins. The default is V(tenant_).
      - Environment variable E(PROXMOX_TENANT_PREFIX).
    type: str
    ini: [{section: inventory_proxmox, key: tenant_prefix}]
  kinds:
    description:
      - The kinds of hosts, any of V(vm), V(container) and V(node). The default is V(vm) and
        V(container), all of them from the same request.
      - V(node) adds the nodes of Proxmox VE themselves. They belong to no tenant, so O(tenant) and
        O(tenants) leave them out, and they are only in the groups C(kind_node), C(status_STATUS)
        and C(site_SITE).
      - With O(fetch=addresses) one more request to each cluster reads the addresses of the nodes,
        for which the login needs Sys.Audit on C(/).
      - Environment variable E(PROXMOX_INVENTORY_KINDS), separated by commas or as JSON.
    type: list
    elements: str
    version_added: 1.0.0
    ini: [{section: inventory_proxmox, key: kinds}]
  guest_connections:
    description:
      - Whether tasks reach the guests without a network. VMs get P(pve.fleet.agent#connection) as
        C(ansible_connection), containers P(pve.fleet.pct#connection), and both the variables that
        these plugins need - the place of the cluster as this file has it, and the tenant of the
        guest, so that it is refused after it was given to another tenant.
      - The credentials are never among the variables. The plugins read them from the environment,
        as this plugin does, or from C(ansible_pve_token_id) and C(ansible_pve_token_secret).
      - The default is V(false).
      - Environment variable E(PROXMOX_INVENTORY_GUEST_CONNECTIONS).
    type: bool
    version_added: 1.0.0
    ini: [{section: inventory_proxmox, key: guest_connections}]
  nodes:
    description:
      - Show the hosts on these nodes only.
      - Environment variable E(PROXMOX_INVENTORY_NODES), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: nodes}]
  pools:
    description:
      - Show the guests of these pools only.
      - Environment variable E(PROXMOX_INVENTORY_POOLS), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: pools}]
  statuses:
    description:
      - Show the hosts with one of these statuses only, for example V(running), V(stopped),
        V(unknown).
      - Environment variable E(PROXMOX_INVENTORY_STATUSES), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: statuses}]
  tags:
    description:
      - Show the guests with at least one of these tags only. Copies of drills are shown with the
        tag C(fleet-drill) only.
      - Environment variable E(PROXMOX_INVENTORY_TAGS), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: tags}]
  templates:
    description:
      - Whether templates are hosts too. The default is V(true); they are in the group C(template).
      - Environment variable E(PROXMOX_INVENTORY_TEMPLATES).
    type: bool
    ini: [{section: inventory_proxmox, key: templates}]
  filters:
    description:
      - A list of Jinja expressions. A host is shown when all of them are true.
      - They see the variables from the listing, before any detail is fetched.
      - A host for which an expression fails, or is neither true nor false, is left out, and a
        warning says so. With O(strict) the inventory fails.
      - Environment variable E(PROXMOX_INVENTORY_FILTERS), one expression or a list as JSON.
    type: raw
    ini: [{section: inventory_proxmox, key: filters}]
  group_by:
    description:
      - The groups to make, any of V(kind), V(tenant), V(tag), V(node), V(status), V(pool), V(site),
        V(template) and V(os). The default is all of them.
      - They are named C(kind_KIND), C(tenant_ID), C(tag_TAG), C(node_NODE), C(status_STATUS),
        C(pool_POOL), C(site_SITE), C(template) and C(os_TYPE), with characters that a group cannot
        have replaced. V(os) needs O(fetch=config).
      - The tag that names the tenant of a guest makes a group C(tag_TAG) only where there are no
        groups by tenant.
      - When two values would share a group because of such a replacement, a short hash keeps them
        apart.
      - Environment variable E(PROXMOX_INVENTORY_GROUP_BY), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: group_by}]
  compatible_with:
    description:
      - Adds the groups and facts of another inventory plugin to those of this one, so that what was
        written for it continues to work.
      - V(community.proxmox) adds the groups C(proxmox_all_qemu), C(proxmox_all_lxc),
        C(proxmox_all_running), C(proxmox_all_stopped), C(proxmox_all_templates),
        C(proxmox_NODE_qemu), C(proxmox_NODE_lxc), C(proxmox_pool_POOL), and with O(kinds=node)
        C(proxmox_nodes). It adds the facts C(proxmox_vmtype), C(proxmox_tags) as text,
        C(proxmox_status) as V(running) or V(stopped), and C(proxmox_qmpstatus) of VMs. With
        O(fetch=config) each option of the guest is a fact such as C(proxmox_net0), with
        O(fetch=snapshots) C(proxmox_snapshots) are names, and with O(fetch=addresses) there is
        C(proxmox_agent_interfaces), or C(proxmox_lxc_interfaces) of a container.
      - Expressions see these facts. O(filters) see those from the listing.
      - Environment variable E(PROXMOX_INVENTORY_COMPATIBLE_WITH).
    type: str
    version_added: 1.0.0
    ini: [{section: inventory_proxmox, key: compatible_with}]
  hostnames:
    description:
      - How a host is named; the first of these that gives a name is used. The default is V(name).
      - V(name) is the name of the host, V(vmid) is C(vm-VMID), C(ct-VMID) of a container,
        V(name_vmid) is C(NAME_VMID), V(site_name) is C(SITE_NAME), V(address) is the address from
        O(fetch=addresses). Anything else is a Jinja expression.
      - A guest that gets no name is C(vm-VMID) or C(ct-VMID). When several hosts, of whatever
        kinds, get the same name, each becomes C(NAME_VMID), and over several sites
        C(NAME_VMID_SITE) where needed; a node becomes C(NAME_node). They are never merged, and a
        warning says so. The same happens to a guest whose name means something else to Ansible or
        to a resolver, such as C(localhost) or C(127.1).
      - Environment variable E(PROXMOX_INVENTORY_HOSTNAMES), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: hostnames}]
  fetch:
    description:
      - What to ask each shown guest for, any of V(addresses), V(config) and V(snapshots). The
        default is nothing.
      - V(addresses) asks the guest agents of running VMs, and the nodes for the addresses of
        running containers. With V(config) too, a VM whose agent is off is not asked, and the
        addresses of cloud-init are used where the agent gives none, or the static addresses of a
        container that does not run.
      - What cannot be fetched leaves the host as it is, with the reason in C(proxmox_errors).
      - Environment variable E(PROXMOX_INVENTORY_FETCH), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: fetch}]
  fetch_workers:
    description:
      - How many requests for details are made at once. The default is V(10).
      - Environment variable E(PROXMOX_INVENTORY_FETCH_WORKERS).
    type: int
    ini: [{section: inventory_proxmox, key: fetch_workers}]
  fetch_timeout:
    description:
      - Seconds to wait for each detail. The default is V(5).
      - Environment variable E(PROXMOX_INVENTORY_FETCH_TIMEOUT).
    type: float
    ini: [{section: inventory_proxmox, key: fetch_timeout}]
  fetch_deadline:
    description:
      - Seconds for all details together, V(0) for no end. The default is V(120).
      - Environment variable E(PROXMOX_INVENTORY_FETCH_DEADLINE).
    type: float
    ini: [{section: inventory_proxmox, key: fetch_deadline}]
  fetch_max_age:
    description:
      - Seconds after which a detail from the cache is fetched again, though nothing tells that its
        guest has changed, V(0) for never. The default is V(3600). It needs O(cache).
      - A guest has changed when the listing shows another node, status, name, pool, lock or lack of
        it, other tags, CPUs, memory or disk size, or a restart. The listing shows no other change
        of a configuration, no snapshot and no new address, so this is how long one may go unseen.
        The details of different guests grow old at different times, from half of this time on.
      - With C(--flush-cache) everything is fetched again.
      - Environment variable E(PROXMOX_INVENTORY_FETCH_MAX_AGE).
    type: float
    ini: [{section: inventory_proxmox, key: fetch_max_age}]
  address_family:
    description:
      - The family of the chosen address, V(ipv4), V(ipv6) or V(any). The default is V(ipv4).
      - Environment variable E(PROXMOX_INVENTORY_ADDRESS_FAMILY).
    type: str
    ini: [{section: inventory_proxmox, key: address_family}]
  address_nics:
    description:
      - The NICs that the address may come from, in order of preference, by their name in the guest,
        their MAC address, or with O(fetch=config) by their name in Proxmox VE such as V(net0).
      - Environment variable E(PROXMOX_INVENTORY_ADDRESS_NICS), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: address_nics}]
  address_subnets:
    description:
      - The subnets that the address must be in, in order of preference.
      - Environment variable E(PROXMOX_INVENTORY_ADDRESS_SUBNETS), separated by commas or as JSON.
    type: list
    elements: str
    ini: [{section: inventory_proxmox, key: address_subnets}]
  ansible_host:
    description:
      - A Jinja expression for C(ansible_host). It is not set when the expression gives nothing, or
        when this is empty.
      - The default is C(proxmox_address | default('')).
      - Environment variable E(PROXMOX_INVENTORY_ANSIBLE_HOST).
    type: str
    ini: [{section: inventory_proxmox, key: ansible_host}]
  strict:
    description:
      - Whether an expression that fails makes the inventory fail. The default is V(false).
      - Environment variable E(PROXMOX_INVENTORY_STRICT).
    type: bool
    ini: [{section: inventory_proxmox, key: strict}]
  compose:
    description:
      - A dictionary of variables to add to each host, by their Jinja expressions.
      - Environment variable E(PROXMOX_INVENTORY_COMPOSE), as JSON.
    type: raw
    ini: [{section: inventory_proxmox, key: compose}]
  groups:
    description:
      - A dictionary of groups to make, by the Jinja condition for a host to be in it.
      - Environment variable E(PROXMOX_INVENTORY_GROUPS), as JSON.
    type: raw
    ini: [{section: inventory_proxmox, key: groups}]
  keyed_groups:
    description:
      - A list of groups to make from the values of an expression, each a dictionary with C(key) and
        optionally C(prefix), C(separator), C(parent_group), C(default_value) and
        C(trailing_separator), as in P(ansible.builtin.constructed#inventory).
      - Environment variable E(PROXMOX_INVENTORY_KEYED_GROUPS), as JSON.
    type: raw
    ini: [{section: inventory_proxmox, key: keyed_groups}]
  leading_separator:
    description:
      - Whether the name of a group of O(keyed_groups) without a prefix begins with the separator.
        The default is V(true).
      - Environment variable E(PROXMOX_INVENTORY_LEADING_SEPARATOR).
    type: bool
    ini: [{section: inventory_proxmox, key: leading_separator}]
  dead_site:
    description:
      - Whether a site that cannot be read makes the inventory fail (V(fail), the default), or is
        reported by a warning while the other sites are shown (V(report)). When no site can be read,
        the inventory fails. A site whose settings are incomplete counts as one that cannot be read.
      - Environment variable E(PROXMOX_INVENTORY_DEAD_SITE).
    type: str
    ini: [{section: inventory_proxmox, key: dead_site}]
  stale:
    description:
      - Whether the last good inventory of a site from the cache is shown, with a warning, when the
        site cannot be read (V(allow)) or not (V(refuse), the default). It needs O(cache).
      - A site that answers and refuses the credentials is an error all the same.
      - Environment variable E(PROXMOX_INVENTORY_STALE).
    type: str
    ini: [{section: inventory_proxmox, key: stale}]
"""
