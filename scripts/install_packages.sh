#!/bin/sh
# install_packages.sh [PACKAGE ...]   Installs, as root on Debian 12, the programs that the tests and
# the demo run, and the packages named.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends \
    ca-certificates git make openssl python3 python3-venv \
    docker.io iptables mmdebstrap busybox-static chromium util-linux postgresql \
    "$@" >/dev/null
