#!/usr/bin/env bash
# Builds the programs of tests/gateway-conformance into a directory: the suite, its echo server, and what keeps backends.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
target=$(cd "$1" && pwd)
cd "$root/tests/gateway-conformance"
go test -c -o "$target/conformance.test" .
go build -o "$target/echo-basic" sigs.k8s.io/gateway-api/conformance/echo-basic
go build -o "$target/backends" ./backends
