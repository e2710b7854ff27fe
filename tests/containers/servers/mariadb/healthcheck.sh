#!/bin/bash
# As mariadb's, for what docker/compose.yml asks of it: over TCP, so not of the server that only the set-up talks to.
set -eo pipefail
ask() { mariadb --no-defaults --host=127.0.0.1 --user=healthcheck --skip-column-names --execute="$1"; }
[ $# -gt 0 ] || exit 1
for option in "$@"; do
  case $option in
    --connect) ask 'SELECT 1' >/dev/null ;;
    --innodb_initialized) [ "$(ask "SELECT 1 FROM information_schema.engines WHERE engine = 'InnoDB' AND support IN ('YES', 'DEFAULT')")" = 1 ] ;;
    *) exit 1 ;;
  esac
done
