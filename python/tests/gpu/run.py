#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""The package with torch and CuPy on a real device:
run.py [--clip FILE WIDTH HEIGHT] [--picture FILE WIDTH HEIGHT] [--photographs FILE WIDTH HEIGHT ...] [NAME ...]

Needs the package, numpy, and torch or CuPy with a device; not pytest. FILE holds frames or pictures as raw RGB; without them frames
are drawn. NAME chooses tests. A line for each test, and figures. Without a device it says so and ends with status 77, or 1 where
SUPERPIXEL_REQUIRE_CUDA is 1; then torch and CuPy have to be there, too. SUPERPIXEL_BENCH names superpixel-bench, to compare speeds with.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import traceback

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from libraries import CuPy, Torch  # noqa: E402  (found by the line before)
from picture import rgba  # noqa: E402

import superpixels as sp  # noqa: E402

ALGORITHMS = {"slic": dict(n_segments=400), "lsc": dict(n_segments=400), "quickshift": dict(sigma=2.0, tau=8.0)}
FRAMES = 60


class Skipped(Exception):
    """Why a test cannot run here."""


def drawn_frames(count):
    large = rgba(700, 500)[..., :3]
    return [large[2 * i % 120 :, 3 * i % 180 :][:360, :480].copy() for i in range(count)]


def same_tables(library, device, host):
    for name in ["regions", "motion", "neighbors"]:
        found, wanted = getattr(device, name), getattr(host, name)
        assert list(found) == list(wanted.dtype.names)
        for field in found:
            got, want = library.down(found[field]), wanted[field]
            assert np.array_equal(got.astype(want.dtype), want), f"{name}.{field}"
    edges = library.down(device.edge_index)
    assert edges.dtype == np.int64 and np.array_equal(edges, host.edge_index)


class Tests:
    def __init__(self, clip, picture, photographs, libraries):
        self.clip, self.picture, self.photographs, self.libraries = clip, picture, photographs, libraries
        self.pictures = [rgba(*size)[..., :3].copy() for size in [(163, 122), (641, 479), (1, 40), (257, 3), (1000, 30)]]
        self.pictures += clip[:: max(1, len(clip) // 15)][:15]

    def each(self):
        """Tests by their names, each with a library where it takes one."""
        for name in dir(self):
            if not name.startswith("test_"):
                continue
            test = getattr(self, name)
            if test.__code__.co_argcount == 1:
                yield name, test
            else:
                for library in self.libraries:
                    yield f"{name} {library.name}", lambda test=test, library=library: test(library)

    def test_ranges_bands_and_masked_values(self, library):
        rng = np.random.default_rng(3)
        mask = np.zeros((360, 480), bool)
        mask[20:300, 40:400] = True
        for dtype, low, high in [(np.uint8, 16, 235), (np.int16, -1000, 400), (np.int32, -5, 1 << 20), (np.int64, 0, 4095), (np.float32, -3, 5)]:
            scene = rng.integers(0, 6, (9, 12, 7)).repeat(40, 0).repeat(40, 1) * (high - low) / 6 + low
            scene = (scene + rng.normal(0, (high - low) / 40, scene.shape)).clip(0 if dtype == np.uint8 else None, None).astype(dtype)
            if dtype == np.float32:
                scene[~mask] = [np.nan, np.inf, -9999, 0, np.nan, 1, 2]
            for bands, there in (((4, 2, 0), mask), (5, mask)):
                arguments = dict(data_range=(low, high), bands=bands)
                want = sp.slic(scene, mask=there, start_label=1, **arguments)
                found = sp.slic(library.up(scene), mask=library.up(there), start_label=1, check=True, **arguments)
                assert np.array_equal(library.down(found), want), (dtype, bands)
                first = library.up(np.ascontiguousarray(scene.transpose(2, 0, 1)))
                found = sp.slic(first, mask=library.up(there), start_label=1, channel_axis=0, **arguments)
                assert np.array_equal(library.down(found), want), (dtype, bands)

    def test_tensors_of_the_host(self, library):
        if library.name != "torch":
            raise Skipped("arrays of CuPy are on a device")
        torch, picture = library.lib, self.pictures[0]
        tensor = torch.from_numpy(picture.copy())
        want = sp.slic(picture)
        inside = torch.zeros(want.shape, dtype=torch.bool)
        inside[10:90, 20:140] = True
        for image in (tensor, tensor.permute(2, 0, 1).contiguous().permute(1, 2, 0), tensor.double() / 255):
            labels = sp.slic(image)
            assert isinstance(labels, torch.Tensor) and labels.dtype == torch.int32 and not labels.is_cuda
            assert np.array_equal(labels.numpy(), want)
            masked = sp.Segmenter(n_segments=100).segment(image, mask=inside)
            assert np.array_equal(masked.numpy(), sp.slic(picture, mask=inside.numpy()))
        out = torch.zeros(want.shape, dtype=torch.int32)
        assert sp.slic(tensor, start_label=3, out=out) is out and np.array_equal(out.numpy() - 3, want)
        first = sp.slic([tensor, tensor[:50]])[1]
        assert isinstance(first, torch.Tensor) and np.array_equal(first.numpy(), sp.slic(picture[:50].copy()))
        with_gradient = (tensor.float() / 255).requires_grad_()
        try:
            sp.slic(with_gradient)
        except (RuntimeError, BufferError) as error:
            assert "detach" in str(error)
        else:
            raise AssertionError("a tensor with a gradient was taken")

    def test_temporal_frames(self):
        """Labels, tables and track ids of a clip: numpy, torch and CuPy."""
        for algorithm, parameters in ALGORITHMS.items():
            host = sp.Segmenter(algorithm, temporal=True, **parameters)
            numpy = sp.Segmenter(algorithm, device="cuda", temporal=True, **parameters)
            others = [(library, sp.Segmenter(algorithm, temporal=True, **parameters)) for library in self.libraries]
            for i, frame in enumerate(self.clip):
                want = host.segment(frame)
                assert np.array_equal(numpy.segment(frame), want), f"{algorithm}, numpy, frame {i}"
                for name in ["regions", "motion", "neighbors", "edge_index"]:
                    assert np.array_equal(getattr(numpy, name), getattr(host, name)), f"{algorithm}, numpy, frame {i}: {name}"
                for library, segmenter in others:
                    labels = library.down(segmenter.segment(library.up(frame)))
                    assert labels.dtype == np.int32 and np.array_equal(labels, want), f"{algorithm}, {library.name}, frame {i}"
                    if i % 5 == 0 or i < 3:
                        same_tables(library, segmenter, host)
            assert len(self.clip) >= FRAMES or "--clip" not in sys.argv
            print(f"{algorithm}: {len(self.clip)} frames of {frame.shape[1]}x{frame.shape[0]}, {host.n_regions} regions at last")

    def test_pictures(self, library):
        for algorithm in ALGORITHMS:
            function = getattr(sp, algorithm)
            for picture in self.pictures:
                gray, alpha = picture[..., 1], np.dstack([picture, picture[..., :1]])
                for image, order in [(picture, "rgb"), (gray, "rgb"), (alpha, "bgr")]:
                    want = function(np.ascontiguousarray(image), order=order)
                    assert np.array_equal(library.down(function(library.up(image), order=order)), want), picture.shape
            print(f"{algorithm}: {len(self.pictures)} pictures, three formats")
        wide = library.up(np.tile(picture, (1, 2, 1)))
        assert np.array_equal(library.down(sp.slic(wide[3:, 5 : 5 + picture.shape[1]])), sp.slic(np.tile(picture, (1, 2, 1))[3:, 5 : 5 + picture.shape[1]].copy()))
        # Every other pixel is packed on the device.
        assert np.array_equal(library.down(sp.slic(wide[:, ::2])), sp.slic(np.tile(picture, (1, 2, 1))[:, ::2].copy()))

    def test_photographs(self, library):
        """Labels and tables of photographs: numpy on a device, and a library."""
        if not self.photographs:
            raise Skipped("no --photographs")
        for algorithm in ALGORITHMS:
            for i, picture in enumerate(self.photographs):
                host, device = sp.Segmenter(algorithm, temporal=True), sp.Segmenter(algorithm, temporal=True)
                want = host.segment(picture)
                assert np.array_equal(sp.Segmenter(algorithm, device="cuda").segment(picture), want), f"{algorithm}, numpy, {i}"
                assert np.array_equal(library.down(device.segment(library.up(picture))), want), f"{algorithm}, {i}"
                same_tables(library, device, host)
            print(f"{algorithm}: {len(self.photographs)} photographs")

    def test_exact_regions(self, library):
        """As many regions as are asked for, of pictures and from frame to frame while the number changes."""
        for picture in self.pictures[:2] + self.photographs:
            for refine in (0, 1):
                want = sp.slic(picture, n_regions=50, refine=refine)
                assert want.max() == 49
                assert np.array_equal(library.down(sp.slic(library.up(picture), n_regions=50, refine=refine)), want)
        host, device = sp.Segmenter(temporal=True, n_regions=50), sp.Segmenter(temporal=True, n_regions=50)
        for i, frame in enumerate(self.clip[:12]):
            if i == 6:
                host.set(n_regions=20)
                device.set(n_regions=20)
            want = host.segment(frame)
            assert np.array_equal(library.down(device.segment(library.up(frame))), want), i
            same_tables(library, device, host)

    def test_out(self, library):
        picture = self.pictures[0]
        want, image = sp.slic(picture), library.up(picture)
        for dtype in ("int32", "uint16"):
            try:
                out = library.empty(want.shape, dtype)
            except AttributeError:
                print(f"{library.name} has no {dtype}")
                continue
            assert sp.slic(image, out=out) is out
            assert np.array_equal(library.down(out), want)
        assert np.array_equal(library.down(sp.slic(image, start_label=-3)), want.astype(np.int32) - 3)

    def test_streams(self, library):
        """A frame is read after what is before it on the stream and before what is behind it; labels are ready behind the call."""
        host = sp.Segmenter(temporal=True, n_segments=300)
        wanted = [host.segment(frame) for frame in self.clip[:6]]
        for explicit in (False, True):
            segmenter = sp.Segmenter(temporal=True, n_segments=300)
            stream = library.stream()
            place = library.up(self.clip[0])
            ups, found = [library.up(frame) for frame in self.clip[:6]], []
            library.synchronize()
            with library.on(stream):
                for up in ups:
                    library.keep_busy()
                    place[:] = up
                    if explicit:
                        with library.on(library.stream()):
                            labels = segmenter.segment(place, stream=stream)
                    else:
                        labels = segmenter.segment(place)
                    place[:] = 0
                    found.append(labels + 0)
            library.synchronize()
            for labels, want in zip(found, wanted):
                assert np.array_equal(library.down(labels), want), f"stream={explicit}"

    def test_types_and_layouts(self, library):
        """uint16 and float32, batches, lists, channels first, masks."""
        large = self.pictures[1]
        noise = np.random.default_rng(1).integers(0, 257, large.shape)
        words = (256 * large.astype(np.int64) + noise).clip(0, 65535).astype(np.uint16)
        mask = np.hypot(*np.mgrid[: large.shape[0], : large.shape[1]]) < 500
        for image in (large, words, (words / 65535.0).astype(np.float32)):
            try:
                there = library.up(image)
            except (TypeError, RuntimeError) as error:
                print(f"{library.name} has no {image.dtype}: {error}")
                continue
            planes = library.up(image.transpose(2, 0, 1))
            batch = library.up(np.stack([image, image[::-1]]))
            for name in ALGORITHMS:
                function = getattr(sp, name)
                want = function(image)
                other = function(np.ascontiguousarray(image[::-1]))
                assert np.array_equal(library.down(function(there)), want), f"{name}, {image.dtype}"
                seen = library.down(function(planes.permute(1, 2, 0) if library.name == "torch" else planes.transpose(1, 2, 0)))
                assert np.array_equal(seen, want), f"{name}, {image.dtype}, channels first"
                assert np.array_equal(library.down(function(batch)), [want, other]), f"{name}, {image.dtype}, batch"
                assert all(np.array_equal(library.down(found), want) for found in function([there, there]))
                masked = library.down(function(there, mask=library.up(mask), start_label=1))
                assert np.array_equal(masked, function(image, mask=mask, start_label=1)), f"{name}, {image.dtype}, mask"
        image[5, 5] = np.nan
        segmenter = sp.Segmenter(n_segments=100)
        segmenter.segment(library.up(image))
        for call in (lambda: segmenter.n_regions, lambda: sp.slic(library.up(image), check=True)):
            try:
                call()
            except ValueError:
                continue
            raise AssertionError("NaN has not been found")

    def test_functions_do_not_wait(self, library):
        image = library.up(np.stack(self.clip[:3]).astype(np.float32) / 255)
        want = sp.slic(np.stack(self.clip[:3]).astype(np.float32) / 255)
        for _ in range(8):
            labels = sp.slic(image)
        library.synchronize()
        library.keep_busy()
        start = time.perf_counter()
        labels = sp.slic(image)
        took = time.perf_counter() - start
        assert not library.mark()(), f"the host waited: {took:.4f} s"
        assert np.array_equal(library.down(labels), want)

    def test_no_host_wait(self, library):
        segmenter = sp.Segmenter(temporal=True, n_segments=300)
        image = library.up(self.clip[0])
        for _ in range(8):
            labels = segmenter.segment(image)
        library.synchronize()
        library.keep_busy()
        start = time.perf_counter()
        for _ in range(3):
            labels = segmenter.segment(image)
            took = time.perf_counter() - start
            is_done = library.mark()
            assert not is_done(), f"the host waited: {took:.4f} s"
        print(f"{library.name}: 3 calls returned after {1e3 * took:.3f} ms while the stream was busy")
        library.synchronize()
        assert is_done() and library.down(labels).max() + 1 == segmenter.n_regions

    def test_results_live_on(self, library):
        segmenter, host = sp.Segmenter(temporal=True), sp.Segmenter(temporal=True)
        held = []
        for frame in self.clip[:8]:
            held.append((segmenter.segment(library.up(frame)), host.segment(frame)))
            held.append((segmenter.regions["area"], host.regions["area"]))
            held.append((segmenter.edge_index, host.edge_index))
        del segmenter
        gc.collect()
        for array, want in held:
            assert np.array_equal(library.down(array), want)

    def test_protocols(self, library):
        """Arrays of a library that is not known, in and out."""

        class Dlpack:
            def __init__(self, array):
                self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

        class Interface:
            def __init__(self, array):
                self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

        picture = self.pictures[1]
        want = sp.slic(picture)
        for kind in (Dlpack, Interface):
            labels = sp.slic(kind(library.up(picture)))
            assert isinstance(labels, sp.DeviceArray) and np.array_equal(labels.numpy(), want)
            assert np.array_equal(library.down(library.lib.from_dlpack(labels)), want)
            taken = library.lib.as_tensor(labels, device="cuda:0") if library.name == "torch" else library.lib.asarray(labels)
            assert np.array_equal(library.down(taken), want)
            del labels
            gc.collect()
            assert np.array_equal(library.down(taken), want)
        segmenter, host = sp.Segmenter(temporal=True), sp.Segmenter(temporal=True)
        for frame in self.clip[:3]:
            assert np.array_equal(segmenter.segment(Dlpack(library.up(frame))).numpy(), host.segment(frame))
        bounds = library.down(library.lib.from_dlpack(segmenter.regions["bounds"]))
        assert np.array_equal(bounds.astype(np.uint16), host.regions["bounds"])

    def test_memory_is_given_back(self, library):
        def rounds(count):
            for _ in range(count):
                segmenter = sp.Segmenter(temporal=True)
                for frame in self.clip[:3]:
                    segmenter.segment(library.up(frame))
                    segmenter.regions, segmenter.neighbors, segmenter.edge_index
                sp.lsc(library.up(frame))
            del segmenter
            gc.collect()
            library.synchronize()
            lines = open("/proc/self/status").read().split("\n")
            resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
            return resident, (library.lib.cuda.mem_get_info() if library.name == "torch" else library.lib.cuda.runtime.memGetInfo())[0]

        before = rounds(5)
        after = rounds(20)
        print(f"{library.name}: {(after[0] - before[0]) / 1024:.1f} MiB of the host, {(before[1] - after[1]) >> 20} MiB of the device more")
        assert after[0] < before[0] + 64 * 1024 and after[1] > before[1] - (64 << 20)

    def test_other_devices(self):
        torch = next((library.lib for library in self.libraries if library.name == "torch"), None)
        if torch is None or torch.cuda.device_count() < 2:
            raise Skipped("needs torch and two devices")
        picture = self.pictures[1]
        image = torch.from_numpy(picture).to("cuda:1")
        labels = sp.slic(image)
        assert labels.device == image.device and np.array_equal(labels.cpu().numpy(), sp.slic(picture))
        assert torch.cuda.current_device() == 0 and torch.zeros(1, device="cuda").device.index == 0
        segmenter = sp.Segmenter(device="cuda:0")
        try:
            segmenter.segment(image)
            raise AssertionError("not refused")
        except ValueError as error:
            assert "cuda:1" in str(error)

    def test_torch_computes_with_results(self):
        torch = next((library.lib for library in self.libraries if library.name == "torch"), None)
        if torch is None:
            raise Skipped("needs torch")
        segmenter = sp.Segmenter(n_segments=300)
        image = torch.from_numpy(self.clip[0]).to("cuda:0")
        labels = segmenter.segment(image)
        n, flat = segmenter.n_regions, segmenter.segment(image).flatten()
        areas = torch.bincount(flat, minlength=n)
        assert torch.equal(areas, segmenter.regions["area"].to(torch.int64))
        sums = torch.zeros((n, 3), dtype=torch.int64, device="cuda:0").index_add_(0, flat, image.reshape(-1, 3).long())
        # Rounded half up.
        means = (2 * sums + areas[:, None]) // (2 * areas[:, None])
        assert torch.equal(means.to(torch.uint8), segmenter.regions["mean_rgb"])
        edges = segmenter.edge_index
        assert edges.dtype == torch.int64 and edges.shape[0] == 2 and int(edges.max()) == n - 1
        assert labels.dtype == torch.int32 and labels.device == image.device

    def test_workers_of_a_loader(self):
        torch = next((library.lib for library in self.libraries if library.name == "torch"), None)
        if torch is None:
            raise Skipped("needs torch")
        import torch.utils.data

        for method in ("fork", "spawn"):
            loader = torch.utils.data.DataLoader(
                Pictures(self.pictures[:3]), num_workers=2, multiprocessing_context=method, timeout=120, collate_fn=list
            )
            found = [batch[0] for batch in loader]
            for picture, labels in zip(self.pictures, found):
                assert np.array_equal(labels, sp.slic(picture)), method

    def test_speed(self, library):
        """Tensor to labels at 1920x1080, against the frame of superpixel-bench."""
        image = library.up(np.dstack([self.picture, np.full(self.picture.shape[:2], 255, np.uint8)]))
        height, width = self.picture.shape[:2]
        bench = bench_ms(width, height)
        for name, places in [("one place", 1), ("240 places", 240)]:
            segmenter = sp.Segmenter(superpixel_size=16, neighbors=False)
            images = [image] + [image + 0 for _ in range(places - 1)]
            for i in range(20):
                segmenter.segment(images[i % places])
            times, hosts = [], []
            for _ in range(7):
                library.synchronize()
                start = time.perf_counter()
                for i in range(300):
                    labels = segmenter.segment(images[i % places])
                hosts.append(time.perf_counter() - start)
                library.synchronize()
                times.append(time.perf_counter() - start)
            ms, host = 1e3 * sorted(times)[3] / 300, 1e3 * sorted(hosts)[3] / 300
            ratio = f", {ms / bench:.2f} x superpixel-bench ({bench:.3f} ms)" if bench else ""
            print(f"{library.name}, {width}x{height}, slic, {name}: {ms:.3f} ms a frame, the call {host:.3f} ms{ratio}")
            assert labels.shape == (height, width)
        numpy = sp.Segmenter(device="cuda", superpixel_size=16, neighbors=False)
        frame = np.dstack([self.picture, np.full(self.picture.shape[:2], 255, np.uint8)])
        out = np.empty((height, width), np.uint16)
        for _ in range(10):
            numpy.segment(frame, out=out)
        start = time.perf_counter()
        for _ in range(100):
            numpy.segment(frame, out=out)
        print(f"numpy to numpy on the device: {10 * (time.perf_counter() - start):.3f} ms a frame")
        start = time.perf_counter()
        for _ in range(20):
            sp.slic(image, superpixel_size=16)
        print(f"{library.name}, slic(): {50 * (time.perf_counter() - start):.3f} ms a picture, with an engine that is kept")
        floats = library.up(np.ascontiguousarray(self.picture.transpose(2, 0, 1)).astype(np.float32) / 255)
        seen = floats.permute(1, 2, 0) if library.name == "torch" else floats.transpose(1, 2, 0)
        for _ in range(5):
            sp.slic(seen, superpixel_size=16)
        library.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            sp.slic(seen, superpixel_size=16)
        library.synchronize()
        print(f"{library.name}, slic() of float32, channels first: {10 * (time.perf_counter() - start):.3f} ms a picture")


class Pictures:
    def __init__(self, pictures):
        self.pictures = pictures

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        return sp.slic(self.pictures[i], threads=1)


def bench_ms(width, height):
    """A frame by superpixel-bench on the same device, if it is there."""
    program = os.environ.get("SUPERPIXEL_BENCH")
    if not program:
        return None
    command = [program, "--backend", "cuda", "--sizes", f"{width}x{height}", "--superpixel-size", "16", "--json", "-"]
    if os.environ.get("SUPERPIXEL_BENCH_PICTURE"):
        command += ["--picture", os.environ["SUPERPIXEL_BENCH_PICTURE"]]
    said = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    def find(value):
        if isinstance(value, dict):
            if "ms" in value and "superpixel_size" in value:
                return value["ms"]
            value = list(value.values())
        if isinstance(value, list):
            return next((found for found in map(find, value) if found is not None), None)
        return None

    return find(said)


def raw(arguments, most):
    path, width, height = arguments
    width, height = int(width), int(height)
    frames = np.fromfile(path, np.uint8)
    count = min(len(frames) // (3 * width * height), most)
    assert count > 0, f"{path} holds no frame of {width}x{height}"
    return list(frames[: count * 3 * width * height].reshape(count, height, width, 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clip", nargs=3)
    parser.add_argument("--picture", nargs=3)
    parser.add_argument("--photographs", nargs=3, action="append", default=[])
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    required = os.environ.get("SUPERPIXEL_REQUIRE_CUDA") == "1"
    libraries, missing = [], []
    for kind in (Torch, CuPy):
        try:
            libraries.append(kind())
        except Exception as error:
            missing.append(f"{kind.name}: {error}")
    for reason in missing:
        print(f"skipped: {reason}")
    if missing and (required or not libraries):
        sys.exit(1 if required else 77)
    for library in libraries:
        print(f"{library.name} {library.lib.__version__}, numpy {np.__version__}, superpixels {sp.__version__} of {sp.__file__}")
    clip = raw(arguments.clip, FRAMES) if arguments.clip else drawn_frames(FRAMES)
    picture = raw(arguments.picture, 1)[0] if arguments.picture else rgba(1920, 1080)[..., :3].copy()
    photographs = [photograph for file in arguments.photographs for photograph in raw(file, FRAMES)]
    failed = skipped = 0
    for name, test in Tests(clip, picture, photographs, libraries).each():
        if arguments.names and not any(wanted in name for wanted in arguments.names):
            continue
        start = time.perf_counter()
        try:
            test()
            verdict = "ok"
        except Skipped as reason:
            skipped += 1
            verdict = f"skipped: {reason}"
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failed += 1
            verdict = "FAILED"
        print(f"test {name} ... {verdict} ({time.perf_counter() - start:.1f} s)", flush=True)
    print(f"{failed} failed, {skipped} skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
