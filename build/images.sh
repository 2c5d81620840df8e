#!/bin/sh
# Builds local PostgreSQL and Redis images from Debian packages, for machines
# that have a container engine but no image registry. Images that exist are
# left alone; FORCE=1 builds them anew.
#
#   ENGINE  docker or podman; default: the first that is installed
#   SUITE   Debian release; its PostgreSQL and Redis give the images their tags
#   MIRROR  Debian mirror; default: the one in this machine's apt sources
#
# The names are the first that package testenv/stack looks for.
set -eu

SUITE=${SUITE:-bookworm}
POSTGRES=15
REDIS=7
postgres_image=cmppgateway/postgres:$POSTGRES
redis_image=cmppgateway/redis:$REDIS

die() { echo "images: $*" >&2; exit 1; }

# mirror prints the first archive of Debian itself in apt's two formats.
mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
        sed -n -E 's#^(deb |URIs:)[^#]*(https?://[^ ]*/debian)/?( .*)?$#\2#p' | head -n 1
}

if [ -z "${ENGINE:-}" ]; then
    for ENGINE in docker podman ''; do
        command -v "${ENGINE:-true}" >/dev/null && break
    done
fi
[ -n "$ENGINE" ] || die "needs docker or podman"
"$ENGINE" info >/dev/null 2>&1 || die "$ENGINE is installed but its engine does not answer"

missing() { [ -n "${FORCE:-}" ] || ! "$ENGINE" image inspect "$1" >/dev/null 2>&1; }
if ! missing "$postgres_image" && ! missing "$redis_image"; then
    echo "images: $postgres_image and $redis_image are present"
    exit 0
fi

[ "$(id -u)" = 0 ] || die "debootstrap needs root: sudo make images"
command -v debootstrap >/dev/null || die "needs debootstrap: apt-get install debootstrap"
MIRROR=${MIRROR:-$(mirror)}
[ -n "$MIRROR" ] || die "no Debian mirror in this machine's apt sources: set MIRROR"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/debs"

# rootfs DIR PACKAGES makes a small Debian with the packages, without what only
# people need.
rootfs() {
    echo "images: installing $2 ($SUITE)"
    debootstrap --variant=minbase --include="$2" --cache-dir="$work/debs" "$SUITE" "$1" "$MIRROR" >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log" >&2; die "debootstrap failed"; }
    rm -rf "$1"/usr/share/doc/* "$1"/usr/share/man/* "$1"/usr/share/locale/* "$1"/usr/share/info/* \
        "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/*.log "$1"/var/log/apt
}

# load DIR IMAGE CHANGE… imports the tree. Every CHANGE is a Dockerfile line.
load() {
    dir=$1 image=$2
    shift 2
    for change; do
        set -- "$@" --change "$change"
        shift
    done
    tar -C "$dir" --numeric-owner -c . | "$ENGINE" import "$@" - "$image" >/dev/null
    echo "images: $image is ready"
}

if missing "$redis_image"; then
    root=$work/redis
    rootfs "$root" redis-server
    mkdir "$root/data"
    chroot "$root" chown redis:redis /data
    load "$root" "$redis_image" 'USER redis' 'WORKDIR /data' 'VOLUME /data' 'EXPOSE 6379' 'CMD ["redis-server"]'
    rm -rf "$root"
fi

if missing "$postgres_image"; then
    root=$work/postgres
    rootfs "$root" postgresql-$POSTGRES
    # The packages' own cluster, and the compiler behind jit, which a server
    # of short queries does not use.
    rm -rf "$root"/var/lib/postgresql/* "$root"/etc/postgresql/* "$root"/usr/lib/*/libLLVM* \
        "$root"/usr/lib/postgresql/*/lib/llvmjit* "$root"/usr/lib/postgresql/*/lib/bitcode
    mkdir "$root/var/lib/postgresql/data"
    chroot "$root" chown -R postgres:postgres /var/lib/postgresql
    chmod 0700 "$root/var/lib/postgresql/data"
    cat >"$root/entrypoint.sh" <<'ENTRYPOINT'
#!/bin/sh
# Makes the cluster at the first start, then becomes the command. Like the
# public image, it takes the superuser's password from POSTGRES_PASSWORD.
set -eu
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    : "${POSTGRES_PASSWORD:?must be set}"
    umask 077
    printf '%s' "$POSTGRES_PASSWORD" >/tmp/password
    initdb --pgdata="$PGDATA" --username=postgres --pwfile=/tmp/password --auth=scram-sha-256 \
        --encoding=UTF8 --locale=C --no-sync --no-instructions
    rm /tmp/password
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
fi
exec "$@"
ENTRYPOINT
    chmod 0755 "$root/entrypoint.sh"
    load "$root" "$postgres_image" 'USER postgres' "ENV PATH=/usr/lib/postgresql/$POSTGRES/bin:/usr/bin:/bin" \
        'ENV PGDATA=/var/lib/postgresql/data' 'VOLUME /var/lib/postgresql/data' 'EXPOSE 5432' \
        'ENTRYPOINT ["/entrypoint.sh"]' 'CMD ["postgres"]'
fi
