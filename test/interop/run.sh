#!/usr/bin/env bash
# Runs the interop suites against the real broker binary: the Service Bus SDKs for
# Go, JavaScript and Python (on uAMQP), the Event Hubs SDKs for the same, rhea, and Qpid
# Proton for Python. Prints N passed, N failed for each.
#
#   test/interop/run.sh        all
#   test/interop/run.sh js     the named ones
set -eu
cd "$(dirname "$0")/../.."
if (($# == 0)); then set -- go js python uamqp eventhub; fi
exec test/run.sh "${@/#/interop/}"
