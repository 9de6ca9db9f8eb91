#!/usr/bin/env bash
# Runs every fuzz test of the module for the given time each (default 10s).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
time=${1:-10s}
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz DIR NAME: one run. When the time is up in the middle of a step, go test
# may report its own deadline as a failure, without an input that fails; such a
# run says nothing and is repeated.
fuzz() {
	for _ in 1 2 3; do
		if go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x "$1" 2>&1 | tee "$log"; then return 0; fi
		if ! grep -q 'context deadline exceeded' "$log" || grep -q 'Failing input' "$log"; then return 1; fi
	done
	return 1
}

for dir in $(grep -rl --include='*_test.go' '^func Fuzz' --exclude-dir=node_modules --exclude-dir=interop . | xargs -n1 dirname | sort -u); do
	for name in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/' | sort -u); do
		echo "== $dir $name"
		if fuzz "$dir" "$name"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
done
echo "fuzz: $passed passed, $failed failed"
((failed == 0 && passed > 0))
