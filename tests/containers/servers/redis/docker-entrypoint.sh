#!/bin/bash
# As redis's: the server runs as redis, which owns /data, and takes clients of other hosts without a password.
set -e
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  chown -R redis:redis .
  exec setpriv --reuid=redis --regid=redis --init-groups "$0" "$@"
fi
if [ "$1" = redis-server ]; then set -- "$@" --protected-mode no; fi
exec "$@"
