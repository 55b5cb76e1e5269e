# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vm.yml: do not edit.
"""The options of a VM, shared by every module that creates or changes one."""


class ModuleDocFragment:
    IDENTITY = r"""
options:
  quota_sites:
    description:
      - Names of the sites of the O(tenant), also that of the task, if O(quota) is its quota over
        all of them. By default, it is the quota at the site of the task.
    type: list
    elements: str
  site_quotas:
    description:
      - Quotas of the O(tenant) by site of O(quota_sites), each a dictionary like O(quota). A site
        that does not answer counts with its quota. Without one, a VM that is new or grows is
        refused.
    type: dict
  name:
    description:
      - Name of the VM, a DNS name. With O(vmid), a different name renames the VM.
      - Required for a new VM unless O(vmid) is set.
    type: str
  vmid:
    description:
      - VMID of the VM, 100 to 999999999.
      - By default, a new VM gets a VMID of O(vmid_range), and a new template gets one of
        O(vmid_bands.template), see O(vmid_choice).
      - A new VM whose VMID is in neither O(vmid_bands.manual) nor O(vmid_bands.template) is created
        with a warning.
    type: int
"""

    DOCUMENTATION = r"""
options:
  tenant:
    description:
      - The tenant of the VM. A VM without exactly the tag O(tenant_prefix) + O(tenant) is refused
        before the first write.
      - By default, VMs of all tenants can be changed, so an empty value is an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  node:
    description:
      - Node of the VM, with precedence over O(placement). An existing VM is migrated to it unless
        O(migrate=false).
      - By default, an existing VM stays on its node, and a new VM is created on the default node of
        the connection, or else on the node that O(placement) chooses.
    type: str
  cores:
    description: Cores per socket, 1 to 1024. By default, a new VM gets 2, except a clone.
    type: int
  sockets:
    description: CPU sockets.
    type: int
  vcpus:
    description: Hotplugged virtual CPUs.
    type: int
  memory:
    description:
      - Memory such as V(4G) or V(512M), at most 2 TiB. Units are binary; a bare number is MiB.
      - With C(memory) in O(hotplug), a new size is rounded up to a sum of memory modules.
    type: raw
  balloon:
    description: Minimum memory of the balloon device. V(0) disables the device. A bare number is
      MiB.
    type: raw
  cpu:
    description: CPU type, with flags as PVE writes them, such as V(host) or
      V(x86-64-v2-AES,flags=+aes).
    type: str
  cpulimit:
    description: Limit of CPU usage in CPUs. V(0) means no limit.
    type: float
  cpuunits:
    description: CPU weight.
    type: int
  numa:
    description: Whether NUMA is enabled.
    type: bool
  bios:
    description: Firmware. V(uefi) means V(ovmf) and V(bios) means V(seabios). A new VM with UEFI
      gets an EFI disk.
    type: str
    choices: ['', seabios, ovmf, bios, uefi]
  machine:
    description:
      - Machine type, such as V(q35) or V(pc). V(i440fx) means V(pc).
      - A type without a version also matches the version that Proxmox VE adds for a Windows guest.
    type: str
  ostype:
    description:
      - Kind of guest. V(linux) means V(l26), V(windows) means V(win11). A new VM that is not cloned
        gets V(l26).
    type: str
  scsihw:
    description: SCSI controller. A new VM that is not cloned gets V(virtio-scsi-single).
    type: str
  agent:
    description:
      - Whether the guest agent is used, V(true), V(false) or PVE's own form such as
        V(1,fstrim_cloned_disks=1), or a dictionary with these keys, C(enabled) among them.
      - A new VM uses it unless this option or its template disables it.
    type: raw
  vga:
    description: Display, such as V(std), V(serial0) or V(virtio,memory=64).
    type: str
  serial_console:
    description: Whether the VM has a serial port C(serial0) that PVE's console can use.
    type: bool
  boot:
    description: Boot order. Each entry is a device such as V(scsi0), or V(disk), V(cdrom) or
      V(network).
    type: list
    elements: str
  onboot:
    description: Whether the VM starts with its node.
    type: bool
  startup:
    description: Start order and delays, such as V(order=2,up=30). Proxmox VE requires C(Sys.Modify)
      on C(/).
    type: str
  protection:
    description: Whether PVE refuses to remove the VM and its disks.
    type: bool
  hotplug:
    description: Hardware that can be changed while the VM runs, such as
      V(network,disk,usb,memory,cpu). V(0) disables hotplug.
    type: str
  tags:
    description:
      - Tags of the VM. Other tags are kept unless O(tags_exact=true).
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
  disks:
    description: Disks and CD drives. Other drives are not changed.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - The drive, such as V(scsi0), V(virtio1), V(efidisk0) or V(tpmstate0). By default, the
            first free slot of O(disks[].bus).
          - V(unused0) and so on are detached disks; O(disks[].state=absent) destroys them.
        type: str
      bus:
        description: Bus of a disk without a name. By default, V(scsi).
        type: str
        choices: [ide, sata, scsi, virtio]
      size:
        description:
          - Size such as V(32G) or V(512M), 1 MiB to 100 TiB; a bare number is GiB. A disk can only
            grow; a smaller size is refused before the first write.
          - The size of V(efidisk0) and V(tpmstate0) cannot be set.
        type: raw
      storage:
        description: Storage of the disk. A disk elsewhere is moved.
        type: str
      bwlimit:
        description: Bandwidth limit in KiB/s of a move to another storage, V(0) for none. By
          default, the limit of the storages or of the cluster, which a token without
          C(Datastore.Allocate) can only lower.
        type: int
      storage_class:
        description: Name of an entry of O(storage_classes).
        type: str
      format:
        description: Format of a new or moved disk on a storage of files.
        type: str
        choices: [raw, qcow2, vmdk]
      import_from:
        description: Volume ID of the disk image from which a new disk is imported.
        type: str
      volume:
        description:
          - Volume ID of an existing disk to attach, such as V(ceph:vm-100-disk-1), also of a
            detached one. It excludes O(disks[].size) and O(disks[].storage).
          - A volume that another guest uses is refused, except with C(shared) in O(disks[].options)
            within a tenant.
        type: str
      iso:
        description: Volume ID of an ISO for a CD drive; V(none) ejects it.
        type: str
      cache:
        description: Cache mode.
        type: str
        choices: ['', none, writethrough, writeback, directsync, unsafe]
      ssd:
        description: Whether the guest sees an SSD.
        type: bool
      discard:
        description: Whether discards of the guest reach the storage.
        type: bool
      iothread:
        description: Whether the disk has its own I/O thread.
        type: bool
      backup:
        description: Whether backups include the disk.
        type: bool
      replicate:
        description: Whether storage replication includes the disk.
        type: bool
      readonly:
        description: Whether the disk is read-only.
        type: bool
      serial:
        description: Serial number that the guest sees.
        type: str
      options:
        description: Any other sub-key of the drive by PVE's own name; a null removes it.
        type: dict
      target_vmid:
        description: VMID of the VM on the same node that gets a moved disk.
        type: int
      target_slot:
        description: Name of the moved disk there. By default, O(disks[].name).
        type: str
      state:
        description: V(detached) keeps the volume as an unused disk, V(absent) destroys it, V(moved)
          gives it to O(disks[].target_vmid). A running VM can only give an unused disk.
        type: str
        choices: [present, detached, absent, moved]
        default: present
  disks_exact:
    description:
      - Whether disks that O(disks) does not list are detached. Their volumes stay, as unused disks.
      - Without O(disks), nothing is detached, and firmware, CD and cloud-init drives never are.
    type: bool
    default: false
  nics:
    description: Network cards. Cards that are not listed are not changed.
    type: list
    elements: dict
    suboptions:
      name:
        description: Slot, such as V(net0). By default, the place in the list.
        type: str
      model:
        description: Model; a new card gets V(virtio).
        type: str
      network:
        description: Name of an entry of O(networks), or the name of a bridge that starts with
          C(vmbr).
        type: str
      bridge:
        description: Bridge or VNet; a new card without O(nics[].network) gets C(vmbr0). It must
          exist on the node.
        type: str
      vlan:
        description: VLAN tag, 1 to 4094. V(0) removes it.
        type: int
      trunks:
        description: VLANs that are passed to the guest.
        type: list
        elements: str
      mac:
        description: MAC address. By default, the card keeps its address.
        type: str
      firewall:
        description: Whether PVE's firewall filters the card.
        type: bool
      link_down:
        description: Whether the link is disconnected.
        type: bool
      mtu:
        description: MTU. V(1) uses the MTU of the bridge.
        type: int
      rate:
        description: Bandwidth limit in MB/s.
        type: float
      queues:
        description: Queues of a virtio card.
        type: int
      ip:
        description: IPv4 address with prefix for cloud-init, or V(dhcp).
        type: str
      gateway:
        description: IPv4 gateway for cloud-init.
        type: str
      ip6:
        description: IPv6 address with prefix for cloud-init, V(dhcp) or V(auto).
        type: str
      gateway6:
        description: IPv6 gateway for cloud-init.
        type: str
      options:
        description: Any other sub-key of the card by PVE's own name; a null removes it.
        type: dict
      state:
        description: V(absent) removes the card.
        type: str
        choices: [present, absent]
        default: present
  nics_exact:
    description:
      - Whether network cards that O(nics) does not list are removed. Without O(nics), none is
        removed; with an empty list, all are.
    type: bool
    default: false
  cloud_init:
    description:
      - Data for cloud-init. A VM without its drive gets one.
      - Addresses are set in O(nics).
    type: dict
    suboptions:
      storage:
        description: Storage of a new cloud-init drive. By default, the storage of the first disk.
        type: str
      drive:
        description: Slot of the cloud-init drive. By default, an existing drive stays where it is,
          and a new one uses V(ide2). An existing drive in another slot moves while the VM is
          stopped.
        type: str
      type:
        description: Format of the data.
        type: str
        choices: ['', configdrive2, nocloud, opennebula]
      user:
        description: The user that cloud-init creates.
        type: str
      password:
        description: The password of that user.
        type: str
      update_password:
        description:
          - When the password is set, which PVE never returns.
          - V(on_create) sets it if the VM is new or has no password. V(always) sets it in every run
            and reports a change.
        type: str
        choices: [always, on_create]
        default: on_create
      ssh_keys:
        description:
          - All public keys of that user. An empty list removes them. Lines that begin with C(#) are
            ignored.
        type: list
        elements: str
      upgrade:
        description: Whether packages are upgraded at the first start.
        type: bool
      nameservers:
        description: Name servers; an empty list removes them.
        type: list
        elements: str
      search_domain:
        description: Search domain.
        type: str
      user_data:
        description:
          - User data that replaces what PVE generates, beginning with C(#cloud-config) or C(#!). A
            diff shows its checksum only.
          - PVE's API cannot upload it, so the task writes it to the file of
            O(cloud_init.snippets.user) in O(cloud_init.snippet_directory).
        type: str
      snippet_directory:
        description:
          - Path at which the C(snippets) directory of that storage is mounted on the machine that
            runs the task.
        type: path
      snippets:
        description: Volume IDs of snippets that replace what PVE generates. They must be on a
          storage already.
        type: dict
        suboptions:
          user:
            description: User data.
            type: str
          network:
            description: Network configuration.
            type: str
          meta:
            description: Meta data.
            type: str
          vendor:
            description: Vendor data.
            type: str
  options:
    description:
      - Any other option of PVE by its own name, such as C(watchdog), C(rng0), C(hostpci0) or
        C(smbios1), as text or as a dictionary of its sub-keys. Only the given keys are compared,
        and null removes the option.
      - An option that Proxmox VE 9.2 does not know is refused before any write, unless the server
        is newer.
    type: dict
  class:
    description:
      - Name of an entry of O(classes). Options of the task override those of the class.
      - Dictionaries are merged by key, O(disks) and O(nics) by slot, tags are combined, and other
        lists are replaced.
    type: str
  classes:
    description: Named sizes. Each holds options of this module, such as C(cores), C(memory),
      C(disks) or C(machine).
    type: dict
    default: {}
  storage_classes:
    description:
      - Named storages for O(disks[].storage_class), each the name of a storage, or a dictionary
        with C(storage) and any of C(type), C(format), C(cache), C(ssd), C(discard), C(iothread),
        C(backup), C(replicate).
      - C(type) is V(thin) or V(thick). A storage that allocates the other way is refused before any
        write.
    type: dict
    default: {}
  networks:
    description:
      - Named networks for O(nics[].network), each the name of a bridge, or a dictionary with
        C(bridge) and any of C(vlan), C(trunks), C(firewall), C(mtu), C(rate), C(queues), C(model),
        C(gateway), C(gateway6), C(link_down).
      - An entry with C(zone) is a VNet of O(tenant), see O(pve.fleet.tenant#module:networks).
      - V(lan) and V(default) are C(vmbr0), V(dmz) is C(vmbr1), V(mgmt) and V(management) are
        C(vmbr2) unless given here.
    type: dict
    default: {}
  default_storage:
    description: Storage of new disks without a storage.
    type: str
    default: local-lvm
  memory_floor:
    description: Minimum O(memory) that is accepted, to catch typing errors. PVE itself accepts 16
      MiB.
    type: raw
    default: 64M
  vmid_choice:
    description:
      - How the VMID of a new VM is chosen if none is set. V(by_name) derives it from tenant and
        name, so a VM that is created again gets its former VMID, and concurrent runs create only
        one VM.
      - V(lowest) chooses the lowest free VMID, with which concurrent runs can create two VMs.
    type: str
    choices: [by_name, lowest]
    default: by_name
  vmid_range:
    description: First and last VMID for new VMs whose VMID is not set.
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
      - How the node of a new VM, or with O(rebalance=true) of an existing VM, is chosen among the
        online nodes with the storages and bridges that it needs.
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
            memory allocated to VMs, V(round_robin) with the fewest VMs, V(first) the first of
            O(placement.nodes) or by name, V(random) one that O(placement.seed) selects.'
        type: str
        choices: [least_used, round_robin, first, random]
        default: least_used
      seed:
        description: Seed for O(placement.strategy=random), any text.
        type: str
      max_vms_per_node:
        description:
          - Maximum number of VMs on the node, including this VM.
          - Either one number, or a dictionary of numbers by node. A node that is not listed has no
            limit.
        type: raw
      min_free_memory:
        description: Memory that must remain free on the node when this VM uses all of its memory. A
          bare number is MiB.
        type: raw
      cpu_overcommit:
        description: Maximum ratio of allocated cores to the cores of the node, such as V(4).
        type: float
      memory_overcommit:
        description:
          - Maximum ratio of allocated memory to the memory of the node, such as V(1.0) for no
            overcommitment.
          - By default, a new VM that is started is created on a node with enough free memory for
            it.
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
          - Other VMs to place on the same node as this one, each entry a tag, or C(name:) and a
            shell pattern for names, as in V(name:db-*).
          - With O(tenant), only VMs of that tenant count. If no such VM exists yet, any node is
            suitable.
        type: list
        elements: str
      anti_affinity:
        description: Other VMs to place on nodes other than the node of this VM, in the form of
          O(placement.affinity).
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
      - Whether an existing VM moves when its node no longer meets the constraints of O(placement),
        whatever it prefers.
    type: bool
    default: false
  shared_sources:
    description:
      - Names and VMIDs of VMs and templates that every tenant may clone.
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
        description: Number of VMs, running or not.
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
        description: CPU types of VMs. A VM that names none has V(kvm64).
        type: list
        elements: str
      classes:
        description: Classes, in the modules that have them.
        type: list
        elements: str
  migrate:
    description: Whether a VM on a node other than O(node) is migrated. With V(false), this is an
      error.
    type: bool
    default: true
  reboot:
    description:
      - Whether a running VM is rebooted at the end of the task, to apply options that need a stop.
      - V(if_needed) reboots only if options are pending, V(always) reboots in every run. A paused
        VM is resumed first.
    type: str
    choices: [never, if_needed, always]
    default: never
  graceful:
    description: Whether O(state=absent) shuts a running VM down instead of stopping it at once.
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
"""

    LIFE = r"""
options:
  adopt:
    description:
      - With O(tenant), whether to take over a VM without a tenant's tag. Otherwise such a VM is
        refused.
      - A VM with the tag of another tenant is always refused.
    type: bool
    default: false
  create:
    description:
      - Whether the task creates the VM if it does not exist. With V(false), a missing VM is an
        error, such as a misspelt name in a task that only changes VMs.
    type: bool
    default: true
  blank:
    description:
      - Whether to create a new VM that has neither O(source) nor a disk or an ISO in O(disks), for
        example one that boots from the network. Otherwise such a VM is refused as a likely mistake
        in its name.
    type: bool
    default: false
  pool:
    description:
      - The resource pool of the VM. It must exist.
      - An empty text removes the VM from its pool, which needs the privilege Pool.Allocate on that
        pool.
    type: str
  state:
    description:
      - V(present) ensures that the VM exists with these options and does not change its power
        state. V(started) and V(stopped) also start or stop it; V(absent) removes it and its disks.
      - V(paused), V(hibernated), V(resumed), V(restarted) and V(reset) change its power state, and
        V(template) converts it into a template, see C(docs/vm.md).
    type: str
    choices:
      - present
      - started
      - stopped
      - restarted
      - reset
      - paused
      - hibernated
      - resumed
      - template
      - absent
    default: present
  source:
    description:
      - 'Source of a new VM: the VMID or exact name of a template or VM, an image with its version
        such as V(debian-13@2026.11.20), a volume such as V(local:iso/debian.iso) or
        V(local:import/debian.qcow2), the volume of a backup, or the file name of one ISO or
        importable image.'
      - By default, a new VM is blank and has O(disks). An existing VM is not changed.
    type: str
  replace_image:
    description:
      - Whether the system disk of an existing VM is replaced if it was created from another image
        than O(source) selects on its node, such as an older version. It needs O(state=stopped), or
        O(state=started), with which a running VM is stopped and started again.
      - All other disks stay, and the old system disk becomes an unused disk.
    type: bool
    default: false
  full:
    description:
      - Whether a clone copies the disks (V(true)) or is linked to its template (V(false)).
      - By default, it is linked if PVE supports that.
    type: bool
  wait_for:
    description:
      - What the task waits for once the VM runs. V(agent) waits until the guest agent answers,
        V(address) until the agent reports an address that O(address_family), O(address_nics) and
        O(address_subnets) allow.
      - Check mode does not wait.
    type: str
    choices: [none, agent, address]
    default: none
  wait_timeout:
    description:
      - Seconds to wait for O(wait_for).
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
"""

    GUEST = r"""
options:
  addresses:
    description:
      - Whether to return the addresses of the guest, without loopback and link-local ones. They
        come from its agent, or from cloud-init if the agent does not answer.
    type: bool
    default: false
  address_family:
    description: Address family of RV(ignore:address).
    type: str
    choices: [ipv4, ipv6, any]
    default: ipv4
  address_nics:
    description:
      - Interfaces from which RV(ignore:address) is selected, in order of preference, each by PVE's
        name (V(net0)), the guest's name or the MAC address.
    type: list
    elements: str
    default: []
  address_subnets:
    description: Subnets from which RV(ignore:address) is selected, in order of preference, such as
      V(10.0.0.0/24).
    type: list
    elements: str
    default: []
"""
