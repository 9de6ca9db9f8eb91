# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# To be sourced by the scripts beside it: a broker of its own, on a disk of its
# own, and its processor time. TRIAGEMQ is a binary to use instead of building one;
# BEFORE is an older one that server can start for comparison.

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
	start "$binary" serve --dev --data "$work/data" --listen 127.0.0.1:0 "$@"
}

# start runs a program that prints where it listens.
start() {
	: >"$work/out"
	"$@" >"$work/out" 2>"$work/err" &
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

# servers lists what start_server starts: a server that does nothing, the same
# with a journal that is synced before it accepts, and the broker.
servers="null journal ${BEFORE:+before} broker"

# start_server starts one of servers on a store that has grown already: a new
# journal writes its files before it can use them over and over, which costs a short
# run a tenth of its time, and a broker that runs for a while nothing.
start_server() {
	rm -rf "$work/data"
	for program in null goamqp; do
		[ -x "$work/$program" ] || (cd "$here/.." && go build -o "$work/$program" "./bench/$program")
	done
	case $1 in
	null) start "$work/null" -listen 127.0.0.1:0 ;;
	journal) mkdir "$work/data" && start "$work/null" -listen 127.0.0.1:0 -data "$work/data" ;;
	before) TRIAGEMQ=$BEFORE start_broker ;;
	broker) start_broker ;;
	esac
	"$work/goamqp" -url "amqp://$host:$port" -queue demo -size 16384 -duration 2s >/dev/null
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

# note prints and keeps one measurement: of which server, what, how many a second,
# and the processor time of server and client for each in microseconds.
note() {
	printf '%-8s %-8s %8.0f/s %7.2f µs of the server each%s\n' "$1" "$2" "$3" "$4" "${5:+, ${5%µs} of the client}"
	echo "$*" >>"$work/notes"
}

# compare prints the median of each measurement, and its ratio to that of the null
# server with a journal.
compare() {
	echo "medians                rate  of journal's     server  of journal's"
	sort -k2,2 -k1,1 "$work/notes" | awk '
		function median(list,   n, a, i, j, x) {
			n = split(list, a, " ")
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && a[j] + 0 < a[j - 1] + 0; j--) { x = a[j]; a[j] = a[j - 1]; a[j - 1] = x }
			return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
		}
		{ key = $2 " " $1; if (!(key in rate)) keys[++n] = key; rate[key] = rate[key] " " $3; cpu[key] = cpu[key] " " $4 }
		END {
			for (i = 1; i <= n; i++) {
				split(keys[i], part, " "); base = part[1] " journal"
				printf "%-8s %-8s %8.0f/s %10.2f %10.2f µs %10.2f\n", part[2], part[1], median(rate[keys[i]]),
					median(rate[keys[i]]) / median(rate[base]), median(cpu[keys[i]]), median(cpu[keys[i]]) / median(cpu[base])
			}
		}'
}
