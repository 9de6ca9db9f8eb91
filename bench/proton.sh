#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Throughput with the C examples of Qpid Proton as clients: send alone, receive
# alone, both at once. They send small maps, one connection each way. The null
# server, the null server with a journal, and the broker take turns.
#
#	bench/proton.sh [messages]
#
# ROUNDS is how often each has its turn (3); the medians are compared at the end.
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

# measure runs a command and notes how long it took.
measure() {
	local server=$1 what=$2 before from
	shift 2
	before=$(broker_ticks)
	from=$(date +%s%N)
	"$@" >/dev/null
	note "$server" "$what" "$((count * 1000000000 / ($(date +%s%N) - from)))" "$(per_message $(($(broker_ticks) - before)) "$count")"
}

both() {
	"$work/receive" "$host" "$port" demo "$count" >"$work/received" &
	local receiver=$!
	"$work/send" "$host" "$port" demo "$count" >/dev/null
	wait "$receiver"
	grep -q "^$count messages received" "$work/received"
}

for _ in $(seq "${ROUNDS:-3}"); do
	for server in $servers; do
		start_server "$server"
		measure "$server" send "$work/send" "$host" "$port" demo "$count"
		measure "$server" receive "$work/receive" "$host" "$port" demo "$count"
		measure "$server" both both
		stop_broker
	done
done
compare
