#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Runs the GPU suite on a host with an NVIDIA driver: gpu-suite.sh [SECTION ...]
#
# Run it from the folder that tools/gpu-pack.sh made. Sections, in this order, all by default:
#   parity    CPU and CUDA give the same, test by test
#   jit       the short set of it with kernels that the driver compiles
#   element   the elements' own tests, on the GPU
#   clips     temporal mode and the abstraction over the clips of $SUPERPIXEL_CLIPS: H.264 in MP4, or folders of pictures; skipped
#             without
#   memcheck racecheck initcheck synccheck    compute-sanitizer over a short set of the CUDA tests,
#             memcheck over the elements' own, too
#   pipelines the elements on a real clip: CUDA against CPU byte by byte, CUDA memory, two elements at once
#   zero-copy frames of the device's decoders: labels and pixels as the CPU has them, and no byte over the bus; also of the
#             clips of $SUPERPIXEL_CLIPS, H.264 or H.265 in MP4
#   python    the package superpixels with torch and CuPy, which $SUPERPIXEL_PYTHON (python3) has to have: labels, tables and streams
#             against numpy on the CPU, and figures; also of the photographs of $SUPERPIXEL_PHOTOGRAPHS, raw RGB of one size a file
#             NAME-WIDTHxHEIGHT.rgb
#   cycles    many starts, stops and elements leave no memory, files or threads behind
#   first     time to the first frame, with an empty and a warm cache of the driver's compiler
#   bench     superpixel-bench on every backend
#   fps       frames a second through the element, from system and device memory and behind the decoder
#   toolkit   the kernels through the host's nvcc, where it has one
#   soak      only when it is named: pipelines at 3840x2160 that are disturbed for $SUPERPIXEL_SOAK_MINUTES (10)
# One line each, PASS, FAIL or SKIP; logs and figures go to $OUT (default: ./gpu-suite-logs). A skip is no pass: with
# SUPERPIXEL_NO_SKIPS=1 it is a failure.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
all=(parity jit element clips memcheck racecheck initcheck synccheck pipelines zero-copy python cycles first bench fps toolkit)
sections=("$@")
[ $# -gt 0 ] || sections=("${all[@]}")
for name in "${sections[@]}"; do
    case " ${all[*]} soak -h --help " in
        *" $name "*) ;;
        *) echo "gpu-suite.sh: no section $name; there are ${all[*]} soak" >&2; exit 2 ;;
    esac
    case $name in -h | --help) sed -n '3,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;; esac
done
scratch=$(cd "$(mktemp -d)" && pwd) || exit 1
trap 'rm -rf "$scratch"' EXIT
if [ -e "$here/pack.tar.xz" ]; then
    mkdir "$scratch/pack"
    chmod +x "$here/xz" 2>/dev/null || true
    LD_LIBRARY_PATH=$here "$here/xz" -dc "$here/pack.tar.xz" | tar -C "$scratch/pack" -xf - || exit 1
    here=$scratch/pack
fi
[ -e "$here/env.sh" ] || { echo "gpu-suite.sh: run the copy in the folder that tools/gpu-pack.sh makes" >&2; exit 2; }
# The host's Python is to find the host's libraries.
host_libraries=${LD_LIBRARY_PATH:-}
# shellcheck source=/dev/null  # written by gpu-pack.sh
. "$here/env.sh"
for name in OUT SUPERPIXEL_CLIPS SUPERPIXEL_IMAGES SUPERPIXEL_PHOTOGRAPHS; do
    case ${!name:-} in "" | /*) ;; *) export "$name=$PWD/${!name}" ;; esac
done
out=${OUT:-$PWD/gpu-suite-logs}
# shellcheck source=pipelines/output.sh
. "$here/output.sh"
keep_apart "$out" "${SUPERPIXEL_CLIPS:-}" "${SUPERPIXEL_IMAGES:-}" "${SUPERPIXEL_PHOTOGRAPHS:-}"
logs=(host.txt inspect.txt bench.json bench-jit.json bench-4096x2048.json soak.csv soak.svg "${sections[@]/%/.log}")
may_write "$out" "${logs[@]}"
mkdir -p "$out"
note_unfinished "$out" "${logs[@]}"
# A file system may have lost the modes on the way.
chmod +x "$here"/bin/* "$here"/tests/* 2>/dev/null
export SUPERPIXEL_REQUIRE_CUDA=1 SUPERPIXEL_PLUGIN_DIR=$here/plugin SUPERPIXEL_MEDIA=$here/media RUST_BACKTRACE=1
# gst-launch-1.0 parses its words: relative names keep the paths of folders out of them.
ln -s "$here/media" "$scratch/media"
cd "$scratch" || exit 1
clip=media/clip.avi picture=media/1080p.png

skipped=77

# Frames of decoders have a section of their own, as have starts and stops.
parity() {
    local status=0
    env -u SUPERPIXEL_CLIPS "$here/tests/cuda" --skip decoder:: || status=1
    "$here/tests/cuda_alone" memory:: || status=1
    "$here/tests/unit" || status=1
    return $status
}
# Machine code is left alone, as on a device that there is none for.
jit() { CUDA_FORCE_PTX_JIT=1 SUPERPIXEL_SHORT=1 "$here/tests/cuda" parity:: stages:: temporal::; }
# Its other tests need sources, or programs that are built.
of_element=(superpixel:: exclusive:: hierarchy:: merge::)
element() { "$here/tests/element" "${of_element[@]}"; }
# Every clip by itself, side by side: the CPU's quick shift takes longest.
clips() {
    local folder=${SUPERPIXEL_CLIPS:-} clip name status=0 process processes=()
    [ -n "$folder" ] || { echo "SUPERPIXEL_CLIPS names no folder"; return $skipped; }
    for clip in "$folder"/*; do
        name=$(basename "$clip" .mp4)
        mkdir -p "$scratch/clips/$name/$name"
        if [ -d "$clip" ]; then
            cp "$clip"/* "$scratch/clips/$name/$name/"
        else
            # gst-launch-1.0 parses its words, so the clip's name is none of them.
            (cd "$scratch/clips/$name/$name" && gst-launch-1.0 -q filesrc location=/dev/fd/3 ! qtdemux ! h264parse ! openh264dec ! \
                videoconvert ! jpegenc quality=90 ! multifilesink location=%05d.jpg) 3<"$clip" || { echo "$name: not decoded"; status=1; continue; }
        fi
        SUPERPIXEL_CLIPS=$scratch/clips/$name "$here/tests/cuda" clips_of_a_folder >"$scratch/clips/$name.log" 2>&1 &
        processes+=("$!:$name")
    done
    for process in "${processes[@]}"; do
        wait "${process%%:*}" || status=1
        name=${process#*:}
        echo "== $name, $(find "$scratch/clips/$name/$name" -type f | wc -l) frames"
        cat "$scratch/clips/$name.log"
    done
    return $status
}
sanitizer() { command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1; }
# compute-sanitizer's tool $1 over the short set of the test program $2, with options up to --, and with what follows: which tests.
# One test at a time: the tools slow every kernel down.
sanitize() {
    local tool=$1 program=$2 options=() checker
    checker=$(sanitizer)
    [ -n "$checker" ] || { echo "compute-sanitizer is not on this host"; return $skipped; }
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    if SUPERPIXEL_SHORT=1 RUST_TEST_THREADS=1 "$checker" --tool "$tool" --error-exitcode 9 "${options[@]}" "$here/tests/$program" \
        "$@" >"$scratch/sanitized" 2>&1 || check_found "$scratch/sanitized"; then
        grep -E '^test |SUMMARY' "$scratch/sanitized"
    else
        head -n 400 "$scratch/sanitized"
        return 1
    fi
}
# Every fault has a process of its own; this one does not touch the device, which the tools take for an error.
without_faults="--skip faults::"
# Whether all that is found in log $1 is of GStreamer: the frames of libgstcuda have rows below the planes that nothing writes,
# and a map for the host brings them down with the others. The section shows the same without our element.
apart=0
check_found() {
    local all own gstreamers
    all=$(sed -n 's/^========= ERROR SUMMARY: \([0-9]*\) errors\{0,1\}$/\1/p' "$1" | tail -n 1)
    gstreamers=$(gstreamers_reads "$1")
    own=$((${all:-0} - gstreamers)) apart=$((apart + gstreamers))
    echo "found: ${all:-no summary}, of them not by GStreamer's maps: $own"
    [ -n "$all" ] && [ "$own" = 0 ] && grep -q '^test result: ok' "$1"
}
gstreamers_reads() {
    awk '/(^|\.\.\. )========= [^ ]/ { kind = /Host API memory access error/; frames = 0 }
        kind && /Host Frame:/ {
            frames++
            if (frames == 1) copies = /Host Frame: cuMemcpy2D_v2 /
            if (frames == 2 && copies && / in libgstcuda-1\.0\.so\.0$/) found++
        }
        END { print found + 0 }' "$1"
}
# What the driver is asked in two of the tests it is to refuse, which counts as an error.
memcheck() {
    local status=0
    # shellcheck disable=SC2086  # words on purpose
    sanitize memcheck cuda -- $without_faults --skip a_current_context_that_has_ended --skip addresses_are_known_or_not || status=$?
    sanitize memcheck element -- "${of_element[@]}" || status=$?
    return $status
}
# A race is between threads of a kernel, whoever launches it; this tool is by far the slowest.
racecheck() {
    sanitize racecheck cuda --racecheck-report all -- parity::drawn_parameters parity::ingest_matches parity::quickshift_matches \
        hierarchy::drawn_numbers hierarchy::islands_match abstraction::clips_with
}
# What the decoder's hardware writes counts as never written.
initcheck() {
    local checker own status=0
    # shellcheck disable=SC2086  # words on purpose
    sanitize initcheck cuda --print-limit 100000 -- $without_faults --skip decoder:: || status=$?
    checker=$(sanitizer)
    [ -n "$checker" ] || return $status
    GST_REGISTRY_FORK=no "$checker" --tool initcheck --print-limit 100000 gst-launch-1.0 -q videotestsrc num-buffers=3 ! \
        video/x-raw,format=NV12,width=96,height=64 ! cudaupload ! 'video/x-raw(memory:CUDAMemory)' ! identity dump=true ! \
        fakesink >"$scratch/without" 2>&1
    own=$(gstreamers_reads "$scratch/without")
    echo "without our element, 3 frames: $own reads by GStreamer's maps"
    # Else what was set apart above is not what it was taken for.
    [ "$apart" = 0 ] || [ "$own" -gt 0 ] || status=1
    return $status
}
synccheck() {
    # shellcheck disable=SC2086  # words on purpose
    sanitize synccheck cuda -- $without_faults
}

# Checksum of what a pipeline writes; $1 names it.
checksum() {
    local name=$1
    shift
    timeout 120 gst-launch-1.0 -q filesrc location="$clip" ! avidemux ! jpegdec ! "$@" ! \
        filesink location="$name.raw" || return 1
    [ -s "$scratch/$name.raw" ] || { echo "$name: nothing came out" >&2; return 1; }
    sha256sum <"$scratch/$name.raw"
    rm -f "$scratch/$name.raw"
}
plays() {
    local name=$1
    shift
    if timeout 120 gst-launch-1.0 -q "$@"; then echo "$name: plays"; else echo "$name: FAILED"; return 1; fi
}
pipelines() {
    local status=0 format overlay backend
    gst-inspect-1.0 superpixel >"$out/inspect.txt" || { echo "GStreamer does not load the plugin"; return 1; }
    for format in RGBA BGRx RGB GRAY8 NV12 I420; do
        for backend in cpu cuda; do
            checksum "$format" videoconvert ! "video/x-raw,format=$format" ! superpixel backend=$backend \
                overlay=mean-color-boundaries >"$scratch/$backend.sum" || { echo "$format: $backend failed"; status=1; }
        done
        if cmp -s "$scratch/cpu.sum" "$scratch/cuda.sum"; then echo "$format: same"; else echo "$format: DIFFERENT"; status=1; fi
    done
    for overlay in none boundaries mean-color labels; do
        for backend in cpu cuda; do
            checksum "$overlay" videoconvert ! video/x-raw,format=RGBA ! superpixel backend=$backend overlay=$overlay ! \
                tee name=t ! queue ! superpixellabels ! filesink location="$backend.labels" t. ! queue \
                >"$scratch/$backend.sum" || { echo "$overlay: $backend failed"; status=1; }
        done
        if cmp -s "$scratch/cpu.sum" "$scratch/cuda.sum" && cmp -s "$scratch/cpu.labels" "$scratch/cuda.labels"; then
            echo "overlay=$overlay: same pixels and labels"
        else
            echo "overlay=$overlay: DIFFERENT"
            status=1
        fi
        rm -f "$scratch"/*.labels
    done
    plays "two elements in one pipeline" filesrc location="$clip" ! avidemux ! jpegdec ! videoconvert ! tee name=t \
        t. ! queue ! superpixel backend=cuda ! fakesink t. ! queue ! superpixel backend=cuda superpixel-size=32 ! fakesink || status=1
    plays "two pipelines, the first" filesrc location="$clip" ! avidemux ! jpegdec ! videoconvert ! superpixel backend=cuda ! fakesink &
    plays "two pipelines, the second" filesrc location="$clip" ! avidemux ! jpegdec ! videoconvert ! superpixel backend=cuda ! fakesink || status=1
    wait $! || status=1
    if grep -q 'memory:CUDAMemory' "$out/inspect.txt" && gst-inspect-1.0 cudaupload >/dev/null 2>&1; then
        plays "CUDA memory" filesrc location="$clip" ! avidemux ! jpegdec ! videoconvert ! video/x-raw,format=RGBA ! cudaupload ! \
            superpixel backend=cuda overlay=boundaries ! 'video/x-raw(memory:CUDAMemory)' ! cudadownload ! fakesink || status=1
        if gst-inspect-1.0 nvh264dec >/dev/null 2>&1; then
            plays "NVDEC to CUDA memory" filesrc location="media/bigbuckbunny.mp4" ! qtdemux ! h264parse ! nvh264dec ! \
                'video/x-raw(memory:CUDAMemory)' ! superpixel backend=cuda overlay=boundaries ! fakesink || status=1
        fi
    else
        echo "CUDA memory: not offered by the element, or no cudaupload here"
        status=1
    fi
    return $status
}

# Pixels as numpy reads them: $1 is the file, the rest decodes.
raw_rgb() {
    local file=$1
    shift
    timeout 120 gst-launch-1.0 -q filesrc location="$1" ! "${@:2}" ! videoconvert ! video/x-raw,format=RGB ! \
        identity eos-after=61 ! filesink location="$file" && [ -s "$file" ] && return
    echo "$1: not decoded, FAILED"
    return 1
}
python() {
    raw_rgb clip.rgb media/bigbuckbunny.mp4 qtdemux ! h264parse ! openh264dec && raw_rgb picture.rgb "$picture" pngdec || return 1
    # It needs the libraries here, and Python the host's.
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$LD_LIBRARY_PATH" "$here/bin/superpixel-bench" >bench
    chmod +x bench
    local photographs=() file size
    for file in ${SUPERPIXEL_PHOTOGRAPHS:+"$SUPERPIXEL_PHOTOGRAPHS"/*.rgb}; do
        size=${file%.rgb} size=${size##*-}
        photographs+=(--photographs "$file" "${size%x*}" "${size#*x}")
    done
    LD_LIBRARY_PATH=$host_libraries PYTHONPATH=$here/python PYTHONDONTWRITEBYTECODE=1 SUPERPIXEL_BENCH=$scratch/bench \
        SUPERPIXEL_BENCH_PICTURE=$picture timeout 540 "${SUPERPIXEL_PYTHON:-python3}" "$here/python/tests/gpu/run.py" \
        --clip clip.rgb 1280 720 --picture picture.rgb 1920 1080 "${photographs[@]}"
}
zero-copy() { "$here/tests/cuda" decoder:: --nocapture --test-threads=1; }
cycles() { "$here/tests/cuda_alone" cycles:: --nocapture; }

# Driver and context are what any program pays; "ours" is what comes on top.
first() {
    local cache=$scratch/jit round
    mkdir -p "$cache"
    for round in "empty cache" "warm cache" "warm cache, again"; do
        printf '%-18s ' "$round:"
        CUDA_CACHE_PATH=$cache superpixel-bench --first --backend cuda --picture "$picture" --sizes 1920x1080 \
            --superpixel-size 16 || return 1
    done
}
bench() {
    # Of an earlier run; the bench writes new files only.
    rm -f "$out"/bench{,-jit,-4096x2048}.json
    superpixel-bench --backend all --algorithms slic,lsc --picture "$picture" --json "$out/bench.json" || return 1
    echo "kernels that the driver compiles:"
    CUDA_FORCE_PTX_JIT=1 superpixel-bench --backend cuda --algorithms slic,lsc --picture "$picture" --json "$out/bench-jit.json" ||
        return 1
    superpixel-bench --backend cuda --picture "$picture" --sizes 4096x2048 --superpixel-size 128 --set iterations=10 \
        --json "$out/bench-4096x2048.json"
}

# Seconds that a pipeline took, by gst-launch-1.0 itself, for $1 frames.
seconds() {
    local frames=$1
    shift
    timeout 300 gst-launch-1.0 filesrc location="$picture" ! pngdec ! videoconvert ! video/x-raw,format=RGBA ! \
        imagefreeze num-buffers="$frames" ! "$@" fakesink sync=false |
        awk '/Execution ended after/ { split($4, t, ":"); print 3600 * t[1] + 60 * t[2] + t[3] }'
}
# Frames a second without start-up: the slope between a short and a long run.
rate() {
    local name=$1 short=$2 long=$3 a b
    shift 3
    a=$(seconds "$short" "$@") && b=$(seconds "$long" "$@")
    [ -n "$a" ] && [ -n "$b" ] || { echo "$name: FAILED"; return 1; }
    awk -v name="$name" -v a="$a" -v b="$b" -v n=$((long - short)) \
        'BEGIN { if (b <= a) exit 1; printf "%-46s %9.1f fps  %7.3f ms\n", name, n / (b - a), 1e3 * (b - a) / n }'
}
# Seconds of $1 frames of the clip $2, repeated, through the device's decoder and what follows.
decoding() {
    local frames=$1 stream=$2
    shift 2
    timeout 300 gst-launch-1.0 multifilesrc location="media/$stream.h264" loop=true ! h264parse ! nvh264dec ! \
        'video/x-raw(memory:CUDAMemory)' ! identity eos-after="$frames" ! "$@" fakesink sync=false |
        awk '/Execution ended after/ { split($4, t, ":"); print 3600 * t[1] + 60 * t[2] + t[3] }'
}
# Streams are repeated as wholes, so both runs are of whole numbers of them.
decoder_rate() {
    local name=$1 stream=$2 frames short long a b
    shift 2
    frames=$(gst-launch-1.0 -v filesrc location="media/$stream.h264" ! h264parse ! \
        video/x-h264,alignment=au ! fakesink silent=false | grep -c 'chain   \*')
    [ "$frames" -gt 0 ] || { echo "$name: no frames"; return 1; }
    short=$((2 * frames)) long=$((2 * frames + 2000 / frames * frames))
    a=$(decoding "$short" "$stream" "$@") && b=$(decoding "$long" "$stream" "$@")
    [ -n "$a" ] && [ -n "$b" ] || { echo "$name: FAILED"; return 1; }
    awk -v name="$name" -v a="$a" -v b="$b" -v n=$((long - short)) \
        'BEGIN { if (b <= a) exit 1; printf "%-46s %9.1f fps  %7.3f ms\n", name, n / (b - a), 1e3 * (b - a) / n }'
}
fps() {
    local status=0 stream depth
    echo "frames by themselves"
    superpixel-throughput --picture "$picture" || status=1
    echo "frames that go on from the last one"
    superpixel-throughput --picture "$picture" --temporal --depths 0,1,2 || status=1
    if gst-inspect-1.0 nvh264dec >/dev/null 2>&1; then
        for stream in bigbuckbunny 1080p; do
            decoder_rate "nvh264dec alone, $stream" $stream || status=1
            for depth in 0 2; do
                decoder_rate "nvh264dec, superpixel async-depth=$depth, $stream" $stream \
                    superpixel backend=cuda overlay=none async-depth=$depth ! || status=1
            done
        done
    else
        echo "no nvh264dec here: its own fps are not measured"
    fi
    echo "RGBA 1920x1080, the same frame again and again (imagefreeze), fakesink"
    rate "no element" 20000 220000 || status=1
    rate "identity" 20000 220000 identity ! || status=1
    rate "cuda, overlay=none" 200 2200 superpixel backend=cuda overlay=none ! || status=1
    rate "cuda, overlay=boundaries" 200 2200 superpixel backend=cuda overlay=boundaries ! || status=1
    rate "cuda, overlay=none, temporal=false" 200 2200 superpixel backend=cuda overlay=none temporal=false ! || status=1
    rate "cuda, overlay=boundaries, temporal=false" 200 2200 superpixel backend=cuda overlay=boundaries temporal=false ! || status=1
    rate "cuda, overlay=none, async-depth=2" 200 4200 superpixel backend=cuda overlay=none async-depth=2 ! || status=1
    rate "cuda, overlay=boundaries, async-depth=2" 200 4200 superpixel backend=cuda overlay=boundaries async-depth=2 ! || status=1
    rate "cuda, overlay=none, temporal=false, async-depth=2" 200 4200 \
        superpixel backend=cuda overlay=none temporal=false async-depth=2 ! || status=1
    rate "cuda, overlay=boundaries, temporal=false, async-depth=2" 200 4200 \
        superpixel backend=cuda overlay=boundaries temporal=false async-depth=2 ! || status=1
    rate "cpu, overlay=none" 10 60 superpixel backend=cpu overlay=none ! || status=1
    return $status
}

toolkit() {
    local nvcc file status=0
    nvcc=$(command -v nvcc || ls /usr/local/cuda*/bin/nvcc 2>/dev/null | head -n 1)
    [ -n "$nvcc" ] || { echo "nvcc is not on this host"; return $skipped; }
    for file in "$here"/kernels/*.cu; do
        [ -e "$file" ] || { echo "no kernel is packed"; return 1; }
        "$nvcc" -std=c++17 -fmad=false -arch=native -cubin -Xptxas=-v -o "$scratch/kernel.cubin" "$file" || status=1
    done
    return $status
}

soak() {
    rm -f "$out"/soak.{csv,svg}
    superpixel-soak --backend cuda --size 3840x2160 --minutes "${SUPERPIXEL_SOAK_MINUTES:-10}" --csv "$out/soak.csv" --svg "$out/soak.svg"
}

{
    uname -a
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv 2>&1
    nproc
} >"$out/host.txt"
sed -n '2,4p' "$out/host.txt"
failures=0 skips=0
for name in "${sections[@]}"; do
    start=$SECONDS
    "$name" >"$out/$name.log" 2>&1
    status=$?
    case $status in
        0) verdict=PASS ;;
        "$skipped") verdict=SKIP skips=$((skips + 1)) ;;
        *) verdict=FAIL failures=$((failures + 1)) ;;
    esac
    printf '%s %-10s %4d s  %s\n' "$verdict" "$name" $((SECONDS - start)) "$(grep -cE '^test .*\.\.\. ok|: same|: plays' "$out/$name.log") checks"
    case $verdict:$name in
        PASS:python | PASS:first | PASS:bench | PASS:fps | PASS:soak) cat "$out/$name.log" ;;
        PASS:*) ;;
        SKIP:*) tail -n 1 "$out/$name.log" ;;
        FAIL:*) grep -nE 'FAILED|panicked|error|Error|skipped|DIFFERENT|ERROR|HAZARD|Invalid' "$out/$name.log" | head -n 30; tail -n 15 "$out/$name.log" ;;
    esac
done
for name in "${logs[@]}"; do
    if [ -f "$out/$name" ]; then note_made "$out" "$name"; fi
done
echo "${#sections[@]} sections, $failures failed, $skips skipped"
if [ "${SUPERPIXEL_NO_SKIPS:-}" = 1 ]; then failures=$((failures + skips)); fi
[ "$failures" = 0 ]
