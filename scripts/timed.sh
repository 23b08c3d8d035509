#!/usr/bin/env bash
# Runs one step of `make test`, prints its name and how long it took, and keeps the times, so that a slow step is
# seen when it becomes slow:   scripts/timed.sh NAME COMMAND...   and at the end   scripts/timed.sh --summary
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
log="$root/.tools/test-times"
mkdir -p "$root/.tools"

if [[ $1 == --summary ]]; then
    echo "== all passed =="
    awk -F '\t' '{ total += $1; printf "%5d s  %s\n", $1, $2 } END { printf "%5d s  in all\n", total }' "$log"
    rm -f "$log"
    exit
fi

name=$1
shift
# The first step of `make test` starts a new account; an earlier run may have stopped half way.
if [[ $name == tools ]]; then
    rm -f "$log"
fi
echo "== $name =="
start=$SECONDS
if ! "$@"; then
    echo "== $name: FAILED after $((SECONDS - start)) s ==" >&2
    exit 1
fi
printf '%d\t%s\n' $((SECONDS - start)) "$name" >>"$log"
