#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a broker of ours needs: memory for a waiting message, time to start with a
# backlog, processor time with many idle queues, and whether the number of levels
# matters.
#
#	bench/figures.sh [backlog]
. "$(dirname "$0")/broker.sh"
backlog=${1:-1000000}

echo "== a backlog of $backlog messages"
start_broker
empty=$(broker_rss)
"$binary" bench -q --connection-string "amqp://$host:$port" --queue demo --mode send --count "$backlog"
echo "  $((($(broker_rss) - empty) / backlog)) bytes of resident memory for each message, cache and garbage included"
kill -9 "$broker"
wait "$broker" 2>/dev/null || true
from=$(date +%s%N)
start_broker
echo "  started after kill -9 in $((($(date +%s%N) - from) / 1000000)) ms, and then has"
echo "  $((($(broker_rss) - empty) / backlog)) bytes of resident memory for each message"
stop_broker
rm -rf "$work/data"

echo "== 1,000 idle queues with waiting receivers"
{ echo "queues:"; for i in $(seq 0 999); do echo "- name: q$i"; done; } >"$work/queues.yaml"
(cd "$here/.." && go build -o "$work/idle" ./bench/idle)
start_broker --config "$work/queues.yaml"
"$work/idle" -url "amqp://$host:$port" -duration 14s >"$work/idle.out" &
client=$!
until grep -q waiting "$work/idle.out"; do sleep 0.1; done
sleep 2
before=$(broker_ticks)
sleep 10
echo "  $(($(broker_ticks) - before)) ticks of $((10 * $(getconf CLK_TCK))) on a processor in 10 s"
wait "$client"
stop_broker
rm -rf "$work/data"

echo "== levels"
for _ in 1 2 3; do
	for levels in 1 10 100 256; do
		printf '  %3d levels: ' "$levels"
		"$binary" bench --embedded -q --data "$work" --levels "$levels" --count 500000 | awk '$1 == "out"'
	done
done
