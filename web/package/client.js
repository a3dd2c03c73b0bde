// SPDX-License-Identifier: MPL-2.0
// The package's functions as promises that a worker keeps, so that the page goes on meanwhile.
import { isFrame } from "./frame.js";

const ERRORS = { RangeError, TypeError };

/** Frees objects in the worker that the page has forgotten. */
const forgotten = new FinalizationRegistry(({ send, of }) => send({ of, name: "free", values: [] }).catch(() => {}));

/** An object that lives in the worker. */
class Remote {
  #send;
  #of;

  constructor(send, of) {
    this.#send = send;
    this.#of = of;
    forgotten.register(this, { send, of }, this);
  }

  call(name, ...values) {
    return this.#send({ of: this.#of, name, values });
  }

  free() {
    forgotten.unregister(this);
    return this.call("free");
  }
}

class WorkerLevels extends Remote {
  constructor(send, { object, ...facts }) {
    super(send, object);
    Object.assign(this, facts);
  }

  cut(regions) { return this.call("cut", regions); }
  groups(regions) { return this.call("groups", regions); }
  boundaries() { return this.call("boundaries"); }
  regionAt(x, y, regions) { return this.call("regionAt", x, y, regions); }
  mask(label, regions) { return this.call("mask", label, regions); }
}

class WorkerSegmenter extends Remote {
  constructor(send, { object }) {
    super(send, object);
  }

  segment(image, mask) { return this.call("segment", plain(image), alone(mask)); }
  set(options) { return this.call("set", options); }
  reset() { return this.call("reset"); }
  draw(image, options) { return this.call("draw", plain(image), options); }
}

/** An array by itself: with a part of a buffer the whole of it would be sent, as a film for each of its frames. */
const alone = (array) => (ArrayBuffer.isView(array) && array.byteLength < array.buffer.byteLength && array.slice ? array.slice() : array);

/** An image without what cannot be sent; a `VideoFrame` is sent as a clone, which takes no copy. */
function plain(image) {
  if (!image || typeof image !== "object" || isFrame(image)) return image;
  const { data, width, height, format, matrix, fullRange } = image;
  return { data: alone(data), width, height, format, matrix, fullRange };
}

const labelsOf = (map) => (map && typeof map === "object" ? { labels: alone(map.labels), width: map.width, height: map.height } : map);

function start() {
  if (typeof Worker !== "function") throw new Error("SuperpixelWorker needs the Worker of browsers; in Node call the package's functions");
  // Bundlers look for exactly this.
  return new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "superpixels" });
}

export class SuperpixelWorker {
  #worker;
  #waiting = new Map();
  #last = 0;
  #ended = null;
  /** Where threads tell of failures: the worker that waits for one cannot. */
  #failures = null;

  /** Takes a worker that runs the package's `worker.js`, where a bundler or a policy needs another way to start it. */
  constructor(worker, { threads } = {}) {
    if (threads !== undefined && !(Number.isInteger(threads) && threads > 0)) throw new RangeError(`threads is a whole number from 1 on, got ${threads}`);
    if (worker === undefined) worker = start();
    else if (typeof worker?.postMessage !== "function") throw new TypeError("SuperpixelWorker takes a Worker, or nothing");
    this.#worker = worker;
    if (globalThis.crossOriginIsolated) this.#failures = new BroadcastChannel(`superpixels ${Math.random()}`);
    worker.addEventListener("message", ({ data: { id, value, error } }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(Object.assign(new (ERRORS[error.name] ?? Error)(error.message), { name: error.name }));
      else waiting?.resolve(value);
    });
    this.#failures?.addEventListener("message", ({ data }) => {
      worker.terminate();
      this.#end(`a thread of superpixels failed: ${data}`);
    });
    worker.postMessage({ threads, failures: this.#failures?.name });
    worker.addEventListener("error", (event) => {
      event.preventDefault?.();
      this.#end(`the worker of superpixels could not start; is worker.js beside client.js, and from the page's own server? ${event.message ?? ""}`.trim());
    });
  }

  segment(image, options) { return this.#call("segment", plain(image), options); }
  boundaries(image, map, options) { return this.#call("boundaries", plain(image), labelsOf(map), options); }
  meanColor(image, map) { return this.#call("meanColor", plain(image), labelsOf(map)); }
  rle(map, label) { return this.#call("rle", labelsOf(map), label); }
  polygons(map, label, options) { return this.#call("polygons", labelsOf(map), label, options); }
  svg(map, options) { return this.#call("svg", map?.regions ? { ...labelsOf(map), regions: map.regions } : labelsOf(map), options); }
  threads() { return this.#call("threads"); }
  algorithms() { return this.#call("algorithms"); }
  parameters(algorithm) { return this.#call("parameters", algorithm); }

  async levels(image, options) {
    return new WorkerLevels(this.#sender, await this.#send({ make: "Levels", values: [plain(image), options] }));
  }

  async segmenter(options) {
    return new WorkerSegmenter(this.#sender, await this.#send({ make: "Segmenter", values: [options] }));
  }

  /** Ends the worker; whoever waits gets an error. */
  terminate() {
    this.#worker.terminate();
    this.#end("the worker of superpixels was ended");
  }

  #sender = (message) => this.#send(message);

  #call(name, ...values) {
    return this.#send({ name, values });
  }

  #send(message) {
    if (this.#ended) return Promise.reject(new Error(this.#ended));
    return new Promise((resolve, reject) => {
      const id = ++this.#last;
      // Throws for what no worker can be sent, which is the caller's mistake.
      this.#worker.postMessage({ id, ...message });
      this.#waiting.set(id, { resolve, reject });
    });
  }

  #end(why) {
    this.#ended ??= why;
    this.#failures?.close();
    for (const { reject } of this.#waiting.values()) reject(new Error(this.#ended));
    this.#waiting.clear();
  }
}
