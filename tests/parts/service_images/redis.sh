#!/bin/bash
# The entrypoint of the tests' image of Redis. It does what that of the image `redis` does:
# https://github.com/docker-library/docs/blob/master/redis/README.md
set -euo pipefail

case "$1" in -* | *.conf) set -- redis-server "$@" ;; esac
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  chown redis .
  exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
exec "$@"
