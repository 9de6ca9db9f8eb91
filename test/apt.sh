#!/usr/bin/env bash
# apt.sh PACKAGES...: installs packages of the distribution, where we may. Suites run
# beside each other: one of them installs at a time, and waits for others on the machine.
set -euo pipefail
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then exit 1; fi
exec 9>"${TMPDIR:-/tmp}/triagemq-test-apt.lock"
flock 9
export DEBIAN_FRONTEND=noninteractive
apt-get -o DPkg::Lock::Timeout=300 update
apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
