#!/usr/bin/env bash
# Runs the Service Bus SDK for Python on uAMQP against the real broker binary.
#
# That SDK knows no other ports than 5671, and 443 for WebSockets and administration,
# so the suite has a network of its own, in which they are free. The exit status is
# 77 where that, or the SDK, is not to be had.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
readonly cannot_run=77
# Debian's modules are for Debian's own Python, whichever else is installed.
readonly python=/usr/bin/python3

sdk() { "$python" -c 'import azure.servicebus, uamqp, aiohttp' 2>/dev/null; }

install() { # PACKAGES...: from the distribution, where we may
	if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then return 1; fi
	(apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@") >/dev/null 2>&1
}

if ! sdk && ! { install python3-azure python3-uamqp python3-aiohttp && sdk; }; then
	echo 'the Service Bus SDK for Python on uAMQP (python3-azure, python3-uamqp) is missing'
	exit "$cannot_run"
fi
isolate=()
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
trap 'rm -f "$log"' EXIT
if [[ -z ${TRIAGEMQ_BINARY:-} ]]; then
	(cd ../../.. && go build -o bin/triagemq ./cmd/triagemq) || exit 1
	TRIAGEMQ_BINARY=$(cd ../../.. && pwd)/bin/triagemq
	export TRIAGEMQ_BINARY
fi
# PYTHONPATH: the broker is run by the same module as for Proton.
PYTHONPATH=../python PYTHONDONTWRITEBYTECODE=1 timeout 300 "${isolate[@]}" \
	"$python" -X faulthandler loopback.py "$python" -X faulthandler -m unittest discover -v "$@" >"$log" 2>&1
status=$?
if ((status != 0)); then tail -n 200 "$log"; fi
ran=$(sed -nE 's/^Ran ([0-9]+) tests?.*/\1/p' "$log")
failed=0
for n in $(sed -nE 's/^FAILED \((.*)\)$/\1/p' "$log" | grep -oE '(failures|errors)=[0-9]+' | grep -oE '[0-9]+'); do
	failed=$((failed + n))
done
if ((status != 0 && failed == 0)); then failed=1; fi # it crashed, or hung
echo "$((${ran:-0} > failed ? ran - failed : 0)) passed, $failed failed"
((failed == 0))
