#!/bin/sh
# Installs packages with the package manager of the guest: packages.sh PACKAGE...
# It waits for cloud-init first, which may install packages itself.
set -eu
if command -v cloud-init >/dev/null 2>&1; then
    cloud-init status --wait >/dev/null 2>&1 || true
fi
if command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update
    apt-get -q -y -o DPkg::Lock::Timeout=300 install "$@"
elif command -v dnf >/dev/null 2>&1; then
    dnf -q -y install "$@"
elif command -v yum >/dev/null 2>&1; then
    yum -q -y install "$@"
elif command -v zypper >/dev/null 2>&1; then
    zypper --non-interactive install "$@"
elif command -v apk >/dev/null 2>&1; then
    apk add --update-cache "$@"
elif command -v pacman >/dev/null 2>&1; then
    pacman --sync --refresh --needed --noconfirm "$@"
else
    echo "No known package manager: apt-get, dnf, yum, zypper, apk or pacman" >&2
    exit 1
fi
