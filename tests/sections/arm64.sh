# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the library on ARM64, emulated, and with musl.

# Settings of the frames that are compared, each for some frames of the clip.
arm64_jobs=(
    "6 superpixels=300 temporal=true" "3 superpixels=300 adaptive-compactness=true color-space=rgb" "2 superpixels=600 regions=40 refine=2"
    "6 algo=lsc superpixels=300 temporal=true" "2 algo=lsc superpixels=200 lsc-ratio=0.2 merge=2"
    "3 algo=snic superpixels=300 temporal=true" "1 algo=quickshift superpixels=300" "2 algo=quickshift superpixels=300 temporal=true regions=50"
)
# With the features of neither elements nor device.
arm64_build=(--locked --no-default-features --target-dir "$target_dir/superpixel-arm64")
musl_triples=({x86_64,aarch64}-unknown-linux-musl)
# Crates of the tests that wrap libraries in C take none of ARM64: no test that needs one is built.
leave_out_libraries() {
    local name
    for name in GLIB_2_0 GOBJECT_2_0 GIO_2_0 GSTREAMER_1_0 GSTREAMER_{BASE,VIDEO,APP,CHECK}_1_0; do
        export "SYSTEM_DEPS_${name}_NO_PKG_CONFIG=1" "SYSTEM_DEPS_${name}_LIB=c"
    done
}
# Compares the lines that programs for other targets print for the jobs of a folder with this machine's, which are as many as said:
# FOLDER LINES TRIPLE...
compare_targets() {
    local triple program
    # The last word of a line is a time.
    "$target_dir/debug/examples/expected" <"$1/jobs" | sed 's/ [^ ]*$//' >"$1/here"
    [ "$(wc -l <"$1/here")" = "$2" ]
    for triple in "${@:3}"; do
        program=$(tools/built.sh expected cargo build "${arm64_build[@]}" --target "$triple" --package superpixels-web --example expected)
        case $triple in
            aarch64*) qemu-aarch64 -L "$arm64_root" "$program" <"$1/jobs" ;;
            *) "$program" <"$1/jobs" ;;
        esac | sed 's/ [^ ]*$//' >"$1/there"
        diff "$1/here" "$1/there"
        echo "$triple: $2 frames are equal"
    done
}
# Writes frames of the clip and the jobs that have 25 of them: FOLDER
write_jobs() {
    local folder=$1 job
    rm -rf "$folder"
    mkdir -p "$folder"
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! decodebin ! videoconvert ! videoscale ! \
        video/x-raw,format=RGBA,width=320,height=180 ! identity eos-after=7 ! filesink location="$folder/frames.rgba"
    for job in "${arm64_jobs[@]}"; do echo "320 180 $folder/frames.rgba $job"; done >"$folder/jobs"
}
try_arm64() {
    write_jobs "$target_dir/superpixel-arm64-frames"
    prepare_arm64
    compare_targets "$target_dir/superpixel-arm64-frames" 25 "$arm64_triple"
}
# The library with musl, in programs that have it within; and the wheels for it, which are not loaded.
try_musl() {
    local folder=$target_dir/superpixel-musl arch
    write_jobs "$folder"
    # Not for the wheels, whose linker is zig.
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=aarch64-linux-gnu-gcc compare_targets "$folder" 25 "${musl_triples[@]}"
    for arch in amd64 arm64; do packaging/build.sh wheel --arch $arch --musl "$folder/packages"; done
    for arch in x86_64 aarch64; do
        python3 -m zipfile -e "$folder"/packages/superpixels-*-musllinux_1_2_$arch.whl "$folder/$arch"
        readelf -d "$folder/$arch/superpixels/_native.abi3.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$folder/needed"
        [ "$(cat "$folder/needed")" = libc.so ]
    done
}
# Photographs and clips of the user's folders: each algorithm alone and with exactly 50 regions, clips in temporal mode. SUPERPIXEL_IMAGES and SUPERPIXEL_CLIPS name the folders; each folder of pictures in the second is a clip.
try_arm64_pictures() {
    local folder=$target_dir/superpixel-arm64-pictures file clip files i number=0 lines=0
    rm -rf "$folder"
    mkdir -p "$folder"
    while IFS= read -r file; do
        picture_jobs "$number" 1 temporal=false filesrc location="$file" ! decodebin
        number=$((number + 1))
    done < <([ -z "${SUPERPIXEL_IMAGES:-}" ] || find -L "$SUPERPIXEL_IMAGES" -maxdepth 1 -name '*.jp*g' | sort)
    while IFS= read -r clip; do
        files=("$clip"/*.jpg)
        [ -e "${files[0]}" ] || continue
        mkdir "$folder/clip"
        # Names that count without a gap, whatever the clip's are.
        for ((i = 0; i < ${#files[@]} && i < 20; i++)); do ln -s "$(realpath "${files[i]}")" "$folder/clip/$i.jpg"; done
        picture_jobs "$number" 20 temporal=true multifilesrc location="$folder/clip/%d.jpg" caps=image/jpeg,framerate=24/1 ! jpegdec
        rm -r "$folder/clip"
        number=$((number + 1))
    done < <([ -z "${SUPERPIXEL_CLIPS:-}" ] || find -L "$SUPERPIXEL_CLIPS" -mindepth 1 -type d | sort)
    [ "$number" -gt 0 ]
    prepare_arm64
    compare_targets "$folder" "$lines" "$arm64_triple"
    rm -f "$folder"/*.rgba
}
# Writes a picture or clip as frames and adds its jobs to those of try_arm64_pictures: NUMBER FRAMES SETTING SOURCE...
picture_jobs() {
    local frames=$folder/$1.rgba said width height count algorithm regions
    said=$(gst-launch-1.0 -v "${@:4}" ! videoconvert ! video/x-raw,format=RGBA ! filesink name=frames location="$frames")
    [[ $said =~ frames\.GstPad:sink:\ caps\ =\ [^$'\n']*width=\(int\)([0-9]+).*height=\(int\)([0-9]+) ]]
    width=${BASH_REMATCH[1]} height=${BASH_REMATCH[2]}
    count=$(($(stat -c %s "$frames") / (4 * width * height)))
    [ "$count" -gt 0 ] && [ "$count" -le "$2" ]
    for algorithm in slic lsc snic; do
        for regions in 0 50; do
            echo "$width $height $frames $count algo=$algorithm superpixels=300 $3 regions=$regions" >>"$folder/jobs"
            lines=$((lines + count))
        done
    done
    # Ten times as long as the others together, so once, and of half the size.
    gst-launch-1.0 -q filesrc location="$frames" ! rawvideoparse format=rgba width="$width" height="$height" ! videoscale ! \
        video/x-raw,width=$((width / 2)),height=$((height / 2)) ! filesink location="${frames/%.rgba/.half.rgba}"
    echo "$((width / 2)) $((height / 2)) ${frames/%.rgba/.half.rgba} $count algo=quickshift $3 regions=50" >>"$folder/jobs"
    lines=$((lines + count))
}
# Tests with an oracle or with figures that were written down; drawn parameters are for machines that are fast.
try_arm64_library() {
    prepare_arm64
    leave_out_libraries
    cargo test "${arm64_build[@]}" --target "$arm64_triple" --package gst-plugin-superpixel --test library -- hashes by_hand a_checker_of_two_colors \
        lsc_is_what_the_paper small_sizes_equal_the_specification identities_without_clusters
}
# The wheel for ARM64 in Debian's Python of it, compared with the package as the tests of this machine have it.
try_arm64_wheel() {
    local folder=$target_dir/superpixel-arm64-wheel
    rm -rf "$folder"
    mkdir -p "$folder/here/superpixels" "$folder/arm64"
    cp python/superpixels/* "$folder/here/superpixels/"
    cp "$target_dir/debug/lib_native.so" "$folder/here/superpixels/_native.abi3.so"
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! decodebin ! videorate ! video/x-raw,framerate=4/1 ! videoconvert ! \
        videoscale ! video/x-raw,format=RGBA,width=320,height=180 ! filesink location="$folder/frames.rgba"
    truncate -s $((10 * 4 * 320 * 180)) "$folder/frames.rgba"
    packaging/build.sh wheel --arch arm64 "$folder/packages"
    python3 -m zipfile -e "$folder"/packages/*_aarch64.whl "$folder/arm64"
    unpack_arm64 python-arm64 python3:arm64 python3-numpy:arm64
    PYTHONPATH=$folder/here /usr/bin/python3 tests/python/hashes.py "$folder/frames.rgba" 320 180 >"$folder/here.txt"
    arm64_python "$folder/arm64" tests/python/hashes.py "$folder/frames.rgba" 320 180 >"$folder/arm64.txt"
    [ "$(wc -l <"$folder/here.txt")" = 60 ]
    diff "$folder/here.txt" "$folder/arm64.txt"
}
# The plugin as the deb for ARM64 has it, in Debian's GStreamer of ARM64, emulated: its elements, and the label maps of a pipeline, which
# are this machine's. packaging/try-deb.sh installs the package in a system of ARM64.
try_arm64_deb() {
    local folder=$target_dir/superpixel-arm64-deb archive depends name settings pipeline emulated
    rm -rf "$folder"
    use_plugin
    packaging/build.sh deb --arch arm64 "$folder/packages"
    archive=$(echo "$folder"/packages/gstreamer1.0-superpixel_*_arm64.deb)
    [ "$(dpkg-deb --field "$archive" Architecture)" = arm64 ]
    depends=$(dpkg-deb --field "$archive" Depends)
    for name in libc6 libgcc-s1 libglib2.0-0 libgstreamer1.0-0 libgstreamer-plugins-base1.0-0; do
        [[ ", $depends" =~ ", $name"(t64)?" (>= " ]]
    done
    [[ $depends != *cross* ]]
    dpkg -x "$archive" "$folder/installed"
    unpack_arm64 gstreamer-play-arm64 gstreamer1.0-tools:arm64 gstreamer1.0-plugins-base:arm64
    emulate_gstreamer "$folder"
    "${emulated[@]}" "$unpacked/usr/bin/gst-inspect-1.0" superpixel >"$folder/inspect.txt"
    grep "^  Filename *$folder/installed/usr/lib/aarch64-linux-gnu/gstreamer-1.0/libgstsuperpixel.so" "$folder/inspect.txt"
    for settings in "superpixel-size=32" "algo=quickshift sigma=2 tau=8 overlay=mean-color" "algo=lsc regions=40"; do
        # shellcheck disable=SC2206  # words on purpose
        pipeline=(videotestsrc num-buffers=3 pattern=zone-plate kx2=20 ky2=20 kt=1 ! 'video/x-raw,format=RGBA,width=320,height=240' !
            superpixel $settings ! tee name=t t. ! queue ! filesink location="$folder/drawn"
            t. ! queue ! superpixellabels ! filesink location="$folder/labels")
        gst-launch-1.0 -q "${pipeline[@]}"
        sha256sum "$folder/drawn" "$folder/labels" >"$folder/here"
        rm "$folder/drawn" "$folder/labels"
        "${emulated[@]}" "$unpacked/usr/bin/gst-launch-1.0" -q "${pipeline[@]}"
        [ -s "$folder/labels" ]
        sha256sum -c "$folder/here"
    done
}
# The programs for ARM64: superpixel-bench measures with the C library alone; superpixel-clip in Debian's GStreamer of ARM64 gives the
# tables and label maps of this machine's for a few frames; the studio sends its page and a frame.
try_arm64_programs() {
    local folder=$target_dir/superpixel-arm64-programs bin lib name i pid status=0 emulated
    rm -rf "$folder"
    mkdir -p "$folder/plugins"
    packaging/build.sh programs --arch arm64 "$folder/packages"
    tar -xzf "$folder"/packages/superpixel-programs-*-"$arm64_triple".tar.gz -C "$folder"
    bin=$(echo "$folder"/superpixel-programs-*)
    for name in bench/image clip/parquet studio/axum; do
        grep -q "\"name\": \"${name#*/}\"" "$bin/superpixel-${name%/*}.cdx.json"
        grep -q "^Licenses" "$bin/superpixel-${name%/*}.licenses"
    done
    qemu-aarch64 -L "$arm64_root" "$bin/superpixel-bench" --help >"$folder/help.txt"
    grep -q -- --superpixel-size "$folder/help.txt"
    qemu-aarch64 -L "$arm64_root" "$bin/superpixel-bench" --backend cpu --threads 1 --sizes 320x240 --superpixel-size 16 \
        --algorithms slic,lsc --runs 2 --warm-up 0 | tee "$folder/bench.txt"
    for name in slic lsc; do grep -E "320x240 .*\b$name\b" "$folder/bench.txt"; done

    unpack_arm64 gstreamer-clip-arm64 gstreamer1.0-plugins-{base,good,bad}:arm64 gstreamer1.0-libav:arm64
    emulate_gstreamer "$folder"
    lib=$unpacked/usr/lib/aarch64-linux-gnu/gstreamer-1.0
    # Others take emulated minutes to be scanned.
    for name in app coreelements isomp4 jpeg libav matroska playback typefindfunctions videoconvertscale videofilter videoparsersbad; do
        ln -s "$lib/libgst$name.so" "$folder/plugins/"
    done
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! qtdemux ! h264parse ! identity eos-after=6 ! mp4mux ! \
        filesink location="$folder/clip.mp4"
    "$target_dir/debug/superpixel-clip" "$folder/clip.mp4" "$folder/here" superpixel-size=24 --software-decoder
    "${emulated[@]}" "$bin/superpixel-clip" "$folder/clip.mp4" "$folder/arm64" superpixel-size=24 --software-decoder
    for name in regions adjacency events; do
        [ -s "$folder/here/$name.parquet" ]
        cmp "$folder/here/$name.parquet" "$folder/arm64/$name.parquet"
    done
    for name in here arm64; do
        gst-launch-1.0 -q filesrc location="$folder/$name/labels.mkv" ! matroskademux ! avdec_ffv1 ! filesink location="$folder/$name.gray16"
    done
    # Five frames of 1280x720.
    [ "$(stat -c %s "$folder/here.gray16")" = $((5 * 1280 * 720 * 2)) ]
    cmp "$folder/here.gray16" "$folder/arm64.gray16"

    "${emulated[@]}" "$bin/superpixel-studio" --port 0 media/bigbuckbunny.mp4 superpixel-size=32 >"$folder/address" &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        [ ! -s "$folder/address" ] || break
        sleep 0.2
    done
    python3 tests/readers/studio.py "$(cat "$folder/address")" studio/page/index.html >"$folder/studio.txt" || status=$?
    kill "$pid" || status=$?
    wait "$pid" || true
    cat "$folder/studio.txt"
    [ $status = 0 ]
    grep -qE '^1280 720 [0-9]{3,}$' "$folder/studio.txt"
}
# Sets `emulated` to what runs a program with the unpacked GStreamer: with the plugins in FOLDER/plugins alone where they are, else with
# all and that of the deb. The scanner of plugins is no program that this machine starts. FOLDER
emulate_gstreamer() {
    local lib=$unpacked/usr/lib/aarch64-linux-gnu plugins=$1/plugins
    [ -d "$plugins" ] || plugins=$lib/gstreamer-1.0
    # Links that an installation would make lead to libraries in folders of their own.
    emulated=(env -u GST_PLUGIN_PATH qemu-aarch64 -L "$unpacked"
        -E LD_LIBRARY_PATH="$lib:$unpacked/lib/aarch64-linux-gnu:$lib/blas:$lib/lapack:$lib/pulseaudio"
        -E GST_PLUGIN_SYSTEM_PATH="$plugins" -E GST_PLUGIN_PATH="$1/installed/usr/lib" -E GST_REGISTRY="$1/registry.bin"
        -E GST_REGISTRY_FORK=no)
}
# Runs the unpacked Python: FOLDER-OF-PACKAGES ARGUMENT...
arm64_python() {
    local lib=$unpacked/usr/lib/aarch64-linux-gnu
    # Links that an installation would make lead to the two libraries in folders of their own.
    env -u PYTHONPATH qemu-aarch64 -L "$unpacked" -E LD_LIBRARY_PATH="$lib/blas:$lib/lapack" -E PYTHONHOME="$unpacked/usr" \
        -E PYTHONPATH="$1:$unpacked/usr/lib/python3/dist-packages" "$unpacked"/usr/bin/python3 "${@:2}"
}
# A section that links with Debian's GStreamer of ARM64: NAME FUNCTION [PACKAGE ...]
linked_section_of_arm() {
    if ! command -v dpkg-buildpackage >/dev/null && ! command -v apt-get >/dev/null; then
        skip "$1" "not a Debian or Ubuntu system"
        return
    fi
    install_packages "${@:3}"
    # In a shell of its own, which may choose another compiler.
    if (prepare_arm64_libraries); then
        beside "$1" "$2"
    else
        skip "$1" "Debian's GStreamer for ARM64 could not be fetched"
    fi
}
musl_section() {
    if ! (has_target "${musl_triples[0]}") || ! (has_target "${musl_triples[1]}"); then
        skip "$1" "no compiler for ${musl_triples[*]}"
    elif ! fetch_zig || ! fetch_maturin; then
        skip "$1" "pip could not fetch zig and maturin"
    else
        beside "$1" try_musl
    fi
}
wheel_section_of_arm() {
    if ! fetch_zig || ! fetch_maturin; then
        skip "$1" "pip could not fetch zig and maturin"
    else
        beside "$1" try_arm64_wheel
    fi
}
picture_section_of_arm() {
    if [ -n "${SUPERPIXEL_IMAGES:-}${SUPERPIXEL_CLIPS:-}" ]; then
        beside "$1" try_arm64_pictures
    else
        skip "$1" "neither SUPERPIXEL_IMAGES nor SUPERPIXEL_CLIPS names a folder"
    fi
}
find_arm64() {
    # In shells of their own: one may end, the other choose another compiler.
    (install_packages "${arm64_packages[@]}") && (prepare_arm64)
}
arm64_sections() {
    # All that runs here runs on it.
    [ "$(uname -m)" != aarch64 ] || return 0
    if find_arm64; then
        beside "ARM64" try_arm64
        long beside "ARM64, tests of the library" try_arm64_library
        long musl_section "musl"
        long wheel_section_of_arm "ARM64 wheel"
        long linked_section_of_arm "ARM64 deb" try_arm64_deb debhelper
        long linked_section_of_arm "ARM64 programs" try_arm64_programs
        long picture_section_of_arm "ARM64, photographs and clips"
    else
        skip "ARM64" "no compiler for $arm64_triple, or no cross linker and emulator of Debian could be installed"
    fi
}
