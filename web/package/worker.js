// SPDX-License-Identifier: MPL-2.0
// The package in a worker: answers the calls of client.js.
import { isFrame, readFrame } from "./frame.js";

/** Names that a page may call. */
const FUNCTIONS = ["algorithms", "boundaries", "meanColor", "parameters", "polygons", "rle", "segment", "svg", "threads"];
const METHODS = {
  Levels: ["boundaries", "cut", "free", "groups", "mask", "regionAt"],
  Segmenter: ["draw", "free", "reset", "segment", "set"],
};
/** Properties that go to the page with a new object. */
const FACTS = { Levels: ["height", "labels", "merges", "nRegions", "regions", "width"], Segmenter: [] };

// A static import would wait for the WebAssembly before anything listens, and messages of that time would be lost. The first message
// says how many threads to start, and where they tell of failures.
let start;
const loaded = new Promise((resolve) => (start = resolve)).then(({ threads, failures }) => {
  if (threads !== undefined) globalThis.SUPERPIXELS_THREADS = threads;
  globalThis.SUPERPIXELS_FAILURES = failures;
  return import("./browser.js");
});
const objects = new Map();
let last = 0;

function call(api, { make, of, name, values }) {
  if (make !== undefined) {
    if (!Object.hasOwn(METHODS, make)) throw new TypeError(`a worker makes ${Object.keys(METHODS).join(" or ")}, got ${make}`);
    const object = new api[make](...values);
    objects.set(++last, { object, kind: make });
    return { object: last, ...Object.fromEntries(FACTS[make].map((fact) => [fact, object[fact]])) };
  }
  if (of === undefined) {
    if (!FUNCTIONS.includes(name)) throw new TypeError(`a worker calls ${FUNCTIONS.join(", ")}, got ${name}`);
    return api[name](...values);
  }
  const known = objects.get(of);
  if (!known) throw new TypeError("this object was freed; make another one");
  if (!METHODS[known.kind].includes(name)) throw new TypeError(`${known.kind} has ${METHODS[known.kind].join(", ")}, got ${name}`);
  if (name === "free") objects.delete(of);
  return known.object[name](...values);
}

/** Memory of a result's arrays: they are copies that nobody here needs any more. */
function buffers(value, found = new Set()) {
  if (ArrayBuffer.isView(value)) found.add(value.buffer);
  else if (Array.isArray(value)) return found;
  else if (value && typeof value === "object") for (const part of Object.values(value)) buffers(part, found);
  return found;
}

/** Values of a call, where a frame, which came as a clone, has become its image. */
const read = (values) => Promise.all(values.map((value) => (isFrame(value) ? readFrame(value).finally(() => value.close()) : value)));

// Calls are done in their order, also behind one whose frame takes time.
let turn = Promise.resolve();
addEventListener("message", ({ data }) => {
  start(data);
  if (data.id === undefined) return;
  const values = read(data.values);
  values.catch(() => {});
  turn = answer(data, values, turn);
});

async function answer(data, values, before) {
  await before;
  try {
    const value = call(await loaded, { ...data, values: await values });
    postMessage({ id: data.id, value }, [...buffers(value)]);
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: "Error", message: String(error) };
    postMessage({ id: data.id, error: { name, message } });
  }
}
