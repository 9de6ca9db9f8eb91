#!/usr/bin/env bash
# Runs every fuzz test of the module for the given time each (default 10s).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
time=${1:-10s}
passed=0
failed=0
for dir in $(grep -rl --include='*_test.go' '^func Fuzz' --exclude-dir=node_modules --exclude-dir=interop . | xargs -n1 dirname | sort -u); do
	for name in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/' | sort -u); do
		echo "== $dir $name"
		if go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 10x "$dir"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
done
echo "fuzz: $passed passed, $failed failed"
((failed == 0 && passed > 0))
