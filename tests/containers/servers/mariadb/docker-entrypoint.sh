#!/bin/bash
# As mariadb's: options for the server may come alone; it runs as mysql, who reads the secrets too; at the first start a
# server that only the set-up talks to gets accounts and the scripts that are mounted.
set -eo pipefail
if [ "${1:0:1}" = - ]; then set -- mariadbd "$@"; fi
if [ "$1" = mariadbd ] && [ "$(id -u)" = 0 ]; then
  chown -R mysql:mysql /var/lib/mysql /run/mysqld
  exec setpriv --reuid=mysql --regid=mysql --init-groups "$0" "$@"
fi

given() { # $1: a variable, or with _FILE behind it the file that holds its value
  local file=$1_FILE
  if [ -n "${!file:-}" ]; then cat "${!file}"; else printf '%s' "${!1:-}"; fi
}

set_up() {
  local root user password script server
  root=$(given MARIADB_ROOT_PASSWORD)
  [ -n "$root" ] || { echo "MARIADB_ROOT_PASSWORD is needed" >&2; exit 1; }
  user=$(given MARIADB_USER)
  password=$(given MARIADB_PASSWORD)
  mariadb-install-db --no-defaults --datadir=/var/lib/mysql --auth-root-authentication-method=normal --skip-test-db >/dev/null
  "$@" --datadir=/var/lib/mysql --skip-networking --socket=/run/mysqld/mysqld.sock &
  server=$!
  for _ in $(seq 300); do
    mariadb-admin --socket=/run/mysqld/mysqld.sock --user=root ping >/dev/null 2>&1 && break
    sleep 0.1
  done
  mariadb --user=root mysql <<SQL
CREATE USER 'root'@'%' IDENTIFIED BY '$root';
GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;
CREATE USER 'healthcheck'@'127.0.0.1';
CREATE USER '$user'@'%' IDENTIFIED BY '$password';
SQL
  for script in /docker-entrypoint-initdb.d/*.sql; do mariadb --user=root <"$script"; done
  mariadb --user=root --execute="ALTER USER 'root'@'localhost' IDENTIFIED BY '$root'"
  kill "$server"
  wait "$server"
}

if [ "$1" = mariadbd ]; then
  [ -d /var/lib/mysql/mysql ] || set_up "$@"
  set -- "$@" --datadir=/var/lib/mysql --socket=/run/mysqld/mysqld.sock --bind-address=0.0.0.0 --skip-name-resolve
fi
exec "$@"
