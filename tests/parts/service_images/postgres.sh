#!/bin/bash
# The entrypoint of the tests' image of PostgreSQL. It does what that of the image `postgres` does
# with POSTGRES_PASSWORD, POSTGRES_USER, POSTGRES_DB and POSTGRES_HOST_AUTH_METHOD:
# https://github.com/docker-library/docs/blob/master/postgres/README.md
set -euo pipefail

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql
  chmod 700 "$PGDATA"
  chown postgres "$PGDATA" /var/run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi

if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$method" != trust ]; then
    echo "Error: Database is uninitialized and superuser password is not specified." >&2
    exit 1
  fi
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  initdb --username="$user" --pwfile=<(printf '%s\n' "${POSTGRES_PASSWORD:-none}") --no-sync
  echo "host all all all $method" >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
  # Nobody takes this server for the one that is ready: it listens on a Unix socket only.
  pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
  if [ "$database" != postgres ]; then
    psql --username="$user" --dbname=postgres -c "CREATE DATABASE \"$database\""
  fi
  pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"
