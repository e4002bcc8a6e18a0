#!/bin/bash
# Prints the number of files in a folder.
count=0
for file in $(find "$1" -type f | sort); do
    [ -f "$file" ] && count=$((count + 1))
done
echo "$count"
