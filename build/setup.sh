#!/bin/sh
# Makes a fresh machine ready: installs by apt what is missing when run as root
# on Debian or a relative, else says exactly what to install. Does nothing,
# and needs no network, where everything is there.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }
have_postgres() {
    have initdb && have postgres && return
    for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin; do
        [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && return
    done
    return 1
}

# missing prints the Debian packages to install.
missing() {
    have_postgres || echo postgresql
    have redis-server || echo redis-server
}

need=$(missing | tr '\n' ' ')
if [ -n "$need" ] && [ "$(id -u)" = 0 ] && have apt-get; then
    echo "setup: installing $need"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || echo "setup: package lists are as they were" >&2
    for package in $need; do # one by one: a release may lack one of them
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
            echo "setup: $package could not be installed" >&2
    done
    need=$(missing | tr '\n' ' ')
fi

have go || { echo "setup: Go is missing; go.mod names the version" >&2; exit 1; }
[ -z "$need" ] && exit 0
echo "setup: missing: $need" >&2
echo "setup: as root on Debian or Ubuntu: apt-get install $need" >&2
echo "setup: elsewhere: initdb, postgres and redis-server (7 or newer) on PATH" >&2
exit 1
