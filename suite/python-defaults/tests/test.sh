#!/bin/bash
# Lays the hidden tests over the result and executes them. The reward is 1 if they pass.
cd /testbed || exit 1
cp -r "$(dirname "$0")/files/." .
mkdir -p /logs/verifier
if (
set -eo pipefail
python3 -m unittest discover -v -s tests -t .
); then echo 1; else echo 0; fi | tee /logs/verifier/output.txt
tail -n 1 /logs/verifier/output.txt > /logs/verifier/reward.txt
