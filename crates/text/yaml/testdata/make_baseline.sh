#!/bin/sh
# Writes baseline.json: what Go's own libraries make of inputs.txt and of the strings in baseline/main.go.
# Needs Go and its module proxy; the tests need neither, they read the committed file.
set -eu
cd "$(dirname "$0")/baseline"
go run . ../inputs.txt >../baseline.json.new
mv ../baseline.json.new ../baseline.json
