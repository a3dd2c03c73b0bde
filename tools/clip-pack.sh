#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Packs what pipelines/cluster/measure.py needs into one folder: tools/clip-pack.sh [--force] FOLDER
#
# For a host with Python 3.10, bash and, for devices, an NVIDIA driver: x86-64 Linux with a C library no older than the one here.
# There: FOLDER/measure.sh [OPTION OF measure.py ...], which needs no network. Figures go to $OUT, or the current folder.
# Here, FOLDER gets measure.sh and pack.tar.xz, in place of those of an earlier run; --force replaces other files of these names.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=pipelines/output.sh
. "$root/pipelines/output.sh"
if [ "${1:-}" = --force ]; then
    force=yes
    shift
fi
[ $# = 1 ] && [[ $1 != -* ]] || { sed -n '3,7s/^# *//p' "${BASH_SOURCE[0]}"; exit 2; }
pack=$(realpath -m "$1")
may_write "$pack" measure.sh pack.tar.xz
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
check_target "$target"
folder=$target/superpixel-clip-pack
fresh_folder "$folder"
mkdir "$folder"/{bin,gst,lib,cluster}
cd "$root"

built=$(tools/built.sh superpixel-clip cargo build --locked --release --package superpixel-clip)
cp "$built" "$folder/bin/"
cp -r pipelines/cluster/{corpus.py,measure.py,superpixel_corpus} "$folder/cluster/"
rm -rf "$folder/cluster/superpixel_corpus/__pycache__"
plugins_from=$(pkg-config --variable=pluginsdir gstreamer-1.0)
cp -L "$(pkg-config --variable=pluginscannerdir gstreamer-1.0)/gst-plugin-scanner" "$folder/bin/"
for plugin in app coreelements isomp4 libav matroska nvcodec playback typefindfunctions videoconvertscale videoparsersbad; do
    cp -L "$plugins_from/libgst$plugin.so" "$folder/gst/"
done
# libgstcuda is opened by name at run time, so no program asks for it.
cuda_library=$(pkg-config --variable=libdir gstreamer-1.0)/libgstcuda-1.0.so.0
if [ -e "$cuda_library" ]; then cp -L "$cuda_library" "$folder/lib/"; fi
# The host has the C library and the driver.
find "$folder"/{bin,gst,lib} -type f -print0 | xargs -0 -r ldd 2>/dev/null |
    sed -n 's/.* => \(\/[^ ]*\) (0x.*/\1/p' | sort -u |
    { grep -vE '/(ld-linux|libc\.so|libm\.so|libdl|librt|libpthread|libresolv|libstdc|libgcc_s|libcuda|libnvidia|libnvcuvid)' || true; } |
    xargs -r cp -Lt "$folder/lib"
# What libav only links, voices of a speaker, tables of scripts, encoders, solvers, is more than half of all: names without content do.
for library in "$folder"/lib/lib{flite_cmu_*,icudata,icuuc,unistring,codec2,x265,x264,SvtAv1Enc,rav1e,placebo,rsvg-2,openmpt,lapack,blas,gfortran}.so.*; do
    [ -e "$library" ] || continue
    nm -D --defined-only "$library" | sed 's/@.*//' | sort -u -k2,3 | awk '$2 == "T" { print "void " $3 "(void) {}" } $2 ~ /[BDR]/ { print "char " $3 "[64];" }' |
        cc -shared -fPIC -w -x c -Wl,-soname,"${library##*/}" -o "$library" -
done
find "$folder"/{bin,gst,lib} -type f -exec strip --strip-unneeded {} + 2>/dev/null || true

cp media/bigbuckbunny.mp4 "$folder/clip.mp4"

cat >"$folder/measure.sh" <<'MEASURE'
#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Measures with this folder's programs and libraries: measure.sh [OPTION OF measure.py ...]
pack=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
here=$scratch/pack
python3 -m tarfile -e "$pack/pack.tar.xz" "$here" || exit 1
chmod +x "$here"/bin/*
# The program alone gets these libraries: Python has its own.
cat >"$scratch/superpixel-clip" <<PROGRAM
#!/bin/sh
export LD_LIBRARY_PATH="$here/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" GST_PLUGIN_SYSTEM_PATH="$here/gst" GST_PLUGIN_PATH=
export GST_PLUGIN_SCANNER="$here/bin/gst-plugin-scanner" GST_REGISTRY="$scratch/registry.bin"
exec "$here/bin/superpixel-clip" "\$@"
PROGRAM
chmod +x "$scratch/superpixel-clip"
python3 "$here/cluster/measure.py" "$here/clip.mp4" --program "$scratch/superpixel-clip" "$@"
MEASURE
chmod +x "$folder/measure.sh"
# One archive, which the script opens: small enough for hosts that take no more than 64 MiB.
tar -C "$folder" -cf - bin gst lib cluster clip.mp4 | xz -T0 -6 >"$folder/pack.tar.xz"
publish "$pack" "$folder/measure.sh" "$folder/pack.tar.xz"
remove_own "$folder"
du -sm "$pack"
