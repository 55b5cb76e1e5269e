#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from tenant.yml: do not edit.

DOCUMENTATION = r"""
module: tenant
short_description: Manage tenants
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and removes all resources of a tenant in Proxmox VE. These are a pool, roles
    with the least privileges, a user or a group, an API token, the rights on the pool and on the
    objects that the tenant may use, and the registered tag.
  - The whole plan is made and checked before the first change. If a change still fails, C(done) in
    RV(error) lists the completed steps, and a second run completes the rest.
  - Rights that the roles of the tenant grant on other paths or to other users are removed. Rights
    by other roles are kept, and reported in a warning.
  - With O(state=absent), the VMs of the tenant are removed first. If one of them cannot be removed,
    all other parts are kept.
  - The caller needs the privileges of an administrator.
options:
  name:
    description:
      - Name of the tenant, as the tenant of its VMs. It can contain letters, digits, C(_) and C(-).
      - The roles of the tenant, its user and the tag of its VMs have the name C(tenant_NAME), see
        O(tenant_prefix).
    type: str
    required: true
  tenant_prefix:
    description: Prefix of the tags of tenants, see O(pve.fleet.vm#module:tenant_prefix).
    type: str
    default: tenant_
  state:
    description:
      - V(present) creates missing parts of the tenant, and updates settings that differ.
      - V(rotated) creates a new token for the tenant, and removes the token in use after the new
        token is verified. The next run completes an interrupted one.
      - V(absent) removes the tenant with its VMs and their disks. Run it in check mode first.
    type: str
    choices: [present, rotated, absent]
    default: present
  comment:
    description: Comment on the pool. By default, it is not changed. The comment on a pool that
      existed before is never changed.
    type: str
  pool:
    description: Pool of the VMs of the tenant. By default, it has the name of the tenant.
    type: str
  operations:
    description:
      - What the tenant may do with the VMs and containers in its pool. Its roles have exactly the
        privileges that M(pve.fleet.preflight_info) checks for the corresponding tasks.
      - V(read) is included in all others. V(operate) allows the tenant to start and stop VMs, to
        open consoles and to query guest agents. V(provision) allows it to create, clone, change,
        migrate and remove VMs and containers. V(snapshot) allows it to create and remove snapshots,
        and to roll back to them. V(images) allows it to download and upload files to
        O(image_storages). V(backup) allows it to list and create backups, and to remove backups of
        its own VMs, on O(storages).
    type: list
    elements: str
    choices: [read, operate, provision, snapshot, images, backup]
    default: [read, operate, provision, snapshot]
  templates:
    description:
      - Templates of VMs and containers that the tenant may clone, by name or VMID.
      - A name includes every version and copy with that name, except templates of other tenants.
        The next run adds versions that are published later.
    type: list
    elements: str
    default: []
  storages:
    description: Storages on which the tenant may create disks and, with V(backup) in O(operations),
      backups.
    type: list
    elements: str
    default: []
  image_storages:
    description:
      - Storages with files that the tenant may use with V(provision) in O(operations), such as
        container templates and ISOs. With V(images), it may also put files there.
      - Files on a storage in O(storages) can be used without an entry here.
    type: list
    elements: str
    default: []
  bridges:
    description: Bridges that the tenant may use, or VNets as V(ZONE/VNET). A bridge includes its
      VLANs. A single VLAN is written as V(localnetwork/vmbr0/120).
    type: list
    elements: str
    default: []
  networks:
    description:
      - Own networks of the tenant by name. Each becomes a VNet with the mark of the tenant in its
        alias, and the tenant gets C(SDN.Use) on it. The ID of the VNet is derived from the tenant
        and the name, see RV(tenant.networks).
      - Keys are C(zone), which must exist and makes the entry an own network, C(tag) or
        C(tag_range) (the first and the last tag of a range, from which the first free tag is used),
        C(subnet), C(gateway), C(snat), C(dhcp_ranges) and C(dhcp_dns_server) as in
        M(pve.fleet.sdn), and C(state), V(present) or V(absent). Options of a NIC, as in
        O(pve.fleet.vm#module:networks), apply to the NICs of guests.
      - An entry without C(zone) is a named network of O(pve.fleet.vm#module:networks). It is
        ignored here.
      - Networks that are not listed are kept. A VNet that a guest uses is not removed.
    type: dict
    default: {}
  isolation:
    description:
      - V(own) lets only guests of the tenant and of its O(peers) reach its guests on its networks.
        V(shared) lets guests of all tenants reach them. V(none) sets no firewall. It needs
        O(networks) with C(subnet).
      - V(own) and V(shared) create a security group. Guests on the networks get this group and
        filters of MAC and IP addresses when M(pve.fleet.vm), M(pve.fleet.container) or
        M(pve.fleet.vms) create or change them.
      - By default, V(own) with O(networks). Otherwise, nothing is changed.
    type: str
    choices: [own, shared, none]
  peers:
    description: Names of other tenants whose guests may reach the guests of this tenant. If such a
      tenant does not have networks yet, nothing is opened.
    type: list
    elements: str
    default: []
  nodes:
    description:
      - Nodes whose state the tenant may see, which is needed to place VMs by load.
      - On these nodes the tenant also sees whether another login is creating a guest. On others, a
        new guest whose VMID a hidden guest has gets another VMID after
        O(pve.fleet.vm#module:task_timeout) only.
      - Proxmox VE has no privilege for the use of a node. The site of the tenant limits the nodes
        of its VMs.
    type: list
    elements: str
    default: []
  owner:
    description:
      - User with its realm to which the token belongs. By default, C(tenant_NAME@pve), which is
        created without a password.
      - An existing user must be named here. The user and its other tokens are kept when the tenant
        is removed.
      - Several tenants can have the same owner. The token of each tenant then has the rights of all
        of them.
    type: str
  group:
    description: Group of users that gets the rights instead of the user, who becomes a member of
      it. It is created if it does not exist. A group that existed before is kept when the tenant is
      removed.
    type: str
  adopt:
    description:
      - Whether an existing pool, group, user, token, role or tag without the mark of the tenant in
        its comment belongs to the tenant. With O(state=present) they get the mark. With
        O(state=absent) they are removed. Run it in check mode first.
      - It applies to default names, and to comments that begin with C(Tenant NAME), which earlier
        versions wrote. It never applies to something that has the mark of another tenant.
    type: bool
    default: false
  members:
    description: Users that are also in O(group), such as people of the tenant. They must exist.
      Other members stay in the group.
    type: list
    elements: str
    default: []
  token:
    description: Name of the token of the tenant, without the user. A rotation alternates between
      this name and the same name with the suffix C(-2). By default, V(fleet), or C(fleet.NAME) if
      another tenant of the same O(owner) has it.
    type: str
  expire:
    description: When the token expires, as a date or a time such as V(2027-01-31), or V(never). By
      default, a new token expires after O(token_life), and an existing one is not changed. A token
      that never expires, or that expires in less than 14 days, causes a warning.
    type: str
  token_life:
    description:
      - Days for which a new token is valid, unless O(expire) is set. With O(state=rotated), the new
        token does not expire earlier than the token in use.
    type: int
    default: 90
  expires_within:
    description:
      - With O(state=rotated), a token is only rotated if it expires within this number of days, or
        if it never expires and O(expire=never) is not set. An interrupted rotation is always
        completed.
      - By default, the token is always rotated.
    type: int
  registered_tag:
    description:
      - Whether the tag of the tenant is registered. To set or remove a registered tag,
        C(Sys.Modify) on C(/) is needed.
      - By default, it is registered unless O(operations) contains V(provision), because such a
        tenant sets the tag on its own VMs.
    type: bool
  quota:
    description: Limits for all VMs of the tenant together, see O(pve.fleet.vm#module:quota).
      Proxmox VE has no quotas, so this module only warns if the tenant exceeds a limit.
    type: dict
  allow_privileged:
    description: Whether the tenant may have privileged containers, see
      O(pve.fleet.container#module:allow_privileged). With V(false), this module only warns about
      each existing one.
    type: bool
    default: true
  credentials_file:
    description:
      - File on the host that runs the module, to which the login of the tenant is written with mode
        0600. It has the format of O(sites_file), so every module and the inventory can use it.
      - The file is reserved before the token is created. If a run is interrupted in between, the
        next run completes it.
      - Anything but a regular file with the login of this tenant is refused. A file with wider
        permissions gets mode 0600. With O(state=absent), the file is removed last.
      - By default, a new login is returned as RV(credentials). Set C(no_log) on such a task.
    type: path
  vault_password:
    description:
      - Password with which O(credentials_file) is encrypted, as by C(ansible-vault). An existing
        plain file is encrypted with it. A wrong password is refused before the first write.
      - It needs the Python library C(cryptography).
    type: str
  old_token:
    description: With O(state=rotated), whether the former token is removed. Without
      O(credentials_file), it must be kept until the new login is handed over.
    type: str
    choices: [remove, keep]
    default: remove
  finish:
    description: With O(state=rotated), whether to only complete a rotation that kept the old token.
      The token in use is verified with a request, and the other one is removed.
    type: bool
    default: false
  current_token:
    description: With O(state=rotated), the name of the token in use if there are two tokens and
      O(credentials_file) does not identify it.
    type: str
  current_secret:
    description: Secret of O(current_token), for its verification.
    type: str
  strays:
    description:
      - With O(state=absent), what happens to guests that do not clearly belong to the tenant. These
        are VMs and containers with its tag outside of O(pool), in the pool without its tag, still
        being created for it, or with the tags of several tenants.
      - V(stop) removes nothing and names these guests. V(keep) keeps them, and removes them from
        the pool. V(remove) also removes the ones without another tenant's tag.
      - The same applies to tokens of its user without its mark. With V(keep), the user is also
        kept.
      - In a pool that existed before, or on which another tenant has rights, guests without its tag
        are ignored.
    type: str
    choices: [stop, keep, remove]
    default: stop
  confirm:
    description: With O(state=absent), the name of the tenant again. Without it, nothing is removed.
      Check mode does not need it.
    type: str
  protection:
    description: With O(state=absent), V(false) also removes protected VMs.
    type: bool
  allow_self:
    description: Whether the task may remove privileges of its own login, or delete its own token.
      With V(false), this is refused before the first write, and the message names the loss.
    type: bool
    default: false
extends_documentation_fragment:
  - pve.fleet.plan_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.tenant_info
  - module: pve.fleet.vms
  - module: pve.fleet.preflight_info
"""

EXAMPLES = r"""
- name: Create a tenant that provisions its own VMs
  pve.fleet.tenant:
    name: initech
    templates: [debian-13]
    storages: [ceph]
    bridges: [vmbr0]
    nodes: [pve1, pve2]
    token_life: 90
    credentials_file: "{{ playbook_dir }}/initech.sites.yml"

- name: Use the token of the tenant
  pve.fleet.vm:
    sites_file: "{{ playbook_dir }}/initech.sites.yml"
    name: app1
    tenant: initech
    pool: initech
    source: debian-13

- name: Rotate its token without an interruption
  pve.fleet.tenant:
    name: initech
    state: rotated
    credentials_file: "{{ playbook_dir }}/initech.sites.yml"

- name: Create a zone for the networks of tenants
  pve.fleet.sdn:
    zones:
      - {name: teams, type: vlan, bridge: vmbr0}

- name: Enable the firewall of the cluster
  pve.fleet.firewall:
    scope: cluster
    options: {enable: true}

- name: Create a tenant with a network of its own, which another tenant may reach
  pve.fleet.tenant:
    name: hooli
    networks:
      front: {zone: teams, tag_range: [1000, 1999], subnet: 10.1.0.0/24, gateway: 10.1.0.1}
    isolation: own
    peers: [initech]
    credentials_file: "{{ playbook_dir }}/hooli.sites.yml"

- name: Remove it with its VMs
  pve.fleet.tenant:
    name: initech
    state: absent
    confirm: initech
"""

RETURN = r"""
tenant:
  description: The tenant as it is afterwards, or in check mode as it would be. It is null if the
    tenant is removed.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: acme}
    tag: {description: The tag of its VMs., type: str, sample: tenant_acme}
    registered_tag: {description: Whether the tag is registered., type: bool, sample: false}
    pool: {description: The pool of its VMs., type: str, sample: acme}
    user: {description: The user of its token., type: str, sample: tenant_acme@pve}
    group: {description: 'The group that has the rights, null for the user.', type: str}
    token_id: {description: The full name of its token., type: str, sample: tenant_acme@pve!fleet}
    roles: {description: Privileges by role., type: dict, sample: {tenant_acme.template: [VM.Audit,
      VM.Clone]}}
    rights: {description: Roles by path., type: dict, sample: {/vms/9000: [tenant_acme.template]}}
    networks: {description: 'The own networks that the task lists, with the VNet, the zone, the tag
      and the subnet of each.', type: list, elements: dict, sample: [{name: front, vnet: tqpzjk5a,
      zone: teams, tag: 101, subnet: 10.1.0.0/24}]}
    isolation: {description: 'The isolation of its guests, null if the task lists no networks.',
      type: str, sample: own}
    security_group: {description: 'Name of its security group, null without one.', type: str,
      sample: tenant_acme}
    usage: {description: 'VMs, cores, and bytes of memory and boot disks.', type: dict, sample:
      {vms: 2, cores: 4, memory: 8589934592, disk: 42949672960}}
credentials:
  description:
    - The login of a token that was created in this run, as the content of a O(sites_file). It is
      null if no token was created, or if the login was written to O(credentials_file).
  returned: success
  type: dict
not_isolated:
  description:
    - VMIDs of guests that existed on a VNet of the tenant before its isolation, and that are not
      isolated yet. A warning names them. A task that lists their NICs with O(networks) isolates
      them.
    - It is empty if O(networks) lists no VNet, and with O(isolation=none).
  returned: with O(state=present)
  type: list
  elements: int
  sample: []
vms:
  description: With O(state=absent), the VMs and containers that are or would be removed.
  returned: success
  type: list
  elements: dict
  contains:
    kind: {description: 'Kind of the guest, V(vm) or V(container).', type: str, sample: vm}
    name: {description: Name of the VM., type: str, sample: web1}
    vmid: {description: VMID of the VM., type: int, sample: 15046}
    node: {description: Node of the VM., type: str, sample: pve1}
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: [+ pool 'acme', 'Plan: 1 to create']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create pool 'acme', Create role 'tenant_acme']
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: strays, status: null, path: null, upid: null,
    retryable: false, tries: null, done: []}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.tenant import (
    tenant_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.run import run

ENTRY = ModuleEntry(
    run,
    tenant_spec(),
    returned_secrets=("credentials",),
    plans=True,
    plan_subject="name",
    name="tenant",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
