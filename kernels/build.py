#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Compiles kernels/*.cu to kernels/built with pinned compilers.

    kernels/build.py             write kernels/built
    kernels/build.py --check     fail if kernels/built is not what the sources give
    kernels/build.py --report    registers, shared memory and spills of each kernel, as sm_90 code

Needs Linux on x86-64, Python 3.9 and pip (Debian: `apt-get install python3 python3-pip`); no GPU, no driver, no toolkit.
Two versions of the compiler, NVRTC, come once from PyPI into target/nvrtc (or --nvrtc DIR, or SUPERPIXEL_NVRTC, names a folder
with a folder VERSION for each): an old one, whose PTX old drivers read, and a newer one, whose machine code is faster.

A kernel file is plain device code: it includes kernels/*.cuh and kernels/*.h by bare name and nothing else.
NAME.smNN.cubin is machine code, for compute capability 7.5, 8.x and 9.0. NAME.ptx is for what has none, from 7.5 on. A file
whose kernels begin with `after_last_kernel` also gives NAME.sm90.ptx, for 9.0 and above.
"""

import argparse
import ctypes
import glob
import hashlib
import multiprocessing
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "pipelines", "cluster"))
from superpixel_corpus.output import Refused, check_apart, read_regular, write_file  # noqa: E402

# The file that says that this program made a folder, and what: a name in each line below the first one.
MARKER = "files.txt"
MARK = "Made by kernels/build.py from the sources beside it:"
ENDINGS = (".ptx", ".cubin")
# In the folder of fetched compilers, the digest of what was last found right.
CHECKED = "checked.txt"
# More bytes than the code of a file has.
MOST_CODE = 1 << 28
PACKAGE = "nvidia-cuda-nvrtc-cu12"
LIBRARY = "libnvrtc.so.12"
SHA256 = {
    "12.0.140": "8e94e991d85c422de4da87bdc7472fdc1364367bd4aace7000b559cd33122071",
    "12.9.86": "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4",
}
# 12.0 writes PTX ISA 8.0, the newest that drivers of branch R525 read.
PTX_VERSION = "12.0.140"
# Drivers from R525 on run machine code of any compiler of CUDA 12. One form of SLIC's labels took 0.129 ms at 3840x2160 by this
# one and 0.171 by 12.0.
CODE_VERSION = "12.9.86"
# Files whose machine code the old one makes faster: 0.097 against 0.105 ms at 1920x1080.
OLD_CODE = {"connectivity.cu"}

BASE_ARCH = 75
# A further variant, for files that say what it is good for. None for 8.x: every device of these takes machine code.
MARKS = {90: re.compile(r"\b(?:after|beside)_last_kernel\(")}
# A kernel whose body begins with something else.
UNORDERED = re.compile(r"^KERNEL [^{;]*\{(?!\n  (?:after|beside)_last_kernel\([^;]*\);\n)", re.M)
# Code for 8.0 runs on 8.6 and 8.9.
CODE_ARCHS = [75, 80, 90]
REPORT_ARCH = 90
# The CPU is the reference: no contraction, no approximate division, no flushed denormals.
OPTIONS = ["--std=c++17", "-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false"]


class Failed(Exception):
    """A message for the person who ran this."""


def builtins_of(version):
    return f"libnvrtc-builtins.so.{'.'.join(version.split('.')[:2])}"


def compiler_folder(wanted, version):
    """Returns a folder that holds a version of NVRTC, fetched if need be."""
    if wanted:
        folder = os.path.join(wanted, version)
        if not os.path.exists(os.path.join(folder, LIBRARY)):
            raise Failed(f"{folder} has no {LIBRARY}")
        return folder
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise Failed(f"{PACKAGE} {version} exists for Linux on x86-64 only; the committed kernels/built work without it")
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(HERE, "..", "target")
    folder, wanted_files = os.path.join(target, "nvrtc", version), (LIBRARY, builtins_of(version))
    if all(os.path.exists(os.path.join(folder, name)) for name in wanted_files):
        return folder
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as temp:
        requirements = os.path.join(temp, "requirements.txt")
        with open(requirements, "w") as file:
            file.write(f"{PACKAGE}=={version} --hash=sha256:{SHA256[version]}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--python-version=3", "--platform=manylinux1_x86_64",
                   "--platform=manylinux2010_x86_64", "--require-hashes", "--dest", temp, "--requirement", requirements]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wheels = glob.glob(os.path.join(temp, "*.whl"))
        if done.returncode or len(wheels) != 1:
            raise Failed(f"could not fetch {PACKAGE} {version} (is python3-pip installed?):\n{done.stdout}")
        unpacked = os.path.join(temp, "nvrtc")
        os.mkdir(unpacked)
        with zipfile.ZipFile(wheels[0]) as wheel:
            for member in wheel.namelist():
                if os.path.basename(member) in wanted_files:
                    with wheel.open(member) as source, open(os.path.join(unpacked, os.path.basename(member)), "wb") as out:
                        shutil.copyfileobj(source, out)
        # File by file: whatever else is there stays.
        os.makedirs(folder, exist_ok=True)
        for name in wanted_files:
            os.replace(os.path.join(unpacked, name), os.path.join(folder, name))
    return folder


class Compiler:
    """NVRTC through ctypes."""

    def __init__(self, folder, version):
        # NVRTC opens its builtins by name when it first compiles: loaded before, they are found.
        ctypes.CDLL(os.path.join(folder, builtins_of(version)), mode=ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(os.path.join(folder, LIBRARY), mode=ctypes.RTLD_GLOBAL)
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.check(self.lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
        if f"{major.value}.{minor.value}" != ".".join(version.split(".")[:2]):
            raise Failed(f"NVRTC {version} is wanted, {folder} has {major.value}.{minor.value}")

    def check(self, code, what):
        if code:
            raise Failed(f"{what}: {self.lib.nvrtcGetErrorString(code).decode()}")

    def text(self, program, what):
        size = ctypes.c_size_t()
        self.check(getattr(self.lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what)
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        self.check(getattr(self.lib, f"nvrtcGet{what}")(program, buffer), what)
        return buffer.raw[: size.value]

    def compile(self, name, source, headers, arch, real=False, extra=()):
        """Returns PTX (or machine code if `real`) and what the compiler said."""
        program = ctypes.c_void_p()
        names = (ctypes.c_char_p * len(headers))(*[n.encode() for n in headers])
        bodies = (ctypes.c_char_p * len(headers))(*[headers[n] for n in headers])
        self.check(self.lib.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), len(headers), bodies, names),
                   "nvrtcCreateProgram")
        try:
            options = [f"--gpu-architecture={'sm' if real else 'compute'}_{arch}", *OPTIONS, *extra]
            texts = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
            code = self.lib.nvrtcCompileProgram(program, len(options), texts)
            log = self.text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
            if code:
                reason = self.lib.nvrtcGetErrorString(code).decode()
                raise Failed(f"{name} for {'sm' if real else 'compute'}_{arch}: {reason}\n{log}")
            return self.text(program, "CUBIN" if real else "PTX"), log
        finally:
            self.lib.nvrtcDestroyProgram(ctypes.byref(program))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def included(folder):
    """Maps the name of each file that sources may include to its bytes."""
    return {os.path.basename(path): read(path)
            for pattern in ("*.cuh", "*.h") for path in sorted(glob.glob(os.path.join(folder, pattern)))}


def code_version(path):
    return PTX_VERSION if os.path.basename(path) in OLD_CODE else CODE_VERSION


def outputs_of(job):
    """Maps the name of each file that one source gives to its bytes, PTX or machine code; what the compiler said comes with it."""
    path, real, libraries, extra = job
    name, source = os.path.basename(path), read(path)
    stem, text = name[: -len(".cu")], source.decode()
    for kernel in UNORDERED.findall(text):
        raise Failed(f"{name}: a kernel does not begin with after_last_kernel() or beside_last_kernel(); it could run before what it reads is there:"
                     f"\n{kernel.strip()}")
    version = code_version(path) if real else PTX_VERSION
    compiler, headers = Compiler(libraries[version], version), included(os.path.dirname(path))
    if real:
        return {f"{stem}.sm{arch}.cubin": compiler.compile(name, source, headers, arch, real=True, extra=extra)[0]
                for arch in CODE_ARCHS}, []
    made, said = {}, []
    variants = [(f"{stem}.ptx", BASE_ARCH)]
    variants += [(f"{stem}.sm{arch}.ptx", arch) for arch, mark in MARKS.items() if mark.search(text)]
    for file, arch in variants:
        ptx, log = compiler.compile(name, source, headers, arch, extra=extra)
        if log:
            said.append(f"{name} for compute_{arch}:\n{log}")
        made[file] = ptx.rstrip(b"\0\n") + b"\n"
    return made, said


def outputs(libraries, folder, extra):
    """Maps the name of each file for kernels/built to its bytes."""
    sources = sorted(glob.glob(os.path.join(folder, "*.cu")))
    if not sources:
        raise Failed(f"{folder} has no .cu file")
    # The largest first, for they take longest.
    sources.sort(key=os.path.getsize, reverse=True)
    made = {}
    # A process for each: what the compiler writes depends on what it compiled before, and two versions do not go together.
    jobs = [(path, real, libraries, extra) for path in sources for real in (True, False)]
    with multiprocessing.Pool(maxtasksperchild=1) as pool:
        for part, said in pool.imap(outputs_of, jobs, chunksize=1):
            made.update(part)
            for line in said:
                print(line, file=sys.stderr)
    return made


def made_here(out):
    """Names of the files in a folder that this program has made, as its marker has them; None where there is no marker."""
    lines = (read_regular(os.path.join(out, MARKER)) or b"").decode(errors="replace").splitlines()
    if lines[:1] != [MARK]:
        return None
    return {name for name in lines[1:] if name.endswith(ENDINGS) and os.path.basename(name) == name}


def check_out(out, kernels, force):
    """Raises Refused where the folder is that of the sources, or holds things and no marker, or code that is not in the marker."""
    if os.path.realpath(out) != os.path.join(os.path.realpath(kernels), "built"):
        check_apart([kernels], [out])
    if force or not os.path.lexists(out):
        return
    if not os.path.isdir(out):
        raise Refused(f"{out} is no folder")
    there, known = set(os.listdir(out)), made_here(out)
    if there and known is None:
        raise Refused(f"{out} holds other things than kernels/build.py makes, and no {MARKER} of it: choose a new folder, or use --force")
    foreign = sorted(name for name in there - {MARKER} - (known or set()) if name.endswith(ENDINGS))
    if foreign:
        raise Refused(f"{out}/{foreign[0]} was not made by kernels/build.py: move it away, or use --force")


def write_out(out, made, force):
    """Writes what the sources give, and removes what they gave before and no longer do."""
    os.makedirs(out, exist_ok=True)
    known = made_here(out) or set()
    marker = "".join(f"{line}\n" for line in (MARK, *sorted(made))).encode()
    files = {**made, MARKER: marker}
    # The marker names old and new until both are as it says.
    both = "".join(f"{line}\n" for line in (MARK, *sorted(known | set(made)))).encode()
    write_file(os.path.join(out, MARKER), both, lambda content: content.startswith(MARK.encode()), force)
    for name in sorted(known - set(made)):
        if os.path.lexists(os.path.join(out, name)):
            os.remove(os.path.join(out, name))
    for name, code in files.items():
        path = os.path.join(out, name)
        if not os.path.lexists(path) or read(path) != code:
            write_file(path, code, lambda _: True, force, MOST_CODE)


def digest_of(kernels, out):
    """Returns a hash of all that decides whether the code in a folder is what sources give: both, and this program."""
    paths = [path for pattern in ("*.cu", "*.cuh", "*.h") for path in sorted(glob.glob(os.path.join(kernels, pattern)))]
    paths += [os.path.join(out, name) for name in sorted(os.listdir(out))] if os.path.isdir(out) else []
    every = hashlib.sha256()
    for path in (os.path.abspath(__file__), *paths):
        every.update(f"{os.path.basename(path)} {hashlib.sha256(read(path)).hexdigest()}\n".encode())
    return every.hexdigest()


def check(libraries, kernels, out, extra, record):
    """Prints how many files are what their sources give, or raises Failed. `record` names a file for the digest of what was right:
    that is not compiled again. None to compile in any case."""
    digest = digest_of(kernels, out)
    if record and (read_regular(record) or b"").decode(errors="replace").split() == [digest]:
        print(f"{len(made_here(out))} files are what their sources give, as an earlier check has found")
        return
    made = outputs(libraries, kernels, extra)
    there = {os.path.basename(path) for ending in ENDINGS for path in glob.glob(os.path.join(out, f"*{ending}"))}
    wrong = [f"{name}: not in {out}" for name in sorted(set(made) - there)]
    wrong += [f"{name}: no source gives it" for name in sorted(there - set(made))]
    wrong += [f"{name}: differs from what its source gives" for name in sorted(there & set(made))
              if read(os.path.join(out, name)) != made[name]]
    if made_here(out) != set(made):
        wrong.append(f"{MARKER}: does not name them")
    if wrong:
        raise Failed("\n".join(wrong) + "\nrun kernels/build.py and commit kernels/built")
    if record:
        write_file(record, f"{digest}\n".encode(), lambda content: re.fullmatch(rb"[0-9a-f]{64}\n", content) is not None)
    print(f"{len(made)} files are what their sources give")


def assembler_log(job):
    path, libraries = job
    compiler = Compiler(libraries[code_version(path)], code_version(path))
    headers, extra = included(os.path.dirname(path)), ["--ptxas-options=-v"]
    return compiler.compile(os.path.basename(path), read(path), headers, REPORT_ARCH, real=True, extra=extra)[1]


def report(libraries, folder):
    """Prints what the assembler says of each kernel."""
    paths = sorted(glob.glob(os.path.join(folder, "*.cu")))
    with multiprocessing.Pool(maxtasksperchild=1) as pool:
        logs = pool.map(assembler_log, [(path, libraries) for path in paths], chunksize=1)
    for path, log in zip(paths, logs):
        name = os.path.basename(path)
        function = stack = ""
        for line in log.splitlines():
            about = re.search(r"Function properties for (\S+)", line)
            spill = re.search(r"(\d+ bytes stack frame.*)", line)
            used = re.search(r"Used (.*)", line)
            if about:
                function = about.group(1)
            elif spill:
                stack = "" if re.match(r"0 bytes stack frame, 0 .* 0 ", spill.group(1)) else spill.group(1)
                # A function that is not inlined has no line of its own.
                if stack and "Used" not in log.split(line, 1)[1].split("Function properties", 1)[0]:
                    print(f"{name:24} {function:40} {stack}")
            elif used:
                print(f"{name:24} {function:40} {used.group(1)}{'; ' if stack else ''}{stack}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with kernels/built, write nothing")
    parser.add_argument("--report", action="store_true", help="print registers, shared memory and spills")
    parser.add_argument("--line-info", action="store_true", help="add source lines, for a profiler; not to be committed")
    parser.add_argument("--kernels", default=HERE, metavar="DIR", help="folder with the .cu files")
    parser.add_argument("--out", metavar="DIR", help="where the code goes (default: built in the folder of the sources)")
    parser.add_argument("--nvrtc", default=os.environ.get("SUPERPIXEL_NVRTC"), metavar="DIR", help="folder with NVRTC")
    parser.add_argument("--force", action="store_true", help="replace code in the folder of --out whoever made it")
    args = parser.parse_args()
    if args.line_info and not args.out:
        raise Failed("--line-info needs --out: kernels/built holds plain builds only")
    out = args.out or os.path.join(args.kernels, "built")
    if not args.check and not args.report:
        check_out(out, args.kernels, args.force)
    libraries = {version: compiler_folder(args.nvrtc, version) for version in SHA256}
    if args.report:
        report(libraries, args.kernels)
        return
    extra = ["--generate-line-info"] if args.line_info else []
    if args.check:
        fetched = os.path.dirname(libraries[PTX_VERSION])
        check(libraries, args.kernels, out, extra, None if args.nvrtc or extra else os.path.join(fetched, CHECKED))
        return
    made = outputs(libraries, args.kernels, extra)
    write_out(out, made, args.force)
    print(f"{len(made)} files in {out}")


if __name__ == "__main__":
    try:
        main()
    except (Failed, Refused) as error:
        sys.exit(f"build.py: {error}")
