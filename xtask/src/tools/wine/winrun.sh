#!/bin/sh
# Made by `cargo xtask`. winrun PROGRAM.EXE [ARGUMENT…]: runs a Windows program, without a screen.
# WINEPREFIX names the Windows machine it runs on, which is made from the template when it is not
# there. Without WINEPREFIX it gets a machine of its own, which is shut down and removed at the end.
set -u
wine='@WINE@'
export WINEDEBUG="${WINEDEBUG:--all}" PATH="$wine/usr/lib/wine:$PATH"
unset DISPLAY WAYLAND_DISPLAY

# Copies beside and renames, so that two who start at once share one complete machine.
make_machine() {
    cp -a --reflink=auto --no-preserve=ownership "$wine/template" "$1.$$" || return
    mv -T "$1.$$" "$1" 2>/dev/null || rm -rf "$1.$$"
}

if [ -n "${WINEPREFIX:-}" ]; then
    export WINEPREFIX
    [ -d "$WINEPREFIX" ] || make_machine "$WINEPREFIX" || exit 125
    exec wine64 "$@"
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/winrun-XXXXXX") || exit 125
export WINEPREFIX="$scratch/machine"
finish() {
    status=$?
    trap - EXIT HUP INT TERM
    timeout 30 wineserver -k >/dev/null 2>&1
    timeout 30 wineserver -w >/dev/null 2>&1
    rm -rf "$scratch"
    exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
make_machine "$WINEPREFIX" || exit 125
# In the background, so that a signal is handled at once; with our standard input, which a shell
# would otherwise take from it.
exec 3<&0
wine64 "$@" <&3 3<&- &
exec 3<&-
wait "$!"
