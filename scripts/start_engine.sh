#!/bin/sh
# Starts the Docker engine, as root on a machine without an init system, and waits for it.
set -eu
log=/var/log/dockerd.log
if ! docker info >/dev/null 2>&1; then
    setsid nohup dockerd >"$log" 2>&1 &
    for _ in $(seq 120); do
        if docker info >/dev/null 2>&1; then break; fi
        sleep 0.5
    done
fi
docker info >/dev/null 2>&1 || {
    echo "the Docker engine did not start within 60 seconds; the end of $log:" >&2
    tail -n 50 "$log" >&2
    exit 1
}
