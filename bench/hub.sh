#!/usr/bin/env bash
# Events in and out of a hub, beside JetStream and the disk alone, in turns.
#
#   bench/hub.sh [ROUNDS] [SECONDS]
#
# Default: 3 rounds of 5 seconds. 16 partitions, 256 bytes, batches of 100. Events are read
# as our client does, in batches, and then one by one, as the SDKs do. The disk alone writes
# 1 MiB for each sync. TRIAGEMQ is a binary to use instead of building one; DIR is
# where stores are made.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3}
seconds=${2:-5}
work=$(mktemp -d "${DIR:-${TMPDIR:-/tmp}}/hub-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
binary=${TRIAGEMQ:-$work/triagemq}
[ -x "$binary" ] || go build -o "$binary" ./cmd/triagemq
go build -o "$work/sequential" ./bench/sequential
(cd bench/jetstream && go build -o "$work/jetstream" .)

for round in $(seq "$rounds"); do
	echo "== round $round"
	"$work/sequential" -dir "$work" -duration "${seconds}s"
	for single in "" --single; do
		"$binary" bench --embedded --data "$work" --hub events --partitions 16 --duration "${seconds}s" --quiet $single
	done
	for sync in "" -sync; do
		for batch in 1 100; do
			"$work/jetstream" -dir "$work" -duration "${seconds}s" -batch "$batch" -window $((batch == 1 ? 1000 : 32)) $sync
		done
	done
done
