# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash
# The one rule of every script that writes where its user is; sourced by those that do.
#
# A file is written where there is none, or where the script itself wrote what is there and nobody changed it since, or, with
# --force, where another file of that name is. Links and folders are never replaced, and an output that overlaps an input in any
# way is refused even with --force. Refusals come before anything is touched, say what to do, and end the script with status 2.
#
# Which files are ours says .superpixel-made beside them, in the form of sha256sum. What is not finished stands in a folder of its
# own, which is locked while its maker lives; the next start removes those of the dead.

made_list=.superpixel-made
own_marker=.superpixel-own
# --force, where it was given; set by the scripts.
force=

refuse() { printf 'error: %s\n' "$*" >&2; exit 2; }

# Puts the local path that a source names into `path`; empty where it names none: a path, or a URI.
local_path() {
    path=$1
    case $1 in
        file://*)
            path=${1#file://}
            path=/${path#*/}
            path=${path//\\/\\\\}
            printf -v path %b "${path//%/\\x}"
            ;;
        [A-Za-z]*://*) path= ;;
    esac
}

# Puts a path without links, dots and double slashes into `real`. Not $(...), which would lose a newline at the end of a name.
real_path() { IFS= read -r -d '' real < <(realpath -mz -- "$1"); }

# Refuses an output that is an input, stands in one, or has one in it, by any name: OUTPUT INPUT...
keep_apart() {
    [ -n "$1" ] || return 0
    local output=$1 input real at
    real_path "$output"
    at=${real%/}
    shift
    for input in "$@"; do
        [ -n "$input" ] || continue
        real_path "$input"
        real=${real%/}
        if [ "$at" = "$real" ] || [ "$output" -ef "$input" ]; then
            refuse "$output is the input; write to another folder"
        elif [[ $at/ = "$real"/* ]]; then
            refuse "$output stands in the input $input; write to another folder"
        elif [[ $real/ = "$at"/* ]]; then
            refuse "the input $input stands in $output; write to another folder"
        fi
    done
}

# The line of the list for a name: FOLDER NAME
made_line() {
    if [ -f "$1/$made_list" ] && [ ! -L "$1/$made_list" ]; then
        name=$2 awk 'substr($0, index($0, "  ") + 2) == ENVIRON["name"] { line = $0 } END { if (line == "") exit 1; print line }' "$1/$made_list"
    else
        return 1
    fi
}

# Succeeds if a file is as one of our scripts left it, or one of them did not come to its end: FOLDER NAME
is_ours() {
    local line
    [ -f "$1/$2" ] && [ ! -L "$1/$2" ] && line=$(made_line "$1" "$2") || return 1
    [ "$line" = "unfinished  $2" ] || (cd "$1" && sha256sum --status -c <<<"$line")
}

# Refuses names that may not be written in a folder: FOLDER NAME...
may_write() {
    local folder=$1 name
    shift
    if [ -e "$folder" ] || [ -L "$folder" ]; then [ -d "$folder" ] || refuse "$folder is not a folder"; fi
    for name in "$made_list" "$@"; do
        if [ -L "$folder/$name" ]; then
            refuse "$folder/$name is a link, and what it leads to is not ours to write; remove it or use another folder"
        elif [ -e "$folder/$name" ] && [ ! -f "$folder/$name" ]; then
            refuse "$folder/$name is there and is no file; remove it or use another folder"
        elif [ "$name" != "$made_list" ] && [ -e "$folder/$name" ] && [ -z "$force" ] && ! is_ours "$folder" "$name"; then
            refuse "$folder/$name is there and is not what this script wrote; move it away, use another folder, or replace it with --force"
        fi
    done
}

# Puts lines that it reads into the list of a folder, in place of those of the same names: FOLDER
note_lines() {
    local list
    list=$(mktemp "$1/$made_list.XXXXXX")
    touch "$1/$made_list"
    awk '{ name = substr($0, index($0, "  ") + 2) } FILENAME == "-" { new[name] = 1; print; next } !(name in new)' - "$1/$made_list" >"$list"
    chmod 644 "$list"
    mv -fT "$list" "$1/$made_list"
}
# Notes files as ours: FOLDER NAME...
note_made() { (cd "$1" && printf '%s\0' "${@:2}" | xargs -0 sha256sum --) | note_lines "$1"; }
# Notes names as ours that will be written bit by bit: FOLDER NAME...
note_unfinished() { printf 'unfinished  %s\n' "${@:2}" | note_lines "$1"; }

# Moves finished files into a folder, if all of them may be written there: FOLDER FILE...
publish() {
    local folder=$1 file name names=()
    shift
    for file in "$@"; do names+=("${file##*/}"); done
    may_write "$folder" "${names[@]}"
    mkdir -p "$folder"
    for file in "$@"; do
        name=${file##*/}
        # Beside the output first: from another file system it comes bit by bit.
        mv -f "$file" "$folder/.$name.superpixel-new"
        mv -fT "$folder/.$name.superpixel-new" "$folder/$name"
    done
    note_made "$folder" "${names[@]}"
}

# Succeeds if a folder is one that a script of ours made for itself.
is_own() { [ -d "$1" ] && [ ! -L "$1" ] && [ -f "$1/$own_marker" ] && [ ! -L "$1/$own_marker" ]; }
# Succeeds if something is mounted at or below a folder.
mounted_below() {
    local real
    real_path "$1"
    # As the kernel writes them there.
    real=${real//\\/\\134} real=${real// /\\040} real=${real//$'\t'/\\011} real=${real//$'\n'/\\012}
    at=$real awk '$5 == ENVIRON["at"] || index($5, ENVIRON["at"] "/") == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo
}

# Removes a folder of our own: FOLDER
remove_own() {
    is_own "$1" || return 0
    if mounted_below "$1"; then
        printf 'error: something is mounted below %s, which therefore stays\n' "$1" >&2
        return 1
    fi
    # The marker goes last: what is left of a removal that was interrupted is still known.
    find "$1" -mindepth 1 -maxdepth 1 ! -name "$own_marker" -exec rm -rf --one-file-system {} +
    rm -rf --one-file-system "$1"
}

# Locks a folder of our own until the script and all that it started have ended; fails if another run has it: FOLDER
lock_own() {
    local lock
    exec {lock}<"$1/$own_marker"
    flock -n "$lock" || { exec {lock}<&-; return 1; }
}

# Makes a folder of our own, locked, and puts its path into `own`, after it has removed those of dead runs: PARENT NAME
open_own() {
    local folder lock
    for folder in "$1/$2".??????; do
        is_own "$folder" || continue
        exec {lock}<"$folder/$own_marker"
        if flock -n "$lock"; then remove_own "$folder"; fi
        exec {lock}<&-
    done
    own=$(mktemp -d "$1/$2.XXXXXX")
    echo "Made by a script of superpixel, which removes this folder with all that is in it." >"$own/$own_marker"
    lock_own "$own"
}

# Makes a working folder anew: in Cargo's target folder, whose tag says that all in it can be made again, or one of our own.
fresh_folder() {
    local folder=${1%/}
    if [ -L "$folder" ] || { [ -e "$folder" ] && ! is_own "$folder" && ! is_cache "$(dirname "$folder")"; }; then
        refuse "$folder is there and was not made by superpixel's scripts; move it away"
    fi
    ! mounted_below "$folder" || refuse "something is mounted below $folder"
    rm -rf --one-file-system "$folder"
    mkdir -p "$folder"
    echo "Made by a script of superpixel, which removes this folder with all that is in it." >"$folder/$own_marker"
}
# Succeeds if a folder is one that Cargo builds in: the checkout's own, or one with its marks.
is_cache() {
    [ "$1" -ef "$(dirname "${BASH_SOURCE[0]}")/../target" ] || [ -f "$1/.rustc_info.json" ] ||
        head -c 43 "$1/CACHEDIR.TAG" 2>/dev/null | grep -qx 'Signature: 8a477f597d28d172789f06886806bc55'
}
# Makes a target folder, and refuses one in which somebody keeps something else: scripts make and remove folders superpixel-* in it.
check_target() {
    if [ ! -e "$1" ] || { [ -d "$1" ] && [ -z "$(ls -A -- "$1")" ]; }; then
        mkdir -p "$1"
        printf '%s\n' 'Signature: 8a477f597d28d172789f06886806bc55' '# Made by a script of superpixel for what can be made again.' >"$1/CACHEDIR.TAG"
    elif ! is_cache "$1"; then
        refuse "$1 holds files and is no target folder of Cargo's; let CARGO_TARGET_DIR name a new folder"
    fi
}

# Refuses to replace files of the checkout whose content git does not have: CHECKOUT PATH...
unchanged_in_git() {
    local checkout=$1
    shift
    [ -n "$force" ] || [ -z "$(git -C "$checkout" status --porcelain --ignored -- "$@" 2>&1)" ] ||
        refuse "$* holds changes that are not committed; commit them, or replace them with --force"
}
