#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Throughput with Azure/go-amqp as the client, and what it costs the server: the
# null server, the null server with a journal, and the broker in turns.
#
#	bench/goamqp.sh [flags of bench/goamqp]
#
# ROUNDS is how often each has its turn (3); the medians are compared at the end.
. "$(dirname "$0")/broker.sh"

for _ in $(seq "${ROUNDS:-3}"); do
	for server in $servers; do
		start_server "$server"
		before=$(broker_ticks)
		"$work/goamqp" -url "amqp://$host:$port" -queue demo "$@" >"$work/result"
		messages=$(awk '$1 == "out" {print $3}' "$work/result")
		note "$server" "in+out" "$(awk '$1 == "out" {print $2 + 0}' "$work/result")" \
			"$(per_message $(($(broker_ticks) - before)) "$messages")" "$(awk '$1 == "out" {print $6}' "$work/result")"
		stop_broker
	done
done
compare
