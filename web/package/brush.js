// SPDX-License-Identifier: MPL-2.0
// The custom element <superpixel-brush>: selects parts of a picture region by region.

import { Level } from "./brush-level.js";
import { PixelMask } from "./brush-mask.js";
import { checkPicture, fetched, pixels } from "./brush-picture.js";
import { SuperpixelWorker } from "./client.js";
import { grayPng } from "./png.js";

const MODES = ["add", "remove"];
/** Attributes that are options of the segmentation, with their names there. */
const OPTIONS = { "n-segments": "nSegments", algorithm: "algorithm" };
const COLOR = "#2dd4bf";
const LABEL = "Picture to select in. Arrow keys move from region to region, Space selects, plus and minus change the size of regions.";
/** The first level has a fifth of the superpixels. */
const FIRST = 5;
/** Of 255, how much of the picture the mask covers; px of the picture's width for each of the mask's rim. */
const COVER = 140, RIM = 700;
/** Px of the screen that outlines may leave out. */
const GRAIN = 0.5;
/** Scrolled px in which the number of regions becomes e times as large. */
const SCROLL = 450;
/** Each key of the keyboard changes the number of regions by this factor. */
const STEP = 1.25;

const STYLE = `
:host { display: block; position: relative; }
:host([hidden]) { display: none; }
.stage { position: relative; overflow: hidden; border-radius: inherit; touch-action: pinch-zoom; cursor: crosshair; user-select: none; -webkit-user-select: none; }
.stage:focus-visible { outline: 2px solid Highlight; outline-offset: 2px; }
canvas { display: block; width: 100%; height: auto; }
.mask, .outline { position: absolute; inset: 0; height: 100%; pointer-events: none; }
.status { position: absolute; inset: auto 0 0 0; margin: 0; padding: .4em .8em; font: 13px/1.4 system-ui, sans-serif; color: #fff; background: #000a; }
.status:empty { display: none; }
.empty .status { position: static; }
.spoken { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); }
`;

function make(tag, name, attributes = {}) {
  const element = document.createElement(tag);
  element.className = name;
  element.setAttribute("part", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** A whole number from an attribute or a property. */
function whole(name, value) {
  const number = typeof value === "string" && value.trim() ? Number(value) : value;
  if (!Number.isInteger(number)) throw new TypeError(`${name} must be a whole number, got ${String(value)}`);
  if (number < 1 || number > 65535) throw new RangeError(`${name} must be 1 to 65535, got ${number}`);
  return number;
}

// Servers that make pages have no HTMLElement, and importing must not fail there.
export class SuperpixelBrush extends (globalThis.HTMLElement ?? Object) {
  static observedAttributes = ["src", "mode", "level", "color", "label", ...Object.keys(OPTIONS)];

  #stage = make("div", "stage", { tabindex: "0", role: "application", "aria-label": LABEL });
  #picture = make("canvas", "picture", { "aria-hidden": "true" });
  #tint = make("canvas", "mask", { "aria-hidden": "true" });
  #lines = make("canvas", "outline", { "aria-hidden": "true" });
  #status = make("p", "status", { role: "status" });
  #spoken = make("p", "spoken", { "aria-live": "polite" });
  #worker = null;
  #isWorkerOurs = false;
  #image = null;
  #options = {};
  #mode = "add";
  #color = COLOR;
  #wanted = null;
  /** Counts pictures and settings, so that late answers are told from those that are waited for. */
  #turn = 0;
  #isWaiting = false;
  /** Does again what was begun last, where what it needs has changed meanwhile. */
  #again = null;
  #isAsking = false;
  #ready = Promise.resolve();
  #levels = null;
  #boundaries = null;
  #level = null;
  #mask = null;
  #stroke = null;
  #place = null;
  #isKeyboard = false;
  #hovered = -1;
  #drawn = null;
  #sized = null;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    this.#stage.classList.add("empty");
    for (const canvas of [this.#picture, this.#tint, this.#lines]) Object.assign(canvas, { width: 1, height: 1, hidden: true });
    this.#stage.append(this.#picture, this.#tint, this.#lines, this.#status);
    root.append(this.#stage, this.#spoken);
    this.#listen();
  }

  connectedCallback() {
    this.#sized = new ResizeObserver(() => this.#resize());
    this.#sized.observe(this.#stage);
    if (!this.#levels && !this.#isWaiting) this.#again?.();
  }

  disconnectedCallback() {
    this.#sized?.disconnect();
    // Frameworks move elements by taking them out and putting them back at once.
    queueMicrotask(() => {
      if (!this.isConnected) this.#forget();
    });
  }

  attributeChangedCallback(name, before, value) {
    try {
      if (name === "src") this.src = value;
      else if (name === "mode") this.mode = value ?? "add";
      else if (name === "level") this.level = value === null ? null : whole("level", value);
      else if (name === "color") this.#setColor(value ?? COLOR);
      else if (name === "label") this.#stage.setAttribute("aria-label", value ?? LABEL);
      else this.options = { ...this.#options, [OPTIONS[name]]: value === null ? undefined : name === "algorithm" ? value : whole(name, value) };
    } catch (error) {
      this.#fail(error);
    }
  }

  // --- what programs set and read

  /** Address of the picture. */
  get src() { return this.getAttribute("src"); }
  set src(address) {
    if (address === null || address === undefined) {
      if (this.hasAttribute("src")) this.removeAttribute("src");
      return;
    }
    if (this.getAttribute("src") !== String(address)) {
      this.setAttribute("src", String(address));
      return;
    }
    this.#take(() => fetched(String(address)));
  }

  /** The picture: ImageData once it has been read. */
  get image() { return this.#image; }
  set image(picture) {
    checkPicture(picture);
    this.#take(async () => picture);
  }

  /** Options of the segmentation, as `Levels` takes them. A change segments anew; the mask stays. */
  get options() { return { ...this.#options }; }
  set options(options) {
    if (options === null || typeof options !== "object") throw new TypeError(`options must be an object, got ${options === null ? "null" : typeof options}`);
    this.#options = { ...options };
    this.#again?.();
  }

  /** A `SuperpixelWorker` to share with others; without one the element has its own. */
  get worker() { return this.#worker; }
  set worker(worker) {
    if (!(worker instanceof SuperpixelWorker)) throw new TypeError("worker must be a SuperpixelWorker, which superpixels/worker exports");
    this.#forget();
    [this.#worker, this.#isWorkerOurs] = [worker, false];
    this.#again?.();
  }

  get mode() { return this.#mode; }
  set mode(mode) {
    if (!MODES.includes(mode)) throw new RangeError(`mode must be "add" or "remove", got ${JSON.stringify(mode)}`);
    this.#mode = mode;
  }

  /** How many regions the picture has at this level. Unset, it is a fifth of the superpixels. */
  get level() { return this.#level?.nRegions ?? this.#wanted; }
  set level(level) {
    this.#wanted = level === null ? null : whole("level", level);
    this.#askLevel();
  }

  /** Number of superpixels, the finest level; 0 without a picture. */
  get nRegions() { return this.#levels?.nRegions ?? 0; }

  /** Labels of the finest level; null without a picture. Not a copy. */
  get labels() { return this.#levels?.labels ?? null; }

  /** A promise that resolves once regions can be selected, and rejects if the picture or its segmentation fails. */
  get ready() { return this.#ready; }

  /** A byte a pixel, 1 where it is selected; null without a picture. Not a copy. Setting one forgets strokes. */
  get mask() { return this.#mask?.data ?? null; }
  set mask(mask) {
    const own = this.#needMask();
    const isBytes = mask instanceof Uint8Array || mask instanceof Uint8ClampedArray;
    if (!isBytes) throw new TypeError(`mask must be a Uint8Array with a byte a pixel, got ${typeof mask}`);
    if (mask.length !== own.data.length) throw new RangeError(`mask of ${own.width}x${own.height} must have ${own.data.length} bytes, got ${mask.length}`);
    own.replace(mask);
    this.#show([[0, 0, own.width, own.height]]);
  }

  /** Number of selected pixels. */
  get area() { return this.#mask?.area ?? 0; }
  get canUndo() { return this.#mask?.canUndo ?? false; }
  get canRedo() { return this.#mask?.canRedo ?? false; }

  undo() { this.#step("undo"); }
  redo() { this.#step("redo"); }

  /** Selects nothing any more, which can be undone. */
  clear() {
    const mask = this.#needMask(), box = [0, 0, mask.width, mask.height];
    mask.begin();
    mask.paint(box, null, 0, 0);
    this.#ended([box]);
  }

  /** Adds or removes the region of a pixel at the present level, as a stroke. */
  paint(x, y, mode = this.#mode) {
    const mask = this.#needMask();
    if (!MODES.includes(mode)) throw new RangeError(`mode must be "add" or "remove", got ${JSON.stringify(mode)}`);
    for (const [name, value, end] of [["x", x, mask.width], ["y", y, mask.height]]) {
      if (!Number.isInteger(value) || value < 0 || value >= end) throw new RangeError(`${name} must be a whole number from 0 to ${end - 1}, got ${value}`);
    }
    if (!this.#level) throw new Error("the picture is not segmented yet; wait for ready");
    mask.begin();
    this.#ended(this.#paintRegion(this.#regionAt(x, y), mode === "add" ? 1 : 0));
  }

  /** The mask as PNG of 8-bit gray: 255 where it is selected. */
  async toPNG() {
    const { data, width, height } = this.#needMask();
    return grayPng(data.map((inside) => (inside ? 255 : 0)), width, height);
  }

  /** The mask as COCO's run lengths. */
  async toRLE() {
    return this.#ensureWorker().rle(this.#maskAsMap(), 1);
  }

  /** The mask as polygons: for each piece an outer ring and holes, x and y in turn. With `tolerance` 0 they are the mask exactly. */
  async toPolygons(options) {
    return this.#ensureWorker().polygons(this.#maskAsMap(), 1, options);
  }

  // --- the picture

  #needMask() {
    if (!this.#mask) throw new Error("there is no picture yet; wait for ready");
    return this.#mask;
  }

  #maskAsMap() {
    const { data, width, height } = this.#needMask();
    return { labels: new Uint16Array(data), width, height };
  }

  #ensureWorker() {
    if (!this.#worker) [this.#worker, this.#isWorkerOurs] = [new SuperpixelWorker(), true];
    return this.#worker;
  }

  #setColor(color) {
    if (!/^#[0-9a-f]{6}$/i.test(color)) throw new RangeError(`color must be like "${COLOR}", got ${JSON.stringify(color)}`);
    this.#color = color;
    if (this.#mask) this.#show([[0, 0, this.#mask.width, this.#mask.height]]);
  }

  #take(picture) {
    const turn = ++this.#turn;
    this.#again = () => this.#take(picture);
    this.#say("Reading the picture…");
    this.#promise(async () => {
      const image = await pixels(await picture());
      if (turn !== this.#turn) return;
      const { width, height } = image;
      this.#drop();
      [this.#image, this.#mask] = [image, new PixelMask(width, height)];
      this.#again = () => this.#segment();
      for (const canvas of [this.#picture, this.#tint]) Object.assign(canvas, { width, height });
      for (const canvas of [this.#picture, this.#tint, this.#lines]) canvas.hidden = false;
      this.#picture.getContext("2d").putImageData(image, 0, 0);
      this.#stage.classList.remove("empty");
      this.#resize();
      await this.#levelsOf(turn);
    });
  }

  #segment() {
    const turn = ++this.#turn;
    this.#drop();
    this.#promise(() => this.#levelsOf(turn));
  }

  async #levelsOf(turn) {
    this.#say("Finding regions…");
    const levels = await this.#ensureWorker().levels(this.#image, this.#options);
    const boundaries = await levels.boundaries();
    const groups = await levels.groups(this.#clamped(levels));
    if (turn !== this.#turn) {
      levels.free().catch(() => {});
      return;
    }
    [this.#levels, this.#boundaries] = [levels, boundaries];
    this.#setLevel(groups);
    this.#say("");
    this.#tell("load", { width: this.#image.width, height: this.#image.height, nRegions: levels.nRegions });
    this.#askLevel();
  }

  #promise(work) {
    const turn = this.#turn;
    this.#isWaiting = true;
    this.#ready = work().catch((error) => {
      if (turn === this.#turn) this.#fail(error);
      throw error;
    }).finally(() => {
      if (turn === this.#turn) this.#isWaiting = false;
    });
    // A rejection that nobody handles would be an error of the page; the event tells of it, too.
    this.#ready.catch(() => {});
  }

  /** Forgets regions; the mask stays. */
  #drop() {
    if (this.#stroke) this.#cancel();
    this.#levels?.free().catch(() => {});
    [this.#levels, this.#boundaries, this.#level] = [null, null, null];
    this.#hover(null);
  }

  #forget() {
    this.#turn++;
    this.#isWaiting = false;
    this.#drop();
    if (this.#isWorkerOurs) this.#worker.terminate();
    [this.#worker, this.#isWorkerOurs] = [this.#isWorkerOurs ? null : this.#worker, false];
  }

  #fail(error) {
    this.#say(error.message);
    this.dispatchEvent(new ErrorEvent("error", { message: error.message, error }));
  }

  #say(text) {
    this.#status.textContent = text;
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  // --- levels

  #clamped(levels) {
    return Math.min(this.#wanted ?? Math.max(1, Math.round(levels.nRegions / FIRST)), levels.nRegions);
  }

  /** Asks for the wanted level; of those that are wanted meanwhile, only for the last. */
  async #askLevel() {
    if (!this.#levels || this.#isAsking) return;
    const levels = this.#levels;
    this.#isAsking = true;
    try {
      for (let level; levels === this.#levels && (level = this.#clamped(levels)) !== this.#level.nRegions;) {
        const groups = await levels.groups(level);
        if (levels !== this.#levels) break;
        this.#setLevel(groups);
        // A mask leaves parts that never touch, and so fewer levels.
        if (groups.nRegions !== level && level === this.#clamped(levels)) break;
      }
    } catch (error) {
      if (levels === this.#levels) this.#fail(error);
    } finally {
      this.#isAsking = false;
    }
    if (this.#levels && levels !== this.#levels) this.#askLevel();
  }

  #setLevel(groups) {
    this.#level = new Level(groups, this.#boundaries);
    this.#hovered = -1;
    this.#tell("levelchange", { level: groups.nRegions, nRegions: this.#levels.nRegions });
    this.#hover(this.#place);
    this.#outline();
  }

  #scaleLevel(factor) {
    if (!this.#level) return;
    const from = this.#clamped(this.#levels), to = Math.round(from * factor);
    const wanted = to === from ? from + Math.sign(factor - 1) : to;
    this.level = Math.min(this.#levels.nRegions, Math.max(1, wanted));
  }

  // --- regions

  #regionAt(x, y) {
    return this.#level.regionOf(this.#levels.labels[y * this.#image.width + x]);
  }

  /** Gives the pixels of a region a value; returns the boxes in which some changed. */
  #paintRegion(region, value) {
    if (region < 0) return [];
    const { bounds } = this.#levels.regions, boxes = [];
    for (const superpixel of this.#level.members(region)) {
      const box = [...bounds.subarray(4 * superpixel, 4 * superpixel + 4)];
      if (this.#mask.paint(box, this.#levels.labels, superpixel, value)) boxes.push(box);
    }
    return boxes;
  }

  /** True if all pixels of a region are selected. */
  #isSelected(region) {
    const { bounds } = this.#levels.regions, { labels } = this.#levels, { data, width } = this.#mask;
    for (const superpixel of this.#level.members(region)) {
      const [x0, y0, x1, y1] = bounds.subarray(4 * superpixel, 4 * superpixel + 4);
      for (let y = y0; y < y1; y++) {
        for (let i = y * width + x0, end = y * width + x1; i < end; i++) if (labels[i] === superpixel && !data[i]) return false;
      }
    }
    return true;
  }

  // --- strokes

  #ended(boxes) {
    this.#show(boxes);
    if (this.#mask.end()) this.#tell("change", { area: this.#mask.area, canUndo: this.canUndo, canRedo: this.canRedo });
  }

  #cancel() {
    this.#stroke = null;
    this.#show(this.#mask.cancel());
  }

  #step(way) {
    const boxes = this.#needMask()[way]();
    this.#show(boxes);
    if (boxes.length) this.#tell("change", { area: this.#mask.area, canUndo: this.canUndo, canRedo: this.canRedo });
  }

  /** Paints what lies on the straight line to a pixel. */
  #strokeTo(to) {
    const { from = to, value, painted, level } = this.#stroke;
    if (level !== this.#level) {
      painted.clear();
      this.#stroke.level = this.#level;
    }
    const steps = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y), 1);
    for (let i = 0; i <= steps; i++) {
      const x = Math.round(from.x + ((to.x - from.x) * i) / steps), y = Math.round(from.y + ((to.y - from.y) * i) / steps);
      const region = this.#regionAt(x, y);
      if (painted.has(region)) continue;
      painted.add(region);
      this.#show(this.#paintRegion(region, value));
    }
    this.#stroke.from = to;
  }

  /** Draws the mask anew within boxes: tinted, with a white rim that shows on any color. */
  #show(boxes) {
    if (!boxes.length) return;
    const { data, width, height } = this.#mask, context = this.#tint.getContext("2d");
    const rim = Math.max(1, Math.round(width / RIM));
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(this.#color.slice(at, at + 2), 16));
    const [color, white] = new Uint32Array(Uint8Array.of(r, g, b, COVER, 255, 255, 255, COVER).buffer);
    for (const box of boxes) {
      // Pixels beside the box may lie on the rim now, or no longer.
      const x0 = Math.max(0, box[0] - rim), y0 = Math.max(0, box[1] - rim);
      const x1 = Math.min(width, box[2] + rim), y1 = Math.min(height, box[3] + rim);
      const part = new ImageData(x1 - x0, y1 - y0), tint = new Uint32Array(part.data.buffer);
      for (let y = y0, at = 0; y < y1; y++) {
        const up = y >= rim ? -rim * width : 0, down = y + rim < height ? rim * width : 0;
        for (let x = x0, i = y * width + x0; x < x1; x++, i++, at++) {
          if (!data[i]) continue;
          const isInside = data[i + up] && data[i + down] && (x < rim || data[i - rim]) && (x + rim >= width || data[i + rim]);
          tint[at] = isInside ? color : white;
        }
      }
      context.putImageData(part, x0, y0);
    }
  }

  // --- the outline of what is pointed at

  #resize() {
    const { clientWidth, clientHeight } = this.#stage, dense = globalThis.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(clientWidth * dense)), height = Math.max(1, Math.round(clientHeight * dense));
    if (this.#lines.width === width && this.#lines.height === height) return;
    Object.assign(this.#lines, { width, height });
    this.#drawn = null;
    this.#outline();
  }

  /** Points at a pixel {x, y}, or nowhere. */
  #hover(place) {
    this.#place = place;
    const region = place && this.#level ? this.#regionAt(place.x, place.y) : -1;
    const isSame = region === this.#hovered;
    this.#hovered = region;
    if (!isSame || this.#isKeyboard) this.#outline();
    if (isSame) return;
    this.#tell("hover", region < 0 ? null : { x: place.x, y: place.y, region, area: this.#level.area[region], level: this.#level.nRegions });
  }

  #outline() {
    const canvas = this.#lines, context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (this.#drawn) context.clearRect(...this.#drawn);
    this.#drawn = null;
    if (this.#hovered < 0 || !this.#image) return;
    const dense = globalThis.devicePixelRatio || 1;
    const scale = [canvas.width / this.#image.width, canvas.height / this.#image.height];
    let [x0, y0, x1, y1] = this.#level.box(this.#hovered);
    const path = this.#level.path(this.#hovered, GRAIN / Math.max(...scale)), removes = this.#stroke ? this.#stroke.value === 0 : this.#mode === "remove";
    const stroke = (line, colors) => {
      context.setTransform(scale[0], 0, 0, scale[1], 0, 0);
      context.lineJoin = context.lineCap = "round";
      for (const [color, width] of colors) {
        Object.assign(context, { strokeStyle: color, lineWidth: (width * dense) / Math.min(...scale) });
        context.stroke(line);
      }
    };
    stroke(path, [["#000c", 4], [removes ? "#ff8080" : "#fff", 2]]);
    if (this.#isKeyboard) {
      const { x, y } = this.#place, arm = (9 * dense) / Math.min(...scale), cross = new Path2D();
      cross.moveTo(x + 0.5 - arm, y + 0.5);
      cross.lineTo(x + 0.5 + arm, y + 0.5);
      cross.moveTo(x + 0.5, y + 0.5 - arm);
      cross.lineTo(x + 0.5, y + 0.5 + arm);
      stroke(cross, [["#000c", 4], ["#fff", 2]]);
      [x0, y0, x1, y1] = [Math.min(x0, x - arm), Math.min(y0, y - arm), Math.max(x1, x + arm + 1), Math.max(y1, y + arm + 1)];
    }
    const rim = 4 * dense, left = Math.floor(x0 * scale[0] - rim), top = Math.floor(y0 * scale[1] - rim);
    this.#drawn = [left, top, Math.ceil(x1 * scale[0] + rim) - left, Math.ceil(y1 * scale[1] + rim) - top];
  }

  // --- what people do

  #pixel(event) {
    const box = this.#picture.getBoundingClientRect(), { width, height } = this.#image;
    const x = Math.floor(((event.clientX - box.left) / box.width) * width), y = Math.floor(((event.clientY - box.top) / box.height) * height);
    return { x: Math.min(Math.max(x, 0), width - 1), y: Math.min(Math.max(y, 0), height - 1) };
  }

  #listen() {
    const stage = this.#stage;
    stage.addEventListener("pointerdown", (event) => {
      if (!this.#level || this.#stroke || ![0, 2].includes(event.button)) return;
      const isOther = event.altKey || event.button === 2;
      const value = (this.#mode === "add") !== isOther ? 1 : 0;
      this.#isKeyboard = false;
      this.#mask.begin();
      this.#stroke = { pointer: event.pointerId, value, painted: new Set(), level: this.#level };
      stage.setPointerCapture(event.pointerId);
      this.#strokeTo(this.#pixel(event));
      this.#hover(this.#pixel(event));
      this.#outline();
    });
    stage.addEventListener("pointermove", (event) => {
      if (!this.#level || (this.#stroke && this.#stroke.pointer !== event.pointerId)) return;
      this.#isKeyboard = false;
      if (this.#stroke) for (const part of event.getCoalescedEvents?.() ?? []) this.#strokeTo(this.#pixel(part));
      if (this.#stroke) this.#strokeTo(this.#pixel(event));
      this.#hover(this.#pixel(event));
    });
    const finish = (event) => {
      if (this.#stroke?.pointer !== event.pointerId) return;
      this.#stroke = null;
      this.#ended([]);
      this.#outline();
    };
    stage.addEventListener("pointerup", (event) => {
      if (this.#stroke?.pointer === event.pointerId) this.#strokeTo(this.#pixel(event));
      finish(event);
      if (event.pointerType === "touch") this.#hover(null);
    });
    // The browser takes the pointer for a gesture of the page, and so it was no stroke.
    stage.addEventListener("pointercancel", (event) => {
      if (this.#stroke?.pointer === event.pointerId) this.#cancel();
      this.#hover(null);
    });
    stage.addEventListener("pointerleave", () => {
      if (!this.#stroke && !this.#isKeyboard) this.#hover(null);
    });
    stage.addEventListener("contextmenu", (event) => {
      if (this.#level) event.preventDefault();
    });
    stage.addEventListener("wheel", (event) => {
      // Pinches of a touchpad arrive as a wheel with Ctrl; they are for the page.
      if (!this.#level || event.ctrlKey || event.deltaY === 0) return;
      event.preventDefault();
      const px = event.deltaY * [1, 16, 400][event.deltaMode];
      this.#scaleLevel(Math.exp(-px / SCROLL));
    }, { passive: false });
    stage.addEventListener("keydown", (event) => {
      if (this.#key(event)) event.preventDefault();
    });
    stage.addEventListener("blur", () => {
      if (!this.#isKeyboard) return;
      this.#isKeyboard = false;
      this.#hover(null);
      this.#outline();
    });
  }

  /** Does what a key asks for; returns whether it asks for anything. */
  #key({ key, ctrlKey, metaKey, shiftKey, altKey }) {
    if (!this.#level) return false;
    const isCommand = ctrlKey || metaKey, letter = key.toLowerCase();
    if (isCommand && letter === "z") {
      if (shiftKey) this.redo();
      else this.undo();
      return true;
    }
    if (isCommand && letter === "y") {
      this.redo();
      return true;
    }
    if (isCommand || altKey) return false;
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (key in steps) {
      const from = this.#place ?? { x: this.#image.width >> 1, y: this.#image.height >> 1 };
      this.#isKeyboard = true;
      this.#hover(this.#place ? this.#next(from, ...steps[key], shiftKey) : from);
      this.#speak();
    } else if (key === "+" || key === "=") {
      this.#scaleLevel(STEP);
    } else if (key === "-" || key === "_") {
      this.#scaleLevel(1 / STEP);
    } else if ((key === "Enter" || key === " ") && this.#hovered >= 0 && !this.#stroke) {
      this.#mask.begin();
      this.#ended(this.#paintRegion(this.#hovered, this.#isSelected(this.#hovered) ? 0 : 1));
      this.#speak();
    } else if (key === "Escape" && (this.#stroke || this.#isKeyboard)) {
      if (this.#stroke) this.#cancel();
      this.#isKeyboard = false;
      this.#hover(null);
      this.#outline();
    } else {
      return false;
    }
    return true;
  }

  /** A place a little inside the next region in a direction, or with `isFine` the next pixel. */
  #next({ x, y }, dx, dy, isFine) {
    const { width, height } = this.#image, isInside = (a, b) => a >= 0 && b >= 0 && a < width && b < height;
    let [a, b] = [x, y];
    const go = (goesOn, most) => {
      for (let i = 0; i < most && isInside(a + dx, b + dy) && goesOn(); i++) [a, b] = [a + dx, b + dy];
    };
    if (isFine) go(() => true, 1);
    else {
      const region = this.#regionAt(x, y);
      go(() => this.#regionAt(a, b) === region, Infinity);
      const found = this.#regionAt(a, b);
      go(() => this.#regionAt(a + dx, b + dy) === found, Math.max(2, Math.round(width / 200)));
    }
    return { x: a, y: b };
  }

  #speak() {
    const region = this.#hovered;
    if (region < 0) return;
    const { nRegions, area } = this.#level;
    this.#spoken.textContent = `Region ${region + 1} of ${nRegions}, ${area[region]} pixels, ${this.#isSelected(region) ? "selected" : "not selected"}`;
  }
}

if (globalThis.customElements && !customElements.get("superpixel-brush")) customElements.define("superpixel-brush", SuperpixelBrush);
