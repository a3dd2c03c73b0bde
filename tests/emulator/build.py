#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Builds the emulated device: tests/emulator/build.py [--races] FOLDER writes FOLDER/libcuda.so.1,
which needs FOLDER/libemulator.so, and FOLDER/libnvcuvid.so.1, without which GStreamer 1.22 does not offer cudaupload.

Programs started with LD_LIBRARY_PATH=FOLDER find it as the driver. The names of the kernels and the sizes of their
parameters come from kernels/built, so that what is tested is launched as the real driver would launch it. What FOLDER
has of the same sources stays. --races: a device that looks at every access to its memory and ends the program where
launches or copies without an order between them touch the same (races.h).
"""

import concurrent.futures
import fcntl
import glob
import hashlib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "pipelines", "cluster"))
from superpixel_corpus.output import Refused, check_apart, read_regular  # noqa: E402

KERNELS = os.path.join(HERE, "..", "..", "kernels")
WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8}
# No contraction: the kernels are built so, too. FMA has to be there for speed; without it the library's is as exact.
# No red zone: kernels switch stacks, which puts something below the stack pointer.
FLAGS = ["-std=c++17", "-O2", "-g1", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-fvisibility=hidden", "-mno-red-zone"]
FLAGS += ["-pthread", "-w"]
# Before every access to memory a kernel calls races.cpp.
WATCHED = ["-fsanitize=thread"]


def entries(path):
    """Maps the name of each kernel of a PTX file to the sizes of its parameters."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    found = {}
    for name, parameters in re.findall(r"\.entry\s+(\w+)\((.*?)\)", text, re.S):
        sizes = []
        for line in parameters.split(",\n"):
            array = re.search(r"\.b8\s+\w+\[(\d+)\]", line)
            scalar = re.search(r"\.param\s+\.[a-z](\d+)", line)
            if array:
                sizes.append(int(array.group(1)))
            elif scalar:
                sizes.append(WIDTHS[scalar.group(1)])
        found[name] = sizes
    return found


def waiting(path):
    """Names the kernels of a source whose first statement waits for the kernel before: they do nothing early."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    bounds = r"(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s+)?"
    return set(re.findall(rf"^KERNEL\s+{bounds}(\w+)\([^{{}};]*\)\s*\{{\s*after_last_kernel\(", text, re.M))


def compile_one(arguments):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else f"{' '.join(arguments)}\n{done.stdout}"


def digest(compiler, flags):
    """Says of what a library would be built."""
    patterns = [os.path.join(KERNELS, name) for name in ("*.cu", "*.cuh", "*.h", "built/*.ptx")] + [os.path.join(HERE, "*.*")]
    version = subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, check=True).stdout
    made = hashlib.sha256(repr((flags, version)).encode())
    for path in sorted(path for pattern in patterns for path in glob.glob(pattern)):
        with open(path, "rb") as file:
            content = file.read()
        made.update(f"{os.path.relpath(path, HERE)} {len(content)}\n".encode() + content)
    return made.hexdigest()


def check_folder(out):
    """Raises Refused unless the folder is new or empty, or has the file by which this program knows what it made."""
    check_apart([KERNELS, HERE], [out])
    if not os.path.lexists(out) or (os.path.isdir(out) and not os.listdir(out)):
        return
    # Empty where an earlier one was interrupted.
    sources = read_regular(os.path.join(out, "sources"))
    if sources is None or not re.fullmatch(rb"([0-9a-f]{64})?", sources):
        raise Refused(f"{out} holds other things than the emulated device: choose a new folder")


def main():
    options, folders = sys.argv[1:-1], sys.argv[-1:]
    if len(sys.argv) < 2 or folders[0].startswith("-") or options not in ([], ["--races"]):
        sys.exit(__doc__)
    out, races = folders[0], bool(options)
    check_folder(out)
    os.makedirs(out, exist_ok=True)
    compiler = os.environ.get("CXX", "g++")
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        fma = ["-mfma"] if re.search(r"^flags.*\bfma\b", file.read(), re.M) else []
    flags = [*FLAGS, *fma, *(["-DEMULATOR_RACES"] if races else [])]
    library, sources = os.path.join(out, "libcuda.so.1"), digest(compiler, flags)
    # Several may want it at once: the others wait, and find it there.
    with open(os.path.join(out, "sources"), "a+", encoding="ascii") as there:
        fcntl.flock(there, fcntl.LOCK_EX)
        there.seek(0)
        if there.read() != sources:
            there.truncate(0)
            build(out, [compiler, *flags], WATCHED if races else [])
            there.write(sources)
    print(library)


def build(out, compiler, watched):
    table, objects, jobs = [], [], []
    for path in sorted(glob.glob(os.path.join(KERNELS, "*.cu"))):
        stem = os.path.splitext(os.path.basename(path))[0]
        kernels, at_once = entries(os.path.join(KERNELS, "built", f"{stem}.ptx")), waiting(path)
        source, made = os.path.join(out, f"{stem}.cpp"), os.path.join(out, f"{stem}.o")
        with open(source, "w", encoding="ascii") as file:
            file.write(f'#include "{os.path.join(HERE, "cuda.h")}"\n#include "{os.path.abspath(path)}"\n')
            for name in kernels:
                file.write(f'static emulator::Registration register_{name}('
                           f'"{name}", [](void **arguments) {{ emulator::call({name}, arguments); }}, {str(name in at_once).lower()});\n')
        table += [f'    {{"{name}", {{{", ".join(map(str, sizes))}}}}},' for name, sizes in kernels.items()]
        objects.append(made)
        jobs.append([*compiler, *watched, "-c", source, "-o", made])
    with open(os.path.join(out, "kernels.inc"), "w", encoding="ascii") as file:
        file.write("static const std::map<std::string, std::vector<size_t>> &parameter_sizes() {\n"
                   "  static const std::map<std::string, std::vector<size_t>> sizes = {\n" + "\n".join(table) + "\n  };\n  return sizes;\n}\n")
    for stem in ("driver", "fibers", "races"):
        objects.append(os.path.join(out, f"{stem}.o"))
        jobs.append([*compiler, "-I", out, "-c", os.path.join(HERE, f"{stem}.cpp"), "-o", objects[-1]])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [failure for failure in pool.map(compile_one, jobs) if failure]
    # The driver needs what stands before it.
    for name, parts in (("libemulator.so", ["here.cpp"]), ("libcuda.so.1", [*objects, "-L", out, "-lemulator"]), ("libnvcuvid.so.1", ["nvcuvid.cpp"])):
        parts = [os.path.join(HERE, part) if part.endswith(".cpp") else part for part in parts]
        failures = failures or [f for f in [compile_one([*compiler, "-shared", f"-Wl,-soname,{name}", *parts, "-o", os.path.join(out, name)])] if f]
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    try:
        main()
    except Refused as error:
        sys.exit(f"build.py: {error}")
