#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Says what a built program holds: bill.py MANIFEST TARGET BILL LICENSES [--force] [--features LIST]

Writes the crates that are linked into the package of MANIFEST for TARGET, with their checksums, as a CycloneDX 1.5 bill of materials,
and the texts of their licenses. Features are the default ones, or those of a list in their place. Both are the same for the same
Cargo.lock and compiler, and name no path.
Files of these names that it has not made stay, unless it gets --force.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pipelines/cluster"))
from superpixel_corpus.output import Refused, check_apart, check_target, parse_object, write_file

HEADING = "Licenses of the libraries that are linked into this one."


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout


def linked(manifest, target, features):
    """Packages as "name version" with their license, and who depends on whom. Of the features that are on, other than cargo metadata."""
    command = ["tree", "--locked", "--manifest-path", manifest, "--target", target, "--edges", "normal,no-proc-macro", *features]
    licenses, needs, above = {}, {}, []
    for line in cargo(*command, "--prefix", "depth", "--format", " {p}|{l}").splitlines():
        depth, name, version, license = re.match(r"(\d+) (\S+) v(\S+).*\|([^|]*?)( \(\*\))?$", line).groups()[:4]
        package = f"{name} {version}"
        # Old crates write a slash.
        licenses[package] = license.replace("/", " OR ")
        needs.setdefault(package, set())
        del above[int(depth) :]
        if above:
            needs[above[-1]].add(package)
        above.append(package)
    return licenses, needs


def checksums(lock):
    """Package to the SHA-256 of its archive; those of this tree have none."""
    table = re.compile(r'name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "([0-9a-f]{64})"')
    return {f"{name} {version}": checksum for name, version, checksum in table.findall(lock.read_text())}


def folders(manifest):
    packages = json.loads(cargo("metadata", "--locked", "--format-version=1", "--manifest-path", manifest))["packages"]
    return {f"{package['name']} {package['version']}": Path(package["manifest_path"]).parent for package in packages}


def component(package, license, checksum):
    name, version = package.split()
    entry = {"type": "library", "bom-ref": package, "name": name, "version": version, "licenses": [{"expression": license}]}
    if checksum:
        entry["purl"] = f"pkg:cargo/{name}@{version}"
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return entry


def texts(licenses, folder_of):
    """The license files of each package, each text once with all packages that have it."""
    owners = {}
    for package in licenses:
        found = sorted(path for path in folder_of[package].iterdir() if re.match(r"(?i)(licen[cs]e|copying|notice|unlicense)", path.name))
        for path in found:
            if path.is_file():
                owners.setdefault(path.read_text(errors="replace").strip(), []).append(package)
    rule = "\n\n" + "=" * 100 + "\n\n"
    parts = [f"{', '.join(dict.fromkeys(names))}:\n\n{text}" for text, names in owners.items()]
    missing = [f"{package} is under {licenses[package]}." for package in licenses if all(package not in names for names in owners.values())]
    return rule.join(["\n".join([HEADING, *missing]), *parts]) + "\n"


def is_ours(content):
    """Whether a file is a bill or a list of licenses of this program."""
    return content.startswith(HEADING.encode()) or (parse_object(content) or {}).get("bomFormat") == "CycloneDX"


def main():
    force, arguments = "--force" in sys.argv[1:], [word for word in sys.argv[1:] if word != "--force"]
    features = []
    if arguments[-2:-1] == ["--features"]:
        *arguments, option, names = arguments
        features = ["--no-default-features", option, names]
    if len(arguments) != 4:
        sys.exit(__doc__)
    manifest, target, bill, text = arguments
    lock = next((folder / "Cargo.lock" for folder in Path(manifest).resolve().parents if (folder / "Cargo.lock").exists()), manifest)
    check_apart([manifest, lock, bill], [text])
    check_apart([manifest, lock], [bill])
    for path in (bill, text):
        check_target(path, is_ours, force)
    licenses, needs = linked(manifest, target, features)
    folder_of = folders(manifest)
    checksum = checksums(lock)
    top = next(iter(licenses))
    compiler = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[1]
    standard = f"std {compiler}"
    components = [component(package, licenses[package], checksum.get(package)) for package in sorted(licenses) if package != top]
    components.append(component(standard, "MIT OR Apache-2.0", None))
    needs[top].add(standard)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(top, licenses[top], None)},
        "components": components,
        "dependencies": [{"ref": package, "dependsOn": sorted(needs[package])} for package in sorted(needs)],
    }
    write_file(bill, (json.dumps(document, indent=1) + "\n").encode(), is_ours, force)
    others = {package: license for package, license in sorted(licenses.items()) if package in checksum}
    write_file(text, texts(others, folder_of).encode(), is_ours, force)


if __name__ == "__main__":
    try:
        main()
    except (Refused, OSError) as error:
        sys.exit(f"bill.py: {error}")
