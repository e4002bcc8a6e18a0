#!/bin/bash
# Runs a command and says how it ended.
"$@"
code=$?
echo "ended with $code"
