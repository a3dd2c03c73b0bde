# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: a corpus on a cluster.

# Two nodes of Ray and a service that speaks S3, which find nothing but the loopback.
cluster_python=$target_dir/superpixel-cluster/bin/python
# One that Ray has wheels for.
cluster_base=$(suitable_pythons | awk -F '[ .]' '$2 >= 10 && $2 <= 14' | sed -n '$s/^[^ ]* //p')
make_cluster_environment() {
    "$cluster_base" -m venv --clear "$target_dir/superpixel-cluster" &&
        "$cluster_python" -m pip install -q --disable-pip-version-check --only-binary=:all: -r tests/cluster/requirements.txt
}
in_namespace() { unshare --map-root-user --net sh -c 'ip link set lo up && exec "$@"' sh "$@"; }
try_cluster() {
    # As the section of the Python package has built it; without it the tests of the stage are skipped.
    if compgen -G "$python_target/packages/*.whl" >/dev/null; then
        "$cluster_python" -m pip install -q --disable-pip-version-check --no-index --no-deps "$python_target"/packages/*.whl
    fi
    cd "$scratch" || return
    SUPERPIXEL_CLIP=$target_dir/debug/superpixel-clip in_namespace "$cluster_python" -m pytest -q -rs -p no:cacheprovider "$root/tests/cluster"
    "$cluster_python" "$root/tests/cluster/load.py"
}
# What needs neither Ray nor a namespace, in the newest environment of the Python package: what is written, locks, records, names.
try_corpus() {
    local environment
    environment=$(newest_environment)
    cd "$scratch" || return
    SUPERPIXEL_CLIP=$target_dir/debug/superpixel-clip "$environment/bin/python" -m pytest -q -rs -p no:cacheprovider \
        "$root"/tests/cluster --ignore "$root/tests/cluster/test_ray.py" --ignore "$root/tests/cluster/test_stage.py"
}

cluster_section() {
    local why=
    if [ -z "$cluster_base" ]; then
        why="no Python of 3.10 to 3.14, which Ray is for, with venv"
    elif ! in_namespace true 2>/dev/null; then
        why="this system makes no network namespace, or has no ip from iproute2"
    elif ! make_cluster_environment; then
        why="pip could not fetch what tests/cluster/requirements.txt names"
    fi
    if [ "$why" ]; then
        skip "$1" "$why"
    else
        # It installs the wheel, where one is built.
        await "Python wheel"
        section "$1" try_cluster
    fi
}
corpus_sections() {
    if compgen -G "$python_target/environment-*" >/dev/null; then
        beside "corpus, without Ray" try_corpus
    else
        skip "corpus, without Ray" "no environment of the Python package"
    fi
}
cluster_sections() { long cluster_section "cluster"; }
