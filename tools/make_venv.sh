#!/bin/sh
# Make .venv from the first Python found that Tidegate runs on, with uv (its version is $1) in it.
set -eu
uv_version=$1

for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
    # A name on the PATH may be a shim without a Python behind it, and Debian parts venv from Python.
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null
    then
        echo "Making .venv with $("$candidate" --version) …"
        "$candidate" -m venv --clear .venv
        .venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$uv_version"
        exit 0
    fi
done

echo "No Python 3.11, 3.12 or 3.13 with the modules venv and ensurepip was found on the PATH." >&2
echo "Install one (on Debian and Ubuntu: apt install python3 python3-venv), or name it: make setup PYTHON=/path/to/python3.12" >&2
exit 1
