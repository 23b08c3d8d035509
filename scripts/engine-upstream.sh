#!/usr/bin/env bash
# The GitOps engine's scenarios against the real kube-apiserver: engine-upstream.sh BENCH [ARGUMENTS OF cargo test]
set -euo pipefail
bench=$1
shift
data=$(mktemp -d)
"$bench" peer --controllers --data "$data/peer" >"$data/out" 2>"$data/err" &
peer=$!
trap 'kill "$peer" 2>/dev/null || true; wait "$peer" 2>/dev/null || true; rm -rf "$data"' EXIT
for _ in $(seq 300); do
  [ -s "$data/out" ] && break
  kill -0 "$peer" 2>/dev/null || { cat "$data/err" >&2; exit 1; }
  sleep 0.2
done
export FAIRWAY_ENGINE_KUBECONFIG
FAIRWAY_ENGINE_KUBECONFIG=$(head -n 1 "$data/out")
cargo test -p fairway-gitops-engine --test engine "$@" -- --test-threads=1
