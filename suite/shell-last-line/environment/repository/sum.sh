#!/bin/bash
# Adds the numbers on stdin, one in each line.
total=0
while read -r number; do
    total=$((total + number))
done
echo "$total"
