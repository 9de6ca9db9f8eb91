#!/usr/bin/env bash
# Runs the Event Hubs SDK for Python, on its own AMQP and on uAMQP, against the real
# broker binary, with Azurite for its checkpoint store.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
. ../python/isolated.sh
need azure.eventhub.extensions.checkpointstoreblob,azure.storage.blob,uamqp,aiohttp,websocket \
	python3-azure python3-azure-storage python3-uamqp python3-aiohttp python3-websocket
if ! command -v npm >/dev/null && ! install nodejs npm; then
	echo 'npm is missing'
	exit "$cannot_run"
fi
if ! ../js/install.sh >/dev/null; then
	echo 'npm ci failed'
	exit "$cannot_run"
fi
isolated_tests "$@"
