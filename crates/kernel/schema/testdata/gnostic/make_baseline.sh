#!/bin/sh
# Lets gnostic encode sample.json; what it says is in baseline.txt, one message per line.
cd "$(dirname "$0")" && go run . sample.json > baseline.txt
