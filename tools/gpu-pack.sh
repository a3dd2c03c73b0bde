#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Packs everything that the GPU suite needs into one folder: tools/gpu-pack.sh [--dev] [--force] [FOLDER]
#
# For a host with an NVIDIA driver, bash and nothing else of ours: x86-64 Linux with a C library no older than the one here.
# Carry the folder there (default: .gpu, at most 64 MiB) and run FOLDER/gpu-suite.sh. --dev packs test programs with debug
# assertions, which also build faster. Needs what tests/run.sh installs, and python3. What an earlier run put into the folder is
# replaced; --force replaces other files of the same names.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=pipelines/output.sh
. "$root/pipelines/output.sh"
profile=release pack=$root/.gpu
for argument in "$@"; do
    case $argument in
        --dev) profile=dev ;;
        --force) force=yes ;;
        -h | --help) sed -n '3,8s/^# *//p' "${BASH_SOURCE[0]}"; exit 0 ;;
        -*) echo "gpu-pack.sh: no option $argument" >&2; exit 2 ;;
        /*) pack=$argument ;;
        *) pack=$PWD/$argument ;;
    esac
done
limit_mib=64
features=gst,cuda,cli
# Test programs that run on the GPU; `unit` is the library's own.
wanted_tests='^(unit|cuda|cuda_alone|element)$'
gst_plugins=(app avi coreelements debugutilsbad imagefreeze isomp4 jpeg jpegformat matroska multifile nvcodec openh264 playback png rawparse
    typefindfunctions videobox videoconvertscale videocrop videofilter videoparsersbad videorate videotestsrc)
clip_frames=48

say() { printf 'gpu-pack: %s\n' "$*"; }
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")

keep_apart "$pack/gpu-suite.sh" tools/gpu-suite.sh
may_write "$pack" gpu-suite.sh pack.tar.xz xz
spare_xz=$(command -v xz) || { echo "gpu-pack.sh: xz is missing: apt-get install xz-utils" >&2; exit 1; }
spare_lzma=$(ldd "$spare_xz" | sed -n 's/.* => \(.*liblzma[^ ]*\) .*/\1/p')
may_write "$pack" "${spare_lzma##*/}"
check_target "$target"
folder=$target/superpixel-gpu-pack
fresh_folder "$folder"
mkdir -p "$folder"/{bin,gst,kernels,lib,lib-spare,media,plugin,python/superpixels,python/tests/gpu,tests}
cp tools/gpu-suite.sh pipelines/output.sh "$folder/"

say "building ($profile)"
program=$(tools/built.sh superpixel-bench cargo build --locked --release --no-default-features --features "$features" --lib --bins)
cargo test --locked --profile "$([ "$profile" = dev ] && echo test || echo release)" --no-default-features \
    --features "$features" --lib --tests --no-run --message-format=json >"$target/gpu-pack.json"
python3 - "$target/gpu-pack.json" >"$target/gpu-pack.tests" <<'PYTHON'
import json, sys
for line in open(sys.argv[1]):
    if not line.startswith("{"):
        continue
    message = json.loads(line)
    if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
        target = message["target"]
        kind = target["kind"][0]
        if kind in ("test", "lib", "cdylib", "rlib"):
            print("unit" if kind != "test" else target["name"], message["executable"])
PYTHON
while read -r name path; do
    if [[ $name =~ $wanted_tests ]]; then cp "$path" "$folder/tests/$name"; fi
done <"$target/gpu-pack.tests"
[ -n "$(ls "$folder/tests")" ] || { echo "gpu-pack.sh: no test program found" >&2; exit 1; }
cp "$program" "$folder/bin/"
cargo bench --locked --no-default-features --features "$features" --bench throughput --no-run --message-format=json |
    sed -n 's/.*"name":"throughput".*"executable":"\([^"]*\)".*/\1/p' >"$target/gpu-pack.throughput"
cp "$(tail -n 1 "$target/gpu-pack.throughput")" "$folder/bin/superpixel-throughput"
soak=$(tools/built.sh soak cargo build --locked --release --no-default-features --features "$features" --lib --example soak)
cp "$soak" "$folder/bin/superpixel-soak"
cp "${soak%/examples/*}/libgstsuperpixel.so" "$folder/plugin/"
[ "$profile" = release ] || say "the plugin and superpixel-bench are release builds all the same"
cp kernels/*.cu kernels/*.cuh kernels/*.h "$folder/kernels/" 2>/dev/null || true

# What the wheel holds. In a folder of its own: Cargo would put a library without the elements where the plugin is taken from.
# As maturin does: what is loaded by an interpreter does not link one.
module=$(PYO3_BUILD_EXTENSION_MODULE=1 CARGO_TARGET_DIR=$target/superpixel-python \
    tools/built.sh lib_native.so cargo build --locked --release --package superpixels)
cp python/superpixels/*.py "$folder/python/superpixels/"
cp "$module" "$folder/python/superpixels/_native.abi3.so"
cp python/tests/picture.py "$folder/python/tests/"
cp python/tests/gpu/*.py "$folder/python/tests/gpu/"

say "GStreamer"
plugins_from=$(pkg-config --variable=pluginsdir gstreamer-1.0)
scanner=$(pkg-config --variable=pluginscannerdir gstreamer-1.0)/gst-plugin-scanner
cp -L "$(command -v gst-launch-1.0)" "$(command -v gst-inspect-1.0)" "$scanner" "$folder/bin/"
for plugin in "${gst_plugins[@]}"; do
    if [ -e "$plugins_from/libgst$plugin.so" ]; then
        cp -L "$plugins_from/libgst$plugin.so" "$folder/gst/"
    else
        say "no plugin $plugin here"
    fi
done
# libgstcuda is opened by name at run time, so no program asks for it.
cuda_library=$(pkg-config --variable=libdir gstreamer-1.0)/libgstcuda-1.0.so.0
if [ -e "$cuda_library" ]; then cp -L "$cuda_library" "$folder/lib/"; fi

# The shared libraries of everything packed. The host has the C library and the driver; the C++ runtime is a spare, for an
# old one in the way would break newer programs of the host.
find "$folder" -type f \( -perm -u+x -o -name '*.so*' \) ! -name '*.sh' -print0 | xargs -0 -r ldd 2>/dev/null |
    sed -n 's/.* => \(\/[^ ]*\) (0x.*/\1/p' | sort -u >"$target/gpu-pack.libraries"
while read -r library; do
    case ${library##*/} in
        ld-linux* | libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libresolv.so* | libutil.so* | libanl.so*) ;;
        libcuda.so* | libnvidia* | libnvcuvid* | libgstsuperpixel*) ;;
        libstdc++* | libgcc_s*) cp -Ln "$library" "$folder/lib-spare/" ;;
        *) cp -Ln "$library" "$folder/lib/" ;;
    esac
done <"$target/gpu-pack.libraries"
find "$folder" -type f \( -perm -u+x -o -name '*.so*' \) ! -name '*.sh' -exec strip --strip-unneeded {} + 2>/dev/null || true

say "media"
cp media/bigbuckbunny.mp4 "$folder/media/"
# gst-launch-1.0 parses its words: relative names keep the path of the folder out of them.
cd "$folder/media"
# The clip once more, in a form that every machine decodes to the same pixels.
gst-launch-1.0 -q filesrc location=bigbuckbunny.mp4 ! decodebin ! videoconvert ! video/x-raw,format=I420 ! \
    identity eos-after=$((clip_frames + 1)) ! jpegenc quality=85 ! avimux ! filesink location=clip.avi
# And once more at 1920x1080 for the decoders of the device, and as streams that can be repeated without end.
# shellcheck disable=SC2054  # caps hold commas
scaled=(filesrc location=bigbuckbunny.mp4 ! decodebin ! videoconvert ! videoscale !
    video/x-raw,format=I420,width=1920,height=1080 ! identity eos-after=$((clip_frames + 1)))
if gst-inspect-1.0 --exists x264enc; then
    h264=(x264enc bitrate=6000 key-int-max=24 speed-preset=veryfast)
else
    h264=(openh264enc bitrate=6000000 gop-size=24)
fi
gst-launch-1.0 -q "${scaled[@]}" ! "${h264[@]}" ! h264parse ! mp4mux ! filesink location=1080p.mp4
if gst-inspect-1.0 --exists x265enc; then
    gst-launch-1.0 -q "${scaled[@]}" ! x265enc bitrate=4000 key-int-max=24 speed-preset=veryfast ! h265parse ! mp4mux ! \
        filesink location=1080p-h265.mp4
else
    say "no x265enc here: no H.265 clip"
fi
for clip in bigbuckbunny 1080p; do
    gst-launch-1.0 -q filesrc location="$clip.mp4" ! qtdemux ! h264parse ! \
        video/x-h264,stream-format=byte-stream,alignment=au ! filesink location="$clip.h264"
done
# One of its later frames as a picture: of the few that pass, the last stays.
gst-launch-1.0 -q filesrc location=bigbuckbunny.mp4 ! decodebin ! videorate ! video/x-raw,framerate=1/2 ! videoconvert ! \
    videoscale ! video/x-raw,format=RGB,width=1920,height=1080 ! pngenc ! multifilesink location=1080p.png
cd "$root"

cat >"$folder/env.sh" <<'ENV'
# SPDX-License-Identifier: MPL-2.0
# Sourced: makes this folder's programs, libraries and plugins the ones that are found.
gpu_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$gpu_folder/bin:$PATH"
export LD_LIBRARY_PATH="$gpu_folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for gpu_spare in libstdc++.so.6 libgcc_s.so.1; do
    if ! ldconfig -p 2>/dev/null | grep "$gpu_spare" >/dev/null; then LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$gpu_folder/lib-spare"; fi
done
export GST_PLUGIN_SYSTEM_PATH="$gpu_folder/gst" GST_PLUGIN_PATH="$gpu_folder/plugin"
export GST_PLUGIN_SCANNER="$gpu_folder/bin/gst-plugin-scanner" GST_REGISTRY="$gpu_folder/registry.bin"
ENV

say "tests: $(ls "$folder/tests" | tr '\n' ' ')"
# All but the suite's script as one archive, which the script opens. Every test program holds the same library and kernels: a
# window over several of them makes the archive half as large. The host need not have xz.
tar -C "$folder" --exclude=./gpu-suite.sh --exclude="./$own_marker" -cf - . | xz --lzma2=preset=6,dict=128MiB >"$target/pack.tar.xz"
mv "$target/pack.tar.xz" "$folder/"
cp "$spare_xz" "$spare_lzma" "$folder/"
publish "$pack" "$folder/gpu-suite.sh" "$folder/pack.tar.xz" "$folder/xz" "$folder/${spare_lzma##*/}"
remove_own "$folder"
folder=$pack
size=$(du -sm "$folder" | cut -f1)
say "$folder: $size MiB"
if [ "$size" -gt "$limit_mib" ]; then
    echo "gpu-pack.sh: more than $limit_mib MiB" >&2
    tar -tvJf "$folder/pack.tar.xz" | sort -rnk3 | sed -n 1,20p >&2
    exit 1
fi
