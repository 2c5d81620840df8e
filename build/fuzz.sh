#!/bin/sh
# Runs every fuzz target of the tree for the given time, one after the other; stops at the first failure.
set -eu
time=${1:-10s}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
  for target in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/' | sort -u); do
    echo "== $dir $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$dir"
  done
done
