# SPDX-License-Identifier: MPL-2.0
"""Images on a CUDA device of every type and layout, batches, lists and masks: the labels are those of the same arrays of numpy.

As test_device.py, which has images of uint8.
"""

import numpy as np
import pytest
import superpixels as sp
from driver import Interface, taken

FUNCTIONS = [sp.slic, sp.lsc, sp.quickshift]


def as_type(picture, dtype):
    """The picture with bits that only wide samples have."""
    if dtype == np.uint8:
        return picture
    noise = np.random.default_rng(7).integers(0, 257, picture.shape)
    words = (256 * picture.astype(np.int64) + noise).clip(0, 65535).astype(np.uint16)
    return words if dtype == np.uint16 else (words / np.float64(65535)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_wide_samples(function, dtype, kind, driver, picture):
    image = as_type(picture, dtype)
    assert not np.array_equal(function(image), function(picture))
    labels = function(kind(driver, image))
    assert labels.dtype == "int32" and np.array_equal(labels.numpy(), function(image))


def test_rounding_of_floats(driver):
    """Next to where one code becomes the next that is one of another mean color."""
    middle = ((257 * np.arange(255) + 128.5) / 65535).astype(np.float32)
    values = np.concatenate([middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(1)), [0, 1, 0.5, -0.0, 1e-45]])
    device, host = sp.Segmenter(), sp.Segmenter()
    for value in values.astype(np.float32):
        pixel = np.full((1, 1, 3), value)
        host.segment(pixel), device.segment(Interface(driver, pixel))
        found, want = device.regions["mean_rgb"].numpy(), host.regions["mean_rgb"]
        assert np.array_equal(found, want) and want[0, 0] == (int(65535 * float(value) + 0.5) + 128) // 257, value


def layouts(image):
    """Views of an image, and copies that it is a view of, in every order of axes."""
    planes = np.ascontiguousarray(image.transpose(2, 0, 1))
    wide = np.zeros((image.shape[0], 2 * image.shape[1], image.shape[2]), image.dtype)
    wide[:, ::2] = image
    padded = np.dstack([image, image[..., :1]])
    return {
        "planes": planes.transpose(1, 2, 0),
        "upside down": image[::-1].copy()[::-1],
        "mirrored": image[:, ::-1].copy()[:, ::-1],
        "backward": image[..., ::-1].copy()[..., ::-1],
        "every second": wide[:, ::2],
        "columns first": np.ascontiguousarray(image.transpose(1, 0, 2)).transpose(1, 0, 2),
        "alpha left out": padded[..., :3],
        "alpha": padded,
        "one channel": padded[..., 1:2],
        "gray": image[..., 1],
        "row": image[:1],
        "column": image[:, :1],
    }


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_layouts(dtype, kind, driver, picture):
    order = "bgr" if kind is Interface else "rgb"
    for name, image in layouts(as_type(picture, dtype)).items():
        want = sp.slic(np.ascontiguousarray(image), order=order)
        assert np.array_equal(sp.slic(kind(driver, image), order=order).numpy(), want), name


def test_samples_that_words_do_not_hold(driver, picture):
    """Pixels of four bytes that start at any byte."""
    alpha = np.dstack([picture, picture[..., :1]])
    memory = np.zeros(alpha.nbytes + 1, np.uint8)
    memory[1:] = alpha.ravel()
    assert np.array_equal(sp.slic(Interface(driver, memory[1:].reshape(alpha.shape))).numpy(), sp.slic(alpha))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_batches(dtype, kind, driver, picture):
    batch = np.stack([np.roll(as_type(picture, dtype), 5 * i, 0) for i in range(3)])
    for images in (batch, batch[..., :1], batch[::-1], np.ascontiguousarray(batch.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)):
        want = sp.slic(np.ascontiguousarray(images), start_label=3)
        labels = sp.slic(kind(driver, images), start_label=3)
        assert labels.shape == images.shape[:3] and np.array_equal(labels.numpy(), want)
    for label in (np.int32, np.uint16):
        out = kind(driver, np.full((3, 124, 170), 9, label)[:, 1:123, 3:166])
        assert sp.slic(kind(driver, batch), out=out) is out
        assert np.array_equal(out.numpy(), sp.slic(batch))
        whole = out.memory.read().view(label).reshape(3, 124, 170)
        assert (whole[:, 0] == 9).all() and (whole[:, :, 166:] == 9).all()
    none = sp.slic(kind(driver, batch[:0]))
    assert none.shape == (0, *picture.shape[:2])
    assert sp.slic(kind(driver, batch[:1])).shape == (1, *picture.shape[:2])


def test_clips(kind, driver, picture):
    clip = np.stack([np.roll(picture, (2 * i, 3 * i), (0, 1)) for i in range(5)])
    device, host = (sp.Segmenter(temporal=True, n_segments=90) for _ in range(2))
    for frames in (clip[:3], clip[3:]):
        assert np.array_equal(device.segment(kind(driver, frames)).numpy(), host.segment(frames))
        assert np.array_equal(device.regions["track_id"].numpy().view(np.uint32), host.regions["track_id"])
    assert device.next_id == host.next_id


def test_lists(kind, driver, picture):
    images = [picture, picture[:50, :70, 0].copy(), as_type(picture, np.float32), picture]
    for group in (list, tuple):
        labels = sp.lsc(group(kind(driver, image) for image in images))
        assert type(labels) is list and len(labels) == 4
        for found, image in zip(labels, images):
            assert np.array_equal(found.numpy(), sp.lsc(image))
    with pytest.raises(ValueError, match="list"):
        sp.slic([kind(driver, picture[None])])
    with pytest.raises(TypeError):
        sp.slic([kind(driver, picture), picture])
    for arguments in (dict(out=kind(driver, np.zeros(picture.shape[:2], np.int32))), dict(mask=kind(driver, picture[..., 0].copy()))):
        with pytest.raises(TypeError, match="list"):
            sp.slic([kind(driver, picture)], **arguments)


def masks(picture):
    y, x = np.mgrid[: picture.shape[0], : picture.shape[1]]
    disk = (y - 60) ** 2 + (x - 80) ** 2 < 55**2
    return [disk, disk.astype(np.uint8) * 7, picture[..., 0] > 100, np.zeros_like(disk), np.ones_like(disk)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_masks(function, kind, driver, picture):
    for mask in masks(picture):
        image, there = kind(driver, picture), kind(driver, mask)
        assert np.array_equal(function(image, mask=there).numpy(), function(picture, mask=mask))
        for start in (1, -7):
            want = function(picture, mask=mask, start_label=start)
            assert np.array_equal(function(image, mask=there, start_label=start).numpy(), want)
    out, short = (kind(driver, np.zeros(picture.shape[:2], dtype)) for dtype in (np.int32, np.uint16))
    function(image, mask=kind(driver, masks(picture)[0]), out=out)
    with pytest.raises(TypeError, match="out must be an array of int32, got"):
        function(image, mask=kind(driver, masks(picture)[0]), out=short)
    assert np.array_equal(out.numpy(), function(picture, mask=masks(picture)[0]))
    packed = as_type(picture, np.float32)
    want = function(packed, mask=masks(picture)[2])
    assert np.array_equal(function(kind(driver, packed), mask=kind(driver, masks(picture)[2])).numpy(), want)


def test_masks_of_batches_and_clips(kind, driver, picture):
    clip = np.stack([np.roll(picture, (i, 2 * i), (0, 1)) for i in range(3)])
    several = np.stack(masks(picture)[:3]).astype(bool)
    wide = np.zeros((3, 124, 200), bool)
    wide[:, 2:, 37:] = several
    for mask in (several, several[0], wide[:, 2:, 37:]):
        assert np.array_equal(sp.slic(kind(driver, clip), mask=kind(driver, mask)).numpy(), sp.slic(clip, mask=mask))
        device, host = (sp.Segmenter(temporal=True, n_segments=90) for _ in range(2))
        assert np.array_equal(device.segment(kind(driver, clip[0])).numpy(), host.segment(clip[0]))
        assert np.array_equal(device.segment(kind(driver, clip), mask=kind(driver, mask)).numpy(), host.segment(clip, mask=mask))
        assert np.array_equal(device.segment(kind(driver, clip[1])).numpy(), host.segment(clip[1]))
        for field in host.regions.dtype.names:
            got, want = device.regions[field].numpy(), host.regions[field]
            assert np.array_equal(got.astype(want.dtype), want)


def test_masks_that_are_refused(kind, driver, picture):
    image, mask = kind(driver, picture), masks(picture)[0]
    for call in (sp.slic, sp.Segmenter().segment):
        for host, error, words in [
            (mask.astype(np.float32), TypeError, "bool or uint8, got float32|<f4"),
            (mask[:-1], ValueError, "shape"),
            (np.stack([mask, mask]), ValueError, "shape"),
            (mask[:, ::-1], ValueError, "contiguous"),
            (mask[::-1], ValueError, "contiguous"),
        ]:
            with pytest.raises(error, match=words):
                call(image, mask=kind(driver, host))
        with pytest.raises(TypeError, match="on the device of the image"):
            call(image, mask=mask)
    for call in (sp.slic, sp.Segmenter().segment):
        with pytest.raises(TypeError, match="mask is on a device"):
            call(picture, mask=kind(driver, mask))
    shared = Interface(driver, np.zeros(4 * mask.size, np.uint8))
    both = [Interface(driver, host, data=(shared.address, False)) for host in (mask, np.zeros(mask.shape, np.int32))]
    with pytest.raises(ValueError, match="out and mask"):
        sp.slic(image, mask=both[0], out=both[1])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.0001, -1e-9, 255])
def test_floats_out_of_range(value, kind, driver, picture):
    image = as_type(picture, np.float32)
    image[100, 7, 1] = value
    cut = np.nan_to_num(image, nan=0, posinf=1, neginf=0).clip(0, 1)
    labels = sp.slic(kind(driver, image))
    assert np.array_equal(labels.numpy(), sp.slic(cut))
    with pytest.raises(ValueError, match="0, 1"):
        sp.slic(kind(driver, image), check=True)
    # An error that an earlier call met must not show up in a later one.
    assert np.array_equal(sp.slic(kind(driver, cut), check=True).numpy(), sp.slic(cut))
    segmenter = sp.Segmenter(n_segments=100)
    segmenter.segment(kind(driver, image))
    with pytest.raises(ValueError, match="cut off"):
        segmenter.n_regions
    assert segmenter.n_regions == sp.slic(cut).max() + 1
    with pytest.raises(ValueError, match="0, 1"):
        segmenter.segment(kind(driver, image), check=True)
    segmenter.segment(kind(driver, np.stack([image, cut])))
    with pytest.raises(ValueError, match="cut off"):
        segmenter.regions
    segmenter.segment(kind(driver, cut), check=True)
    assert segmenter.n_regions == len(segmenter.regions["area"])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_streams_are_in_order(dtype, kind, driver, picture, lazy):
    own = driver.stream()
    batch = np.stack([np.roll(as_type(picture, dtype), 5 * i, 0) for i in range(2)])
    mask = masks(picture)[0]
    array, there = kind(driver, batch), kind(driver, mask)
    segmenter = sp.Segmenter(n_segments=100)
    for call in (sp.slic, sp.slic, segmenter.segment, segmenter.segment):
        array.memory.write(batch, own)
        there.memory.write(mask, own)
        labels = call(array, mask=there, stream=own)
        # Later work on the stream waits until the image has been read.
        array.memory.fill(0, own)
        there.memory.fill(0, own)
        assert np.array_equal(taken(labels, driver, own)[0], sp.slic(batch, mask=mask))


def test_a_stream_that_is_not_known(driver, picture, lazy):
    own = driver.stream()
    from driver import Dlpack

    image = as_type(picture, np.float32)
    array, there = Dlpack(driver, np.stack([image, image])), Dlpack(driver, masks(picture)[0])
    labels = sp.slic(array, mask=there)
    array.memory.fill(0, own)
    there.memory.fill(0, own)
    want = sp.slic(image, mask=masks(picture)[0])
    assert all(np.array_equal(found, want) for found in taken(labels, driver, own)[0])


def test_functions_keep_engines(driver, picture):
    """A later call finds the memory of an earlier one, and no more of it is kept than of a few."""
    from test_device import free_memory

    image = Interface(driver, picture)
    small = [Interface(driver, picture[: 40 + i].copy()) for i in range(6)]
    for array in [image, *small]:
        sp.slic(array)
    least = free_memory(driver)
    for _ in range(3):
        for array, host in zip([image, *small], [picture, *(picture[: 40 + i] for i in range(6))]):
            labels = sp.slic(array)
            assert np.array_equal(labels.numpy(), sp.slic(host))
            del labels
    assert free_memory(driver) >= least
    before = free_memory(driver)
    for _ in range(5):
        sp.slic(small[5])
        sp.slic(small[5], n_segments=30)
    assert abs(free_memory(driver) - before) < 1 << 20


def test_frames_of_files(driver, picture, tmp_path):
    av = pytest.importorskip("av", reason="PyAV is not installed")
    path = str(tmp_path / "clip.mkv")
    with av.open(path, "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
        for x in range(4):
            pixels = np.ascontiguousarray(picture[:96, x : x + 128])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    on_device, on_host = (list(sp.segment_video(path, superpixel_size=16, device=device)) for device in ("cuda", "cpu"))
    assert len(on_device) == len(on_host) == 4
    for one, other in zip(on_device, on_host):
        for name in ("image", "labels", "regions", "motion", "neighbors", "events"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
