// SPDX-License-Identifier: MPL-2.0
// The page in a real browser. `node --test` runs it; harness.mjs says what it needs. SUPERPIXEL_PLUGIN names the plugin's folder.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { clip, framed, openPage, root, startBrowser, startStudio } from "./harness.mjs";

const run = promisify(execFile);
const plugin = process.env.SUPERPIXEL_PLUGIN ?? `${root}target/superpixel-plugin`;
/** Pictures of the clip, and what one takes as labels. */
const WIDTH = 1280, HEIGHT = 720, BYTES = 2 * WIDTH * HEIGHT;

let browser, studio, folder;
before(async () => {
  browser = await startBrowser();
  studio = await startStudio(clip, ["superpixel-size=24"]);
  folder = await mkdtemp(join(tmpdir(), "superpixel-studio-tests-"));
});
after(async () => {
  await browser?.close();
  await studio?.stop();
  if (folder) await rm(folder, { recursive: true });
});

/** Opens the page on the studio of all tests, as it is when it starts. */
async function open(t, options) {
  const page = await openPage(browser, studio.address, options);
  t.after(() => page.context().close());
  await framed(page, (studio) => studio.frame && studio.state);
  for (const request of [
    { do: "compare", on: false }, { do: "apply", side: "a", values: { "superpixel-size": 24 } },
    { do: "pause", on: false }, { do: "speed", factor: 1 },
  ]) await page.evaluate((request) => window.studio.link.send(request), request);
  await framed(page, (studio) => !studio.state.paused && studio.frame.sides.length === 1 && studio.state.values[0]["superpixel-size"] === 24);
  return page;
}
const send = (page, request) => page.evaluate((request) => window.studio.link.send(request), request);
/** Pauses, and waits until nothing moves any more. */
async function pause(page) {
  await send(page, { do: "pause", on: true });
  await framed(page, (studio) => studio.state.paused);
  for (let last = -1, number; (number = await page.evaluate(() => window.studio.frame.number)) !== last; last = number) {
    await page.waitForTimeout(500);
  }
}
/** Where the middle of a pixel of the picture stands on the page. */
const place = (page, x, y) => page.evaluate(([x, y]) => {
  const canvas = document.querySelector("#picture"), box = canvas.getBoundingClientRect();
  return [box.left + ((x + 0.5) / canvas.width) * box.width, box.top + ((y + 0.5) / canvas.height) * box.height];
}, [x, y]);

test("label maps in the page are the element's bit for bit", async (t) => {
  // From the first frame on, since every frame begins with the one before.
  const own = await startStudio(clip, ["superpixel-size=24"]);
  t.after(() => own.stop());
  const page = await openPage(browser, own.address);
  t.after(() => page.context().close());
  const found = new Map();
  while (found.size < 4) {
    const [number, time, hash] = await page.evaluate(async () => {
      const frame = window.studio?.frame;
      if (!frame) return [-1, 0, ""];
      const digest = await crypto.subtle.digest("SHA-256", frame.sides[0].labels);
      return [frame.number, frame.time, [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")];
    });
    if (number >= 0) {
      assert.ok(number < 100 && Math.round(time * 25) === number, `frame ${number} at ${time}`);
      found.set(number, hash);
    }
    await page.waitForTimeout(60);
  }
  await page.context().close();
  const file = join(folder, "labels.raw"), frames = Math.max(...found.keys()) + 1;
  await run("gst-launch-1.0", ["-q", "filesrc", `location=${clip}`, "!", "decodebin", "!", "identity", `eos-after=${frames + 1}`, "!", "videoconvert", "!",
    "superpixel", "superpixel-size=24", "overlay=none", "!", "superpixellabels", "!", "video/x-raw,format=GRAY16_LE", "!", "filesink", `location=${file}`],
  { env: { ...process.env, GST_PLUGIN_PATH: plugin } });
  const bytes = await readFile(file);
  for (const [number, hash] of found) {
    const map = bytes.subarray(number * BYTES, (number + 1) * BYTES);
    assert.equal(map.length, BYTES);
    assert.equal(createHash("sha256").update(map).digest("hex"), hash, `frame ${number}`);
  }
});

test("the page shows frames in all views", async (t) => {
  const page = await open(t);
  const first = await page.evaluate(() => window.studio.frame.number);
  await framed(page, (studio, first) => studio.frame.number > first + 5, first);
  await pause(page);
  const seen = new Set();
  for (const key of ["1", "2", "3", "4"]) {
    await page.keyboard.press(key);
    seen.add(await page.evaluate(() => document.querySelector("#picture").toDataURL()));
  }
  assert.equal(seen.size, 4);
  // Mean colors are those of the table, pixel by pixel.
  await page.keyboard.press("3");
  const wrong = await page.evaluate(() => {
    const { frame } = window.studio, side = frame.sides[0];
    const { data } = document.querySelector("#picture").getContext("2d").getImageData(0, 0, frame.width, frame.height);
    return side.labels.reduce((wrong, label, i) => wrong + side.region(label).rgb.some((part, c) => part !== data[4 * i + c]), 0);
  });
  assert.equal(wrong, 0);
  assert.deepEqual(page.problems, []);
});

test("the abstraction is the element's own picture, beside mean colors of the same regions", async (t) => {
  const page = await open(t);
  await pause(page);
  const { number, drawn } = await page.evaluate(() => ({ number: window.studio.frame.number, drawn: window.studio.frame.sides[0].abstraction }));
  assert.equal(drawn, null);
  // Properties that nothing of the view shows stand aside.
  const aside = () => page.evaluate(() => document.querySelector('[data-name="ink"]').parentElement.tagName === "DETAILS");
  assert.ok(await aside());
  await page.keyboard.press("5");
  await framed(page, (studio, number) => studio.frame.number > number && studio.frame.sides[0].abstraction, number);
  assert.ok(!await aside());
  /** Pixels that differ from the drawing left of the divider, and from mean colors right of it. */
  const wrong = () => page.evaluate(() => {
    const { frame, look } = window.studio, [side] = frame.sides, { width, height } = frame;
    const read = (source) => {
      const context = new OffscreenCanvas(width, height).getContext("2d");
      context.drawImage(source, 0, 0);
      return context.getImageData(0, 0, width, height).data;
    };
    const shown = read(document.querySelector("#picture")), drawing = read(side.abstraction);
    const middle = look.beside ? Math.round(look.divider * width) : width;
    const means = Array.from({ length: side.regions }, (_, label) => side.region(label).rgb);
    return side.labels.reduce((wrong, label, i) => {
      const rgb = i % width < middle ? drawing.subarray(4 * i, 4 * i + 3) : means[label];
      return wrong + [0, 1, 2].some((c) => shown[4 * i + c] !== rgb[c]);
    }, 0);
  });
  assert.equal(await wrong(), 0);
  // A setting shows at once.
  const before = await page.evaluate(() => window.studio.frame.number);
  const picture = () => page.evaluate(() => document.querySelector("#picture").toDataURL());
  const thin = await picture();
  await send(page, { do: "set", side: "a", name: "ink", value: 6 });
  await framed(page, (studio, before) => studio.frame.number > before, before);
  assert.notEqual(await picture(), thin);
  await page.check("#beside");
  assert.deepEqual(await page.locator("#divider .tag").allTextContents(), ["Abstraction", "Mean colors"]);
  await page.focus("#divider");
  for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowLeft");
  assert.equal(await wrong(), 0);
  // The two sides need the divider themselves.
  await page.check("#compare");
  await framed(page, (studio) => studio.frame.sides.length === 2 && studio.frame.sides[1].abstraction);
  assert.deepEqual(await page.locator("#divider .tag").allTextContents(), ["A", "B"]);
  assert.ok(!await page.locator("#beside").isVisible());
  await page.uncheck("#compare");
  await framed(page, (studio) => studio.frame.sides.length === 1);
  // The drawing is no longer sent once the view is another.
  await page.keyboard.press("2");
  await page.keyboard.press(".");
  await framed(page, (studio) => studio.frame.sides[0].abstraction === null);
  assert.deepEqual(page.problems, []);
});

test("presets of the abstraction choose its view", async (t) => {
  const page = await open(t);
  for (const [name, regions] of [["Poster", 150], ["Ink", 400], ["Watercolor", 800], ["Stained glass", 200], ["Low detail", 60]]) {
    await page.keyboard.press("1");
    await page.click(`#presets button:text-is('${name}')`);
    await framed(page, (studio, regions) => studio.frame.sides[0].regions === regions && studio.frame.sides[0].abstraction, regions);
    assert.equal(await page.textContent("#views [aria-checked=true]"), "Abstraction");
  }
  assert.ok(await page.locator("#banner").isHidden());
});

test("a slider changes the number of regions", async (t) => {
  const page = await open(t);
  const before = await framed(page, (studio) => studio.frame.sides[0].regions);
  const slider = page.locator('[data-name="superpixel-size"] input[type=range]');
  await slider.focus();
  for (let i = 0; i < 12; i++) await page.keyboard.press("PageUp");
  await framed(page, (studio, before) => studio.frame.sides[0].regions < before / 4, before);
  const value = await page.inputValue("#property-superpixel-size");
  await framed(page, (studio, value) => studio.state.values[0]["superpixel-size"] === value, Number(value));
  await page.locator('[data-name="superpixel-size"] .reset').click();
  await framed(page, (studio) => studio.state.values[0]["superpixel-size"] === 16);
  // Filters: properties that differ from their defaults, and those that the search finds.
  await page.fill("#find", "compactness");
  assert.ok(await page.locator('[data-name="compactness"]').isVisible());
  assert.ok(!await page.locator('[data-name="superpixel-size"]').isVisible());
});

test("hovering shows the track id that the label map has there", async (t) => {
  const page = await open(t);
  await pause(page);
  for (const [x, y] of [[200, 300], [641, 359], [1000, 90]]) {
    await page.mouse.move(...await place(page, x, y));
    const expected = await page.evaluate(([x, y]) => {
      const side = window.studio.frame.sides[0];
      return String(side.id(side.labelAt(x, y)));
    }, [x, y]);
    assert.equal(await page.textContent("#inspected"), expected);
    assert.ok((await page.getAttribute("#marks .own", "d")).length > 20);
    assert.ok((await page.getAttribute("#marks .around", "d")).length > 20);
  }
  // The keyboard does the same.
  await page.focus("#picture");
  const before = await page.textContent("#inspected");
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await page.textContent("#inspected"), before);
  const id = await page.textContent("#inspected");
  await page.keyboard.press("Enter");
  assert.ok(await page.locator(`.pin[data-id="${id}"]`).isVisible());
});

test("a pinned region keeps its id over 30 frames", async (t) => {
  const page = await open(t);
  await pause(page);
  const before = await page.evaluate(() => window.studio.frame.number);
  await send(page, { do: "seek", to: 0.4 });
  await framed(page, (studio, before) => studio.frame.number > before && Math.abs(studio.frame.time - 0.4) < 0.03, before);
  // In the sky, which nothing crosses.
  await page.mouse.click(...await place(page, 1150, 120));
  const id = await page.getAttribute(".pin", "data-id");
  await page.mouse.move(5, 5);
  const start = await page.evaluate(() => window.studio.frame.number);
  await send(page, { do: "pause", on: false });
  await framed(page, (studio, start) => studio.frame.number >= start + 30, start);
  await pause(page);
  const [entry] = JSON.parse(await page.evaluate(() => window.studio.pins.json()));
  const last = entry.frames.at(-1);
  assert.equal(String(entry.track_id), id);
  assert.ok(last.frame >= start + 30 && last.age >= 30, JSON.stringify(last));
  assert.ok(Math.hypot(last.x - 1150, last.y - 120) < 60, JSON.stringify(last));
  const side = await page.evaluate(([x, y]) => window.studio.frame.sides[0].id(window.studio.frame.sides[0].labelAt(x, y)),
    [Math.round(last.x), Math.round(last.y)]);
  assert.equal(String(side), id);
  for (const [button, start] of [["#pins-json", "["], ["#pins-csv", "setting,track_id,frame,"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
    assert.ok((await readFile(await download.path(), "utf8")).startsWith(start));
  }
});

test("A and B are two settings of the same frame", async (t) => {
  const page = await open(t);
  await page.check("#compare");
  await page.click("#side-choice button:nth-child(2)");
  await page.click("#presets button:text-is('100 regions')");
  await framed(page, (studio) => studio.frame.sides.length === 2 && studio.frame.sides[1].regions === 100 && studio.frame.sides[0].regions > 500);
  await pause(page);
  await page.keyboard.press("3");
  await page.focus("#divider");
  await page.keyboard.press("Home");
  const all = () => page.evaluate(() => {
    const { data } = document.querySelector("#picture").getContext("2d").getImageData(0, 0, 1280, 720);
    return new Set(new Uint32Array(data.buffer)).size;
  });
  const ofB = await all();
  await page.keyboard.press("End");
  const ofA = await all();
  assert.ok(ofB <= 100 && ofA > 300, `${ofA} and ${ofB} colors`);
  // Either side says its own id under the mouse.
  await page.locator("#divider").press("Home");
  for (let i = 0; i < 25; i++) await page.keyboard.press("ArrowRight");
  for (const [x, index] of [[100, 0], [1200, 1]]) {
    await page.mouse.move(...await place(page, x, 300));
    const id = await page.evaluate(([x, index]) => String(window.studio.frame.sides[index].id(window.studio.frame.sides[index].labelAt(x, 300))), [x, index]);
    assert.equal(await page.textContent("#inspected"), id);
  }
});

test("what is copied runs as it stands", async (t) => {
  const page = await open(t, { permissions: ["clipboard-read", "clipboard-write"] });
  await send(page, { do: "apply", side: "a", values: { superpixels: 300 } });
  await framed(page, (studio) => studio.state.values[0].superpixels === 300);
  // No display is needed, but where there is one it is not to open.
  const env = { ...process.env, GST_PLUGIN_PATH: plugin };
  // Without a display autovideosink tries DirectFB, which crashes.
  env.GST_PLUGIN_FEATURE_RANK = "dfbvideosink:NONE";
  delete env.DISPLAY;
  delete env.WAYLAND_DISPLAY;
  const copied = async (kind) => {
    await page.click("#copy-open");
    await page.click(`#copy-${kind}`);
    await page.waitForTimeout(500);
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const line = await copied("gst-launch");
  assert.match(line, /superpixels=300 overlay=boundaries/);
  await run("sh", ["-c", line], { env, timeout: 240000 });
  const program = await copied("python");
  const { stdout } = await run("/usr/bin/python3", ["-c", program], { env, timeout: 240000 });
  assert.equal(stdout.trim().split("\n").length, 132, stdout.slice(0, 200));
});

test("pictures, label maps and videos are exported", async (t) => {
  const page = await open(t);
  await pause(page);
  const exported = async (button) => {
    await page.click("#export-open");
    const [download] = await Promise.all([page.waitForEvent("download", { timeout: 120000 }), page.click(button)]);
    return readFile(await download.path());
  };
  const size = (png) => [png.readUInt32BE(16), png.readUInt32BE(20)];
  assert.deepEqual(size(await exported("#export-picture")), [WIDTH, HEIGHT]);
  assert.equal(size(await exported("#export-sheet"))[0], 4 * 488 + 8);
  const labels = await exported("#export-labels");
  assert.deepEqual([...size(labels), labels[24], labels[25]], [WIDTH, HEIGHT, 16, 0]);
  // Read by another program it is the map of the page.
  const file = join(folder, "labels.png"), raw = join(folder, "labels.gray");
  await writeFile(file, labels);
  await run("gst-launch-1.0", ["-q", "filesrc", `location=${file}`, "!", "pngdec", "!", "video/x-raw,format=GRAY16_BE", "!", "filesink", `location=${raw}`]);
  const sum = await page.evaluate(() => window.studio.frame.sides[0].labels.reduce((sum, label, i) => (sum * 31 + label + i) % 1000003, 7));
  const bytes = await readFile(raw);
  let read = 7;
  for (let i = 0; i < WIDTH * HEIGHT; i++) read = (read * 31 + bytes.readUInt16BE(2 * i) + i) % 1000003;
  assert.equal(read, sum);
  const video = await exported("#export-video");
  assert.ok(video.length > 100000, `${video.length} bytes`);
  // The number of files stands at the end of a zip archive.
  const drawings = await exported("#export-svg");
  assert.equal(drawings.readUInt16LE(drawings.length - 12), 132);
});

test("an object in a box is followed, outlined and exported", async (t) => {
  const page = await open(t);
  await pause(page);
  await page.keyboard.press("o");
  assert.ok(await page.locator("#objects").isVisible());
  const before = await page.evaluate(() => window.studio.frame.number);
  await send(page, { do: "seek", to: 0 });
  await framed(page, (studio, before) => studio.frame.number > before && studio.frame.time === 0, before);
  const [left, top, width, height] = [230, 250, 305, 315];
  await page.mouse.move(...await place(page, left, top));
  await page.mouse.down();
  await page.mouse.move(...await place(page, left + 40, top + 40));
  await page.mouse.move(...await place(page, left + width - 1, top + height - 1));
  assert.ok(await page.locator("#marks .box").isVisible());
  await page.mouse.up();
  await framed(page, (studio) => studio.frame.sides[0].objects.length === 1);
  assert.ok(!await page.locator("#marks .box").isVisible());
  // Its outline goes around the pixels whose regions it has.
  const { path, edges, area, counted } = await page.evaluate(() => {
    const [side] = window.studio.frame.sides, { width } = side, [{ id, area }] = side.objects;
    const is = (i) => side.owners[side.labels[i]] === id;
    let edges = 0, counted = 0;
    for (let i = 0; i < side.labels.length; i++) {
      counted += is(i);
      const x = i % width, y = Math.floor(i / width);
      if (is(i) !== (x > 0 && is(i - 1))) edges++;
      if (is(i) && x === width - 1) edges++;
      if (is(i) !== (y > 0 && is(i - width))) edges++;
      if (is(i) && y === side.height - 1) edges++;
    }
    return { path: document.querySelector('#marks .object[data-id="1"]').getAttribute("d"), edges, area, counted };
  });
  assert.equal(counted, area);
  const length = [...path.matchAll(/M(\d+) (\d+)([HV])(\d+)/g)].reduce((sum, [, x, y, way, end]) => sum + Number(end) - (way === "H" ? x : y), 0);
  assert.equal(length, edges);
  assert.match(await page.textContent('#object-list .pin[data-id="1"] .facts'), new RegExp(`^${area} px in .* marked at 0.00 s$`));
  // The object goes on from frame to frame.
  await page.keyboard.press(".");
  await framed(page, (studio) => studio.frame.time > 0 && studio.frame.sides[0].objects.length === 1);
  const [download] = await Promise.all([page.waitForEvent("download", { timeout: 120000 }), page.click("#objects-export")]);
  assert.equal(download.suggestedFilename(), "objects.zip");
  const zip = join(folder, "objects.zip"), read = join(folder, "read.py");
  await download.saveAs(zip);
  await writeFile(read, `import json, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
coco, tracks = (json.loads(archive.read(name)) for name in ("coco.json", "tracks.json"))
masks = [name for name in archive.namelist() if name.startswith("masks/")]
print(json.dumps([masks, coco["annotations"][0], tracks["objects"], tracks["frames"]]))
`);
  const { stdout } = await run("/usr/bin/python3", [read, zip], { maxBuffer: 1 << 26 });
  const [masks, annotation, objects, frames] = JSON.parse(stdout);
  assert.equal(masks.length, 132);
  assert.equal(frames.length, 132);
  assert.deepEqual(objects, [{ id: 1, marks: [{ time: 0, box: [left, top, width, height] }] }]);
  const [first] = frames[0].objects;
  assert.deepEqual([annotation.object_id, annotation.bbox, annotation.area], [1, first.box, first.area]);
  // The picture on show was segmented twice, since it paused.
  assert.ok(Math.abs(first.area - area) < area / 10, `${first.area} and ${area} px`);
  await page.click('#object-list [aria-label="Remove object 1"]');
  await framed(page, (studio) => studio.state.objects.length === 0);
  assert.equal(await page.locator("#marks .object").count(), 0);
  await page.keyboard.press("o");
  assert.deepEqual(page.problems, []);
});

test("the page connects again after a restart, and says so", async (t) => {
  let own = await startStudio(clip, ["superpixel-size=48"]);
  t.after(() => own.stop());
  const page = await openPage(browser, own.address);
  t.after(() => page.context().close());
  await framed(page);
  await own.stop("SIGKILL");
  await page.locator("#banner").waitFor({ state: "visible" });
  assert.match(await page.textContent("#banner"), /connects again by itself/);
  const last = await page.evaluate(() => window.studio.frame);
  own = await startStudio(clip, ["superpixel-size=32"], own.port);
  await page.locator("#banner").waitFor({ state: "hidden", timeout: 20000 });
  await framed(page, (studio) => studio.state.values[0]["superpixel-size"] === 32 && studio.frame.sides[0].regions > 700);
  assert.ok(last);
  assert.deepEqual(page.problems, []);
});

test("errors say what to do", async (t) => {
  const own = await startStudio("/no/such/clip.mp4");
  t.after(() => own.stop());
  const page = await openPage(browser, own.address);
  t.after(() => page.context().close());
  await page.locator("#banner").waitFor({ state: "visible" });
  assert.match(await page.textContent("#banner"), /clip\.mp4 cannot be read.*Check that it is there/);
});

test("every control has a name, in both themes and at 1024 px", async (t) => {
  const page = await open(t, { viewport: { width: 1024, height: 768 }, colorScheme: "light" });
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, [role=slider], canvas#picture")]
    .filter((e) => !(e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim())).map((e) => e.outerHTML));
  assert.deepEqual(nameless, []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 1024), "wider than the window");
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.keyboard.press("t");
  assert.notEqual(await ground(), light);
});
