#!/bin/bash
# images.sh [python|busybox|nonroot ...]   As root on Debian 12: the images that the tests run in,
# made from Debian packages without an image registry. What is there already is not made again.
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

# The Python image with an ordinary user, as whom everything in it runs.
nonroot_image() {
  built resolver-test/nonroot:latest && return
  python_image
  local made
  made=$(docker create --network none resolver-test/python:latest useradd --create-home --uid 1000 dev)
  docker start -a "$made" >/dev/null
  docker commit -c 'USER 1000' -c 'CMD ["/bin/bash"]' "$made" resolver-test/nonroot:latest >/dev/null
  docker rm "$made" >/dev/null
}

# A userland on musl: its libc from Debian, a shell, and one program that is linked against it.
musl_image() {
  built resolver-test/musl:latest && return
  packages busybox-static python3-venv
  local work root arch
  work=$(mktemp -d) root=$work/root arch=$(uname -m)
  mkdir -p "$root/bin" "$root/lib"
  (cd "$work" && chmod 755 . && apt-get download -qq musl >/dev/null 2>&1)
  dpkg -x "$work"/musl_*.deb "$work/musl"
  cp "$work/musl/lib/$arch-linux-musl/libc.so" "$root/lib/ld-musl-$arch.so.1"
  ln -s "ld-musl-$arch.so.1" "$root/lib/libc.musl-$arch.so.1"
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" download -q --disable-pip-version-check --require-hashes --no-deps --only-binary=:all: \
    --platform "musllinux_1_2_$arch" -d "$work" -r "$(dirname "$0")/ninja.txt" 2>/dev/null
  python3 -m zipfile -e "$work"/ninja-*.whl "$work/ninja"
  cp "$work"/ninja/ninja-*.data/scripts/ninja "$work/ninja.bin"
  install -m 755 "$work/ninja.bin" "$root/bin/ninja"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for applet in sh ls cat sleep true; do ln -s busybox "$root/bin/$applet"; done
  tar -C "$root" -cf - . | docker import -c 'CMD ["/bin/sh"]' - resolver-test/musl:latest >/dev/null
  rm -rf "$work"
}

# The Python image with PostgreSQL, which is installed on the machine, its client for Python, and
# Redis, as images of services: entrypoint, port, volume and variables are those of the images
# `postgres` and `redis`.
services_image() {
  built resolver-test/redis:7 && return
  python_image
  packages postgresql
  local folder work root lib made name
  folder=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/service_images
  work=$(mktemp -d) root=$work/root lib=/usr/lib/$(uname -m)-linux-gnu
  mkdir -p "$root/usr/local/bin" "$root$lib" "$root/data"
  (cd "$work" && chmod 755 . && apt-get download -qq redis-server redis-tools libjemalloc2 \
    liblua5.1-0 liblzf1 libhiredis0.14 lua-bitop lua-cjson libatomic1 python3-psycopg2 \
    >/dev/null 2>&1)
  for name in "$work"/*.deb; do dpkg -x "$name" "$root"; done
  rm -rf "$root/lib" # units of systemd; in the image it is a link
  # Without the just-in-time compiler, whose library is larger than everything else.
  tar -C / --exclude 'llvmjit*' --exclude '*/bitcode' --exclude '*/pgxs' \
    -cf - usr/lib/postgresql/15 usr/share/postgresql/15 | tar -C "$root" -xf -
  { find "$root/usr/lib" -path '*/postgresql/*/bin/*' -o -name '*.so' | xargs ldd 2>/dev/null || true; } |
    awk '/=> \// && !/lib(c|m|pthread|dl|rt)\.so/ {print $3}' | sort -u |
    xargs -I {} cp -L {} "$root$lib/"
  for name in postgres redis; do
    install -m 755 "$folder/$name.sh" "$root/usr/local/bin/$name-entrypoint"
  done
  ln -s /usr/bin/python3 "$root/usr/local/bin/python"
  made=$(docker create --network none resolver-test/python:latest bash -c \
    'useradd --system postgres; useradd --system redis; chown postgres /var/run')
  tar -C "$root" --owner 0 --group 0 -cf - . | docker cp -q - "$made:/"
  docker start -a "$made" >/dev/null
  docker commit -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/15/bin' \
    -c 'ENV PGDATA=/var/lib/postgresql/data' -c 'VOLUME /var/lib/postgresql/data' \
    -c 'EXPOSE 5432' -c 'ENTRYPOINT ["postgres-entrypoint"]' \
    -c 'CMD ["postgres"]' "$made" resolver-test/postgres:15 >/dev/null
  docker commit -c 'WORKDIR /data' -c 'VOLUME /data' -c 'EXPOSE 6379' \
    -c 'ENTRYPOINT ["redis-entrypoint"]' -c 'CMD ["redis-server"]' \
    "$made" resolver-test/redis:7 >/dev/null
  docker rm "$made" >/dev/null
  rm -rf "$work"
}

[ $# -gt 0 ] || set -- python busybox nonroot musl services
for name in "$@"; do "${name}_image"; done
