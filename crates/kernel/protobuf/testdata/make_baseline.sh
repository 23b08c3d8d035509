#!/bin/sh
# Makes baseline.zlib anew with Kubernetes' own Go types; needs Go. Run it after `cargo xtask codegen protobuf`.
set -eu
cd "$(dirname "$0")"
go run . ../data/messages.facts baseline.zlib
