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

test("memory stays over a thousand segmentations", async () => {
  const { initSync } = await import(pathToFileURL(join(process.env.SUPERPIXEL_WEB, "native.js")));
  const { memory } = initSync({ module: readFileSync(join(process.env.SUPERPIXEL_WEB, "superpixels.wasm")) });
  const sizes = [[40, 30], [320, 180], [17, 90], [200, 200]].map(([width, height]) => draw(width, height, 5));
  const run = (i) => sp.segment(sizes[i % 4], { nSegments: 20 + (i % 50), neighbors: true, nRegions: i % 3 ? 0 : 15 });
  for (let i = 0; i < 200; i++) run(i);
  const before = memory.buffer.byteLength;
  for (let i = 0; i < 1000; i++) run(i);
  assert.equal(memory.buffer.byteLength, before);
});
