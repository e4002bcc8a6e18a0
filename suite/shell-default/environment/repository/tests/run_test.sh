#!/bin/bash
# Prints the results in the Test Anything Protocol.
cd "$(dirname "$0")/.." || exit 1
count=0 failed=0
check() { # NAME EXPECTED ACTUAL
    count=$((count + 1))
    if [ "$2" = "$3" ]; then echo "ok $count - $1"; else failed=1; echo "not ok $count - $1"; fi
}
check "a name" "Hello, Ada!" "$(bash greet.sh Ada)"
echo "1..$count"
exit $failed
