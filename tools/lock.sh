#!/bin/sh
# Make the hash locks from the .in files, or with --check say whether they still belong together.
# The check compares digests and needs no network.
set -eu
locks="requirements requirements-dev requirements-java benchmarks/peers/requirements benchmarks/hudi_peers/requirements benchmarks/flink_peers/requirements"

digest() {  # of a .in file and, for the developers' lock, of what it includes
    case $1 in
        requirements-dev) cat requirements-dev.in requirements.in ;;
        *) cat "$1.in" ;;
    esac | sha256sum | cut -c 1-16
}

if [ "${1:-}" = --check ]; then
    for lock in $locks; do
        if [ "$(head -n 1 "$lock.txt")" != "# Locks $lock.in $(digest "$lock"); make lock" ]; then
            echo "$lock.txt does not belong to $lock.in any more: run 'make lock' and commit both." >&2
            exit 1
        fi
    done
    exit 0
fi

# One lock for all: `--universal` resolves for every platform and every Python from 3.11 on. The
# versions of the lock that is there are kept where they still fit; pass --upgrade for newer ones.
for lock in $locks; do
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header "$@" "$lock.in" -o "$lock.txt"
    { echo "# Locks $lock.in $(digest "$lock"); make lock"; grep -v '^# Locks ' "$lock.txt"; } > "$lock.new"
    mv "$lock.new" "$lock.txt"
done
