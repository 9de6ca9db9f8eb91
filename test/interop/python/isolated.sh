# Runs the tests of one of Microsoft's SDKs for Python against the real broker binary. A
# run.sh sources it in the directory of its tests.
#
# Those SDKs know no other ports than 5671, and 443 for WebSockets and administration,
# so a suite has a network of its own, in which they are free. The exit status is 77
# where that, or the SDK, is not to be had.
# shellcheck shell=bash
readonly cannot_run=77
# Debian's modules are for Debian's own Python, whichever else is installed.
readonly python=/usr/bin/python3

install() { # PACKAGES...: from the distribution, where we may
	../../apt.sh "$@" >/dev/null 2>&1
}

# need MODULES PACKAGES...: installs the packages unless Python finds the modules.
need() {
	local modules=$1
	shift
	if "$python" -c "import $modules" 2>/dev/null; then return; fi
	install "$@" && "$python" -c "import $modules" 2>/dev/null && return
	echo "for the modules $modules of Python, $* are missing"
	exit "$cannot_run"
}

# isolated_tests ARGS...: runs unittest with these arguments and prints N passed, N failed.
isolated_tests() {
	local isolate=() way log status ran failed=0 n
	# The processes have a namespace of their own as well, so that none outlives the suite:
	# uAMQP has been seen to crash.
	for way in 'unshare --net --pid --fork --kill-child' 'unshare --map-root-user --net --pid --fork --kill-child'; do
		if $way true 2>/dev/null; then
			read -ra isolate <<<"$way"
			break
		fi
	done
	if ((${#isolate[@]} == 0)); then
		echo 'a network namespace is not allowed here'
		exit "$cannot_run"
	fi
	log=$(mktemp)
	# shellcheck disable=SC2064 # the name is known now
	trap "rm -f '$log'" EXIT
	if [[ -z ${TRIAGEMQ_BINARY:-} ]]; then
		(cd ../../.. && go build -o bin/triagemq ./cmd/triagemq) || exit 1
		TRIAGEMQ_BINARY=$(cd ../../.. && pwd)/bin/triagemq
		export TRIAGEMQ_BINARY
	fi
	# PYTHONPATH: the broker is run by the same module as for Proton.
	PYTHONPATH=../python PYTHONDONTWRITEBYTECODE=1 timeout 300 "${isolate[@]}" \
		"$python" -X faulthandler ../python/loopback.py "$python" -X faulthandler -m unittest discover -v "$@" >"$log" 2>&1
	status=$?
	if ((status != 0)); then tail -n 200 "$log"; fi
	ran=$(sed -nE 's/^Ran ([0-9]+) tests?.*/\1/p' "$log")
	for n in $(sed -nE 's/^FAILED \((.*)\)$/\1/p' "$log" | grep -oE '(failures|errors)=[0-9]+' | grep -oE '[0-9]+'); do
		failed=$((failed + n))
	done
	if ((status != 0 && failed == 0)); then failed=1; fi # it crashed, or hung
	echo "$((${ran:-0} > failed ? ran - failed : 0)) passed, $failed failed"
	((failed == 0))
}
