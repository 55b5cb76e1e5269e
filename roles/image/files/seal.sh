#!/bin/sh
# Removes everything that must differ between the guests that are cloned from this one: seal.sh [ROOT]
# ROOT is the directory of the file system, by default /.
set -eu
root=${1:-}

# The machine ID: systemd writes a new one at the start if the file is empty.
if test -e "$root/etc/machine-id"; then
    : > "$root/etc/machine-id"
fi
if test -f "$root/var/lib/dbus/machine-id" && ! test -L "$root/var/lib/dbus/machine-id"; then
    rm -f "$root/var/lib/dbus/machine-id"
fi
rm -f "$root/var/lib/systemd/random-seed"

# The host keys of SSH: cloud-init makes new ones, and without it a unit does so.
rm -f "$root"/etc/ssh/ssh_host_*_key "$root"/etc/ssh/ssh_host_*_key.pub
if test -x "$root/usr/bin/ssh-keygen" && test -d "$root/etc/systemd/system" && ! test -x "$root/usr/bin/cloud-init"; then
    unit=pve-fleet-host-keys.service
    cat > "$root/etc/systemd/system/$unit" <<'UNIT'
[Unit]
Description=Make the host keys of SSH if there are none
Before=ssh.service sshd.service ssh.socket
ConditionPathExistsGlob=!/etc/ssh/ssh_host_*_key

[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -A

[Install]
WantedBy=multi-user.target
UNIT
    mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
    ln -sf "../$unit" "$root/etc/systemd/system/multi-user.target.wants/$unit"
fi

# The state of cloud-init, which then takes each clone for a new instance, and its network configuration with MAC addresses.
for name in data handlers instance instances scripts sem; do
    rm -rf "$root/var/lib/cloud/$name"
done
rm -f "$root/etc/netplan/50-cloud-init.yaml" "$root"/etc/network/interfaces.d/50-cloud-init*
rm -f "$root"/etc/NetworkManager/system-connections/cloud-init-*

# Leases of DHCP.
rm -f "$root"/var/lib/dhcp/*.leases "$root"/var/lib/dhcpcd/*.lease "$root"/var/lib/NetworkManager/*.lease
rm -f "$root"/var/lib/systemd/network/*.lease

# Logs stay as empty files with their owners, except old ones.
if test -d "$root/var/log"; then
    find "$root/var/log" -type f \( -name '*.gz' -o -name '*.xz' -o -name '*.old' -o -name '*.[0-9]' -o -path '*/journal/*' \) -exec rm -f {} +
    find "$root/var/log" -type f -exec sh -c 'for file; do : > "$file"; done' seal {} +
fi

# Histories, caches of packages and temporary files; the files of the connection are needed until the end.
rm -f "$root"/root/.*_history "$root"/home/*/.*_history
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/cache/dnf/* "$root"/var/cache/apk/*
for directory in tmp var/tmp; do
    if test -d "$root/$directory"; then
        find "$root/$directory" -mindepth 1 -maxdepth 1 ! -name '.pve-fleet.*' ! -name 'systemd-private-*' -exec rm -rf {} +
    fi
done
sync
