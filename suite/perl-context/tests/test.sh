#!/bin/bash
# Lays the hidden tests over the result and executes them. The reward is 1 if they pass.
cd /testbed || exit 1
cp -r "$(dirname "$0")/files/." .
mkdir -p /logs/verifier
if bash -eo pipefail -c 'perl -Ilib t/*.t'; then reward=1; else reward=0; fi
echo "$reward" > /logs/verifier/reward.txt
