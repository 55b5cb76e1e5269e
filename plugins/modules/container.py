#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from container.yml: do not edit.

DOCUMENTATION = r"""
module: container
short_description: Manage a container
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, updates and removes a container, and changes its power state. Only options that the
    task sets are changed, and a container that already matches them is not changed. Check mode,
    diff mode and the real run use the same plan, and check mode only reads.
  - 'A first container: C(pve.fleet.container: {name: proxy1, source: debian-13-standard,
    memory: 1G, state: started}). Only O(name) and O(source) are required. With several tenants, set
    O(tenant) in every task.'
  - The guide C(docs/containers.md) of this collection explains containers by task.
  - An empty text removes an option, such as O(cores), so the default of Proxmox VE applies again.
options:
  tenant:
    description:
      - The tenant of the container. A container without exactly the tag O(tenant_prefix) +
        O(tenant) is refused before the first write.
      - By default, containers of all tenants can be changed, so an empty value is an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  node:
    description:
      - Node of the container. It takes precedence over O(placement). An existing container on
        another node is migrated there unless O(migrate=false), and restarted if it is running.
      - By default, an existing container stays on its node. A new container is created on the
        default node of the connection, or else on the node that O(placement) chooses.
    type: str
  cores:
    description:
      - Cores that the container can use, 1 to 8192. An empty text removes the limit.
      - By default, a new container can use all cores of its node.
    type: raw
  cpulimit:
    description: Limit of CPU usage in CPUs. V(0) means no limit.
    type: float
  cpuunits:
    description: CPU weight relative to other guests.
    type: int
  memory:
    description: Memory such as V(2G) or V(512M), at least 16 MiB. A bare number is MiB. A new
      container gets 512 MiB.
    type: raw
  swap:
    description: Swap such as V(512M). V(0) means no swap. A bare number is MiB. A new container
      gets 512 MiB.
    type: raw
  rootfs:
    description: The volume of the root file system. Settings that are not listed are not changed.
    type: dict
    suboptions:
      size:
        description:
          - Size such as V(8G); a bare number is GiB. A volume can only grow. A smaller size is
            refused before the first write.
          - A new volume without it gets 4 GiB.
        type: raw
      storage:
        description:
          - Storage of the volume. A volume on another storage is moved, for which the container
            must be stopped.
          - A new volume without it is on O(default_storage).
        type: str
      bwlimit:
        description: Bandwidth limit in KiB/s of a move to another storage, V(0) for none. By
          default, the limit of the storages or of the cluster, which a token without
          C(Datastore.Allocate) can only lower.
        type: int
      storage_class:
        description: Name of an entry of O(storage_classes).
        type: str
      readonly:
        description: Whether the volume is read-only.
        type: bool
      acl:
        description: Whether ACLs are enabled. By default, the file system decides.
        type: bool
      quota:
        description: Whether user quotas are enabled within the container. Not supported for
          unprivileged containers.
        type: bool
      replicate:
        description: Whether storage replication includes the volume.
        type: bool
      shared:
        description: Whether a path of the node, instead of a volume, is available on all nodes.
        type: bool
      mount_options:
        description:
          - Mount options such as V(noatime) or V(discard). An empty list removes them.
        type: list
        elements: str
      options:
        description: Any other sub-key by PVE's own name; null removes it.
        type: dict
  mounts:
    description: Mount points, each with a volume. Mount points that are not listed are not changed.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - The slot, such as V(mp0). By default, the position in the list.
          - V(unused0) and so on are detached volumes; O(mounts[].state=absent) destroys them.
        type: str
      path:
        description: Path of the mount point in the container, such as V(/var/lib/data). Required
          for a new mount point.
        type: str
      volume:
        description:
          - An existing volume to mount instead of a new one, or a path of the node such as
            V(/srv/data) or V(/dev/sdb1).
          - A volume that another guest uses is refused, unless O(mounts[].shared=true) and the
            guest belongs to the same tenant.
          - PVE lets only root@pam with a password mount a path. With an API token, it is refused
            before the first write.
        type: str
      size:
        description:
          - Size such as V(8G); a bare number is GiB. A volume can only grow. A smaller size is
            refused before the first write.
          - A new volume without it gets 4 GiB.
        type: raw
      storage:
        description:
          - Storage of the volume. A volume on another storage is moved, for which the container
            must be stopped.
          - A new volume without it is on O(default_storage).
        type: str
      bwlimit:
        description: Bandwidth limit in KiB/s of a move to another storage, V(0) for none. By
          default, the limit of the storages or of the cluster, which a token without
          C(Datastore.Allocate) can only lower.
        type: int
      storage_class:
        description: Name of an entry of O(storage_classes).
        type: str
      readonly:
        description: Whether the volume is read-only.
        type: bool
      backup:
        description: Whether backups include the volume. By default, PVE excludes it.
        type: bool
      acl:
        description: Whether ACLs are enabled. By default, the file system decides.
        type: bool
      quota:
        description: Whether user quotas are enabled within the container. Not supported for
          unprivileged containers.
        type: bool
      replicate:
        description: Whether storage replication includes the volume.
        type: bool
      shared:
        description: Whether a path of the node, instead of a volume, is available on all nodes.
        type: bool
      mount_options:
        description:
          - Mount options such as V(noatime) or V(discard). An empty list removes them.
        type: list
        elements: str
      options:
        description: Any other sub-key by PVE's own name; null removes it.
        type: dict
      target_vmid:
        description: VMID of the container on the same node that gets a moved volume.
        type: int
      target_slot:
        description: Name of the moved volume there. By default, O(mounts[].name).
        type: str
      state:
        description: V(detached) keeps the volume as an unused volume, V(absent) destroys it,
          V(moved) gives it to O(mounts[].target_vmid). V(unused0) stays unused there.
        type: str
        choices: [present, detached, absent, moved]
        default: present
  mounts_exact:
    description: Whether mount points that O(mounts) does not list are detached. Their volumes are
      kept as unused volumes.
    type: bool
    default: false
  nics:
    description: Network interfaces. Interfaces that are not listed are not changed.
    type: list
    elements: dict
    suboptions:
      name:
        description: The slot, such as V(net0). By default, the position in the list.
        type: str
      interface:
        description: Name of the interface within the container. By default, a new interface in
          V(net0) is V(eth0), and so on.
        type: str
      network:
        description: Name of an entry of O(networks), or the name of a bridge that starts with
          C(vmbr).
        type: str
      bridge:
        description: Bridge or VNet; a new interface without O(nics[].network) gets C(vmbr0). It
          must exist on the node.
        type: str
      vlan:
        description: VLAN tag, 1 to 4094. V(0) removes it.
        type: int
      trunks:
        description: VLANs that are passed to the guest.
        type: list
        elements: str
      mac:
        description: MAC address. By default, the interface keeps its address.
        type: str
      firewall:
        description: Whether PVE's firewall filters the interface.
        type: bool
      link_down:
        description: Whether the link is disconnected.
        type: bool
      mtu:
        description: MTU, 64 to 65535.
        type: int
      rate:
        description: Bandwidth limit in MB/s.
        type: float
      host_managed:
        description: Whether the node configures the addresses, for images without a network
          manager. Needs PVE 9.1.
        type: bool
      ip:
        description: IPv4 address with prefix, V(dhcp) or V(manual). An empty text removes it.
        type: str
      gateway:
        description: IPv4 gateway. An empty text removes it.
        type: str
      ip6:
        description: IPv6 address with prefix, V(dhcp), V(auto) or V(manual). An empty text removes
          it.
        type: str
      gateway6:
        description: IPv6 gateway. An empty text removes it.
        type: str
      options:
        description: Any other sub-key by PVE's own name; null removes it.
        type: dict
      state:
        description: V(absent) removes the interface.
        type: str
        choices: [present, absent]
        default: present
  nics_exact:
    description:
      - Whether network interfaces that O(nics) does not list are removed. Without O(nics), no
        interface is removed. With an empty list, all interfaces are removed.
    type: bool
    default: false
  nameservers:
    description: Addresses of name servers. With an empty list, the name servers of the node apply.
    type: list
    elements: str
  search_domain:
    description: Search domain.
    type: str
  features:
    description:
      - Features of the kernel for the container. Features that are not listed are not changed.
      - With an API token, PVE accepts only O(features.nesting) of an unprivileged container. Other
        features are refused before the first write.
    type: dict
    suboptions:
      nesting:
        description: Whether containers can run in the container, and systemd can isolate services.
        type: bool
      keyctl:
        description: Whether an unprivileged container can use C(keyctl()), which Docker needs.
        type: bool
      fuse:
        description: Whether the container can mount FUSE file systems.
        type: bool
      mknod:
        description: Whether an unprivileged container can create some devices.
        type: bool
      mount:
        description: File systems that the container can mount, such as V(nfs) or V(cifs). An empty
          list removes them.
        type: list
        elements: str
      force_rw_sys:
        description: Whether C(/sys) is writable in an unprivileged container.
        type: bool
  devices:
    description:
      - Devices of the node for the container. Devices that are not listed are not changed.
      - PVE lets only root@pam with a password change them.
    type: list
    elements: dict
    suboptions:
      name:
        description: The slot, such as V(dev0). By default, the position in the list.
        type: str
      path:
        description: Path of the device on the node, such as V(/dev/dri/renderD128).
        type: str
      mode:
        description: Access mode in the container, such as V("0660").
        type: str
      uid:
        description: User ID of the device in the container.
        type: int
      gid:
        description: Group ID of the device in the container.
        type: int
      deny_write:
        description: Whether the container has only read access to the device.
        type: bool
      state:
        description: V(absent) removes the device.
        type: str
        choices: [present, absent]
        default: present
  ostype:
    description:
      - Distribution for which PVE configures the container. With V(unmanaged), PVE does not
        configure it.
      - By default, PVE detects it at creation.
    type: str
  arch:
    description: Architecture, such as V(amd64) or V(arm64). By default, the architecture of the
      template.
    type: str
  timezone:
    description: Time zone such as V(Europe/Vienna), or V(host) for the time zone of the node.
    type: str
  console:
    description: Whether the container has a console device.
    type: bool
  tty:
    description: Number of terminals, 0 to 6.
    type: int
  cmode:
    description: 'What the console shows: V(tty) a login, V(console) /dev/console, V(shell) a shell
      without login.'
    type: str
  entrypoint:
    description: Command that the container starts instead of V(/sbin/init). Needs PVE 9.1.
    type: str
  environment:
    description:
      - Environment variables of the first process. Variables that are not listed are not changed,
        and null removes a variable. Needs PVE 9.1.
      - Results and diffs contain the names, not the values.
    type: dict
  hookscript:
    description: Volume of a hook script. PVE lets only root@pam with a password change it.
    type: str
  debug:
    description: Whether the start of the container is logged at debug level.
    type: bool
  onboot:
    description: Whether the container starts when its node boots.
    type: bool
  startup:
    description: Start order and delays, such as V(order=2,up=30). Proxmox VE requires C(Sys.Modify)
      on C(/).
    type: str
  protection:
    description: Whether PVE refuses to remove the container and to change its volumes.
    type: bool
  tags:
    description:
      - Tags of the container. Other tags are kept unless O(tags_exact=true).
      - A clone does not inherit the tags of its template, except the tag of a tenant.
    type: list
    elements: str
  tags_exact:
    description: Whether tags that are not in O(tags) are removed. A tenant's tag is never removed.
    type: bool
    default: false
  description:
    description: Notes. An empty text removes them.
    type: str
  options:
    description:
      - Any other option of PVE by its own name, as text or as a dictionary of its sub-keys. Only
        listed sub-keys are compared, and null removes the option.
      - An option that Proxmox VE 9.2 does not know is refused before any write, unless the server
        is newer.
    type: dict
  networks:
    description:
      - Named networks for O(nics[].network), as in M(pve.fleet.vm).
    type: dict
    default: {}
  storage_classes:
    description:
      - Named storages for O(rootfs.storage_class) and O(mounts[].storage_class), as in
        M(pve.fleet.vm). Settings that only disks of VMs have are ignored.
      - An entry with C(type) refuses a storage that allocates volumes the other way before any
        write. On ZFS, the volumes of containers are always thin.
    type: dict
    default: {}
  default_storage:
    description: Storage of new volumes without a storage.
    type: str
    default: local-lvm
  vmid_choice:
    description:
      - How the VMID of a new container is chosen if none is set. V(by_name) derives it from tenant
        and name, so a container that is created again gets its former VMID, and concurrent runs
        create only one container.
      - V(lowest) chooses the lowest free VMID, with which concurrent runs can create two
        containers.
    type: str
    choices: [by_name, lowest]
    default: by_name
  vmid_range:
    description: First and last VMID for new containers whose VMID is not set.
    type: list
    elements: int
    default: [10000, 99999]
  vmid_bands:
    description: The other bands of VMIDs, each with its first and last VMID.
    type: dict
    suboptions:
      template:
        description: VMIDs of templates. By default, V([100, 999]).
        type: list
        elements: int
      manual:
        description: VMIDs that users choose. By default, V([1000, 9999]).
        type: list
        elements: int
      reserved:
        description: VMIDs reserved for others. By default, V([100000, 999999999]).
        type: list
        elements: int
  placement:
    description:
      - How the node of a new container, or with O(rebalance=true) of an existing container, is
        chosen among the online nodes with the storages and bridges that it needs.
      - The result and the error show why each node was selected or refused.
    type: dict
    suboptions:
      nodes:
        description: Preferred nodes, the best first. Other nodes are used only if none of these
          fits.
        type: list
        elements: str
      exclude:
        description: Nodes that are never used.
        type: list
        elements: str
      strategy:
        description:
          - 'Selection of a suitable node: V(least_used) the one with the smallest share of its
            memory allocated to containers, V(round_robin) with the fewest containers, V(first) the
            first of O(placement.nodes) or by name, V(random) one that O(placement.seed) selects.'
        type: str
        choices: [least_used, round_robin, first, random]
        default: least_used
      seed:
        description: Seed for O(placement.strategy=random), any text.
        type: str
      max_vms_per_node:
        description:
          - Maximum number of containers on the node, including this container.
          - Either one number, or a dictionary of numbers by node. A node that is not listed has no
            limit.
        type: raw
      min_free_memory:
        description: Memory that must remain free on the node when this container uses all of its
          memory. A bare number is MiB.
        type: raw
      cpu_overcommit:
        description: Maximum ratio of allocated cores to the cores of the node, such as V(4).
        type: float
      memory_overcommit:
        description:
          - Maximum ratio of allocated memory to the memory of the node, such as V(1.0) for no
            overcommitment.
          - By default, a new container that is started is created on a node with enough free memory
            for it.
        type: float
      storage_overcommit:
        description:
          - Maximum ratio of the bytes of new and growing disks to the free bytes of a storage. It
            also applies with O(node).
          - A storage that allocates whole disks at creation, such as C(lvm), must have all of these
            bytes free.
        type: float
        default: 10.0
      affinity:
        description:
          - Other containers to place on the same node as this one, each entry a tag, or C(name:)
            and a shell pattern for names, as in V(name:db-*).
          - With O(tenant), only containers of that tenant count. If no such container exists yet,
            any node is suitable.
        type: list
        elements: str
      anti_affinity:
        description: Other containers to place on nodes other than the node of this container, in
          the form of O(placement.affinity).
        type: list
        elements: str
      affinity_policy:
        description: Whether affinity and anti-affinity are required, or only preferences among
          suitable nodes.
        type: str
        choices: [required, preferred]
        default: required
      keep:
        description:
          - Whether HA rules maintain affinity and anti-affinity afterwards, in M(pve.fleet.vms)
            only; see C(docs/ha.md).
          - V(false) removes the rules that it created. By default, rules are neither read nor
            changed.
        type: bool
  rebalance:
    description:
      - Whether an existing container moves when its node no longer meets the constraints of
        O(placement), whatever it prefers.
    type: bool
    default: false
  shared_sources:
    description:
      - Names and VMIDs of containers and templates that every tenant may clone.
      - With O(tenant), other sources must have this tenant's tag, or be templates without the tag
        of a tenant.
    type: list
    elements: str
  quota:
    description:
      - Limits for the O(tenant). A task that would exceed a limit fails before its first write. If
        a limit is already exceeded, only a further increase is refused.
    type: dict
    suboptions:
      vms:
        description: Number of containers, running or not.
        type: int
      cores:
        description: Sum of their cores.
        type: int
      memory:
        description: Sum of their memory. A bare number is MiB.
        type: raw
      disk:
        description: Sum of all their disks, including detached disks and disks of templates. A bare
          number is GiB.
        type: raw
  quotas:
    description: Quotas by tenant, each a dictionary like O(quota). The entry of O(tenant) applies
      if O(quota) is not set.
    type: dict
    default: {}
  allowed:
    description:
      - What guests of the O(tenant) may use. A task that adds anything else to a guest fails before
        its first write; what a guest has already can stay.
      - Each key is a list that is not empty; a key that is left out allows everything.
    type: dict
    suboptions:
      storages:
        description: Storages of disks.
        type: list
        elements: str
      networks:
        description: Bridges, and networks of the tenant.
        type: list
        elements: str
      cpu_types:
        description: CPU types of containers. A container that names none has V(kvm64).
        type: list
        elements: str
      classes:
        description: Classes, in the modules that have them.
        type: list
        elements: str
  allow_privileged:
    description:
      - Whether a container that the task creates or adopts can be privileged. With V(false), a
        privileged container is refused before the first write, also if only its source is a
        privileged container or archive.
      - A privileged container that the tenant already has can still be changed and removed. The
        task then shows a warning, and M(pve.fleet.audit_info) reports the container.
    type: bool
    default: true
  migrate:
    description: Whether a container on a node other than O(node) is migrated. With V(false), this
      is an error.
    type: bool
    default: true
  reboot:
    description:
      - Whether a running container is rebooted at the end of the task, to apply options that need a
        restart.
      - V(if_needed) reboots only if options are pending, V(always) reboots in every run.
    type: str
    choices: [never, if_needed, always]
    default: never
  graceful:
    description: Whether O(state=absent) shuts a running container down instead of stopping it at
      once.
    type: bool
    default: false
  force:
    description:
      - Whether a guest that has not shut down after O(shutdown_timeout) is stopped by force. With
        V(false), this is an error.
      - A reboot is then a shutdown and a start, because Proxmox VE cannot force a reboot.
    type: bool
    default: false
  shutdown_timeout:
    description:
      - Seconds that a guest may take to shut down, also for a reboot. V(0) stops it at once.
      - Environment variable E(PROXMOX_SHUTDOWN_TIMEOUT).
    type: int
    default: 60
  task_timeout:
    description:
      - Seconds to wait for each task of PVE. The task itself continues after that.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
  quota_sites:
    description:
      - Names of the sites of the O(tenant), also that of the task, if O(quota) is its quota over
        all of them. By default, it is the quota at the site of the task.
    type: list
    elements: str
  site_quotas:
    description:
      - Quotas of the O(tenant) by site of O(quota_sites), each a dictionary like O(quota). A site
        that does not answer counts with its quota. Without one, a container that is new or grows is
        refused.
    type: dict
  name:
    description:
      - Name of the container, a DNS name, which is its hostname. With O(vmid), a different name
        renames the container.
      - Required for a new container unless O(vmid) is set.
    type: str
  vmid:
    description:
      - VMID of the container, 100 to 999999999.
      - By default, a new container gets a VMID of O(vmid_range), and a new template gets one of
        O(vmid_bands.template), see O(vmid_choice).
      - A new container whose VMID is in neither O(vmid_bands.manual) nor O(vmid_bands.template) is
        created with a warning.
    type: int
  adopt:
    description:
      - With O(tenant), whether to take over a container without a tenant's tag. Otherwise such a
        container is refused.
      - A container with the tag of another tenant is always refused.
    type: bool
    default: false
  create:
    description:
      - Whether the task creates the container if it does not exist. With V(false), a missing
        container is an error, such as a misspelt name in a task that only changes containers.
    type: bool
    default: true
  pool:
    description:
      - The resource pool of the container. It must exist.
      - An empty text removes the container from its pool, which needs the privilege Pool.Allocate
        on that pool.
    type: str
  state:
    description:
      - V(present) ensures that the container exists with these options and does not change its
        power state. V(started) and V(stopped) also start or stop it, and V(absent) removes it with
        its volumes.
      - V(restarted) reboots it, and V(template) converts it into a template.
    type: str
    choices: [present, started, stopped, restarted, template, absent]
    default: present
  source:
    description:
      - 'Source of a new container: the name of a container template such as V(debian-13-standard),
        whose newest version on the storages of the node is used; a volume such as
        V(local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst), which can be an OCI image; the name
        or VMID of a container to clone; or the volume of a backup.'
      - A name with a version, such as V(web@2026.11.20), selects that version of an image. Without
        a version, the newest version on the node of the container is used. A node without the image
        is not chosen; if O(node) sets it, it is refused.
      - An existing container is not changed.
    type: str
  snapshot:
    description: Snapshot of the container in O(source) to clone. By default, its current state is
      cloned.
    type: str
  full:
    description:
      - Whether a clone copies the volumes (V(true)) or is linked to its template or O(snapshot)
        (V(false)).
      - By default, a clone of a template is linked if PVE supports that, and any other clone is
        full.
      - Only Ceph (rbd), thin LVM, and raw images on Btrfs can link to a snapshot.
    type: bool
  unprivileged:
    description:
      - Whether the container has its own user IDs, so its root user is not the root user of the
        node.
      - It is fixed at creation, and a later difference is refused. By default, a new container is
        unprivileged.
    type: bool
  root_password:
    description:
      - Password of the root user of a new container, at least 5 characters. It is set only at
        creation.
      - PVE never returns a password, so a later difference is not a change.
    type: str
  ssh_keys:
    description:
      - Public SSH keys of the root user of a new container. They are set only at creation.
      - PVE does not return them, so a later difference is not a change.
    type: list
    elements: str
  wait_for:
    description:
      - What the task waits for once the container runs. V(address) waits until it has an address
        that O(address_family), O(address_nics) and O(address_subnets) allow.
      - Check mode does not wait.
    type: str
    choices: [none, address]
    default: none
  wait_timeout:
    description:
      - Seconds to wait for O(wait_for).
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
extends_documentation_fragment:
  - pve.fleet.container_options.guest
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso: [{module: pve.fleet.container_info}, {module: pve.fleet.vm}]
"""

EXAMPLES = r"""
- name: Create a container of tenant acme from the newest Debian template
  pve.fleet.container:
    name: proxy1
    tenant: acme
    source: debian-13-standard
    cores: 2
    memory: 1G
    rootfs:
      size: 8G
    nics:
      - bridge: vmbr0
        ip: dhcp
    state: started

- name: Increase its memory and add a volume for its data
  pve.fleet.container:
    name: proxy1
    tenant: acme
    memory: 2G
    mounts:
      - path: /var/lib/data
        size: 10G

- name: Shut it down and remove it with its volumes
  pve.fleet.container:
    name: proxy1
    tenant: acme
    state: absent
    graceful: true
"""

RETURN = r"""
site:
  description: Name of the site of the task, otherwise the host of the endpoint.
  returned: success
  type: str
  sample: vienna
container:
  description:
    - The container after the task, with the keys of RV(pve.fleet.container_info#module:containers).
      In check mode, the current container, or only name, node, VMID, C(phase) and C(checked) of a
      container that would be created.
    - Null if the container does not exist.
  returned: success
  type: dict
  sample: {vmid: 15047, name: proxy1, node: pve1, status: running}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Set memory=2048 on container 'proxy1' (15047) on node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
applied:
  description: Options that were changed and apply immediately. In check mode, options that would
    be.
  returned: success
  type: list
  elements: str
  sample: [memory]
pending:
  description: Options that are set but apply only after a stop or reboot of the VM.
  returned: success
  type: list
  elements: str
  sample: [nesting]
needs_reboot:
  description: Whether the VM needs a stop or reboot, see RV(pending).
  returned: success
  type: bool
  sample: false
placement:
  description:
    - Selected node and the reasons, if this run selected one. Null for a container that stays on
      its node.
    - C(refused) has the reason for each node that was not selected.
  returned: success
  type: dict
  sample: {node: pve2, reasons: [2 of 3 nodes fit], refused: {pve1: offline}}
conditions:
  description:
    - C(Ready), C(VMCreated), C(ResourcesAllocated) and C(NetworkConfigured), each with status and
      reason.
    - If the task failed, the reason is the category of RV(error), and a status that is not known is
      null.
  returned: always
  type: list
  elements: dict
  sample: [{type: Ready, status: true, reason: Running}]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: foreign tenant, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.container import (
    container_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.run import run
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.describe import (
    conditions_of_failure,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.desired.guest import (
    sites_of_quota,
)

ENTRY = ModuleEntry(
    run,
    container_spec(),
    {"required_one_of": [("name", "vmid")]},
    conditions=conditions_of_failure,
    sites=SiteSupport(names=sites_of_quota),
    returns_site=True,
    name="container",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
