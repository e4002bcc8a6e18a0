#!/bin/bash
# Applies the real fix.
cd /testbed || exit 1
git apply --whitespace=nowarn "$(dirname "$0")/fix.patch"
