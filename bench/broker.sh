# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# To be sourced by the scripts beside it: a broker of its own, on a disk of its
# own, and its processor time. TRIAGEMQ is a binary to use instead of building one.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
broker=

cleanup() {
	if [ -n "$broker" ]; then
		kill "$broker" 2>/dev/null || true
		wait "$broker" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap cleanup EXIT

# start_broker starts a broker, with more flags if given, and sets host and port;
# queues orders and demo are there unless a file says otherwise. A second call
# starts it again on the same store.
start_broker() {
	binary=${TRIAGEMQ:-$work/triagemq}
	[ -x "$binary" ] || (cd "$here/.." && go build -o "$binary" ./cmd/triagemq)
	: >"$work/out"
	"$binary" serve --dev --data "$work/data" --listen 127.0.0.1:0 "$@" >"$work/out" 2>"$work/err" &
	broker=$!
	for _ in $(seq 3000); do
		if address=$(grep -m1 -o '127\.0\.0\.1:[0-9]*' "$work/out"); then
			host=${address%:*} port=${address#*:}
			return
		fi
		kill -0 "$broker" || { cat "$work/err" >&2; exit 1; }
		sleep 0.01
	done
	echo "the broker does not start" >&2
	exit 1
}

stop_broker() {
	kill "$broker"
	wait "$broker" || true
	broker=
}

# broker_ticks prints how long the broker was on a processor, in clock ticks.
broker_ticks() { awk '{print $14 + $15}' "/proc/$broker/stat"; }

# broker_rss prints the broker's resident memory in bytes.
broker_rss() { awk '/^VmRSS/ {print $2 * 1024}' "/proc/$broker/status"; }

# per_message prints microseconds for ticks and a number of messages.
per_message() { awk -v t="$1" -v n="$2" -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.2f", t / hz * 1e6 / n}'; }
