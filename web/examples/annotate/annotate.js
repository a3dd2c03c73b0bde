// SPDX-License-Identifier: MPL-2.0
// Objects of pictures, each a class and a mask, for the formats of COCO and Label Studio.

import "superpixels/brush";

const CLASSES = [["Animal", "#e6550d"], ["Plant", "#31a354"], ["Stone", "#756bb1"], ["Sky", "#3182bd"]];
/** Px that polygons may be from smoothed outlines, so that they have few points. */
const TOLERANCE = 0.7;

const $ = (id) => document.getElementById(id);
const brush = $("brush");
/** Of each picture: name, file, size, and objects {kind, mask, area}. */
const tasks = [];
let task = null, kind = 0;
/** The object that strokes go to; null until the first stroke of a new one. */
let active = null;

// --- pictures

$("open").onclick = () => $("files").click();
$("files").onchange = () => addFiles([...$("files").files]);

export async function addFiles(files) {
  for (const file of files) {
    const bitmap = await createImageBitmap(file).catch(() => null);
    if (!bitmap) {
      say(`${file.name} is no picture that this browser can read.`);
      continue;
    }
    const entry = { name: file.name, file, width: bitmap.width, height: bitmap.height, objects: [] };
    const canvas = Object.assign(document.createElement("canvas"), { width: 240, height: Math.round((240 * bitmap.height) / bitmap.width) });
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.append(canvas, file.name);
    button.onclick = () => choose(entry);
    const item = document.createElement("li");
    item.append(button);
    $("tasks").append(item);
    Object.assign(entry, { button });
    tasks.push(entry);
  }
  if (!task && tasks.length) await choose(tasks[0]);
}

async function choose(next) {
  keep();
  [task, active] = [next, null];
  for (const { button } of tasks) button.setAttribute("aria-current", button === next.button);
  $("name").textContent = `${next.name}, ${next.width} × ${next.height}`;
  say("Finding regions…");
  brush.image = next.file;
  await brush.ready.catch((error) => say(error.message));
  show();
}

// --- objects

/** Takes the mask of the active object from the brush. */
function keep() {
  if (!active) return;
  Object.assign(active, { mask: brush.mask.slice(), area: brush.area });
  if (!active.area) task.objects = task.objects.filter((object) => object !== active);
}

function edit(object) {
  keep();
  active = object;
  if (object) {
    brush.setAttribute("color", CLASSES[object.kind][1]);
    brush.mask = object.mask;
  } else {
    brush.setAttribute("color", CLASSES[kind][1]);
    brush.mask = new Uint8Array(brush.mask.length);
  }
  show();
}

brush.addEventListener("change", () => {
  if (!active) {
    active = { kind, mask: brush.mask, area: 0 };
    task.objects.push(active);
  }
  active.area = brush.area;
  show();
});
brush.addEventListener("error", ({ message }) => say(message));
brush.addEventListener("levelchange", ({ detail }) => say(`${detail.level} regions`));
$("undo").onclick = () => brush.undo();
$("redo").onclick = () => brush.redo();
$("finish").onclick = () => edit(null);

function show() {
  $("undo").disabled = !brush.canUndo;
  $("redo").disabled = !brush.canRedo;
  $("finish").disabled = !active;
  $("objects").replaceChildren(...(task?.objects ?? []).map(row));
  drawOthers();
}

function row(object) {
  const [title, color] = CLASSES[object.kind], item = document.createElement("li");
  item.style.setProperty("--own", color);
  item.setAttribute("aria-current", object === active);
  const what = Object.assign(document.createElement("button"), { type: "button", className: "what", textContent: title });
  what.append(Object.assign(document.createElement("small"), { textContent: `${object.area.toLocaleString("en")} px` }));
  what.onclick = () => edit(object);
  const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "✕" });
  remove.setAttribute("aria-label", `Remove this object, ${title}`);
  remove.onclick = () => {
    if (object === active) edit(null);
    task.objects = task.objects.filter((other) => other !== object);
    show();
  };
  item.append(what, remove);
  return item;
}

/** Objects that are not being edited, over the picture. */
function drawOthers() {
  const canvas = $("others");
  Object.assign(canvas, { width: task?.width ?? 1, height: task?.height ?? 1 });
  const others = (task?.objects ?? []).filter((object) => object !== active);
  if (!others.length) return;
  const image = new ImageData(task.width, task.height), tint = new Uint32Array(image.data.buffer);
  for (const { kind: own, mask } of others) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(CLASSES[own][1].slice(at, at + 2), 16));
    const [color] = new Uint32Array(Uint8Array.of(r, g, b, 255).buffer);
    mask.forEach((inside, i) => { if (inside) tint[i] = color; });
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

CLASSES.forEach(([title, color], index) => {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: title });
  button.append(Object.assign(document.createElement("kbd"), { textContent: index + 1 }));
  button.style.setProperty("--own", color);
  button.setAttribute("role", "radio");
  button.onclick = () => chooseClass(index);
  $("classes").append(button);
});
/** The class of the next object, and of one that is being edited. */
function chooseClass(index) {
  kind = index;
  [...$("classes").children].forEach((button, i) => button.setAttribute("aria-checked", i === index));
  brush.setAttribute("color", CLASSES[index][1]);
  if (active) active.kind = index;
  show();
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.toLowerCase() === "n" && active) edit(null);
  else if (Number(event.key) >= 1 && Number(event.key) <= CLASSES.length) chooseClass(Number(event.key) - 1);
});

// --- exports

/** All objects with what `write(brush)` makes of their masks. */
async function* written(write) {
  const [first, was] = [task, active];
  edit(null);
  for (const own of tasks) {
    for (const object of own.objects) {
      // The brush writes masks of the size of its picture.
      if (own !== task) await choose(own);
      brush.mask = object.mask;
      yield { own, object, result: await write(brush) };
    }
  }
  if (task !== first) await choose(first);
  edit(first.objects.includes(was) ? was : null);
}

export async function coco() {
  const annotations = [];
  for await (const { own, object, result } of written((own) => own.toRLE())) {
    annotations.push({
      id: annotations.length + 1, image_id: tasks.indexOf(own) + 1, category_id: object.kind + 1,
      segmentation: result, area: object.area, bbox: bounds(object.mask, own.width), iscrowd: 1,
    });
  }
  return {
    images: tasks.map(({ name, width, height }, i) => ({ id: i + 1, file_name: name, width, height })),
    categories: CLASSES.map(([name], i) => ({ id: i + 1, name })),
    annotations,
  };
}

/** x, y, width, height of a mask. */
function bounds(mask, width) {
  let [x0, y0, x1, y1] = [Infinity, Infinity, 0, 0];
  mask.forEach((inside, i) => {
    if (!inside) return;
    const x = i % width, y = Math.floor(i / width);
    [x0, y0, x1, y1] = [Math.min(x0, x), Math.min(y0, y), Math.max(x1, x + 1), Math.max(y1, y + 1)];
  });
  return [x0, y0, x1 - x0, y1 - y0];
}

/** Tasks with polygons in percent of the picture; Label Studio's polygons have no holes. */
export async function labelStudio() {
  const results = new Map(tasks.map((own) => [own, []]));
  for await (const { own, object, result } of written((own) => own.toPolygons({ tolerance: TOLERANCE }))) {
    for (const { outer } of result) {
      const points = [];
      for (let i = 0; i < outer.length; i += 2) points.push([(100 * outer[i]) / own.width, (100 * outer[i + 1]) / own.height]);
      results.get(own).push({
        type: "polygonlabels", from_name: "label", to_name: "image", original_width: own.width, original_height: own.height, image_rotation: 0,
        value: { points, closed: true, polygonlabels: [CLASSES[object.kind][0]] },
      });
    }
  }
  return tasks.map((own) => ({ data: { image: own.name }, predictions: [{ result: results.get(own) }] }));
}

function save(value, name) {
  const address = URL.createObjectURL(new Blob([JSON.stringify(value)], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
for (const [id, make, name] of [["coco", coco, "coco.json"], ["studio", labelStudio, "label-studio.json"]]) {
  $(id).onclick = async () => {
    if (!tasks.some(({ objects }) => objects.length)) say("There are no objects yet: open a picture and drag over something.");
    else save(await make(), name);
  };
}

function say(text) {
  $("said").textContent = text;
}

chooseClass(0);
