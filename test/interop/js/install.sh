#!/usr/bin/env bash
# Installs the packages of package-lock.json, unless they are installed already. Several
# suites use them, at the same time: Azurite is one of them.
set -eu
cd "$(dirname "$0")"
exec 9<package.json
flock 9
if cmp -s package-lock.json node_modules/.installed; then exit; fi
npm ci --no-audit --no-fund
cp package-lock.json node_modules/.installed
