#!/usr/bin/env bash
# Runs the test suites and prints one line for each: N passed, N failed.
#
#   test/run.sh                 all suites
#   test/run.sh unit interop/js the named ones
#
# A suite is a directory below test/. One with a run.sh of its own is run by it;
# others by what they hold: a Go module or package, package.json, test*.py. The
# suites find the broker's binary in $TRIAGEMQ_BINARY.
#
# A suite that needs something which is missing and cannot be installed is named
# as not run; with CI=true that is a failure. So is a Go suite that skips all of its
# tests, because the kernel does not let it mount a file system, say.
#
# Suites that mostly wait run beside each other, $SUITES_AT_ONCE of them (3); the output
# of each is shown when it ends.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
top=$PWD
logs=$(mktemp -d)
running=() # suites that run beside others, by their process group
cleanup() {
	for group in "${!running[@]}"; do kill -- "-$group" 2>/dev/null; done
	rm -rf "$logs"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
readonly cannot_run=77 # exit status of a run.sh whose needs cannot be met

# count LOG PATTERN: how many lines match.
count() { grep -cE -- "$2" "$1" || true; }

# finish SUITE PASSED FAILED STATUS: a suite that fails without naming a test
# (it did not build, it hung) counts as one failure.
finish() {
	local passed=${2:-0} failed=${3:-0}
	if (($4 != 0 && failed == 0)); then failed=1; fi
	result "$1" "$passed" "$failed" "$1: $passed passed, $failed failed"
}

not_run() { # SUITE REASON
	local failed=0
	if [[ ${CI:-} == true ]]; then failed=1; fi
	result "$1" 0 "$failed" "$1: not run: $2"
}

# result SUITE PASSED FAILED TEXT: for the summary. A file, because suites that run
# beside others are processes of their own.
result() { printf '%d\t%d\t%s, %d s\n' "$2" "$3" "$4" "$((SECONDS - started))" >>"$logs/results"; }

# go_tests SUITE DIR ARGS...: shows the packages as they finish, and what failed.
go_tests() {
	local suite=$1 dir=$2 log status
	shift 2
	log=$logs/${suite//\//-}
	(cd "$dir" && go test -v "$@") >"$log" 2>&1
	status=$?
	grep -E '^(ok|FAIL|panic:)' "$log"
	if ((status != 0)); then
		echo '-- what failed'
		awk -f "$top/test/failures.awk" "$log"
		echo '-- the end of the rest' # with packages that were not built
		grep -vE '^ *(=== (RUN|PAUSE|CONT|NAME)|--- PASS|ok|PASS)' "$log" | tail -n 300
	fi
	if ((status == 0)) && ! grep -qE '^ *--- (PASS|FAIL)' "$log" && grep -q '^--- SKIP' "$log"; then
		not_run "$suite" "$(sed -nE 's/^ +[a-z_]+_test\.go:[0-9]+: //p' "$log" | head -n 1)"
		return
	fi
	finish "$suite" "$(count "$log" '^ *--- PASS')" "$(count "$log" '^ *--- FAIL')" "$status"
}

js_tests() { # SUITE DIR
	local log=$logs/${1//\//-} status
	if ! command -v npm >/dev/null && ! install nodejs npm; then
		not_run "$1" 'npm is missing'
		return
	fi
	if ! "$2/install.sh" >"$log" 2>&1; then
		tail -n 20 "$log"
		not_run "$1" 'npm ci failed'
		return
	fi
	# The files wait more than they work.
	(cd "$2" && timeout 600 node --test --test-concurrency=3 --test-reporter=tap) >"$log" 2>&1
	status=$?
	if ((status != 0)); then grep -vE '^ *(ok|  duration_ms|  type:|  ---|  \.\.\.)' "$log" | tail -n 200; fi
	finish "$1" "$(awk '/^# pass /{print $3}' "$log")" "$(awk '/^# fail /{print $3}' "$log")" "$status"
}

python_tests() { # SUITE DIR
	local log=$logs/${1//\//-} status failed ran
	# Debian's module is for Debian's own Python, whichever else is installed.
	local python=/usr/bin/python3
	if ! "$python" -c 'import proton' 2>/dev/null && ! install python3-qpid-proton; then
		not_run "$1" 'Qpid Proton for Python is missing'
		return
	fi
	(cd "$2" && timeout 600 "$python" -m unittest discover -v) >"$log" 2>&1
	status=$?
	if ((status != 0)); then tail -n 200 "$log"; fi
	ran=$(awk '/^Ran [0-9]+ test/{print $2}' "$log")
	failed=$(count "$log" '\.\.\. (FAIL|ERROR)$')
	finish "$1" $((${ran:-0} - failed)) "$failed" "$status"
}

# install PACKAGES...: from the distribution, where we may.
install() {
	"$top/test/apt.sh" "$@" >"$logs/apt" 2>&1 || { tail -n 5 "$logs/apt"; return 1; }
}

# own_runner SUITE DIR: its last line of the common form counts.
own_runner() {
	local log=$logs/${1//\//-} status line
	(cd "$2" && ./run.sh) 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}
	if ((status == cannot_run)); then
		not_run "$1" "$(tail -n 1 "$log")"
		return
	fi
	line=$(grep -oE '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	finish "$1" "$(awk '{print $1}' <<<"${line:-0}")" "$(awk '{print $3 + 0}' <<<"${line:-0 0 0}")" "$status"
}

# Packages that have no goroutine and may not import sync, context or net, which
# internal/archtest checks: the race detector has nothing to find in them. Their callers
# are tested with it. archtest only reads sources.
pure=(./internal/queue/... ./internal/stream ./internal/group ./internal/filter/... ./internal/policy/... ./internal/objective ./internal/ordering ./internal/archtest)

# Packages with files named *_race_test.go: with the race detector their tests play
# fewer rounds.
shortened=(./internal/journal/... ./internal/engine ./internal/queueserver ./internal/servicebus ./internal/sim ./internal/sim/groups)

run_suite() {
	local suite=$1 dir=test/$1 started=$SECONDS
	echo "== $suite"
	if [[ $suite == unit ]]; then
		# shellcheck disable=SC2046 # one argument for each package
		go_tests unit . -race -shuffle=on -timeout 30m \
			$(go list ./... | grep -v "^$(go list -m)/test/" | grep -vxFf <(go list "${pure[@]}"))
		started=$SECONDS
		go_tests unit/full . -shuffle=on -timeout 30m "${pure[@]}" "${shortened[@]}"
	elif [[ $suite == browser ]] && ! command -v chromium >/dev/null && ! install chromium; then
		not_run "$suite" 'Chromium is missing'
	elif [[ -x $dir/run.sh ]]; then
		own_runner "$suite" "$dir"
	elif [[ -f $dir/go.mod ]]; then
		go_tests "$suite" "$dir" -count=1 -timeout 10m ./...
	elif [[ -f $dir/package.json ]]; then
		js_tests "$suite" "$dir"
	elif compgen -G "$dir/test*.py" >/dev/null; then
		python_tests "$suite" "$dir"
	elif compgen -G "$dir/*_test.go" >/dev/null; then
		go_tests "$suite" . -count=1 -timeout 10m "./$dir/..."
	else
		not_run "$suite" 'there is no such suite'
	fi
}

# suites lists what there is to run: unit tests first, then test/*, where interop
# has a suite for each language.
suites() {
	echo unit
	for dir in test/*/ test/interop/*/; do
		dir=${dir%/}
		case $dir in
		test/interop | 'test/*' | 'test/interop/*') ;;
		*) if [[ -n $(find "$dir" -maxdepth 1 -name '*_test.go' -o -maxdepth 1 -name 'test*.py' -o -maxdepth 1 -name run.sh -o -maxdepth 1 -name package.json -o -maxdepth 1 -name go.mod) ]]; then
			echo "${dir#test/}"
		fi ;;
		esac
	done
}

if (($# == 0)); then mapfile -t chosen < <(suites); else chosen=("$@"); fi
if [[ ${chosen[*]} != unit && -z ${TRIAGEMQ_BINARY:-} && -d cmd/triagemq ]]; then
	mkdir -p bin
	if compgen -G 'cmd/triagemq/*.go' >/dev/null; then
		go build -o bin/triagemq ./cmd/triagemq || exit 1
		export TRIAGEMQ_BINARY=$top/bin/triagemq
	fi
fi

# beside SUITE: whether it mostly waits, and measures nothing that others would disturb.
beside() { [[ $1 == interop/* || $1 == crash || $1 == disk || $1 == limits || $1 == oldstore ]]; }

# run_beside SUITES...: some at a time.
run_beside() {
	local suite
	set -m # a process group for each, so that all of it can be stopped
	for suite in "$@"; do
		while ((${#running[@]} >= ${SUITES_AT_ONCE:-3})); do show_next; done
		run_suite "$suite" >"$logs/output-${suite//\//-}" 2>&1 &
		running[$!]=$suite
	done
	while ((${#running[@]} > 0)); do show_next; done
	set +m
}

# show_next waits for the next suite that ends, and shows its output.
show_next() {
	local ended
	wait -n -p ended "${!running[@]}"
	cat "$logs/output-${running[ended]//\//-}"
	unset 'running[ended]'
}

touch "$logs/results"
together=()
for suite in "${chosen[@]}"; do
	if beside "$suite" && ((${#chosen[@]} > 1)); then together+=("$suite"); else run_suite "$suite"; fi
done
run_beside "${together[@]}"

echo
cut -f 3 "$logs/results"
awk -F '\t' '{ passed += $1; failed += $2 } END { printf "total: %d passed, %d failed\n", passed, failed; exit failed > 0 }' "$logs/results"
