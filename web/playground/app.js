// SPDX-License-Identifier: MPL-2.0
// The page: puts source, worker, picture, brush and options together.

import "./brush.js";
import { SuperpixelWorker } from "./client.js";
import { save } from "./exports.js";
import { Knobs } from "./knobs.js";
import { announce, note, showProblem } from "./messages.js";
import { Painter, VIEWS as DRAWN } from "./painter.js";
import { grayPng } from "./png.js";
import { check, isTyped, menus, otherTheme, rememberTheme, segment } from "./segments.js";
import { Side } from "./shown.js";
import { Film, Picture, camera, opened } from "./source.js";
import { Zoom } from "./zoom.js";

const $ = (id) => document.getElementById(id);
const VIEWS = [...DRAWN, { name: "brush", title: "Brush" }];
const MODES = [["add", "Add"], ["remove", "Remove"]];
/** Boundaries are a px wide in pictures of this width, and wider in larger ones. */
const USUAL_WIDTH = 1200;
/** Milliseconds over which frames are counted. */
const COUNTED = 2000;

const worker = new SuperpixelWorker();
const brush = $("brush"), canvas = $("picture"), painter = new Painter(canvas);
const look = { view: "boundaries", beside: false, edges: false, cover: 1, divider: 0.5, edge: [] };
let source = null, frame = null, levels = null;
/** Number of regions that are shown; null shows all superpixels. */
let level = null;
/** Results that no longer fit the source or the options. */
const stale = { levels: true, brush: true };

brush.worker = worker;
const knobs = new Knobs($("controls"), worker, () => {
  [stale.levels, stale.brush] = [true, true];
  update();
});
const zoom = new Zoom($("viewport"), $("zoomed"), canvas, () => {});

// --- sources

/** Shows a source that is on its way. */
async function take(coming) {
  say("Opening…", false);
  try {
    const next = await coming;
    source?.stop();
    [source, frame, level] = [next, null, null];
    [stale.levels, stale.brush] = [true, true];
    $("source").textContent = next.name;
    $("waiting").hidden = true;
    $("film").hidden = !next.isFilm;
    showProblem("", "");
    if (next.isScaled) note("The picture was made smaller for this page.");
    if (next.isFilm && look.view === "brush") setView("boundaries");
    showView();
    if (next.isFilm) play(next);
    else update();
  } catch (error) {
    showProblem(error.message, "");
    say("Ready", true);
  }
}

const file = $("file");
file.onchange = () => {
  if (file.files.length) take(opened(file.files[0]));
  file.value = "";
};
const openMenu = menus(["open", "export"]);
$("open-file").onclick = () => {
  openMenu(null);
  file.click();
};
$("open-camera").onclick = () => {
  openMenu(null);
  take(camera());
};
$("open-sample").onclick = () => {
  openMenu(null);
  sample();
};
const sample = () => take(fetch("sample.jpg").then(async (answer) => opened(new File([await answer.blob()], "sample"))));
document.addEventListener("paste", (event) => {
  const [pasted] = event.clipboardData?.files ?? [];
  if (pasted) take(opened(pasted));
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    $("viewport").classList.toggle("is-over", name === "dragover");
    const [dropped] = (name === "drop" && event.dataTransfer?.files) || [];
    if (dropped) take(opened(dropped));
  });
}

// --- pictures

let isWorking = false, isAsked = false;
/** Brings the picture up to date. Requests that come while it works are joined to one. */
async function update() {
  isAsked = true;
  if (isWorking || !source || source.isFilm) return;
  isWorking = true;
  try {
    while (isAsked && source && !source.isFilm) {
      isAsked = false;
      await segmentPicture(source);
    }
  } catch (error) {
    showProblem(error.message, "");
    say("Ready", true);
  } finally {
    isWorking = false;
  }
  if (isAsked && source && !source.isFilm) update();
}

async function segmentPicture(own) {
  const start = performance.now(), { image } = own;
  if (look.view === "brush") {
    if (stale.brush) {
      stale.brush = false;
      brush.options = knobs.options();
      if (brush.image !== image) brush.image = image;
      brush.level = level;
      say("Segmenting…", false);
      await brush.ready;
      if (brush.level !== level) level = brush.level;
      showLevel(brush.level, brush.nRegions);
      showProblem("", "");
      say(`${Math.round(performance.now() - start)} ms`, true);
    }
    showSize(image);
    return;
  }
  if (stale.levels) {
    stale.levels = false;
    say("Segmenting…", false);
    const found = await worker.levels(image, knobs.options());
    levels?.free();
    levels = found;
    showProblem("", "");
    say(`${Math.round(performance.now() - start)} ms`, true);
  }
  if (own !== source) return;
  const map = await levels.cut(Math.min(level ?? levels.nRegions, levels.nRegions));
  const side = new Side(map, image);
  if (look.view === "abstraction") side.abstraction = await drawnBy(image, { ...knobs.options(), nRegions: map.nRegions });
  if (own !== source) return;
  show({ width: map.width, height: map.height, picture: own.canvas, sides: [side] });
  showLevel(map.nRegions, levels.nRegions);
}

/** The library's own drawing of patches. */
async function drawnBy(image, options) {
  const segmenter = await worker.segmenter(options);
  try {
    await segmenter.segment(image);
    return await asBitmap(await segmenter.draw(image, { fill: "abstraction", width: 0 }), image);
  } finally {
    segmenter.free();
  }
}
const asBitmap = (data, { width, height }) => createImageBitmap(new ImageData(data, width, height));

// --- films

/** Takes the frame of now, and promises what is to be shown of it. */
function begin(own, segmenter) {
  const { canvas: picture, image } = own.frame();
  const patches = look.view === "abstraction";
  // One call after the other: what is drawn are the regions of the frame before.
  const done = Promise.all([segmenter.segment(image), patches ? segmenter.draw(image, { fill: "abstraction", width: 0 }) : null]);
  const shown = done.then(async ([map, data]) => {
    const side = new Side(map, image, map.regions.trackId);
    if (data) side.abstraction = await asBitmap(data, image);
    return { width: map.width, height: map.height, picture, sides: [side] };
  });
  shown.catch(() => {});
  return shown;
}

async function play(own) {
  let segmenter = null, taken = "", coming = null;
  const recent = [];
  try {
    while (source === own) {
      // The worker has a frame while the page shows the one before and takes the next, which may come meanwhile.
      const next = own.next(), before = coming;
      coming = null;
      // A paused film is segmented again only for another view or other options.
      const now = `${own.video.currentTime} ${look.view}`, isNew = now !== taken || stale.levels;
      if (own.video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA && isNew) {
        taken = now;
        if (stale.levels || !segmenter) {
          stale.levels = false;
          segmenter?.free();
          segmenter = await worker.segmenter({ ...knobs.options(), ...(knobs.has("temporal") && { temporal: true }) });
        }
        coming = begin(own, segmenter);
      }
      if (before) {
        const done = await before;
        if (source !== own) {
          done.sides[0].abstraction?.close();
          break;
        }
        show(done);
        const time = performance.now();
        recent.push(time);
        while (recent[0] < time - COUNTED) recent.shift();
        const rate = recent.length > 1 ? ((recent.length - 1) * 1000) / (time - recent[0]) : 0;
        $("rate").textContent = `${rate.toFixed(1)} frames/s`;
        say(`${done.sides[0].regions} regions`, true);
      }
      $("play").textContent = own.paused ? "▶" : "❚❚";
      $("play").setAttribute("aria-label", own.paused ? "Play" : "Pause");
      // No frame follows the last one before a pause.
      if (!coming || !own.paused) await next;
    }
  } catch (error) {
    if (source === own) {
      showProblem(error.message, "");
      // Other options may do.
      await new Promise((done) => setTimeout(done, 1000));
      if (source === own) play(own);
    }
  } finally {
    coming?.then((done) => done.sides[0].abstraction?.close(), () => {});
    segmenter?.free();
  }
}
$("play").onclick = () => source?.toggle?.();

/** The frame of now as a picture that stays. */
function still() {
  const { canvas: picture } = source.frame();
  take(Promise.resolve(new Picture(picture, `${source.name}, a frame`)));
}

// --- the picture

function show(next) {
  for (const side of frame?.sides ?? []) side.abstraction?.close();
  frame = next;
  look.edge = [{ color: 0xffffff00, width: Math.max(1, Math.round(frame.width / USUAL_WIDTH)) }];
  showSize(frame);
  redraw();
}
/** Gives the picture its place. */
function showSize({ width, height }) {
  $("size").textContent = `${width} × ${height}`;
  if (canvas.width === width && canvas.height === height) return;
  Object.assign(canvas, { width, height });
  zoom.reset();
  zoom.fit();
}
function redraw() {
  if (frame && look.view !== "brush") painter.paint(frame, look);
}
function say(text, isReady) {
  $("status").textContent = text;
  $("status").dataset.state = isReady ? "on" : "off";
}

for (const { name, title } of VIEWS) $("views").append(segment(title, name === look.view, () => setView(name)));
function setView(name) {
  look.view = name;
  check($("views"), VIEWS.findIndex((view) => view.name === name));
  showView();
  if (name === "brush" && source?.isFilm) still();
  else if (source && !source.isFilm) update();
  redraw();
}
function showView() {
  const isBrush = look.view === "brush", isFilm = Boolean(source?.isFilm);
  canvas.hidden = isBrush;
  brush.hidden = $("strokes").hidden = !isBrush;
  $("edges-switch").hidden = $("fade").hidden = isBrush;
  $("levels").hidden = isFilm;
}
$("edges").onchange = () => {
  look.edges = $("edges").checked;
  redraw();
};
$("cover").oninput = () => {
  look.cover = $("cover").value / 100;
  redraw();
};

// --- levels: the slider goes from one region to all superpixels, each step by the same factor

const STEPS = 1000;
let most = 1;
function showLevel(count, all) {
  most = all;
  if (document.activeElement !== $("count")) $("count").value = count;
  $("count").max = all;
  if (document.activeElement !== $("level")) $("level").value = all > 1 ? Math.round((STEPS * Math.log(count)) / Math.log(all)) : STEPS;
  $("level").setAttribute("aria-valuetext", `${count} of ${all} regions`);
}
function setLevel(count) {
  level = count >= most ? null : count;
  if (look.view === "brush") brush.level = count;
  else update();
}
$("level").oninput = () => {
  const count = Math.max(1, Math.round(most ** ($("level").value / STEPS)));
  $("count").value = count;
  setLevel(count);
};
$("count").onchange = () => {
  const count = Number($("count").value);
  if ($("count").value === "" || !$("count").checkValidity()) $("count").reportValidity();
  else setLevel(count);
};

// --- the brush

MODES.forEach(([name, title], index) => $("modes").append(segment(title, index === 0, () => {
  brush.mode = name;
  check($("modes"), index);
})));
$("undo").onclick = () => brush.undo();
$("redo").onclick = () => brush.redo();
$("clear").onclick = () => brush.clear();
function showStrokes() {
  $("undo").disabled = !brush.canUndo;
  $("redo").disabled = !brush.canRedo;
  $("clear").disabled = !brush.area;
  $("area").textContent = `${brush.area.toLocaleString("en")} px`;
}
for (const name of ["load", "change"]) brush.addEventListener(name, showStrokes);
brush.addEventListener("levelchange", ({ detail }) => {
  if (look.view !== "brush") return;
  level = detail.level;
  showLevel(detail.level, detail.nRegions);
  announce(`${detail.level} regions`);
});
// Over the brush the wheel changes the level, and with Ctrl it zooms.
brush.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) event.stopPropagation();
});
showStrokes();

// --- options

$("find").oninput = $("changed").onchange = () => knobs.filter($("find").value, $("changed").checked);
$("defaults").onclick = () => knobs.reset();

// --- what a person takes along

/** Names of files begin as the source's. */
const named = (end) => `${(source?.name ?? "picture").replace(/\.[^.]*$/, "").replace(/[^\w-]+/g, "-")}-${end}`;
function exporting(id, work) {
  $(id).onclick = async () => {
    openMenu(null);
    try {
      await work();
    } catch (error) {
      note(error.message);
    }
  };
}
const json = (value) => new Blob([JSON.stringify(value)], { type: "application/json" });
function needFrame() {
  if (!frame) throw new Error("Choose another view than the brush first, or open a picture.");
  return frame;
}
function needMask() {
  if (!brush.area) throw new Error("Nothing is selected: choose the view Brush and drag over the picture.");
  return brush;
}
exporting("export-picture", async () => {
  needFrame();
  save(await new Promise((done) => canvas.toBlob(done, "image/png")), named("superpixels.png"));
});
exporting("export-labels", async () => {
  const [{ labels, width, height }] = needFrame().sides;
  save(await grayPng(labels, width, height), named("labels.png"));
});
exporting("export-svg", async () => {
  const [{ labels, width, height, colors }] = needFrame().sides;
  save(new Blob([await worker.svg({ labels, width, height }, { colors })], { type: "image/svg+xml" }), named("regions.svg"));
});
exporting("export-mask", async () => save(await needMask().toPNG(), named("mask.png")));
exporting("export-rle", async () => save(json(await needMask().toRLE()), named("mask.json")));
exporting("export-polygons", async () => save(json(await needMask().toPolygons({ tolerance: 0.7 })), named("polygons.json")));

// --- keyboard and theme

rememberTheme();
$("theme").onclick = otherTheme;
$("help").onclick = () => $("shortcuts").showModal();
const KEYS = {
  e: () => $("edges").click(),
  " ": () => source?.toggle?.(),
  0: () => zoom.reset(),
  t: otherTheme,
  "?": () => $("shortcuts").showModal(),
  "/": () => $("find").focus(),
};
VIEWS.forEach(({ name }, index) => { KEYS[index + 1] = () => setView(name); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") openMenu(null);
  const action = KEYS[event.key.toLowerCase()];
  if (!action || event.defaultPrevented || isTyped(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
});

try {
  await knobs.load();
  await sample();
} catch (error) {
  showProblem("The page could not start.", error.message);
  say("Stopped", false);
}

/** For tests: what is drawn now. */
window.playground = { brush, knobs, look, get frame() { return frame; }, get level() { return level; }, get source() { return source; } };
