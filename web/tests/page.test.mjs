// SPDX-License-Identifier: MPL-2.0
// The package in a real browser: worker, brush, playground, example. studio/browser/harness.mjs says what it needs, and how it is Firefox.
// SUPERPIXEL_WEB names the unpacked package, SUPERPIXEL_PLAYGROUND the address of the playground, SUPERPIXEL_FRAMES a file of 320x180 RGBA
// frames of a film.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inflateSync } from "node:zlib";

import { clip, openPage, startBrowser } from "../../studio/browser/harness.mjs";
import { html as unwatchedPage, Unwatched } from "./unwatched.mjs";

const { SUPERPIXEL_WEB: web, SUPERPIXEL_PLAYGROUND: playground, SUPERPIXEL_FRAMES: film } = process.env;
const sp = await import(pathToFileURL(join(web, "node.js")));
const annotate = fileURLToPath(new URL("../examples/annotate", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".wasm": "application/wasm" };
const WIDTH = 640, HEIGHT = 400;

/** A thing before a ground: an ellipse of patches of warm shades before patches of cold ones, with noise everywhere. */
function scene() {
  let state = 5;
  const data = new Uint8ClampedArray(4 * WIDTH * HEIGHT), thing = new Uint8Array(WIDTH * HEIGHT);
  for (let i = 0; i < thing.length; i++) {
    const x = i % WIDTH, y = Math.floor(i / WIDTH), away = ((x - 330) / 150) ** 2 + ((y - 210) / 95) ** 2;
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const noise = (state >>> 27) - 16;
    thing[i] = away < 1 ? 1 : 0;
    const size = thing[i] ? 44 : 70, patch = (Math.floor((x + y / 3) / size) * 7 + Math.floor((y - x / 4) / size) * 11) & 15;
    const color = thing[i] ? [150 + 5 * patch, 60 + 6 * patch, 60] : [50 + 2 * patch, 90 + 5 * patch, 110 + 6 * patch];
    data.set([...color.map((part) => part + noise), 255], 4 * i);
  }
  return { data, thing, width: WIDTH, height: HEIGHT };
}
const picture = scene();

const pages = {
  "/isolated.html": process.env.FIREFOX ? unwatchedPage : "<!doctype html><meta charset=utf-8>",
  "/old.html": "<!doctype html><meta charset=utf-8><script>WebAssembly.validate = () => false</script>",
  "/brush.html": `<!doctype html><meta charset="utf-8"><style>body { margin: 0; background: #222 } superpixel-brush { width: ${WIDTH}px }</style>
    <script type="module" src="/package/brush.js"></script><superpixel-brush></superpixel-brush>`,
};
const made = {
  "/scene.rgba": Buffer.from(picture.data.buffer),
  "/frames.rgba": readFileSync(film),
  // A worker that reads each frame faster than the one before.
  "/slow.js": `import "/package/worker.js";
    const { copyTo } = VideoFrame.prototype;
    let wait = 180;
    VideoFrame.prototype.copyTo = async function (...values) {
      await new Promise((done) => setTimeout(done, wait -= 20));
      return copyTo.apply(this, values);
    };`,
};

// The package with threads, whose threads end by a panic.
const THREADS = join(web, "../superpixels-threads");
const whole = readFileSync(join(THREADS, "native.js"), "utf8");
made["/broken/native.js"] = whole.replace("export function runThread() {", '$& throw new Error("a panic");');
assert.notEqual(made["/broken/native.js"], whole);

let server, origin, browser, unwatched;
before(async () => {
  server = createServer(async (request, answer) => {
    if (await unwatched?.answer(request, answer)) return;
    const path = new URL(request.url, "http://localhost").pathname;
    const places = [
      ["/package/", web], ["/node_modules/", join(web, "..")], ["/broken/", THREADS], ["/annotate/superpixels/", web], ["/annotate/", annotate],
    ];
    const [prefix, folder] = places.find(([prefix]) => path.startsWith(prefix)) ?? [];
    const file = folder && join(folder, normalize(path.slice(prefix.length) || "index.html"));
    const content = pages[path] ?? made[path] ?? (file && (await readFile(file).catch(() => null)));
    answer.writeHead(content ? 200 : 404, {
      "content-type": path in pages ? "text/html" : (TYPES[extname(file ?? path)] ?? "application/octet-stream"),
      // Scripts of an isolated page's workers have to say that they are for such a page.
      ...((path === "/isolated.html" || !(path in pages)) && { "cross-origin-embedder-policy": "require-corp" }),
      ...(path === "/isolated.html" && { "cross-origin-opener-policy": "same-origin" }),
    });
    answer.end(content ?? "");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${server.address().port}`;
  browser = await startBrowser(["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]);
});
after(async () => {
  await browser?.close();
  server?.close();
});

/** A page that has no errors at the end of its test. */
async function open(t, address, options) {
  const page = await openPage(browser, `${origin}${address}`, options);
  t.after(async () => {
    await page.context().close();
    assert.deepEqual(page.problems, []);
  });
  return page;
}

/** A page that is isolated, and may have threads. */
async function openIsolated(t) {
  if (!process.env.FIREFOX) return open(t, "/isolated.html");
  const page = (unwatched = new Unwatched(process.env.FIREFOX, `${origin}/isolated.html`));
  t.after(async () => {
    unwatched = null;
    await page.close();
    assert.deepEqual(page.problems, []);
  });
  return page;
}

/** Asks the page until an expression is true, or gives something. */
async function until(page, expression, patience = 20000) {
  for (const end = Date.now() + patience; ;) {
    const found = await page.evaluate(expression).catch(() => null);
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain for ${expression}`);
    await new Promise((next) => setTimeout(next, 20));
  }
}

/** A page with the scene in a brush, each of its pixels a pixel of the page. */
async function openBrush(t, options = { nSegments: 1500 }) {
  const page = await open(t, "/brush.html");
  await page.evaluate(async ([width, height, options]) => {
    window.brush = document.querySelector("superpixel-brush");
    window.events = [];
    for (const name of ["load", "change", "levelchange", "hover", "error"]) brush.addEventListener(name, (event) => events.push([name, name === "error" ? event.message : event.detail]));
    const data = new Uint8ClampedArray(await (await fetch("/scene.rgba")).arrayBuffer());
    await customElements.whenDefined("superpixel-brush");
    brush.options = options;
    brush.image = new ImageData(data, width, height);
    await brush.ready;
  }, [WIDTH, HEIGHT, options]);
  return page;
}
/** The bytes of an array or Blob in the page, as text on the way. */
const bytesOf = async (page, expression) => Buffer.from(await page.evaluate(`(async () => {
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([${expression}]));
  await new Promise((done) => { reader.onload = done; });
  return reader.result.split(",")[1];
})()`), "base64");
const maskOf = (page) => bytesOf(page, "brush.mask");
const setLevel = async (page, level) => {
  await page.evaluate((level) => { brush.level = level; }, level);
  await until(page, `brush.level === ${level}`);
};

/** Pixels of a stroke: all on the lines between its points, rounded. */
function along(points) {
  const pixels = [];
  points.slice(1).forEach(([x1, y1], i) => {
    const [x0, y0] = points[i], steps = Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0), 1);
    for (let step = 0; step <= steps; step++) pixels.push([Math.round(x0 + ((x1 - x0) * step) / steps), Math.round(y0 + ((y1 - y0) * step) / steps)]);
  });
  return pixels;
}
// Firefox has events at whole numbers alone.
const MIDDLE = process.env.FIREFOX ? 0 : 0.5;
async function drag(page, points, button = "left") {
  const [[x, y], ...others] = points.map(([x, y]) => [x + MIDDLE, y + MIDDLE]);
  await page.mouse.move(x, y);
  await page.mouse.down({ button });
  for (const [x, y] of others) await page.mouse.move(x, y);
  await page.mouse.up({ button });
}

function unpackPng(bytes) {
  const width = bytes.readUInt32BE(16), height = bytes.readUInt32BE(20), depth = bytes[24];
  const parts = [];
  for (let at = 8; at < bytes.length;) {
    const length = bytes.readUInt32BE(at);
    if (bytes.toString("latin1", at + 4, at + 8) === "IDAT") parts.push(bytes.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const rows = inflateSync(Buffer.concat(parts)), size = depth / 8, samples = [];
  for (let y = 0; y < height; y++) {
    const start = y * (1 + width * size);
    assert.equal(rows[start], 0);
    for (let x = 0; x < width; x++) samples.push(rows.readUIntBE(start + 1 + x * size, size));
  }
  return { width, height, depth, samples };
}

function unpackRle({ size: [height, width], counts }) {
  const numbers = [], mask = new Uint8Array(width * height);
  for (let at = 0; at < counts.length;) {
    let value = 0, shift = 0, more = true;
    while (more) {
      const bits = counts.charCodeAt(at++) - 48;
      value |= (bits & 31) << shift;
      shift += 5;
      more = (bits & 32) !== 0;
      if (!more && bits & 16) value |= -1 << shift;
    }
    if (numbers.length > 2) value += numbers.at(-2);
    numbers.push(value);
  }
  let at = 0;
  numbers.forEach((length, i) => {
    for (const end = at + length; at < end; at++) mask[(at % height) * width + Math.floor(at / height)] = i % 2;
  });
  assert.equal(at, mask.length);
  return mask;
}

function fillPolygons(pieces, width, height) {
  const mask = new Uint8Array(width * height);
  for (const ring of pieces.flatMap(({ outer, holes }) => [outer, ...holes])) {
    // Each side turns everything to the right of it, so that what an odd number of sides is left of is inside.
    for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
      if (ring[i] !== ring[j]) continue;
      for (let y = Math.min(ring[i + 1], ring[j + 1]); y < Math.max(ring[i + 1], ring[j + 1]); y++) {
        for (let x = ring[i]; x < width; x++) mask[y * width + x] ^= 1;
      }
    }
  }
  return mask;
}

test("a thing is selected in five strokes, and exports are the labels exactly", async (t) => {
  const options = { nSegments: 1500 }, page = await openBrush(t, options), levels = new sp.Levels(picture, options);
  // Through the thing at a coarse level, what is left at a finer one, where the fourth stroke leaves the thing, and the fifth puts that right.
  const around = Array.from({ length: 25 }, (_, i) => [Math.round(330 + 135 * Math.cos((i * Math.PI) / 12)), Math.round(210 + 85 * Math.sin((i * Math.PI) / 12))]);
  const strokes = [
    { level: 90, points: [[195, 210], [330, 205], [465, 210]] },
    { level: 90, points: [[225, 170], [300, 140], [380, 150], [440, 175]] },
    { level: 90, points: [[225, 250], [300, 280], [380, 275], [440, 245]] },
    { level: 200, points: [...around, [540, 290]] },
    { level: 200, points: [[500, 262], [540, 290]], removes: true },
  ];
  const expected = new Uint8Array(WIDTH * HEIGHT);
  for (const { level, points, removes } of strokes) {
    await setLevel(page, level);
    await drag(page, points, removes ? "right" : "left");
    const { labels } = levels.cut(level), touched = new Set(along(points).map(([x, y]) => labels[y * WIDTH + x]));
    const before = expected.slice();
    expected.forEach((_, i) => { if (touched.has(labels[i])) expected[i] = removes ? 0 : 1; });
    assert.notDeepEqual(expected, before);
    assert.ok((await maskOf(page)).equals(expected), `after the stroke at level ${level} from ${points[0]}`);
  }
  let both = 0, either = 0;
  picture.thing.forEach((inside, i) => {
    both += inside & expected[i];
    either += inside | expected[i];
  });
  t.diagnostic(`the selection overlaps with the thing by ${((100 * both) / either).toFixed(1)} % of both`);
  assert.ok(both / either > 0.9, `${both / either}`);

  const png = unpackPng(await bytesOf(page, "await brush.toPNG()"));
  assert.deepEqual([png.width, png.height, png.depth], [WIDTH, HEIGHT, 8]);
  assert.deepEqual(Uint8Array.from(png.samples, (sample) => sample / 255), expected);
  assert.deepEqual(unpackRle(await page.evaluate(() => brush.toRLE())), expected);
  assert.deepEqual(fillPolygons(await page.evaluate(() => brush.toPolygons()), WIDTH, HEIGHT), expected);
  assert.equal(await page.evaluate(() => brush.area), expected.reduce((sum, one) => sum + one, 0));
  levels.free();
});

test("keys, wheel, modes, touch: what they do and what can be undone", async (t) => {
  const page = await openBrush(t), count = () => page.evaluate(() => brush.area);
  const levels = new sp.Levels(picture, { nSegments: 1500 });
  await setLevel(page, 100);
  const area = levels.regionAt(330, 210, 100).area;
  await drag(page, [[330, 210]]);
  assert.equal(await count(), area);
  for (const [keys, wanted] of [["Control+z", 0], ["Control+z", 0], ["Control+Shift+Z", area], ["Control+Shift+Z", area], ["Control+z", 0], ["Control+y", area]]) {
    await page.keyboard.press(keys);
    assert.equal(await count(), wanted, keys);
  }
  // Alt and the mode each turn adding into removing, and both together are adding.
  await page.keyboard.down("Alt");
  await drag(page, [[330, 210]]);
  assert.equal(await count(), 0);
  await page.evaluate(() => { brush.mode = "remove"; });
  await drag(page, [[330, 210]]);
  assert.equal(await count(), area);
  await page.keyboard.up("Alt");
  await drag(page, [[330, 210]]);
  assert.equal(await count(), 0);
  await page.evaluate(() => { brush.mode = "add"; });

  await page.mouse.move(20, 20);
  await page.mouse.wheel(0, -120);
  await until(page, "brush.level > 100");
  await page.mouse.wheel(0, 400);
  await until(page, "brush.level < 100");
  await setLevel(page, 100);
  await page.keyboard.press("+");
  await until(page, "brush.level === 125");
  await page.keyboard.press("-");
  await until(page, "brush.level === 100");

  // The keyboard alone: the first arrow begins in the middle.
  await page.mouse.move(WIDTH + 50, 50);
  await page.keyboard.press("ArrowRight");
  const middle = levels.regionAt(WIDTH / 2, HEIGHT / 2, 100);
  assert.equal((await page.evaluate(() => events.at(-1)))[1].region, middle.label);
  await page.keyboard.press("Space");
  assert.equal(await count(), middle.area);
  assert.match(await page.evaluate(() => brush.shadowRoot.querySelector(".spoken").textContent), /^Region \d+ of 100, \d+ pixels, selected$/);
  await page.keyboard.press("ArrowUp");
  const { x, y, region } = (await page.evaluate(() => events.filter(([name]) => name === "hover").at(-1)))[1];
  assert.ok(region !== middle.label && x === WIDTH / 2 && y < HEIGHT / 2);
  await page.keyboard.press("Enter");
  assert.equal(await count(), middle.area + levels.regionAt(x, y, 100).area);
  await page.keyboard.press("Enter");
  assert.equal(await count(), middle.area);
  await page.keyboard.press("Escape");
  assert.deepEqual(await page.evaluate(() => events.at(-1)), ["hover", null]);
  await page.evaluate(() => brush.clear());
  assert.equal(await count(), 0);

  // A gesture of the page takes the finger away: it was no stroke.
  const touch = (kind, id, x, y) => page.evaluate(([kind, id, x, y]) => brush.shadowRoot.querySelector(".stage").dispatchEvent(new PointerEvent(kind, {
    pointerId: id, pointerType: "touch", clientX: x, clientY: y, button: 0, bubbles: true, composed: true })), [kind, id, x, y]);
  await page.evaluate(() => { brush.shadowRoot.querySelector(".stage").setPointerCapture = () => {}; });
  await touch("pointerdown", 7, 330.5, 210.5);
  assert.equal(await count(), area);
  await touch("pointermove", 8, 30, 30);
  await touch("pointercancel", 7, 330.5, 210.5);
  assert.equal(await count(), 0);
  await touch("pointerdown", 9, 330.5, 210.5);
  await touch("pointerup", 9, 330.5, 210.5);
  assert.equal(await count(), area);
  levels.free();
});

test("pictures of every kind, new options and masks from elsewhere", async (t) => {
  const page = await openBrush(t, { nSegments: 300 });
  const results = await page.evaluate(async () => {
    const labels = brush.labels.slice(), canvas = document.createElement("canvas"), { image } = brush, out = [];
    Object.assign(canvas, { width: image.width, height: image.height });
    canvas.getContext("2d").putImageData(image, 0, 0);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
    const address = URL.createObjectURL(blob), element = Object.assign(new Image(), { src: address });
    await element.decode();
    const same = () => out.push(brush.labels.length === labels.length && brush.labels.every((label, i) => label === labels[i]));
    for (const picture of [canvas, blob, element, await createImageBitmap(blob)]) {
      brush.image = picture;
      await brush.ready;
      same();
    }
    brush.src = address;
    await brush.ready;
    same();
    brush.mask = new Uint8Array(brush.mask.length).fill(9, 0, 1000);
    out.push(brush.area);
    // Other superpixels leave the mask as it is, and so does a place elsewhere on the page.
    brush.options = { nSegments: 50 };
    await brush.ready;
    out.push(brush.area, brush.nRegions < 100);
    const box = document.body.appendChild(document.createElement("div"));
    box.append(brush);
    brush.remove();
    await new Promise((done) => setTimeout(done));
    document.body.append(brush);
    await brush.ready;
    out.push(brush.area, brush.nRegions < 100);
    brush.paint(330, 210);
    out.push(brush.area > 1000);
    return out;
  });
  assert.deepEqual(results, [true, true, true, true, true, 1000, 1000, true, 1000, true, true]);
});

test("what is wrong is said in words", async (t) => {
  const page = await openBrush(t, { nSegments: 100 });
  const said = await page.evaluate(async () => {
    const out = {}, tried = (name, action) => {
      try {
        action();
        out[name] = null;
      } catch (error) {
        out[name] = `${error.name}: ${error.message}`;
      }
    };
    tried("image", () => { brush.image = "picture.png"; });
    tried("mode", () => { brush.mode = "erase"; });
    tried("level", () => { brush.level = 0; });
    tried("half", () => { brush.level = 2.5; });
    tried("mask", () => { brush.mask = new Uint8Array(5); });
    tried("pixel", () => brush.paint(-1, 0));
    tried("worker", () => { brush.worker = {}; });
    const broken = async (change) => {
      change();
      return brush.ready.then(() => null, (error) => error.message);
    };
    out.blob = await broken(() => { brush.image = new Blob(["no picture"]); });
    out.src = await broken(() => { brush.src = "/nothing.png"; });
    out.options = await broken(() => {
      brush.image = new ImageData(20, 20);
      brush.options = { nSegment: 5 };
    });
    out.events = events.filter(([name]) => name === "error").length;
    out.status = brush.shadowRoot.querySelector(".status").textContent;
    const { SuperpixelWorker } = await import("/package/client.js"), worker = new SuperpixelWorker();
    const refused = (promise) => promise.then(() => null, (error) => `${error.name}: ${error.message}`);
    out.call = await refused(worker.segment({ data: new Uint8Array(3), width: 1, height: 1 }));
    const levels = await worker.levels(new ImageData(8, 8));
    await levels.free();
    out.freed = await refused(levels.cut(1));
    out.waiting = refused(worker.segment(new ImageData(200, 200)));
    worker.terminate();
    out.waiting = await out.waiting;
    out.ended = await refused(worker.algorithms());
    out.missing = await refused(new SuperpixelWorker(new Worker("/nothing.js", { type: "module" })).algorithms());
    return out;
  });
  const wanted = {
    image: /^TypeError: image must be ImageData, /, mode: /^RangeError: mode must be "add" or "remove"/, level: /^RangeError: level must be 1 to 65535, got 0/,
    half: /^TypeError: level must be a whole number, got 2.5/, mask: /^RangeError: mask of 640x400 must have 256000 bytes, got 5/, pixel: /^RangeError: x must be/,
    worker: /^TypeError: worker must be a SuperpixelWorker/, blob: /no picture that this browser can read/, src: /\/nothing.png could not be fetched: 404/,
    options: /slic has no option nSegment; it takes/, status: /slic has no option nSegment/, call: /^RangeError: image.data .* must have 4 bytes, got 3/,
    freed: /^TypeError: this object was freed/, waiting: /was ended/, ended: /was ended/, missing: /could not start/,
  };
  for (const [name, words] of Object.entries(wanted)) assert.match(said[name] ?? "nothing was refused", words, name);
  assert.ok(said.events >= 3);
});

const jobs = [
  [{ algorithm: "slic", nSegments: 300, nRegions: 40 }], [{ algorithm: "slic", adaptive: true, colorSpace: "rgb", refine: 2 }], [{ algorithm: "lsc", nSegments: 200 }],
  [{ algorithm: "snic", nSegments: 200, neighbors: true }], [{ algorithm: "quickshift" }], [{ nSegments: 200, temporal: true, neighbors: true }, 12],
];
/** Does the jobs in a worker of the page, and compares all with Node. Gives the number of threads that the worker has. */
async function compareJobs(page, client, threads) {
  const [count, found] = await page.evaluate(async ([client, threads, jobs]) => {
    const film = new Uint8ClampedArray(await (await fetch("/frames.rgba")).arrayBuffer()), size = 4 * 320 * 180;
    const { SuperpixelWorker } = await import(client), worker = new SuperpixelWorker(undefined, { threads }), out = [];
    for (const [options, count = 1] of jobs) {
      const segmenter = await worker.segmenter(options);
      for (let i = 0; i < count; i++) out.push(await segmenter.segment({ data: film.subarray(i * size, (i + 1) * size), width: 320, height: 180 }));
    }
    const count = await worker.threads();
    worker.terminate();
    return [count, out.map((map) => JSON.stringify(map, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value)))];
  }, [client, threads, jobs]);
  const frames = made["/frames.rgba"], size = 4 * 320 * 180;
  let at = 0;
  for (const [options, count = 1] of jobs) {
    const segmenter = new sp.Segmenter(options);
    for (let i = 0; i < count; i++, at++) {
      const map = segmenter.segment({ data: new Uint8Array(frames.subarray(i * size, (i + 1) * size)), width: 320, height: 180 });
      assert.ok(JSON.stringify(map, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value)) === found[at], `${JSON.stringify(options)}, frame ${i}`);
    }
    segmenter.free();
  }
  assert.equal(at, found.length);
  return count;
}

test("labels and tables in the browser are those in Node", async (t) => {
  assert.equal(await compareJobs(await open(t, "/brush.html"), "/package/client.js"), 1);
});

const THREADED = "/node_modules/superpixels-threads/client.js";
test("threads of an isolated page give the same labels and tables", async (t) => {
  const page = await openIsolated(t);
  assert.equal(await compareJobs(page, THREADED, 3), 3);
  const cores = await page.evaluate("navigator.hardwareConcurrency");
  assert.equal(await page.evaluate(async (client) => new (await import(client)).SuperpixelWorker().threads(), THREADED), Math.min(cores, 8));
});

test("threads end with their worker", async (t) => {
  const page = await openIsolated(t), turns = 8, each = 5;
  // Firefox keeps up to so many threads for the next workers.
  const kept = process.env.FIREFOX ? 20 : 0;
  assert.ok(turns * each > kept);
  for (let turn = 0; turn < turns; turn++) {
    await page.evaluate(async ([client, threads]) => {
      const { SuperpixelWorker } = await import(client), worker = new SuperpixelWorker(undefined, { threads });
      await worker.segment(new ImageData(64, 48), { nSegments: 20 });
      worker.terminate();
    }, [THREADED, each - 1]);
  }
  // A browser may let a worker wait for some seconds before it ends it by force.
  for (const end = Date.now() + 20000; page.workers().length > kept;) {
    assert.ok(Date.now() < end, `${page.workers().length} workers`);
    await new Promise((next) => setTimeout(next, 50));
  }
});

test("there is one thread in a page that is not isolated, and in a window", async (t) => {
  assert.equal(await compareJobs(await open(t, "/brush.html"), THREADED, 3), 1);
  const page = await openIsolated(t);
  const [count, same] = await page.evaluate(async () => {
    const sp = await import("/node_modules/superpixels-threads/browser.js"), one = await import("/package/browser.js");
    const data = new Uint8ClampedArray(4 * 200 * 100).map((_, i) => (i * 7919) >> 5), image = new ImageData(data, 200, 100);
    const [a, b] = [sp, one].map(({ segment }) => segment(image, { nSegments: 100 }).labels);
    return [sp.threads(), a.every((label, i) => label === b[i])];
  });
  assert.deepEqual([count, same], [1, true]);
});

test("a thread that fails ends its worker with words, and a wrong number of threads is refused", async (t) => {
  const page = await openIsolated(t);
  const said = await page.evaluate(async (client) => {
    const refused = (promise) => promise.then(() => "kept", (error) => `${error.name}: ${error.message}`);
    const broken = new (await import("/broken/client.js")).SuperpixelWorker(undefined, { threads: 2 });
    const first = [await refused(broken.threads()), await refused(broken.algorithms())];
    const { SuperpixelWorker } = await import(client), wrong = [];
    for (const [worker, threads] of [[undefined, 0], [undefined, 1.5], [undefined, "2"], [null], [{}]]) {
      try {
        new SuperpixelWorker(worker, { threads });
      } catch (error) {
        wrong.push(error.name);
      }
    }
    return [...first, ...wrong, await refused(new SuperpixelWorker(undefined, { threads: 65 }).threads())];
  }, THREADED);
  const ended = "Error: a thread of superpixels failed: a panic";
  assert.deepEqual(said, [ended, ended, "RangeError", "RangeError", "RangeError", "TypeError", "TypeError", "RangeError: threads is a whole number from 1 to 64, got 65"]);
  // The panic itself.
  page.problems.splice(0);
});

test("an engine without SIMD loads the other WebAssembly", async (t) => {
  const page = await open(t, "/old.html");
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  const labels = await bytesOf(page, `await (async () => {
    const { segment } = await import("/node_modules/superpixels/browser.js");
    const data = new Uint8ClampedArray(await (await fetch("/scene.rgba")).arrayBuffer());
    return segment(new ImageData(data, ${WIDTH}, ${HEIGHT}), { nSegments: 500 }).labels;
  })()`);
  assert.deepEqual(labels, Buffer.from(sp.segment(picture, { nSegments: 500 }).labels.buffer));
  assert.deepEqual(asked.filter((path) => path.endsWith(".wasm")), ["/node_modules/superpixels-scalar/superpixels.wasm"]);
});

test("a frame of a film is sent without the others", async (t) => {
  const page = await open(t, "/brush.html");
  const sent = await page.evaluate(async () => {
    const { SuperpixelWorker } = await import("/package/client.js");
    const worker = new Worker("/package/worker.js", { type: "module" }), post = worker.postMessage.bind(worker), sent = [];
    worker.postMessage = (message, ...more) => {
      for (const value of message.values ?? []) for (const array of [value?.data, value?.labels, value]) if (ArrayBuffer.isView(array)) sent.push(array.buffer.byteLength);
      post(message, ...more);
    };
    const film = new Uint8ClampedArray(10 * 4 * 64 * 48), masks = new Uint8Array(10 * 64 * 48).fill(1), client = new SuperpixelWorker(worker);
    const image = { data: film.subarray(4 * 64 * 48, 2 * 4 * 64 * 48), width: 64, height: 48 };
    const map = await client.segment(image);
    const segmenter = await client.segmenter({});
    await segmenter.segment(image, masks.subarray(0, 64 * 48));
    await client.rle({ ...map, labels: map.labels.subarray() }, 0);
    client.terminate();
    return sent;
  });
  assert.deepEqual(sent, [4 * 64 * 48, 4 * 64 * 48, 64 * 48, 2 * 64 * 48]);
});

test("frames of WebCodecs have the labels of their bytes, in the order of calls", async (t) => {
  const page = await open(t, "/brush.html");
  // Sides are odd, so that chroma has half a pixel more than its share; Firefox makes no such frames.
  const [width, height] = process.env.FIREFOX ? [82, 50] : [81, 49], whole = width * height, half = 41 * 25, packed = 4 * whole;
  // Each format, its name here, its bytes.
  const formats = [["I420", "I420", whole + 2 * half], ["NV12", "NV12", whole + 2 * half], ["I420A", "A420", 2 * whole + 2 * half], ["I422", "Y42B", whole + 2 * 41 * height],
    ["I444", "Y444", 3 * whole], ["RGBA", "RGBA", packed], ["RGBX", "RGBx", packed], ["BGRA", "BGRA", packed], ["BGRX", "BGRx", packed]];
  const spaces = [["bt709", false], ["bt709", true], ["smpte170m", false], ["bt2020-ncl", true]];
  const taken = await page.evaluate((formats) => formats.filter(([format, , size]) => {
    try {
      new VideoFrame(new Uint8Array(2 * size), { format, codedWidth: 82, codedHeight: 50, timestamp: 0 }).close();
      return true;
    } catch (error) {
      if (error.name !== "NotSupportedError") throw error;
      return false;
    }
  }), formats);
  t.diagnostic(`formats of VideoFrame: ${taken.map(([format]) => format).join(", ")}`);
  assert.ok(taken.length === formats.length || (process.env.FIREFOX && taken.length > 3), `${taken}`);
  const jobs = taken.flatMap(([format, name, size]) => (/RGB|BGR/.test(format) ? [[null, null]] : spaces).map(([matrix, fullRange]) => ({ format, name, size, matrix, fullRange })));
  // A byte that means nothing is 255, as Firefox makes it.
  const bytes = ({ format, size }, seed) => {
    let state = seed;
    return Uint8Array.from({ length: size }, (_, i) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return format.endsWith("X") && i % 4 === 3 ? 255 : 40 + 24 * ((((i % width) >> 3) + (Math.floor(i / width) >> 3)) % 8) + (state >>> 28);
    });
  };
  const found = await page.evaluate(async ({ jobs, width, height, bytes }) => {
    const { SuperpixelWorker } = await import("/package/client.js"), sp = await import("/package/browser.js"), worker = new SuperpixelWorker(), out = [];
    const make = new Function(bytes)();
    const frameOf = ({ matrix, fullRange, ...job }, i) => new VideoFrame(make(job, i), { format: job.format, codedWidth: width, codedHeight: height, timestamp: i,
      ...(matrix && { colorSpace: { matrix, fullRange, primaries: "bt709", transfer: "bt709" } }) });
    for (const [i, job] of jobs.entries()) {
      const frame = frameOf(job, i), options = { nSegments: 30 };
      const [own, map, kept] = [await sp.readFrame(frame), await sp.segment(frame, options), await worker.segment(frame, options)];
      frame.close();
      out.push({ format: own.format, matrix: own.matrix, fullRange: own.fullRange, data: [...own.data], labels: [...map.labels], kept: [...kept.labels] });
    }
    // A part of a frame, a frame that is closed, and frames that nobody waits for.
    const [first] = jobs, part = new VideoFrame(frameOf(first, 0), { visibleRect: { x: 32, y: 16, width: 32, height: 24 } }), own = await sp.readFrame(part);
    out.push({ width: own.width, height: own.height, data: [...own.data] });
    part.close();
    out.push(await sp.segment(part).then(() => null, (error) => `${error.name}: ${error.message}`));
    const options = { temporal: true, nSegments: 30 }, slow = new SuperpixelWorker(new Worker("/slow.js", { type: "module" }));
    for (const segmenter of [new sp.Segmenter(options), await worker.segmenter(options), await slow.segmenter(options)]) {
      const frames = jobs.slice(0, 8).map(frameOf);
      const maps = await Promise.all(frames.map((frame) => segmenter.segment(frame)));
      out.push(maps.map(({ labels, regions }) => [[...labels], [...regions.trackId]]));
    }
    return out;
  }, { jobs, width, height, bytes: `const width = ${width}; return ${bytes}` });
  const images = jobs.map(({ name, matrix, fullRange, ...job }, i) => ({ data: bytes(job, i), width, height, format: name, ...(matrix && { matrix, fullRange }) }));
  const maps = images.map((image) => [...sp.segment(image, { nSegments: 30 }).labels]);
  jobs.forEach((job, i) => {
    const { data, labels, kept, ...image } = found[i], said = JSON.stringify(job);
    assert.deepEqual(image, { format: job.name, matrix: job.matrix ?? undefined, fullRange: job.fullRange ?? undefined }, said);
    assert.deepEqual(data, [...images[i].data], said);
    assert.deepEqual(labels, maps[i], said);
    assert.deepEqual(kept, maps[i], said);
  });
  // What is told of colors counts.
  assert.notDeepEqual(maps[0], maps[1]);
  const [part, closed, here, there, slowly] = found.slice(jobs.length), plane = images[0].data;
  assert.deepEqual([part.width, part.height, part.data.length], [32, 24, 32 * 24 * 1.5]);
  assert.deepEqual(part.data.slice(0, 32), [...plane.subarray(16 * width + 32, 16 * width + 64)]);
  assert.match(closed, /^TypeError: the VideoFrame is closed/);
  const segmenter = new sp.Segmenter({ temporal: true, nSegments: 30 });
  const wanted = images.slice(0, 8).map((image) => segmenter.segment(image)).map(({ labels, regions }) => [[...labels], [...regions.trackId]]);
  segmenter.free();
  assert.deepEqual(here, wanted);
  assert.deepEqual(there, wanted);
  assert.deepEqual(slowly, wanted);
});

test("hovering at 12 megapixels answers from what the level has", async (t) => {
  const page = await open(t, "/brush.html");
  const [segmented, nRegions] = await page.evaluate(async () => {
    const width = 4000, height = 3000, image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    let state = 1;
    for (let i = 0; i < pixels.length; i++) {
      const x = i % width, y = (i / width) | 0, shape = ((x >> 8) + (y >> 7) * 3 + ((x + y) >> 9)) % 7;
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      pixels[i] = 0xff000000 | ((y >> 4) << 16) | ((90 + (state >>> 28)) << 8) | (30 * shape + (x >> 6));
    }
    window.brush = document.querySelector("superpixel-brush");
    window.hovers = [];
    const start = performance.now();
    brush.image = image;
    await brush.ready;
    // From the browser's event to the end of what the page does about it, and to the frame behind it.
    let began = 0;
    addEventListener("pointermove", () => { began = performance.now(); }, { capture: true });
    addEventListener("pointermove", () => {
      const from = began, work = performance.now() - from;
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => hovers.push([work, performance.now() - from]);
        port2.postMessage(0);
      });
    });
    return [performance.now() - start, brush.nRegions];
  });
  const figures = [];
  for (const level of [10, 400, nRegions]) {
    await setLevel(page, level);
    await page.evaluate(() => { hovers.length = 0; });
    for (let i = 0; i < 60; i++) await page.mouse.move(20 + ((i * 97) % 600), 20 + ((i * 61) % 440));
    await until(page, "hovers.length >= 30");
    const [works, frames] = (await page.evaluate(() => hovers)).reduce((all, pair) => all.map((one, i) => [...one, pair[i]]), [[], []]).map((all) => all.sort((a, b) => a - b));
    const some = (all) => `median ${all[all.length >> 1].toFixed(1)}, 95 % below ${all[Math.floor(0.95 * all.length)].toFixed(1)}, most ${all.at(-1).toFixed(1)} ms`;
    figures.push(`level ${level}: work ${some(works)}; until the frame is drawn ${some(frames)}`);
  }
  t.diagnostic(`4000x3000, ${nRegions} superpixels, ready after ${Math.round(segmented)} ms; ${figures.join("; ")}`);
});

test("the playground segments, has the library's knobs, and asks no other server", async (t) => {
  const asked = [], page = await openPage(browser, "about:blank");
  t.after(() => page.context().close());
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(playground);
  await until(page, "window.playground?.frame");
  const shown = () => bytesOf(page, "playground.frame.sides[0].labels");
  const size = await page.evaluate(() => ({ width: playground.frame.width, height: playground.frame.height }));
  const image = { data: new Uint8Array(await bytesOf(page, "playground.source.image.data")), ...size };
  const expected = (options, regions) => {
    const levels = new sp.Levels(image, { algorithm: "slic", ...options }), { labels } = levels.cut(regions ?? levels.nRegions);
    levels.free();
    return Buffer.from(labels.buffer);
  };
  assert.ok((await shown()).equals(expected({ nSegments: 1500 })));
  const rows = await page.$$eval("#controls .row", (rows) => rows.map((row) => row.dataset.name));
  assert.deepEqual(rows.sort(), ["algorithm", ...sp.parameters("slic").map(({ name }) => name)].filter((name) => !["temporal", "levels"].includes(name)).sort());

  await page.fill("#count", "70");
  await page.press("#count", "Enter");
  await until(page, "playground.frame.sides[0].regions === 70");
  assert.ok((await shown()).equals(expected({ nSegments: 1500 }, 70)));
  await page.fill("#property-compactness", "40");
  await page.press("#property-compactness", "Enter");
  const wanted = expected({ nSegments: 1500, compactness: 40 }, 70);
  for (let i = 0; i < 100 && !(await shown()).equals(wanted); i++) await new Promise((next) => setTimeout(next, 50));
  assert.ok((await shown()).equals(wanted));
  await page.selectOption("#property-algorithm", "snic");
  await until(page, "document.querySelector('#status').dataset.state === 'on' && !document.querySelector('#property-iterations')");
  for (const [key, view] of [["1", "original"], ["3", "mean"], ["4", "false"], ["5", "abstraction"]]) {
    await page.locator("h1").click();
    await page.keyboard.press(key);
    await until(page, `playground.look.view === "${view}" && (${view !== "abstraction"} || playground.frame.sides[0].abstraction)`);
  }
  await page.keyboard.press("6");
  await until(page, "playground.brush.labels && !document.querySelector('#brush').hidden && playground.brush.level === 70");
  const box = await page.locator("#brush").boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await until(page, "playground.brush.area > 0");
  // Of Firefox no downloads are reported.
  if (!process.env.FIREFOX) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#export-open").then(() => page.click("#export-mask"))]);
    const mask = unpackPng(await readFile(await download.path()));
    assert.deepEqual(Buffer.from(mask.samples.map((sample) => sample / 255)), await bytesOf(page, "playground.brush.mask"));
  }

  await page.keyboard.press("2");
  await page.click("#open-open");
  await page.click("#open-camera");
  await until(page, "playground.source.isFilm && playground.frame?.sides[0].ids");
  await until(page, "parseFloat(document.querySelector('#rate').textContent) > 0");
  t.diagnostic(`camera of the browser, ${await page.evaluate(() => `${playground.frame.width}x${playground.frame.height}`)}: ${await page.textContent("#rate")}`);
  await page.setInputFiles("#file", clip);
  await until(page, "playground.source.name === 'bigbuckbunny.mp4' && playground.frame?.width === 640 && playground.frame.sides[0].ids");
  await page.click("#play");
  await until(page, "playground.source.paused");
  // The brush takes the frame of now, as a picture.
  await page.keyboard.press("6");
  await until(page, "!playground.source.isFilm && playground.brush.image === playground.source.image && playground.brush.labels?.length === 640 * 360");
  assert.deepEqual(asked.filter((address) => !address.startsWith(playground) && !address.startsWith("about:") && !address.startsWith("blob:")), []);
  assert.deepEqual(page.problems, []);
});

test("the annotation example exports what was selected", async (t) => {
  const page = await open(t, "/annotate/index.html");
  await page.evaluate(async () => {
    const { addFiles } = await import("/annotate/annotate.js"), canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 640, height: 400 });
    canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(await (await fetch("/scene.rgba")).arrayBuffer()), 640, 400), 0, 0);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
    await addFiles([new File([blob], "one.png"), new File([blob], "two.png")]);
  });
  const box = await page.locator("#brush").boundingBox(), at = (x, y) => [box.x + (x / WIDTH) * box.width, box.y + (y / HEIGHT) * box.height];
  await page.mouse.click(...at(330, 210));
  await page.click("#finish");
  await page.click("#classes button:nth-child(3)");
  await page.mouse.click(...at(60, 60));
  const masks = await page.evaluate(async () => {
    const { coco, labelStudio } = await import("/annotate/annotate.js");
    return { coco: await coco(), studio: await labelStudio() };
  });
  assert.deepEqual(masks.coco.annotations.map(({ image_id, category_id }) => [image_id, category_id]), [[1, 1], [1, 3]]);
  const levels = new sp.Levels(picture, { nSegments: 2000 }), level = Math.round(levels.nRegions / 5);
  [[330, 210], [60, 60]].forEach(([x, y], i) => {
    const { labels } = levels.cut(level), own = labels[y * WIDTH + x], { segmentation, area, bbox } = masks.coco.annotations[i];
    assert.deepEqual(unpackRle(segmentation), Uint8Array.from(labels, (label) => Number(label === own)));
    const region = levels.regionAt(x, y, level), [x0, y0, x1, y1] = region.bounds;
    assert.deepEqual([area, bbox], [region.area, [x0, y0, x1 - x0, y1 - y0]]);
  });
  assert.deepEqual(masks.studio.map(({ predictions: [{ result }] }) => result.map(({ value }) => value.polygonlabels[0])), [["Animal", "Stone"], []]);
  assert.ok(masks.studio[0].predictions[0].result.every(({ value }) => value.points.flat().every((part) => part >= 0 && part <= 100)));
  levels.free();
});
