# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the Python package.

python_target=$target_dir/superpixel-python

# The oldest and the newest Python at hand that the package is for, as "version path".
suitable_pythons() {
    local python
    for python in python3 /usr/bin/python3 python3.{9..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
        "$python" -c '
import ensurepip, sys, venv
if sys.version_info >= (3, 9) and sys.version_info.releaselevel == "final":
    print("%d.%02d" % sys.version_info[:2], sys.executable)' 2>/dev/null || true
    done | sort -u -k1,1 | sed -n '1p; 1!{$p}'
}
# Environments with what the tests need beside the package: of the newest Python, with --all of the oldest, too. One that an earlier run
# has made of the same stays.
needed=(numpy scipy pillow pytest hypothesis==6.141.1 mypy==1.19.1 basedpyright==1.39.10
    pandas polars pyarrow matplotlib ipywidgets shapely pycocotools)
# Without these their tests are skipped by name.
of_use=(av numpydoc resvg_py)
make_environments() {
    local version python environment package made=()
    while read -r version python; do
        environment=$python_target/environment-$version
        made+=("$environment")
        if [ "$(cat "$environment/needed" 2>/dev/null)" != "$python ${needed[*]} ${of_use[*]}" ]; then
            rm -rf "$environment"
            "$python" -m venv "$environment" &&
                "$environment/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: "${needed[@]}" || return 1
            for package in "${of_use[@]}"; do
                "$environment/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: "$package" ||
                    warn "no wheel of $package for Python $version: its tests are skipped"
            done
            echo "$python ${needed[*]} ${of_use[*]}" >"$environment/needed"
        fi
    done < <(suitable_pythons | if [ "$all" ]; then cat; else tail -n 1; fi)
    for environment in "$python_target"/environment-*; do
        [[ " ${made[*]} " = *" $environment "* ]] || rm -rf "$environment"
    done
}
newest_environment() { compgen -G "$python_target/environment-*" | sort | tail -n 1; }
# The package as the tests in Rust were built, with debug assertions, in a folder that Python finds it in.
use_built_package() {
    local folder=$python_target/built
    rm -rf "$folder"
    mkdir -p "$folder/superpixels"
    cp python/superpixels/* "$folder/superpixels/"
    cp "$target_dir/debug/lib_native.so" "$folder/superpixels/_native.abi3.so"
    export PYTHONPATH=$folder
    cd "$python_target" || return
}
try_python() {
    use_built_package
    "$(newest_environment)/bin/python" -m pytest -q -rs -p no:cacheprovider "$root/python/tests" --ignore "$root/python/tests/test_fuzz.py"
}
# The part of the package on a device.
try_python_emulated() {
    use_emulator
    use_built_package
    "$(newest_environment)/bin/python" -m pytest -q -p no:cacheprovider "$root"/python/tests/test_device*.py
}
# What users get, with the oldest and the newest Python.
try_wheel_tests() {
    local environment
    rm -rf "$python_target/packages"
    packaging/build.sh wheel "$python_target/packages"
    for environment in "$python_target"/environment-*; do
        "$environment/bin/python" --version
        "$environment/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps "$python_target"/packages/*.whl
        # From another folder, so that the installed package is the one that is found.
        (cd "$python_target" && "$environment/bin/python" -m pytest -q -rs -p no:cacheprovider "$root/python/tests" --ignore "$root/python/tests/test_fuzz.py")
    done
    # The newest Python takes part in the rest.
    (cd "$python_target" && SUPERPIXEL_FUZZ_SECONDS=${SUPERPIXEL_FUZZ_SECONDS:-60} "$environment/bin/python" -m pytest -q -p no:cacheprovider \
        "$root/python/tests/test_fuzz.py")
    # Other calls than each run of the tests above draws.
    (cd "$python_target" && SUPERPIXEL_MACHINE_SECONDS=${SUPERPIXEL_MACHINE_SECONDS:-120} "$environment/bin/python" -m pytest -q -p no:cacheprovider \
        "$root/python/tests/test_machine.py")
    try_wheel
}
# What is in the wheel, and that it gives what the element gives.
try_wheel() {
    local environment
    environment=$(newest_environment)
    (cd "$python_target" && "$environment/bin/python" "$root/tests/python/wheel.py" "$python_target/packages")
    "$environment/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: auditwheel==6.8.2
    # Split where lines end, which may be within the tag.
    "$environment/bin/python" -m auditwheel show "$python_target"/packages/*.whl | tr -s '\n ' ' ' |
        grep 'is consistent with the following platform tag: "manylinux_2_17_x86_64"'
    rm -rf "$python_target/with-gi"
    python3 -m zipfile -e "$python_target"/packages/*.whl "$python_target/with-gi"
    export PYTHONPATH=$python_target/with-gi
    python_with_gi tests/python/same_as_element.py
    python_with_gi python/examples/video_file.py | grep '^frame 23: '
}
# The recipes and examples that need torch, PyTorch Geometric or LIME, with the real ones: torch's own wheels for CPUs, and where those
# cannot be fetched Debian's package, of Debian's Python. Removed afterwards: they take about a gigabyte.
torch_index=${SUPERPIXEL_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
with_torch=$python_target/with-torch
make_environment_with_torch() {
    local python install=(-m pip install -q --disable-pip-version-check --retries 1 --timeout 20 --prefer-binary)
    rm -rf "$with_torch"
    read -r _ python < <(suitable_pythons | tail -n 1)
    if ! { "$python" -m venv "$with_torch" &&
        "$with_torch/bin/python" "${install[@]}" --only-binary=:all: --index-url "$torch_index" torch; }; then
        # In a shell of its own, which a package that cannot be had ends.
        (install_packages python3-torch python3-venv) || return 1
        rm -rf "$with_torch"
        /usr/bin/python3 -m venv --system-site-packages "$with_torch" || return 1
    fi
    # LIME comes as sources alone. The numpy that torch was built for stays.
    "$with_torch/bin/python" -c 'import numpy; print("numpy==" + numpy.__version__)' >"$with_torch/fixed" 2>/dev/null || true
    "$with_torch/bin/python" "${install[@]}" --constraint "$with_torch/fixed" \
        numpy pillow av pytest scipy lime torch_geometric &&
        "$with_torch/bin/python" -c 'import lime, torch, torch_geometric'
}
try_recipes_with_torch() {
    use_built_package
    SUPERPIXEL_EVERY_RECIPE=1 "$with_torch/bin/python" -m pytest -q -rs -p no:cacheprovider \
        "$root"/python/tests/test_{recipes,documents,torch}.py
    rm -rf "$with_torch"
}
torch_section() {
    if ! make_environment_with_torch; then
        rm -rf "$with_torch"
        skip "$1" "neither pip nor apt-get could fetch torch, torch_geometric and lime"
    else
        beside "$1" try_recipes_with_torch
    fi
}
wheel_section() {
    if [ "$(uname -m)" != x86_64 ]; then
        skip "$1" "the pinned maturin is a program for x86-64"
    elif ! fetch_zig || ! fetch_maturin; then
        skip "$1" "pip could not fetch zig and maturin"
    else
        beside "$1" try_wheel_tests
    fi
}
python_sections() {
    mkdir -p "$python_target"
    if ! make_environments; then
        skip "Python package" "pip could not fetch ${needed[*]}"
    else
        beside "Python package" try_python
        beside "Python package on an emulated device" try_python_emulated
        long wheel_section "Python wheel"
        long torch_section "Python recipes with torch"
    fi
}
