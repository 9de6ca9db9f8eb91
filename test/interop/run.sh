#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the interop suites against the real broker binary: the Service Bus SDKs
# for Go and JavaScript, rhea, and Qpid Proton. Prints one line for each suite and
# fails if a case failed. A suite whose tools cannot be installed is reported as
# not run, which is a failure when CI=true.
#
# usage: run.sh [go] [js] [python]

set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
status=0

# report SUITE PASSED FAILED EXIT: says how a suite went, and what went wrong.
report() {
	echo "$1: $2 passed, $3 failed"
	if [ "$4" -ne 0 ] || [ "$3" -ne 0 ] || [ "$2" -eq 0 ]; then
		failures "$1" >"$work/failures"
		[ -s "$work/failures" ] || cp "$work/$1.log" "$work/failures"
		sed "s/^/    /" "$work/failures"
		status=1
	fi
}

# failures SUITE: the part of a suite's output that is about failures.
failures() {
	case $1 in
	go) grep -v -e '^=== ' -e '^ *--- PASS' "$work/go.log" ;;
	js) sed -n '/failing tests:/,$p' "$work/js.log" ;;
	python) sed -n '/^=====/,$p' "$work/python.log" ;;
	esac
}

# not_run SUITE WHY: says that a suite could not be run.
not_run() {
	echo "$1: not run: $2"
	if [ "${CI:-}" = true ]; then
		status=1
	fi
}

# number_after WORD FILE: the number that follows a word at the end of the output.
number_after() {
	n=$(sed -n "s/^[^a-z]*$1[ =]*\([0-9][0-9]*\).*/\1/p" "$2" | tail -n 1)
	echo "${n:-0}"
}

run_go() {
	(cd "$here/go" && go test -count=1 -v ./...) >"$work/go.log" 2>&1
	code=$?
	report go "$(grep -c '^ *--- PASS' "$work/go.log")" "$(grep -c '^ *--- FAIL' "$work/go.log")" $code
}

run_js() {
	command -v node >/dev/null && command -v npm >/dev/null || { not_run js "node is not installed"; return; }
	if ! (cd "$here/js" && npm ci --no-audit --no-fund) >"$work/npm.log" 2>&1; then
		not_run js "npm ci failed: $(tail -n 1 "$work/npm.log")"
		return
	fi
	(cd "$here/js" && node --test --test-reporter=spec) >"$work/js.log" 2>&1
	code=$?
	report js "$(number_after pass "$work/js.log")" "$(number_after fail "$work/js.log")" $code
}

# Proton's Python binding comes from Debian, for Debian's own interpreter.
python_with_proton() {
	/usr/bin/python3 -c 'import proton' 2>/dev/null && return
	[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
	{ apt-get install -y python3-qpid-proton || { apt-get update && apt-get install -y python3-qpid-proton; }; } >"$work/apt.log" 2>&1
	/usr/bin/python3 -c 'import proton' 2>/dev/null
}

run_python() {
	python_with_proton || { not_run python "python3-qpid-proton is not installed"; return; }
	(cd "$here/python" && PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest -v) >"$work/python.log" 2>&1
	code=$?
	report python "$(grep -c ' \.\.\. ok$' "$work/python.log")" \
		"$(grep -c ' \.\.\. \(FAIL\|ERROR\)$' "$work/python.log")" $code
}

if ! (cd "$root" && go build -o "$work/triagemq" ./cmd/triagemq); then
	echo "interop: the broker does not build" >&2
	exit 1
fi
TRIAGEMQ_BINARY=$work/triagemq
export TRIAGEMQ_BINARY

for suite in ${*:-go js python}; do
	case $suite in
	go) run_go ;;
	js) run_js ;;
	python) run_python ;;
	*) echo "interop: no suite \"$suite\"" >&2; status=1 ;;
	esac
done
exit $status
