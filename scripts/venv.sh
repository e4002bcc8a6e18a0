#!/bin/sh
# venv.sh PYTHON FOLDER: makes a virtual environment with pip in it, also where Debian's
# python3-venv or git is not installed, and says what to do where it can't.
set -eu
python=$1 folder=$2

install() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing $* with apt-get"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    else
        echo "resolver needs $*: install it (sudo apt-get install $*) and run make again" >&2
        exit 1
    fi
}

command -v "$python" >/dev/null 2>&1 || install python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "resolver needs Python 3.11 or newer; $python is $("$python" --version). Set PYTHON=... and run make again" >&2
    exit 1
}
command -v git >/dev/null 2>&1 || install git ca-certificates
"$python" -c 'import ensurepip, venv' 2>/dev/null || install python3-venv
[ -x "$folder/bin/pip" ] || "$python" -m venv "$folder"
