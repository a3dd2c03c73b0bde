// SPDX-License-Identifier: MPL-2.0
// The npm package gives what the native library gives, and refuses what is wrong in words. SUPERPIXEL_WEB names the unpacked package,
// SUPERPIXEL_EXPECTED the program `expected`, SUPERPIXEL_FRAMES a file of 320x180 RGBA frames of a film.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";

const sp = await import(pathToFileURL(join(process.env.SUPERPIXEL_WEB, "node.js")));
const folder = mkdtempSync(join(tmpdir(), "superpixels-"));
after(() => rmSync(folder, { recursive: true }));

// FNV-1a of numbers in 32 bits.
function hash(arrays) {
  let hash = 2166136261;
  for (const array of arrays)
    for (const number of array)
      for (let shift = 0; shift < 32; shift += 8) hash = Math.imul(hash ^ ((number >>> shift) & 255), 16777619);
  return hash >>> 0;
}

// Columns of a table in 32 bits, one component of a field after the other.
function* columns(table, count) {
  for (const array of Object.values(table ?? {})) {
    const numbers = array instanceof Float32Array ? new Uint32Array(array.buffer) : array;
    const parts = count ? numbers.length / count : 1;
    for (let part = 0; part < parts; part++) yield numbers.filter((_, i) => i % parts === part);
  }
}

function summary(map) {
  const count = (table) => Object.values(table ?? { none: [] })[0].length;
  const tables = [map.regions, map.neighbors, map.merges].map((table) => hash(columns(table, count(table))));
  return [map.nRegions, hash([map.labels]), ...tables].join(" ");
}

// Each frame's line of the native library.
function expected(file, width, height, frames, values) {
  const input = [width, height, file, frames, ...values].join(" ") + "\n";
  const lines = execFileSync(process.env.SUPERPIXEL_EXPECTED, { input, encoding: "utf8" }).trim().split("\n");
  return lines.map((line) => line.split(" ").slice(0, 5).join(" "));
}

function draw(width, height, seed) {
  let state = seed;
  const data = new Uint8ClampedArray(4 * width * height);
  for (let i = 0; i < width * height; i++) {
    const [x, y] = [i % width, Math.floor(i / width)];
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const shape = ((x >> 5) + (y >> 4) * seed) % 7;
    data.set([40 * shape + (state >>> 28), 128 + 90 * Math.sin((x + y) / 25), (x * 255) / width + ((state >>> 20) & 15), 255], 4 * i);
  }
  return { data, width, height };
}

const algorithms = [
  [{ algorithm: "slic" }, []],
  [{ algorithm: "slic", adaptive: true, colorSpace: "rgb" }, ["adaptive-compactness=true", "color-space=rgb"]],
  [{ algorithm: "lsc", ratio: 0.2 }, ["algo=lsc", "lsc-ratio=0.2"]],
  [{ algorithm: "snic" }, ["algo=snic"]],
  [{ algorithm: "quickshift" }, ["algo=quickshift"]],
];
const counts = [
  [{ nSegments: 300 }, ["superpixels=300"]],
  [{ nRegions: 40 }, ["regions=40"]],
  [{ superpixelSize: 12, levels: true, refine: 2 }, ["superpixels=0", "superpixel-size=12", "hierarchy=true", "refine=2"]],
  [{ merge: 2, nSegments: 200 }, ["merge=2", "superpixels=200"]],
];
const pictures = [draw(320, 180, 1), draw(161, 97, 3), draw(1, 1, 1), draw(40, 3, 2)];
const film = readFileSync(process.env.SUPERPIXEL_FRAMES);
const frames = [];
for (let at = 0; at + 4 * 320 * 180 <= film.length; at += 4 * 320 * 180)
  frames.push({ data: film.subarray(at, at + 4 * 320 * 180), width: 320, height: 180 });

test("pictures have the labels and tables of the native library", () => {
  [...pictures, ...frames.slice(0, 2)].forEach((image, i) => {
    const file = join(folder, `${i}.rgba`);
    writeFileSync(file, image.data);
    for (const [options, values] of algorithms)
      for (const [more, others] of counts) {
        const map = sp.segment(image, { ...options, ...more, neighbors: true });
        const all = [...values, ...others];
        assert.equal(summary(map), expected(file, image.width, image.height, 1, all)[0], `${i}: ${all}`);
      }
  });
});

test("frames of a film have the identities of the native library", () => {
  assert.ok(frames.length >= 20);
  for (const [options, values] of algorithms.filter(([options]) => options.algorithm !== "quickshift")) {
    const lines = expected(process.env.SUPERPIXEL_FRAMES, 320, 180, frames.length, [...values, "superpixels=300", "temporal=true"]);
    const segmenter = new sp.Segmenter({ ...options, nSegments: 300, temporal: true, neighbors: true });
    frames.forEach((frame, i) => assert.equal(summary(segmenter.segment(frame)), lines[i], `${options.algorithm} ${i}`));
    segmenter.free();
  }
});

test("levels are those that exact numbers give", () => {
  const [image] = frames;
  const levels = new sp.Levels(image, { nSegments: 1500 });
  for (const nRegions of [1, 7, 100, 500]) {
    const map = levels.cut(nRegions);
    assert.equal(map.nRegions, nRegions);
    assert.deepEqual(map.labels, sp.segment(image, { nSegments: 1500, nRegions }).labels);
    const label = map.labels[90 * 320 + 160];
    const region = levels.regionAt(160, 90, nRegions);
    assert.equal(region.label, label);
    assert.equal(region.area, map.labels.filter((one) => one === label).length);
    assert.equal(levels.mask(label, nRegions).reduce((sum, one) => sum + one, 0), region.area);
  }
  levels.free();
});

test("groups and boundaries are levels without their pixels", () => {
  const [image] = frames, levels = new sp.Levels(image, { nSegments: 900 });
  const { labels } = levels, { beside, starts, corners } = levels.boundaries();
  assert.equal(beside.length / 2, starts.length - 1);
  assert.equal(starts.at(-1), corners.length / 2);
  for (const nRegions of [1, 9, 200, 900]) {
    const map = levels.cut(nRegions), groups = levels.groups(nRegions);
    assert.equal(groups.nRegions, map.nRegions);
    assert.deepEqual(labels.map((label) => groups.of[label]), map.labels);
    const region = levels.regionAt(200, 100, nRegions);
    assert.equal(groups.area[region.label], region.area);
    assert.deepEqual([...groups.bounds.subarray(4 * region.label, 4 * region.label + 4)], region.bounds);
    // Sides of pixels around the region, counted in the map and along boundaries.
    const at = (x, y) => x >= 0 && y >= 0 && x < 320 && y < 180 && map.labels[y * 320 + x] === region.label;
    let sides = 0, walked = 0;
    for (let y = 0; y <= 180; y++) for (let x = 0; x <= 320; x++) sides += (at(x, y) !== at(x - 1, y)) + (at(x, y) !== at(x, y - 1));
    for (let i = 0; i < starts.length - 1; i++) {
      const [right, left] = [beside[2 * i], beside[2 * i + 1]].map((label) => groups.of[label] === region.label);
      if (right === left) continue;
      for (let k = 2 * starts[i] + 2; k < 2 * starts[i + 1]; k += 2) walked += Math.abs(corners[k] - corners[k - 2]) + Math.abs(corners[k + 1] - corners[k - 1]);
    }
    assert.equal(walked, sides);
  }
  levels.free();
});

test("polygons have exactly the pixels of a region", () => {
  const map = sp.segment(frames[0], { nSegments: 200, connectivity: false });
  const inside = (ring, x, y) => {
    let crossings = 0;
    for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
      const [ax, ay, bx, by] = [ring[j], ring[j + 1], ring[i], ring[i + 1]];
      if (ay <= y !== by <= y && ax + ((y - ay) / (by - ay)) * (bx - ax) > x) crossings++;
    }
    return crossings % 2 === 1;
  };
  for (const label of [3, 90]) {
    const pieces = sp.polygons(map, label);
    assert.deepEqual(JSON.parse(JSON.stringify(pieces)), pieces);
    map.labels.forEach((own, i) => {
      const [x, y] = [(i % 320) + 0.5, Math.floor(i / 320) + 0.5];
      const covers = pieces.filter(({ outer, holes }) => inside(outer, x, y) && !holes.some((hole) => inside(hole, x, y)));
      assert.equal(covers.length, own === label ? 1 : 0, `${label} at ${x}, ${y}`);
    });
    const corners = (all) => all.reduce((sum, { outer }) => sum + outer.length, 0);
    assert.ok(corners(sp.polygons(map, label, { tolerance: 2 })) < corners(pieces));
  }
  assert.deepEqual(sp.polygons(map, 60000), []);
  assert.throws(() => sp.polygons(map, 1, { tolerance: 9 }), RangeError);
  assert.throws(() => sp.polygons(map, 1, { smooth: 1 }), TypeError);
});

test("parameters are the options, with their defaults", () => {
  const image = draw(40, 30, 1), types = readFileSync(join(process.env.SUPERPIXEL_WEB, "options.d.ts"), "utf8");
  for (const algorithm of sp.algorithms()) {
    const own = types.split(`algorithm${algorithm === "slic" ? "?" : ""}: "${algorithm}";`)[1].split("\n}")[0];
    const typed = [...own.matchAll(/^ {2}(\w+)\?: /gm)].map(([, name]) => name);
    const all = sp.parameters(algorithm);
    assert.deepEqual(all.map(({ name }) => name), typed);
    const { labels } = sp.segment(image, { algorithm });
    for (const { name, kind, min, max, choices, default: usual } of all) {
      if (["temporal", "superpixelSize"].includes(name)) continue;
      assert.deepEqual(sp.segment(image, { algorithm, [name]: usual }).labels, labels, `${algorithm} ${name}`);
      if (kind === "choice") assert.ok(choices.some((choice) => choice.name === usual));
      if (min !== undefined) assert.ok(min <= usual && usual <= max && max > min, name);
      if (min > 0) assert.throws(() => sp.segment(image, { algorithm, [name]: min / 2 }), Error, name);
    }
  }
  assert.throws(() => sp.parameters("watershed"), RangeError);
});

test("frames of WebCodecs have their turn, whichever is read first", async () => {
  // Node has none; the browser's are tried in page.test.mjs.
  class FakeFrame {
    constructor(image, wait) {
      Object.assign(this, { image, wait, format: "RGBA", visibleRect: image, colorSpace: {} });
    }
    allocationSize() {
      return this.image.data.length;
    }
    async copyTo(data) {
      await new Promise((done) => setTimeout(done, this.wait));
      if (this.wait === 5) throw new Error("this frame is broken");
      data.set(this.image.data);
    }
  }
  const options = { temporal: true, nSegments: 100 }, direct = new sp.Segmenter(options), segmenter = new sp.Segmenter(options);
  const waits = [40, 10, 5, 20, 0], reads = waits.map((wait, i) => segmenter.segment(new FakeFrame(frames[i], wait)));
  const results = await Promise.allSettled(reads);
  waits.forEach((wait, i) => {
    if (wait === 5) assert.match(String(results[i].reason), /this frame is broken/);
    else assert.equal(summary(results[i].value), summary(direct.segment(frames[i])), `frame ${i}`);
  });
  const drawn = { fill: "mean-color", width: 0 };
  assert.deepEqual(await segmenter.draw(new FakeFrame(frames[4], 0), drawn), direct.draw(frames[4], drawn));
  assert.equal(summary(await sp.segment(new FakeFrame(frames[0], 0))), summary(sp.segment(frames[0])));
  await assert.rejects(sp.readFrame(frames[0]), { name: "TypeError", message: /takes a VideoFrame/ });
  await assert.rejects(sp.segment(Object.assign(new FakeFrame(frames[0], 0), { format: "YUV9" })), { name: "RangeError", message: /YUV9 is none of/ });
  await assert.rejects(sp.segment(Object.assign(new FakeFrame(frames[0], 0), { visibleRect: null })), { name: "TypeError", message: /is closed/ });
});

test("drawings and exports", () => {
  const image = { data: new Uint8Array([0, 0, 0, 255, 1, 0, 0, 255, 200, 0, 0, 255]), width: 3, height: 1 };
  const map = { labels: new Uint16Array([0, 0, 1]), width: 3, height: 1 };
  assert.deepEqual([...sp.boundaries(image, map)].slice(0, 12), [0, 0, 0, 255, 255, 255, 0, 255, 200, 0, 0, 255]);
  assert.deepEqual([...sp.meanColor(image, map)].filter((_, i) => i % 4 === 0), [1, 1, 200]);
  assert.deepEqual(sp.rle(map, 1), { size: [1, 3], counts: "21" });
  assert.match(sp.svg(map, { colors: new Uint8Array(6), lines: 1 }), /^<svg/);
  const segmenter = new sp.Segmenter({ nSegments: 50 });
  assert.throws(() => segmenter.draw(frames[0]), TypeError);
  segmenter.segment(frames[0]);
  assert.equal(segmenter.draw(frames[0], { fill: "mean-color", width: 0 }).length, frames[0].data.length);
  segmenter.free();
  assert.throws(() => segmenter.segment(frames[0]), Error);
});

test("the example of the documents works", async () => {
  const text = readFileSync(new URL("../../docs/web.md", import.meta.url), "utf8");
  const example = text.split("```js\n")[1].split("```")[0];
  const file = join(folder, "example.mjs");
  writeFileSync(file, example.replace('"superpixels"', JSON.stringify(pathToFileURL(join(process.env.SUPERPIXEL_WEB, "node.js")))));
  const said = execFileSync(process.execPath, [file], { encoding: "utf8" });
  assert.match(said, /^\d+ 76800 \d+ Uint8Array/);
});

test("a mask leaves out what is outside", () => {
  const mask = new Uint8Array(320 * 180).fill(1, 0, 320 * 90);
  const { labels } = sp.segment(frames[0], { mask });
  assert.ok(labels.every((label, i) => (label === sp.NO_LABEL) === (mask[i] === 0)));
});

test("wrong arguments are errors with words and never traps", () => {
  const image = draw(20, 10, 1);
  assert.throws(() => sp.segment(image, { nSegment: 5 }), /slic has no option nSegment; it takes/);
  assert.throws(() => sp.segment(image, { compactness: 1e9 }), { name: "RangeError", message: /^compactness must be/ });
  assert.throws(() => sp.segment({ ...image, width: 21 }), { name: "RangeError", message: /840 bytes, got 800/ });
  assert.throws(() => sp.segment(image, { algorithm: "watershed" }), { name: "RangeError" });
  const odd = [undefined, null, NaN, -1, 0, 0.5, 2 ** 32, 2 ** 53, 1e308, -Infinity, Infinity, "x", "slic", true, [], {}, 7n, Symbol("s"), () => 1,
    new Uint8Array(3), new Uint16Array(200), new Float32Array(800), new Proxy({}, { get() { throw new Error("trap of a proxy"); } })];
  const names = ["algorithm", "nSegments", "superpixelSize", "compactness", "nRegions", "mask", "regions", "merge", "refine", "iterations", "levels"];
  const calls = [], levels = new sp.Levels(image);
  for (const value of odd) {
    for (const name of ["data", "width", "height", "format", "matrix", "fullRange"]) calls.push(() => sp.segment({ ...image, [name]: value }));
    for (const name of names) calls.push(() => sp.segment(image, { [name]: value }), () => new sp.Segmenter({ [name]: value }).free());
    calls.push(() => sp.segment(value), () => sp.segment(image, value), () => new sp.Levels(value), () => new sp.Levels(image, value).free());
    for (const name of ["labels", "width", "height"]) {
      const map = { labels: new Uint16Array(200), width: 20, height: 10, [name]: value };
      calls.push(() => sp.boundaries(image, map), () => sp.meanColor(image, map), () => sp.rle(map, value), () => sp.svg(map, value),
        () => sp.polygons(map, value), () => sp.polygons(map, 0, value));
    }
    calls.push(() => levels.groups(value), () => levels.cut(value), () => sp.parameters(value));
    calls.push(() => sp.boundaries(image, value), () => sp.svg(value), () => sp.rle(value, value));
  }
  let refused = 0;
  for (const call of calls) {
    try {
      call();
    } catch (error) {
      assert.ok(!(error instanceof WebAssembly.RuntimeError), `${call}: ${error}`);
      assert.ok(error.message.length > 5 && !error.message.startsWith("superpixels:"), `${call}: ${error}`);
      refused++;
    }
  }
  assert.ok(refused > calls.length / 2, `${refused} of ${calls.length}`);
  assert.equal(sp.segment(image, { nSegments: 4 }).labels.length, 200);
});

test("drawn arguments give label maps or errors with words", (t) => {
  const seed = Number(process.env.SUPERPIXEL_SEED ?? 1);
  let state = seed;
  const below = (end) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
  const one = (all) => all[below(all.length)];
  const odd = [undefined, null, NaN, -1, 0, 0.5, 1e9, 2 ** 32, -Infinity, "", "rgb", true, [], {}, new Uint8Array(7)];
  // Mostly as the list of options has it, at its ends more often than between them.
  const value = ({ kind, min, max, choices }) => {
    if (below(12) === 0) return one(odd);
    if (kind === "boolean") return below(2) === 1;
    if (kind === "choice") return one(choices).name;
    const drawn = min + (max - min) * one([0, 1, below(1000) / 1000, below(50) / 1000]);
    return kind === "integer" ? Math.round(drawn) : drawn;
  };
  const known = Object.fromEntries(sp.algorithms().map((algorithm) => [algorithm, sp.parameters(algorithm)]));
  const options = () => {
    const algorithm = one(sp.algorithms()), out = { algorithm };
    for (let i = below(4); i > 0; i--) {
      const parameter = one(known[algorithm]);
      out[parameter.name] = value(parameter);
    }
    // So that no picture of this test takes long.
    if (out.iterations > 5) out.iterations = 5;
    for (const name of ["regions", "neighbors", "levels"]) if (below(4) === 0) out[name] = below(9) ? below(2) === 1 : one(odd);
    return out;
  };
  const types = readFileSync(join(process.env.SUPERPIXEL_WEB, "options.d.ts"), "utf8").split("export type PixelFormat")[1].split(";")[0];
  const formats = [...types.matchAll(/"(\w+)"/g)].map(([, name]) => name);
  // The right number of bytes is what the refusal of a wrong one asks for.
  const imageOf = () => {
    const image = { data: new Uint8Array(1), width: 1 + below(24), height: 1 + below(24), format: one(formats) };
    try {
      sp.segment(image);
    } catch (error) {
      image.data = Uint8Array.from({ length: Number(/must have (\d+) /.exec(error.message)[1]) }, () => below(256));
    }
    if (below(3) === 0) Object.assign(image, { matrix: one(["bt601", "bt709", "bt2020-ncl", ...odd]), fullRange: one([true, false, ...odd]) });
    if (below(12) === 0) image[one(["data", "width", "height", "format"])] = one([...odd, below(40)]);
    return image;
  };
  const counts = { maps: 0, refused: 0 };
  const attempt = (call) => {
    try {
      return call();
    } catch (error) {
      assert.ok(!(error instanceof WebAssembly.RuntimeError) && error.message.length > 5 && !error.message.startsWith("superpixels:"), `seed ${seed}: ${error.stack}`);
      counts.refused++;
      return undefined;
    }
  };
  const check = (map, image) => {
    if (!map) return;
    counts.maps++;
    assert.equal(map.labels.length, image.width * image.height);
    const found = new Set(map.labels);
    found.delete(sp.NO_LABEL);
    assert.equal(found.size, map.nRegions, `seed ${seed}`);
    assert.ok([...found].every((label) => label < map.nRegions), `seed ${seed}`);
    if (map.regions) assert.equal(map.regions.area.reduce((sum, area) => sum + area, 0), map.labels.filter((label) => label !== sp.NO_LABEL).length);
  };
  for (let i = 0; i < 1500; i++) {
    const image = imageOf(), asked = options(), map = attempt(() => sp.segment(image, asked));
    check(map, image);
    if (map && below(4) === 0) {
      attempt(() => sp.boundaries(image, map, one([{}, { color: [1, 2, 3] }, one(odd)])));
      attempt(() => sp.polygons(map, one([below(4), ...odd]), one([{}, { tolerance: 1 }, one(odd)])));
      attempt(() => sp.svg(map, one([{}, { lines: 1 }, one(odd)])));
      attempt(() => sp.rle(map, one([below(4), ...odd])));
    }
    if (i % 10 === 0) {
      const segmenter = attempt(() => new sp.Segmenter(asked)), levels = attempt(() => new sp.Levels(image, asked));
      for (let frame = 0; segmenter && frame < 4; frame++) {
        const next = below(2) ? image : imageOf();
        check(attempt(() => segmenter.segment(next)), next);
        attempt(() => segmenter.set(options()));
        if (below(4) === 0) attempt(() => segmenter.draw(next, { fill: one(["none", "mean-color", "labels", "abstraction", one(odd)]), width: one([0, 1, one(odd)]) }));
      }
      if (levels) check(attempt(() => levels.cut(one([1, below(30), one(odd)]))), levels);
      attempt(() => levels?.regionAt(below(30), below(30), one([1, below(30), one(odd)])));
      segmenter?.free();
      levels?.free();
    }
  }
  t.diagnostic(`seed ${seed}: ${counts.maps} label maps, ${counts.refused} refusals`);
  assert.ok(counts.maps > 500 && counts.refused > 500, JSON.stringify(counts));
});

test("memory stays over a thousand segmentations of changing sizes", async () => {
  const { initSync } = await import(pathToFileURL(join(process.env.SUPERPIXEL_WEB, "native.js")));
  const { memory } = initSync({ module: readFileSync(join(process.env.SUPERPIXEL_WEB, "superpixels.wasm")) });
  // Sides of all lengths, in an order that repeats after 1440.
  const largest = draw(160, 90, 5), film = new sp.Segmenter({ nSegments: 60, temporal: true });
  const image = (i) => {
    const [width, height] = [1 + ((i * 97) % 160), 1 + ((i * 61) % 90)];
    return { data: largest.data.subarray(0, 4 * width * height), width, height };
  };
  const run = (i) => {
    sp.segment(image(i), { nSegments: 20 + (i % 50), neighbors: true, nRegions: i % 3 ? 0 : 15 });
    if (i % 5 === 0) film.segment(image(i));
    if (i % 7 === 0) new sp.Levels(image(i), { nSegments: 100 }).free();
  };
  for (let i = 0; i < 1440; i++) run(i);
  const before = memory.buffer.byteLength;
  for (let i = 1440; i < 2440; i++) run(i);
  // Memory comes in pages of 64 KiB, and what is free in them need not fit: a hundred bytes that each call keeps are more.
  assert.ok(memory.buffer.byteLength - before < 100_000, `${before} and then ${memory.buffer.byteLength}`);
  film.free();
});
