# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vm.yml: do not edit.
"""The options of a VM, shared by every module that creates or changes one."""


class ModuleDocFragment:
    IDENTITY = r"""
options:
  name:
    description:
      - Name of the VM, a DNS name. With O(vmid) a different name renames the VM.
      - A new VM needs it unless O(vmid) is given.
    type: str
  vmid:
    description:
      - Number of the VM, 100 to 999999999.
      - A new VM without it gets one of O(vmid_range), and a new template one of
        O(vmid_bands.template), see O(vmid_choice).
      - A new VM with a number outside the bands for numbers chosen by hand is made, with a warning.
    type: int
"""

    DOCUMENTATION = r"""
options:
  tenant:
    description:
      - The tenant of the VM, which has the tag O(tenant_prefix) + O(tenant). A VM without exactly
        this tag is refused before anything is written, however it is named.
      - Left out, VMs of every tenant can be changed, so an empty value is an error.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  node:
    description:
      - Node of the VM, which wins over O(placement). An existing VM on another node is migrated
        there unless O(migrate=false).
      - Left out, a VM stays where it is, and a new one goes to the default node of the connection,
        or else to the one that O(placement) chooses.
    type: str
  cores:
    description: Cores per socket, 1 to 1024. A new VM that is not cloned gets 2.
    type: int
  sockets:
    description: CPU sockets.
    type: int
  vcpus:
    description: Hotplugged virtual CPUs.
    type: int
  memory:
    description:
      - Memory such as V(4G) or V(512M), at most 2 TiB. Units are binary, a bare number is MiB.
      - With C(memory) in O(hotplug) a change becomes the next size that memory modules add up to.
    type: raw
  balloon:
    description: Least memory of the balloon device, V(0) switches the device off. A bare number is
      MiB.
    type: raw
  cpu:
    description: CPU type, with flags as PVE writes them, such as V(host) or
      V(x86-64-v2-AES,flags=+aes).
    type: str
  cpulimit:
    description: Limit of CPU usage in CPUs, V(0) for none.
    type: float
  cpuunits:
    description: CPU weight.
    type: int
  numa:
    description: Whether NUMA is on.
    type: bool
  bios:
    description: Firmware. V(uefi) means V(ovmf) and V(bios) means V(seabios). A new VM with UEFI
      gets an EFI disk.
    type: str
    choices: ['', seabios, ovmf, bios, uefi]
  machine:
    description:
      - Machine type, such as V(q35) or V(pc). V(i440fx) means V(pc).
      - Proxmox VE adds its newest version to the type of a Windows guest, and the type without one
        then fits.
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
      - A new VM uses it unless this option or its template says otherwise.
    type: raw
  vga:
    description: Display, such as V(std), V(serial0) or V(virtio,memory=64).
    type: str
  serial_console:
    description: Whether the VM has a serial port C(serial0) that PVE's console can use.
    type: bool
  boot:
    description: Boot order, devices such as V(scsi0) or the words V(disk), V(cdrom) and V(network).
    type: list
    elements: str
  onboot:
    description: Whether the VM starts with its node.
    type: bool
  startup:
    description: Order and delays of starting, such as V(order=2,up=30). Proxmox VE asks for
      C(Sys.Modify) on C(/).
    type: str
  protection:
    description: Whether PVE refuses to remove the VM and its disks.
    type: bool
  hotplug:
    description: What can be changed while the VM runs, such as V(network,disk,usb,memory,cpu), or
      V(0).
    type: str
  tags:
    description:
      - Tags of the VM. Other tags stay unless O(tags_exact=true).
      - A clone does not get the tags of its template, but for that of a tenant.
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
    description: Disks and CD drives. Those that are not listed are left alone.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - The drive, such as V(scsi0), V(virtio1), V(efidisk0) or V(tpmstate0). Left out, the
            first free one of O(disks[].bus).
          - V(unused0) and so on are detached disks; O(disks[].state=absent) destroys them.
        type: str
      bus:
        description: Bus of a disk without a name, V(scsi) if left out.
        type: str
        choices: [ide, sata, scsi, virtio]
      size:
        description:
          - Size such as V(32G) or V(1T), 1 GiB to 100 TiB; a bare number is GiB. A disk can grow,
            and a size below that of the disk is refused before anything is written.
          - V(efidisk0) and V(tpmstate0) have no size to choose.
        type: raw
      storage:
        description: The storage. A disk that is on another one is moved.
        type: str
      storage_class:
        description: Name of an entry of O(storage_classes).
        type: str
      format:
        description: Format on a storage of files, of a disk that is new or moves to another
          storage.
        type: str
        choices: [raw, qcow2, vmdk]
      import_from:
        description: Volume ID of a disk image that a new disk is imported from.
        type: str
      iso:
        description: Volume ID of an ISO; the drive is a CD drive. V(none) ejects.
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
        description: Whether the disk has a thread of its own.
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
        description: Serial number the guest sees.
        type: str
      options:
        description: Any other sub-key of the drive by PVE's own name; a null removes it.
        type: dict
      state:
        description: V(detached) keeps the volume as an unused disk, V(absent) destroys it.
        type: str
        choices: [present, detached, absent]
        default: present
  disks_exact:
    description:
      - Whether disks that O(disks) does not list are detached. Their volumes stay, as unused disks.
      - Firmware, CD and cloud-init drives are not meant, and without O(disks) nothing is detached.
    type: bool
    default: false
  nics:
    description: Network cards. Those that are not listed are left alone.
    type: list
    elements: dict
    suboptions:
      name:
        description: The card, such as V(net0). Left out, the position in the list.
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
        description: VLANs that are passed on.
        type: list
        elements: str
      mac:
        description: MAC address. Left out, the card keeps the one it has.
        type: str
      firewall:
        description: Whether PVE's firewall filters the card.
        type: bool
      link_down:
        description: Whether the cable is out.
        type: bool
      mtu:
        description: MTU, V(1) for that of the bridge.
        type: int
      rate:
        description: Limit in MB/s.
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
      - Whether network cards that O(nics) does not list are removed. Without O(nics) none is, with
        an empty list all are.
    type: bool
    default: false
  cloud_init:
    description:
      - Data for cloud-init. A VM without a cloud-init drive gets one.
      - Addresses belong to O(nics).
    type: dict
    suboptions:
      storage:
        description: Storage of a new cloud-init drive. Left out, that of the first disk.
        type: str
      drive:
        description: Where a new cloud-init drive is put.
        type: str
        default: ide2
      type:
        description: Format of the data.
        type: str
        choices: ['', configdrive2, nocloud, opennebula]
      user:
        description: The user that cloud-init makes.
        type: str
      password:
        description: The password of that user.
        type: str
      update_password:
        description:
          - PVE never shows a password, so it cannot be compared.
          - V(on_create) sets it where the VM is new or has none, V(always) sets it in every run and
            reports a change.
        type: str
        choices: [always, on_create]
        default: on_create
      ssh_keys:
        description:
          - Public keys of that user, all of them; an empty list removes them. Lines that begin with
            C(#) do not count.
        type: list
        elements: str
      upgrade:
        description: Whether packages are upgraded at the first start.
        type: bool
      nameservers:
        description: Addresses of name servers; an empty list removes them.
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
          - Where the C(snippets) directory of that storage is mounted on the machine where the task
            runs.
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
        C(smbios1), as text or as a dictionary of its sub-keys. Only what is given is compared, and
        a null removes the option.
      - What Proxmox VE 9.2 does not know is refused before any write, unless the server is newer.
    type: dict
  class:
    description:
      - Name of an entry of O(classes). What the task says itself wins over the class.
      - Dictionaries are merged by key, O(disks) and O(nics) by slot, tags add up, and other lists
        are replaced.
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
    description: Storage of new disks that name none.
    type: str
    default: local-lvm
  memory_floor:
    description: The least O(memory) that is accepted, a policy against typing errors. PVE itself
      accepts 16 MiB.
    type: raw
    default: 64M
  vmid_choice:
    description:
      - How a new VM that names no number gets one. V(by_name) derives it from tenant and name, so
        that a VM that is created again gets the number it had, and runs at the same time create one
        VM.
      - V(lowest) takes the lowest free number; runs at the same time can then create two VMs.
    type: str
    choices: [by_name, lowest]
    default: by_name
  vmid_range:
    description: First and last VMID for new VMs that name none.
    type: list
    elements: int
    default: [10000, 99999]
  vmid_bands:
    description: The other bands of VMIDs, each as its first and last number.
    type: dict
    suboptions:
      template:
        description: For templates. Left out, V([100, 999]).
        type: list
        elements: int
      manual:
        description: For numbers chosen by hand. Left out, V([1000, 9999]).
        type: list
        elements: int
      reserved:
        description: For others. Left out, V([100000, 999999999]).
        type: list
        elements: int
  placement:
    description:
      - How the node of a new VM is chosen, and with O(rebalance=true) that of an existing one,
        among the online nodes with the storages and bridges that it needs.
      - The result and the error tell why each node was taken or refused.
    type: dict
    suboptions:
      nodes:
        description: Preferred nodes, the best first. Others are taken only where none of these
          fits.
        type: list
        elements: str
      exclude:
        description: Nodes that are never taken.
        type: list
        elements: str
      strategy:
        description:
          - 'Which of the nodes that fit is taken: V(least_used) has the smallest share of its
            memory given to VMs, V(round_robin) the fewest VMs, V(first) is the first of
            O(placement.nodes) or by name, and V(random) is drawn by O(placement.seed).'
        type: str
        choices: [least_used, round_robin, first, random]
        default: least_used
      seed:
        description: Any text, for O(placement.strategy=random).
        type: str
      max_vms_per_node:
        description:
          - The most VMs that may be on the node, this one included.
          - Either one number, or a dictionary of nodes and their numbers. A node that it does not
            name has no limit.
        type: raw
      min_free_memory:
        description: Memory that must be free on the node when this VM has all of its own. A bare
          number is MiB.
        type: raw
      cpu_overcommit:
        description: How often each core of the node may be given to VMs, such as V(4).
        type: float
      memory_overcommit:
        description:
          - How often the memory of the node may be given to VMs, such as V(1.0) for no
            overcommitment.
          - Without it, a new VM that is started goes to a node that has its memory free.
        type: float
      storage_overcommit:
        description:
          - How often the free bytes of a storage may be given to new and growing disks, also where
            O(node) names the node.
          - On a storage that takes them at once, such as one of type C(lvm), all of them must be
            free, whatever this says.
        type: float
        default: 10.0
      affinity:
        description:
          - Other VMs to place on the same node as this one, each a tag, or C(name:) and a shell
            pattern for names, as in V(name:db-*).
          - With O(tenant) only VMs of that tenant are meant. Where there is none yet, any node will
            do.
        type: list
        elements: str
      anti_affinity:
        description: Other VMs to place on other nodes than this one, written as in
          O(placement.affinity).
        type: list
        elements: str
      affinity_policy:
        description: Whether affinity and anti-affinity must hold, or only decide among nodes that
          fit.
        type: str
        choices: [required, preferred]
        default: required
      keep:
        description:
          - Whether HA rules keep affinity and anti-affinity afterwards, see C(docs/ha.md). An
            option of M(pve.fleet.vms) only, whose V(false) removes the rules that it created.
          - By default, rules are neither read nor changed.
        type: bool
  rebalance:
    description:
      - Whether an existing VM moves when its node no longer meets the constraints of O(placement).
        A preference alone moves nothing.
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
      - The most that the O(tenant) may have. A task that would exceed it fails before its first
        write; what is exceeded already stops only what grows.
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
        description: Sum of all their disks, detached ones and those of templates included. A bare
          number is GiB.
        type: raw
  quotas:
    description: Quotas by tenant, each a dictionary like O(quota). That of O(tenant) counts where
      O(quota) is left out.
    type: dict
    default: {}
  migrate:
    description: Whether a VM that is on another node than O(node) is migrated; if not, that is an
      error.
    type: bool
    default: true
  reboot:
    description:
      - Whether a running VM is rebooted when the task is done, so that options that wait for a stop
        are applied.
      - V(if_needed) reboots only where options wait, V(always) reboots in every run. A paused VM is
        resumed for that.
    type: str
    choices: [never, if_needed, always]
    default: never
  graceful:
    description: Whether O(state=absent) shuts a running VM down instead of pulling the plug.
    type: bool
    default: false
  force:
    description:
      - Whether a shutdown that is not done after O(shutdown_timeout) becomes a stop; if not, that
        is an error.
      - A reboot is then a shutdown and a start, because Proxmox VE cannot force a reboot.
    type: bool
    default: false
  shutdown_timeout:
    description:
      - Seconds that a guest has to shut down, also for a reboot. V(0) stops it at once.
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
      - With O(tenant), take over a VM without a tenant tag. Otherwise such a VM is refused.
      - A VM with the tag of another tenant is always refused.
    type: bool
    default: false
  pool:
    description:
      - The resource pool of the VM. It must exist.
      - An empty text takes the VM out of its pool, which needs the privilege Pool.Allocate on that
        pool.
    type: str
  state:
    description:
      - V(present) makes sure that the VM exists with these options and leaves its power state
        alone. V(started) and V(stopped) also switch it on or off, and V(absent) removes it with its
        disks.
      - V(paused), V(hibernated), V(resumed), V(restarted) and V(reset) act on its power, and
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
      - 'What a new VM is made from: the VMID or exact name of a template or VM, an image with its
        version such as V(debian-13@2026.11.20), a volume such as V(local:iso/debian.iso) or
        V(local:import/debian.qcow2), the volume of a backup, or the file name of one ISO or
        importable image.'
      - Left out, a new VM is blank, with O(disks). An existing VM is not changed.
    type: str
  replace_image:
    description:
      - Whether the system disk of an existing VM is replaced if it comes from another image than
        the one that O(source) selects on its node, such as an older version. It needs
        O(state=stopped).
      - All other disks stay, and the old system disk becomes an unused disk.
    type: bool
    default: false
  full:
    description:
      - Whether a clone copies the disks (V(true)) or is linked to its template (V(false)).
      - Left out, a clone is linked where PVE can do that, else full.
    type: bool
  wait_for:
    description:
      - What the task waits for once the VM runs, V(agent) until its guest agent answers, V(address)
        until it tells an address that O(address_family), O(address_nics) and O(address_subnets)
        allow.
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
        come from its agent, or from cloud-init where the agent does not answer.
    type: bool
    default: false
  address_family:
    description: Which family RV(ignore:address) is of.
    type: str
    choices: [ipv4, ipv6, any]
    default: ipv4
  address_nics:
    description:
      - Interfaces that RV(ignore:address) may be on, in order, by PVE's name (V(net0)), the guest's
        or the MAC.
    type: list
    elements: str
    default: []
  address_subnets:
    description: Subnets that RV(ignore:address) may be in, in order, such as V(10.0.0.0/24).
    type: list
    elements: str
    default: []
"""
