# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash
# Fresh roots of Debian, and commands in them that see nothing else; sourced by tests/fresh-root.sh and packaging/try-deb.sh.
#
# A root stands in a holder, a folder of our own as pipelines/output.sh has them: nothing else is ever removed. Nothing is mounted
# where the host sees it: mounts end with the namespace that they are in.

# shellcheck source=pipelines/output.sh
. "$(dirname "${BASH_SOURCE[0]}")/../pipelines/output.sh"

# A toolchain of Rust that roots see, read-only, at this path.
root_rust=/opt/rust
# The architecture of roots, as Debian names it, where it is not the host's; set by the scripts. The kernel starts its programs in an
# emulator.
root_arch=

root_say() { printf '== %s\n' "$*"; }
root_die() { printf 'error: %s\n' "$*" >&2; exit 1; }

check_root_tools() {
    [ "$(id -u)" = 0 ] || root_die "this needs root, to make roots and to enter them"
    local tool
    for tool in debootstrap unshare flock pivot_root; do
        command -v $tool >/dev/null || root_die "$tool is missing: apt-get install debootstrap util-linux"
    done
    [ -z "$root_arch" ] || check_emulator
}

# A handler with the flag F is open before a root is entered, which has no emulator.
check_emulator() {
    local handler=/proc/sys/fs/binfmt_misc/qemu-${root_arch/#arm64/aarch64}
    { [ -e "$handler" ] && grep -qx enabled "$handler" && grep -q '^flags: .*F' "$handler"; } ||
        root_die "the kernel starts no program of $root_arch: apt-get install qemu-user-static binfmt-support"
}

# Puts into `holder` a folder for a root, locked until the script ends: one that is kept, where SUPERPIXEL_ROOTS names a folder for
# those, else a new one. RELEASE USE
open_holder() {
    local kept=${SUPERPIXEL_ROOTS:-}/$1-$2
    if [ -z "${SUPERPIXEL_ROOTS:-}" ]; then
        open_own "$roots" "$1"
        holder=$own
        return
    fi
    if [ ! -e "$kept" ] && [ ! -L "$kept" ]; then fresh_folder "$kept"; fi
    is_own "$kept" || refuse "$kept is there and was not made for a root; let SUPERPIXEL_ROOTS name another folder"
    lock_own "$kept" || refuse "$kept is in use by another run"
    real_path "$kept"
    holder=$real
}
# Puts into `roots` where holders and fetched packages are: DEFAULT
open_roots() {
    roots=${SUPERPIXEL_ROOTS:-$1}
    mkdir -p "$roots"
    real_path "$roots"
    roots=$real
}
holder=
# Ends what runs in the root, and removes the root unless it is kept.
close_holder() {
    end_in_root
    [ -n "${SUPERPIXEL_ROOTS:-}" ] || [ -z "$holder" ] || remove_own "$holder"
}
# However a script ends, its root ends, too.
trap_ends() {
    trap close_holder EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# The host's own package sources, if it has some of Debian, for another release: lines of a sources.list.
sources_for() {
    local release=$1 uri suite component here
    here=$(. /etc/os-release 2>/dev/null && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || return 0
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u | while read -r uri suite component; do
        [ "$component" = main ] || continue
        case $suite in
            "$here") echo "deb $uri $release main" ;;
            # The unstable release has neither.
            "$here-updates" | "$here-security") if [ "$release" != sid ]; then echo "deb $uri $release${suite#"$here"} main"; fi ;;
        esac
    done
}

# Makes the root of a release in the holder, unless it is there. Fetched packages are kept. RELEASE
make_root() {
    local release=$1 sources mirror extra=()
    cache=$roots/packages-$release${root_arch:+-$root_arch}
    if [ ! -e "$cache" ] && [ ! -L "$cache" ]; then fresh_folder "$cache"; fi
    is_own "$cache" || refuse "$cache is there and was not made for fetched packages; let SUPERPIXEL_ROOTS name another folder"
    [ ! -e "$holder/whole" ] || return 0
    rm -rf --one-file-system "$holder/root"
    sources=$(sources_for "$release")
    mirror=$(sed -n "s/^deb \([^ ]*\) $release main$/\1/p" <<<"$sources" | head -n 1)
    case $mirror in https:*) extra=(--include=ca-certificates) ;; esac
    root_say "making a root of $release"
    # It mounts the root's proc and sys, which end with the namespace.
    unshare --mount --mount-proc --pid --fork --kill-child --propagation private -- debootstrap --variant=minbase ${root_arch:+--arch="$root_arch"} --cache-dir="$cache" \
        "${extra[@]}" "$release" "$holder/root" ${mirror:+"$mirror"} >"$holder/debootstrap.log" 2>&1 </dev/null &
    root_process=$!
    wait_in_root || {
        tail -n 20 "$holder/debootstrap.log" >&2
        root_die "debootstrap could not make a root of $release"
    }
    [ -z "$sources" ] || echo "$sources" >"$holder/root/etc/apt/sources.list"
    hand_in_network "$holder/root"
    # A root need not outlive a loss of power, and packages of many small files wait for the disk.
    echo force-unsafe-io >"$holder/root/etc/dpkg/dpkg.cfg.d/unsafe-io"
    touch "$holder/whole"
}

# What the host needs to reach package indices, the root needs, too: names, certificates, proxies, other indices. No credentials.
hand_in_network() {
    local root=$1 file
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
        mkdir -p "$root/usr/local/share/ca-certificates"
        cp -L /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
    fi
    apt-config dump | grep -E '^Acquire::(https?::(Proxy|Timeout)|Retries|Check-Valid-Until|Check-Date)' >"$root/etc/apt/apt.conf.d/90host" || true
    if [ -f /etc/pip.conf ]; then grep -vE '//[^/]*@|find-links' /etc/pip.conf >"$root/etc/pip.conf" || true; fi
    if [ -f ~/.npmrc ]; then grep -E '^(@[^:=]*:)?(registry|proxy|https-proxy|noproxy|strict-ssl) *=' ~/.npmrc | grep -vE '//[^/]*@' >"$root/root/.npmrc" || true; fi
    for file in "${CARGO_HOME:-$HOME/.cargo}"/config.toml "${CARGO_HOME:-$HOME/.cargo}"/config; do
        [ -f "$file" ] || continue
        mkdir -p "$root/root/.cargo"
        # Its other tables name programs and folders of the host.
        awk '/^\[/ { kept = /^\[(source|registries|registry|http|net)[].]/ } kept && !/token|:\/\/[^\/]*@/' "$file" >"$root/root/.cargo/config.toml"
        break
    done
}

# Variables of the host that say how package indices are reached, as NAME=VALUE. Files of certificates are those that a root has.
network_variables() {
    local name
    for name in {http,https,no,all,ftp}_proxy {HTTP,HTTPS,NO,ALL,FTP}_PROXY PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_DEFAULT_TIMEOUT; do
        if [ -n "${!name:-}" ]; then printf '%s\0' "$name=${!name}"; fi
    done
    # Set-up installs ca-certificates, which adds the host's own.
    for name in SSL_CERT_FILE CURL_CA_BUNDLE GIT_SSL_CAINFO CARGO_HTTP_CAINFO PIP_CERT REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS; do
        if [ -n "${!name:-}" ]; then printf '%s\0' "$name=/etc/ssl/certs/ca-certificates.crt"; fi
    done
}

# Runs a command in the holder's root, in the background; wait_in_root waits for it.
# Processes, mounts and devices are its own; the network is the host's. $SUPERPIXEL_RUST is seen at $root_rust.
start_in_root() {
    local variables path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    [ -z "${SUPERPIXEL_RUST:-}" ] || path=$root_rust/bin:$path
    mapfile -d '' variables < <(network_variables)
    # shellcheck disable=SC2016  # expanded within
    unshare --mount --pid --ipc --fork --kill-child --propagation private -- bash -euc '
        root=$1 rust=$2 at=$3 cache=$4
        shift 4
        mount --bind "$root" "$root"
        cd "$root"
        mount -t proc -o nosuid,nodev,noexec proc proc
        mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
        mount -t tmpfs -o mode=755,nosuid tmpfs dev
        for node in null zero full random urandom tty; do
            : >dev/$node
            mount --bind /dev/$node dev/$node
        done
        mkdir dev/pts dev/shm
        mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
        mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
        ln -s pts/ptmx dev/ptmx
        ln -s /proc/self/fd dev/fd
        for n in 0,stdin 1,stdout 2,stderr; do ln -s /proc/self/fd/${n%,*} dev/${n#*,}; done
        mount --bind "$cache" var/cache/apt/archives
        if [ "$rust" ]; then
            mkdir -p ".$at"
            mount --bind "$rust" ".$at"
            mount -o remount,bind,ro ".$at"
        fi
        # Not chroot, below which a process may make no user namespace.
        mkdir -p .host
        pivot_root . .host
        cd /
        umount -l /.host
        rmdir /.host
        exec "$@"' bash "$holder/root" "${SUPERPIXEL_RUST:-}" "$root_rust" "$cache" \
        env -i PATH="$path" HOME=/root "${variables[@]}" "$@" </dev/null &
    root_process=$!
}
root_process=
wait_in_root() {
    local status=0
    wait "$root_process" || status=$?
    root_process=
    return $status
}
in_root() {
    start_in_root "$@"
    wait_in_root
}

# Ends what runs in a root. Its first process dies with unshare, and all others with that one.
end_in_root() {
    local first
    [ -n "$root_process" ] || return 0
    first=$(cat "/proc/$root_process/task/$root_process/children" 2>/dev/null || true)
    kill -KILL "$root_process" 2>/dev/null || true
    wait "$root_process" 2>/dev/null || true
    # shellcheck disable=SC2086  # words on purpose
    for first in $first; do
        while [ -e "/proc/$first" ]; do sleep 0.1; done
    done
    root_process=
}
