#!/usr/bin/env bash
# A drained store is small, however its entities are spread over the shards.
#
#   test/drained.sh [SECONDS]
#
# For each layout a broker is started, messages go through it for SECONDS (default
# 10), and when it has come to rest the size of its directory is printed, before
# and after a restart. The limit is 200 MiB. TRIAGEMQ_BINARY names the binary;
# without it one is built.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
limit_mib=200
work=$(mktemp -d)
pid=
stop() {
	if [[ -n $pid ]]; then kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; fi
	pid=
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

# config SHARDS QUEUES...: writes the configuration of a broker.
config() {
	local shards=$1
	shift
	{
		echo "data: $work/data"
		echo "listeners: [\"127.0.0.1:$port\"]"
		echo "storage: {shards: $shards}"
		echo "security: {rules: [{name: RootManageSharedAccessKey, rights: [Send, Listen, Manage], primaryKey: \"$key\"}]}"
		if (($# > 0)); then
			echo "queues:"
			for q in "$@"; do echo "  - {name: $q}"; done
		fi
	} >"$work/config.yaml"
}

start() {
	"$binary" serve --config "$work/config.yaml" >"$work/log" 2>&1 &
	pid=$!
	for _ in $(seq 100); do
		if curl -fs "http://127.0.0.1:$port/readyz" >/dev/null; then return; fi
		sleep 0.1
	done
	cat "$work/log"
	echo "the broker does not start" >&2
	exit 1
}

through() { "$binary" bench --connection-string "$url" --queue "$1" --duration "${2}s" --quiet >/dev/null; }

# rest waits until the size of the store has not changed for 15 seconds: a store gives
# up what it keeps ready after a few.
rest() {
	local before=-1 now same=0
	for _ in $(seq 60); do
		now=$(du -s --apparent-size --block-size=1 "$work/data" | cut -f1)
		if [[ $now == "$before" ]]; then same=$((same + 1)); else same=0; fi
		if ((same >= 15)); then break; fi
		before=$now
		sleep 1
	done
	echo $((now >> 20))
}

failed=0
# layout NAME SHARDS QUEUES... -- USED...: messages go through the queues named last.
layout() {
	local name=$1 shards=$2 queues=() after before
	shift 2
	while [[ $1 != -- ]]; do queues+=("$1"); shift; done
	shift
	rm -rf "$work/data"
	config "$shards" "${queues[@]}"
	start
	for q in "$@"; do
		if [[ $q == delete:* ]]; then
			curl -fsS -o /dev/null -X DELETE -u "RootManageSharedAccessKey:$key" "http://127.0.0.1:$port/api/v1/queues/${q#delete:}"
		else
			through "$q" "$seconds"
		fi
	done
	before=$(rest)
	stop
	start
	after=$(rest)
	stop
	printf '%-44s %5d MiB, after a restart %5d MiB\n' "$name" "$before" "$after"
	if ((before > limit_mib || after > limit_mib)); then failed=1; fi
}

layout 'no entity' 2 --
layout 'one queue, one shard' 1 a -- a
layout 'one queue, two shards' 2 a -- a
layout 'one queue, 64 shards' 64 a -- a
layout 'many queues, one of them used' 8 a b c d e f g h i j k l -- d
layout 'queues that were used and deleted' 4 a b c -- a delete:a b delete:b c
if ((failed)); then
	echo "a drained store is larger than $limit_mib MiB" >&2
	exit 1
fi
