#!/usr/bin/env bash
# Runs the Service Bus SDK for Python on uAMQP against the real broker binary.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
. ../python/isolated.sh
need azure.servicebus,uamqp,aiohttp python3-azure python3-uamqp python3-aiohttp
isolated_tests "$@"
