# Shared by the scripts: what is installed, and how they speak.
# shellcheck shell=bash

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

build_packages="gcc cmake ninja-build pkg-config liblmdb-dev libcurl4-openssl-dev
    libjansson-dev libmicrohttpd-dev libssl-dev libgnutls28-dev zlib1g-dev uthash-dev
    librdkafka-dev"
test_packages="libcriterion-dev curl openssl procps"
kafka_packages="openjdk-17-jre-headless kcat"
check_packages="clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev llvm-14 git"

# Installs the Debian packages that are missing; says nothing when none is.
install_packages() {
    local missing="" package
    for package in $*; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -q '^installed$' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    say "installing:$missing"
    local as_root=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "these packages are missing, and only root can install them:$missing"
        as_root=sudo
    fi
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# build PRESET [TARGET...]: configures and builds into build/PRESET; the
# compiler is heard only when it fails.
build() {
    local preset=$1 log
    shift
    say "building build/$preset"
    cmake --preset "$preset" >/dev/null || die "cmake --preset $preset failed"
    log=$(mktemp)
    if ! cmake --build --preset "$preset" ${1:+--target "$@"} >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die "the build failed"
    fi
    rm -f "$log"
}

# The providers' packages that sign what the end-to-end tests send.
install_senders() {
    command -v npm >/dev/null || install_packages nodejs npm
    [ tests/e2e/senders/node_modules/.package-lock.json -nt tests/e2e/senders/package-lock.json ] && return
    say "installing the senders' npm packages"
    (cd tests/e2e/senders && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null)
}
