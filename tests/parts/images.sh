#!/bin/bash
# images.sh [python|busybox ...]   As root on Debian 12: the images that the tests run in, made from
# Debian packages without an image registry. What is there already is not made again.
set -euo pipefail

built() { docker image inspect "$1" >/dev/null 2>&1; }

packages() {
  local missing=()
  for name in "$@"; do dpkg -s "$name" >/dev/null 2>&1 || missing+=("$name"); done
  [ ${#missing[@]} -eq 0 ] && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Debian 12 with its Python 3.11, pip and git: what a project's own image looks like.
python_image() {
  built resolver-test/python:latest && return
  packages mmdebstrap ca-certificates
  local mirror
  mirror=$(awk '/^URIs/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources)
  mmdebstrap --quiet --variant=minbase \
    --include=python3,python3-venv,python3-pip,git,ca-certificates \
    bookworm - "deb $mirror bookworm main" |
    docker import -c 'CMD ["/bin/bash"]' - resolver-test/python:latest >/dev/null
}

# One static busybox and nothing else: no libc, Python, bash or git.
busybox_image() {
  built resolver-test/busybox:latest && return
  packages busybox-static
  local root applet
  root=$(mktemp -d)
  mkdir "$root/bin"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for applet in sh ls cat sleep true; do ln -s busybox "$root/bin/$applet"; done
  tar -C "$root" -cf - . | docker import -c 'CMD ["/bin/sh"]' - resolver-test/busybox:latest >/dev/null
  rm -rf "$root"
}

[ $# -gt 0 ] || set -- python busybox
for name in "$@"; do "${name}_image"; done
