#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Urgent messages past a backlog, with 16 workers that hold one message each and
# drain it as fast as they can: TriageMQ, every message synced, and beanstalkd,
# which keeps everything in memory, in turns; and what the disk takes for a sync,
# alone and while beanstalkd drains its backlog, below which no synced broker can be.
#
#	bench/urgent.sh [backlog] [rounds]
#
# Needs Debian's beanstalkd; installs it as root.
. "$(dirname "$0")/broker.sh"
backlog=${1:-1000000} rounds=${2:-3}
peer=

if ! command -v beanstalkd >/dev/null && [ "$(id -u)" = 0 ]; then
	apt-get install -y -qq beanstalkd >/dev/null
fi
(cd "$here/.." && go build -o "$work/beanprobe" ./bench/beanstalkd && go build -o "$work/fdatasync" ./bench/fdatasync)
stop_peer() { [ -z "$peer" ] || { kill "$peer" && wait "$peer" || true; } 2>/dev/null; peer=; }
trap 'stop_peer; cleanup' EXIT

for _ in $(seq "$rounds"); do
	"$work/fdatasync" -dir "$work"
	start_broker
	"$binary" bench -q --connection-string "amqp://$host:$port" --queue demo --urgent 1000 --backlog "$backlog" --receivers 16
	stop_broker
	rm -rf "$work/data"

	beanstalkd -l 127.0.0.1 -p 11399 2>/dev/null &
	peer=$!
	sleep 0.5
	"$work/beanprobe" -address 127.0.0.1:11399 -urgent 1000 -backlog "$backlog"
	"$work/beanprobe" -address 127.0.0.1:11399 -urgent 4000 -backlog 200000 >/dev/null &
	probe=$!
	sleep 2.5 # filled by then, and draining
	"$work/fdatasync" -dir "$work" -count 500 -pause 1ms -beside "a draining beanstalkd"
	kill "$probe" 2>/dev/null || true
	wait "$probe" 2>/dev/null || true
	stop_peer
done
