#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Throughput with Azure/go-amqp as the client, and what it costs the broker.
#
#	bench/goamqp.sh [flags of bench/goamqp]
. "$(dirname "$0")/broker.sh"
(cd "$here/.." && go build -o "$work/goamqp" ./bench/goamqp)
start_broker
before=$(broker_ticks)
"$work/goamqp" -url "amqp://$host:$port" -queue demo "$@" | tee "$work/result"
messages=$(awk '$1 == "out" {print $3}' "$work/result")
echo "  $(per_message $(($(broker_ticks) - before)) "$messages") µs of the broker each"
