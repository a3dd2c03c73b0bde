// SPDX-License-Identifier: MPL-2.0
// The page: puts connection, picture, controls and regions together.

import { Controls } from "./controls.js";
import { Divider } from "./divider.js";
import { Sheet, copyText, save, saveFrom, saveLabels, savePicture } from "./exports.js";
import { closeFrame, copyFrame } from "./frame.js";
import { Inspector } from "./inspect.js";
import { Link } from "./link.js";
import { Progress, announce, note, showProblem, showText } from "./messages.js";
import { Objects } from "./objects.js";
import { Painter, VIEWS } from "./painter.js";
import { Pins } from "./pins.js";
import { Plot } from "./plots.js";
import { showPresets } from "./presets.js";
import { check, isTyped, menus, otherTheme, rememberTheme, segment } from "./segments.js";
import { Transport } from "./transport.js";
import { Zoom } from "./zoom.js";

const $ = (id) => document.getElementById(id);
const SIDES = ["a", "b"];

const link = new Link();
const canvas = $("picture");
const painter = new Painter(canvas);
const look = { view: "boundaries", beside: false, edges: false, cover: 1, divider: 0.5, edge: [] };
/** Index of the side that the controls change. */
let edited = 0;
let state = null, frame = null, controls = null, properties = [], sheet = null, exported = null;

const zoom = new Zoom($("viewport"), $("zoomed"), canvas, () => inspector.choose(), () => objects.on);
const divider = new Divider($("divider"), canvas, $("viewport"), () => {
  look.divider = divider.part;
  pins.divide(look.divider);
  redraw();
});
const pins = new Pins($("pin-list"), $("marks"));
const inspector = new Inspector({
  canvas, marks: $("marks"), card: $("card"), viewport: $("viewport"), announce,
  divider: () => look.divider,
  pin(index, id, place) {
    if (objects.on) {
      objects.click(place);
      return;
    }
    pins.toggle(index, id);
    if (frame) pins.show(frame);
    openTab("pins");
  },
});
const objects = new Objects({
  root: $("object-list"), marks: $("marks"), viewport: $("viewport"), canvas, announce,
  send: (request) => link.send(request),
  pixel: (event) => inspector.pixel(event),
});
const transport = new Transport(link, {
  play: $("play"), step: $("step"), scrub: $("scrub"), speed: $("speed"),
  time: $("time"), duration: $("duration"), number: $("number"),
});
const plots = {
  regions: new Plot("Regions"),
  changes: new Plot("New and gone"),
  rate: new Plot("Frames a second", { format: (value) => value.toFixed(1) }),
  times: new Plot("Stage times, ms", { format: (value) => value.toFixed(1), stacked: true }),
};
for (const { element } of Object.values(plots)) $("plots").append(element);

// --- what comes from the studio

link.addEventListener("hello", ({ detail }) => {
  properties = detail.properties;
  controls = new Controls($("controls"), properties, (name, value) =>
    link.sendPaced(`${edited} ${name}`, { do: "set", side: SIDES[edited], name, value }));
  if (state) showState();
});
link.addEventListener("state", ({ detail }) => {
  state = detail;
  showState();
});
link.addEventListener("refused", ({ detail }) => note(detail));
link.addEventListener("open", () => {
  $("status").textContent = "Connected";
  $("status").dataset.state = "on";
  showProblem("", "");
  tellView();
});
link.addEventListener("lost", ({ detail: { why } }) => {
  $("status").textContent = "Reconnecting…";
  $("status").dataset.state = "off";
  showProblem(why || "The studio does not answer.",
    why ? "" : "This page connects again by itself. If you stopped the studio, start it again: pipelines/studio.sh");
});
link.addEventListener("frame", ({ detail: { frame: next, drawn } }) => {
  requestAnimationFrame(() => {
    // One that another connection has sent meanwhile may be newer.
    if (frame) closeFrame(frame);
    frame = next;
    showFrame();
    drawn();
  });
});

function showState() {
  if (!controls) return;
  $("source").textContent = state.source;
  $("backend").textContent = state.backend || "starting…";
  document.title = `${state.source} – Superpixel studio`;
  $("compare").checked = state.compare;
  $("sides").hidden = !state.compare;
  if (!state.compare) edited = 0;
  showSides();
  showView();
  look.edge = state.values.map((values) => ({ color: values["boundary-color"], width: values["boundary-width"] }));
  transport.state(state);
  objects.state(state.objects);
  if (state.problem) showProblem(state.problem.what, state.problem.advice, () => link.send({ do: "restart" }));
  else showProblem("", "");
  showExport(state.export);
  redraw();
}

const recent = [];
function showFrame() {
  $("waiting").hidden = true;
  // Settings change before the first frame with them comes.
  if (compared !== frame.sides.length > 1) showView();
  const grown = canvas.width !== frame.width || canvas.height !== frame.height;
  redraw();
  if (grown) zoom.fit();
  $("size").textContent = `${frame.width} × ${frame.height}`;
  transport.show(frame);
  inspector.show(frame);
  pins.show(frame);
  objects.show(frame);
  measure();
  canvas.dataset.number = frame.number;
  canvas.dataset.regions = frame.sides.map(({ regions }) => regions).join(" ");
  if (sheet) offerToSheet();
}

function redraw() {
  if (frame && look.edge.length) painter.paint(frame, look);
}

function measure() {
  const now = performance.now();
  recent.push(now);
  while (recent[0] < now - 2000) recent.shift();
  const rate = recent.length > 2 ? ((recent.length - 1) * 1000) / (now - recent[0]) : 0;
  plots.regions.add(Object.fromEntries(frame.sides.map(({ regions }, i) => ["AB"[i], regions])));
  const changes = (frame.sides[edited] ?? frame.sides[0]).changes(), of = (...kinds) => changes.filter(({ kind }) => kinds.includes(kind)).length;
  plots.changes.add({ new: of("birth", "split"), gone: of("death", "merge") });
  if (of("cut")) for (const plot of [plots.regions, plots.changes]) plot.mark();
  plots.rate.add({ shown: rate });
  const { stages, timeUs } = frame.sides[edited] ?? frame.sides[0];
  plots.times.add(Object.fromEntries(stages.length ? stages.map(([name, us]) => [name, us / 1000]) : [["frame", timeUs / 1000]]));
}

// --- views

for (const { name, title } of VIEWS) {
  $("views").append(segment(title, name === look.view, () => setView(name)));
}
const viewed = () => VIEWS.find(({ name }) => name === look.view);
function setView(name) {
  look.view = name;
  check($("views"), VIEWS.indexOf(viewed()));
  tellView();
  showView();
  redraw();
}
/** The studio draws and sends the abstraction for those alone who say that they look at it. */
const tellView = () => link.send({ do: "look", abstraction: look.view === "abstraction" });
/** True if the frame on show has two sides. */
let compared = false;
/** Shows the divider and the properties that matter for view, state and frame. */
function showView() {
  if (!controls || !state) return;
  compared = frame?.sides.length > 1;
  const may = look.view === "abstraction" && !compared;
  $("beside-switch").hidden = !may;
  look.beside = may && $("beside").checked;
  divider.show(compared ? ["A", "B"] : look.beside ? ["Abstraction", "Mean colors"] : null);
  controls.show({ ...state.values[edited], overlay: viewed().overlay });
  filter();
}
$("beside").onchange = () => {
  showView();
  redraw();
};
$("edges").onchange = () => {
  look.edges = $("edges").checked;
  redraw();
};
$("cover").oninput = () => {
  look.cover = $("cover").value / 100;
  redraw();
};

// --- settings

$("compare").onchange = () => link.send({ do: "compare", on: $("compare").checked });
SIDES.forEach((_, index) => $("side-choice").append(segment("AB"[index], index === 0, () => {
  edited = index;
  showState();
})));
const showSides = () => check($("side-choice"), edited);
const chosen = (index) => {
  const usual = Object.fromEntries(properties.map((p) => [p.name, p.default]));
  return Object.fromEntries(Object.entries(state.values[index]).filter(([name, value]) => usual[name] !== value));
};
const apply = (index, values) => link.send({ do: "apply", side: SIDES[index], values });
$("same").onclick = () => apply(1 - edited, chosen(edited));
$("swap").onclick = () => {
  const [a, b] = [chosen(0), chosen(1)];
  apply(0, b);
  apply(1, a);
};
$("defaults").onclick = () => apply(edited, {});
showPresets($("presets"), (values, view) => {
  apply(edited, values);
  if (view) setView(view);
}, () => chosen(edited));
const filter = () => controls?.filter($("find").value, $("changed").checked);
$("find").oninput = $("changed").onchange = filter;

// --- tabs and menus

const TABS = ["tune", "pins", "objects"];
function openTab(name) {
  for (const other of TABS) {
    $(other).hidden = other !== name;
    $(`tab-${other}`).setAttribute("aria-selected", other === name);
    $(`tab-${other}`).tabIndex = other === name ? 0 : -1;
  }
}
for (const [i, name] of TABS.entries()) {
  $(`tab-${name}`).onclick = () => openTab(name);
  $(`tab-${name}`).onkeydown = (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = TABS.at((i + (event.key === "ArrowLeft" ? -1 : 1)) % TABS.length);
    openTab(other);
    $(`tab-${other}`).focus();
  };
}
pins.addEventListener("change", () => {
  $("pin-count").textContent = pins.count;
  $("pin-count").hidden = pins.count === 0;
});

objects.addEventListener("change", () => {
  $("object-count").textContent = objects.count;
  $("object-count").hidden = objects.count === 0;
  $("objects-chosen").hidden = objects.chosen === null;
  $("objects-chosen").textContent = `Boxes and clicks say more about object ${objects.chosen}; Alt and a click say what is outside of it.`;
});
$("object").onchange = () => {
  objects.use($("object").checked);
  if (objects.on) openTab("objects");
};

const openMenu = menus(["copy", "export"]);

// --- what a person takes along

async function copy(kind) {
  openMenu(null);
  const answer = await fetch(link.address(`/copy/${kind}`, { side: SIDES[edited], overlay: viewed().overlay }));
  const text = await answer.text();
  if (!answer.ok) note(text);
  else if (await copyText(text, showText)) note("Copied.");
}
$("copy-gst-launch").onclick = () => copy("gst-launch");
$("copy-python").onclick = () => copy("python");

function withFrame(action) {
  return () => {
    openMenu(null);
    if (frame) action();
    else note("There is no frame yet; wait for the first one.");
  };
}
$("export-picture").onclick = withFrame(() => savePicture(canvas, frame));
$("export-labels").onclick = withFrame(() => saveLabels(frame, Math.min(edited, frame.sides.length - 1)));
const exportClip = (kind, words) => withFrame(() => {
  const after = state.export?.id ?? 0, problem = state.problem?.what;
  exported = { after, problem, progress: new Progress(words, () => link.send({ do: "cancel" })) };
  // Objects are those of side a.
  const [side, overlay] = kind === "objects" ? ["a", "none"] : [SIDES[edited], viewed().overlay];
  link.send({ do: "export", side, overlay, kind });
});
$("export-video").onclick = exportClip("video", "Writing the video");
$("export-svg").onclick = exportClip("svg", "Writing drawings");
$("export-objects").onclick = $("objects-export").onclick = exportClip("objects", "Following objects");
$("export-sheet").onclick = withFrame(() => {
  const progress = new Progress("Collecting frames", () => { sheet = null; });
  sheet = new Sheet({ ...look }, {
    done(blob, name) {
      progress.close();
      save(blob, name);
    },
    progress: (part) => progress.set(part),
  });
  if (transport.paused) offerToSheet();
});
async function offerToSheet() {
  const current = sheet;
  if (await current.offer(await copyFrame(frame), transport.paused) && sheet === current) sheet = null;
}

function showExport(entry) {
  if (!exported || !entry || entry.id <= exported.after) {
    if (exported && state.problem && state.problem.what !== exported.problem) {
      exported.progress.close();
      exported = null;
    }
    return;
  }
  exported.progress.set(entry.progress);
  if (!entry.done && !entry.problem) return;
  exported.progress.close();
  exported = null;
  if (entry.problem) note(`Not exported: ${entry.problem}`);
  else saveFrom(link.address(`/export/${entry.id}`), entry.name);
}

$("pins-json").onclick = () => save(new Blob([pins.json()], { type: "application/json" }), "regions.json");
$("pins-csv").onclick = () => save(new Blob([pins.csv()], { type: "text/csv" }), "regions.csv");
$("pins-clear").onclick = () => pins.clear();
$("objects-clear").onclick = () => objects.clear();

// --- keyboard and theme

rememberTheme();
$("theme").onclick = otherTheme;
$("help").onclick = () => $("shortcuts").showModal();

const KEYS = {
  " ": () => transport.toggle(),
  ".": () => link.send({ do: "step" }),
  e: () => $("edges").click(),
  c: () => $("compare").click(),
  o: () => $("object").click(),
  m: () => { if (!$("beside-switch").hidden) $("beside").click(); },
  "[": () => divider.move(divider.part - 0.05),
  "]": () => divider.move(divider.part + 0.05),
  "+": () => zoom.by(1.5),
  "-": () => zoom.by(1 / 1.5),
  0: () => zoom.reset(),
  t: otherTheme,
  "?": () => $("shortcuts").showModal(),
  "/": () => {
    openTab("tune");
    $("find").focus();
  },
};
VIEWS.forEach(({ name }, index) => { KEYS[index + 1] = () => setView(name); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    openMenu(null);
    objects.cancel();
  }
  const action = KEYS[event.key.toLowerCase()];
  if (!action || isTyped(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
});

/** For tests: what is drawn now. */
window.studio = { get frame() { return frame; }, get state() { return state; }, link, look, pins, objects };
