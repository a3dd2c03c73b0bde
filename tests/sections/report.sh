# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2154  # sourced: `target_dir` and `chosen` are of those who do
# How tests/run.sh runs its sections and counts how they end.
#
# Most run one after the other. Others run beside them in lanes, one after the other in each: what builds in a folder of its own, and
# leaves a core idle for most of its time. What those print is kept until collect prints it.

passed=0 failed=() skipped=() left_out=() times=() in_part=''
beside_names=() beside_commands=() lanes=() started=0
lane_logs=$target_dir/superpixel-lanes

# Succeeds if one of the named parts is chosen; all are, where none is.
any_of() {
    local name choice
    [ ${#chosen[@]} -gt 0 ] || return 0
    for name in "$@"; do
        for choice in "${chosen[@]}"; do [ "${choice%%:*}" != "$name" ] || return 0; done
    done
    return 1
}
# Names the sections of a part, if it is chosen: PART COMMAND
part() {
    in_part=$1
    if any_of "$1"; then "$2"; fi
}
# Succeeds if a section of the part is chosen, by the part's name alone or by its own.
is_chosen() {
    local choice
    [ ${#chosen[@]} -gt 0 ] || return 0
    for choice in "${chosen[@]}"; do
        # shellcheck disable=SC2053  # a pattern on purpose
        if [ "$choice" = "$in_part" ] || [[ $1 = ${choice#"$in_part":} ]]; then return 0; fi
    done
    return 1
}

# Does what is given, a section or what belongs to one, with --all or where the section is chosen by its own name: COMMAND NAME ...
long() {
    local choice
    for choice in "${chosen[@]}"; do
        if [[ $choice = *:* ]] && is_chosen "$2" && [ "${choice%%:*}" = "$in_part" ]; then "$@"; return; fi
    done
    if [ "$all" ]; then "$@"; elif is_chosen "$2"; then left_out+=("$2"); fi
}

# Sets `used` to the seconds of processors that children of this shell have used, those that it has waited for.
cpu_seconds() {
    local file=$lane_logs/$BASHPID.times all
    # Not in a substitution, which is a shell without children.
    times >"$file"
    read -r -a all < <(sed -n '2s/[ms]/ /gp' "$file")
    used=$((60 * (all[0] + all[2]) + ${all[1]%.*} + ${all[3]%.*}))
}

# Counts a section: NAME STATUS SECONDS PROCESSOR-SECONDS
count() {
    times+=("$3 s, $4 s of processors  $1")
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
        say "$1: passed, $3 s"
    else
        failed+=("$1")
        say "$1: FAILED, $3 s"
    fi
}
# Runs a command as a section: NAME COMMAND... In the background, because bash ignores `set -e` inside the condition of an `if`.
section() {
    local name=$1 start=$SECONDS status=0 used before
    is_chosen "$name" || return 0
    shift
    say "$name"
    cpu_seconds
    before=$used
    (set -e; "$@") &
    wait $! || status=$?
    cpu_seconds
    count "$name" $status $((SECONDS - start)) $((used - before))
}
skip() {
    is_chosen "$1" || return 0
    say "$1: skipped, $2"
    skipped+=("$1")
}

# Puts a section into the next lane: NAME COMMAND...
beside() {
    is_chosen "$1" || return 0
    beside_names+=("$1")
    shift
    beside_commands+=("$(printf '%q ' "$@")")
}
# Starts a lane with the sections that beside has named since the last.
start_lane() {
    local first=$started
    started=${#beside_names[@]}
    run_lane "$first" "$started" &
    lanes+=($!)
}
run_lane() {
    local i start status used before
    # What runs one after the other goes first: some of it looks at clocks.
    renice -n 5 -p $BASHPID >/dev/null
    for ((i = $1; i < $2; i++)); do
        start=$SECONDS status=0
        cpu_seconds
        before=$used
        (set -e; eval "${beside_commands[i]}") >"$lane_logs/$i.log" 2>&1 &
        wait $! || status=$?
        cpu_seconds
        echo "$status $((SECONDS - start)) $((used - before))" >"$lane_logs/$i.ending"
        mv "$lane_logs/$i.ending" "$lane_logs/$i.ended"
    done
}
# Waits until a section of a lane has ended, if there is one of that name.
await() {
    local i
    for i in "${!beside_names[@]}"; do
        [ "${beside_names[i]}" = "$1" ] || continue
        while [ ! -e "$lane_logs/$i.ended" ] && kill -0 "${lanes[@]}" 2>/dev/null; do sleep 1; done
    done
}
# Waits for the lanes and counts their sections.
collect() {
    local i
    say "waiting for the sections that run beside others"
    wait "${lanes[@]}" || true
    for i in "${!beside_names[@]}"; do
        say "${beside_names[i]}"
        cat "$lane_logs/$i.log" || true
        # shellcheck disable=SC2046  # three words
        count "${beside_names[i]}" $(cat "$lane_logs/$i.ended" || echo "1 0 0")
    done
}

# Prints the longest sections and how all ended, and exits.
finish() {
    local name
    say "times, the longest first; those of lanes ran beside others"
    printf '%s\n' "${times[@]}" | sort -rn | sed -n '1,20s/^/   /p'
    say "$passed sections passed, ${#failed[@]} failed, ${#skipped[@]} skipped, $((SECONDS / 60)) min $((SECONDS % 60)) s"
    if [ ${#left_out[@]} -gt 0 ]; then say "only with --all: ${left_out[*]/%/;}"; fi
    for name in "${failed[@]}"; do say "failed: $name"; done
    for name in "${skipped[@]}"; do say "skipped: $name"; done
    if [ $((passed + ${#failed[@]} + ${#skipped[@]})) = 0 ]; then
        warn "error: no section is called ${chosen[*]}"
        exit 2
    fi
    if [ "${SUPERPIXEL_NO_SKIPS:-}" = 1 ] && [ ${#skipped[@]} -gt 0 ]; then exit 1; fi
    [ ${#failed[@]} = 0 ]
    exit
}
