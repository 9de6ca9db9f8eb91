#!/usr/bin/env bash
# How long a step of a shard takes, and how long an urgent message waits, with many
# messages waiting: while they are sent, without and with a snapshot under way, and while
# they are purged beside a neighbour.
#
#   test/longest-step.sh [MESSAGES] [URGENT]
#
# Default: 10,000,000 messages and 1,000 urgent ones. Needs about 400 bytes of disk
# and 70 of memory for each message. TRIAGEMQ_BINARY names the binary; without it
# one is built.
set -euo pipefail
cd "$(dirname "$0")/.."
messages=${1:-10000000}
urgent=${2:-1000}
work=$(mktemp -d)
pid=
stop() {
	if [[ -n $pid ]]; then kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; fi
}
trap 'stop; rm -rf "$work"' EXIT
binary=${TRIAGEMQ_BINARY:-}
if [[ -z $binary ]]; then
	binary=$work/triagemq
	go build -o "$binary" ./cmd/triagemq
fi
key=0123456789abcdef0123456789abcdef
port=$((20000 + RANDOM % 20000))
url=amqp://RootManageSharedAccessKey:$key@127.0.0.1:$port
cat >"$work/config.yaml" <<END
data: $work/data
listeners: ["127.0.0.1:$port"]
storage: {shards: 1}
limits: {storedMemory: 16GiB}
security: {rules: [{name: RootManageSharedAccessKey, rights: [Send, Listen, Manage], primaryKey: "$key"}]}
queues:
  - {name: work, maxSizeInMegabytes: 1000000}
  - {name: ballast, maxSizeInMegabytes: 1000000}
  - {name: neighbour}
END
"$binary" serve --config "$work/config.yaml" >"$work/log" 2>&1 &
pid=$!
until curl -fs "http://127.0.0.1:$port/readyz" >/dev/null; do
	kill -0 "$pid" || { cat "$work/log"; exit 1; }
	sleep 0.1
done

metric() { curl -fs -u "RootManageSharedAccessKey:$key" "http://127.0.0.1:$port/metrics" | awk -v name="$1" '$1 == name {print $2}'; }
steps() { # the histogram of steps, one line
	curl -fs -u "RootManageSharedAccessKey:$key" "http://127.0.0.1:$port/metrics" |
		sed -n 's/^triagemq_shard_step_seconds_bucket{shard="0",le="\([^"]*\)"} \(.*\)/\1 \2/p'
}
# longest BEFORE AFTER: the bound of the longest steps between two histograms.
longest() {
	paste -d' ' "$1" "$2" | awk '{n = $4 - $2; if (n > last) {bound = $1} last = n} END {print bound " s"}'
}
measure() { # NAME
	steps >"$work/before"
	local snapshots
	snapshots=$(metric 'triagemq_shard_snapshot_bytes_total{shard="0"}')
	"$binary" bench --connection-string "$url" --queue work --urgent "$urgent" --receivers 16 --quiet | tee "$work/out" | sed -n "s/^  /$1: /p" | grep -E 'urgent|latency' || cat "$work/out"
	steps >"$work/after"
	awk -v a="$snapshots" -v b="$(metric 'triagemq_shard_snapshot_bytes_total{shard="0"}')" -v name="$1" \
		'BEGIN {printf "%s: snapshots wrote %.0f MB meanwhile\n", name, (b - a) / 1e6}'
	echo "$1: no step longer than $(longest "$work/before" "$work/after")"
}

# beside NAME COMMAND...: the longest step during a command, and what a neighbour notices, who
# sends and receives 500 messages a second.
beside() {
	local name=$1 neighbour
	shift
	steps >"$work/before"
	"$binary" bench --connection-string "$url" --queue neighbour --rate 500 --duration 30s --senders 1 --receivers 1 --credit 10 --quiet >"$work/neighbour" &
	neighbour=$!
	sleep 1
	local begin=$SECONDS
	"$@"
	echo "$name: $((SECONDS - begin)) s"
	steps >"$work/after"
	wait "$neighbour"
	grep -E 'latency|confirm' "$work/neighbour" | sed "s/^ */$name: the neighbour's /" || cat "$work/neighbour"
	echo "$name: no step longer than $(longest "$work/before" "$work/after")"
	paste -d' ' "$work/before" "$work/after" | awk -v name="$name" '{n = $4 - $2; if (n > last && $1 > 0.004) print name ": " n - last " steps up to " $1 " s"; last = n}'
}

echo "sending $messages messages"
beside fill "$binary" bench --connection-string "$url" --queue work --mode send --count "$messages" --batch 100 --window 20 --quiet
until [[ $(metric 'triagemq_shard_snapshot_bytes_total{shard="0"}') == "$(sleep 3; metric 'triagemq_shard_snapshot_bytes_total{shard="0"}')" ]]; do :; done
measure 'no snapshot'
# Twice the size of a snapshot in other messages has the next one taken. The disk gets
# a second to be done with them: what is measured is the snapshot.
"$binary" bench --connection-string "$url" --queue ballast --mode send --size 200000 --count $((messages / 3000 + 500)) --quiet >/dev/null
sleep 1
measure 'with a snapshot'
purge() { curl -fs -u "RootManageSharedAccessKey:$key" -X DELETE "http://127.0.0.1:$port/api/v1/queues/work/messages"; }
beside purge purge
