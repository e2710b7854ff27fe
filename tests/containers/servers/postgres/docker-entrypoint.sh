#!/bin/bash
# As postgres's: the server runs as postgres, who reads the secrets too; at the first start a server that listens on a
# socket alone gets the database and the scripts that are mounted.
set -eo pipefail
if [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi
if [ "$1" = postgres ] && [ "$(id -u)" = 0 ]; then
  install --directory --mode=0700 "$PGDATA"
  chown -R postgres "$PGDATA" /run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

given() { # $1: a variable, or with _FILE behind it the file that holds its value
  local file=$1_FILE
  if [ -n "${!file:-}" ]; then cat "${!file}"; else printf '%s' "${!1:-}"; fi
}

set_up() {
  local password database script
  password=$(given POSTGRES_PASSWORD)
  database=$(given POSTGRES_DB)
  database=${database:-postgres}
  [ -n "$password" ] || { echo "POSTGRES_PASSWORD is needed" >&2; exit 1; }
  initdb --username=postgres --pwfile=<(printf '%s\n' "$password") >/dev/null
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  pg_ctl --pgdata="$PGDATA" --options="-c listen_addresses=''" --wait start >/dev/null
  [ "$database" = postgres ] || psql --username=postgres --no-psqlrc --command="CREATE DATABASE \"$database\""
  for script in /docker-entrypoint-initdb.d/*.sql; do
    psql --set=ON_ERROR_STOP=1 --username=postgres --no-password --no-psqlrc --dbname="$database" --file="$script"
  done
  pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop >/dev/null
}

if [ "$1" = postgres ]; then
  [ -s "$PGDATA/PG_VERSION" ] || set_up
  set -- "$@" -c "listen_addresses=*"
fi
exec "$@"
