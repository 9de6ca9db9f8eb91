#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Throughput with the C examples of Qpid Proton as clients: send alone, receive
# alone, both at once. They send small maps, one connection each way.
#
#	bench/proton.sh [messages]
#
# Needs Debian's libqpid-proton11-dev and its examples; installs them as root.
. "$(dirname "$0")/broker.sh"
count=${1:-1000000}
examples=/usr/share/proton/examples/c

if [ ! -f "$examples/send.c" ] && [ "$(id -u)" = 0 ]; then
	apt-get install -y -qq gcc libqpid-proton11-dev libqpid-proton11-dev-examples >/dev/null
fi
for program in send receive; do
	gcc -O2 -o "$work/$program" "$examples/$program.c" -lqpid-proton
done
start_broker

# seconds runs a command and prints how long it took.
seconds() {
	local from to
	from=$(date +%s.%N)
	"$@" >/dev/null
	to=$(date +%s.%N)
	echo "$from $to" | awk '{print $2 - $1}'
}

measure() {
	local what=$1 before took
	shift
	before=$(broker_ticks)
	took=$(seconds "$@")
	awk -v what="$what" -v n="$count" -v t="$took" -v cpu="$(per_message $(($(broker_ticks) - before)) "$count")" \
		'BEGIN {printf "proton %-8s %9.0f/s   %d in %.2fs, %s µs of the broker each\n", what, n / t, n, t, cpu}'
}

both() {
	"$work/receive" "$host" "$port" demo "$count" >"$work/received" &
	local receiver=$!
	"$work/send" "$host" "$port" demo "$count" >/dev/null
	wait "$receiver"
}

measure send "$work/send" "$host" "$port" demo "$count"
measure receive "$work/receive" "$host" "$port" demo "$count"
measure both both
tail -1 "$work/received"
