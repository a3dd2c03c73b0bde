// SPDX-License-Identifier: MPL-2.0
// Counts frames a second in Chromium, by workers of the packages superpixels and superpixels-threads, ways in turns:
// node stream.mjs FILE.rgba WIDTH HEIGHT [TURNS]
//
// SUPERPIXEL_WEB names the unpacked package superpixels, beside which superpixels-threads stands.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";

import { openPage, startBrowser } from "../../studio/browser/harness.mjs";

const [file, width, height, turns = 4] = process.argv.slice(2);
if (!height) throw new Error("usage: node stream.mjs FILE.rgba WIDTH HEIGHT [TURNS]");
const FRAMES = 40;

const server = createServer(async (request, answer) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const place = pathname === "/film" ? file : join(process.env.SUPERPIXEL_WEB, "..", pathname);
  const content = pathname === "/" ? "<!doctype html>" : await readFile(place).catch(() => null);
  const type = { js: "text/javascript", wasm: "application/wasm" }[pathname.split(".").at(-1)] ?? "text/html";
  const isolated = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
  answer.writeHead(content ? 200 : 404, { "content-type": type, ...isolated }).end(content ?? "");
}).listen(0, "127.0.0.1");
await once(server, "listening");
const browser = await startBrowser();

/** In the page: frames a second of so many workers, and how many threads each has. */
async function stream({ name, workers, threads, temporal, width, height, frames }) {
  const { SuperpixelWorker } = await import(`/${name}/client.js`);
  window.film ??= new Uint8ClampedArray(await (await fetch("/film")).arrayBuffer());
  const size = 4 * width * height, count = Math.floor(film.length / size);
  const all = Array.from({ length: workers }, () => new SuperpixelWorker(undefined, { threads }));
  const segmenters = await Promise.all(all.map((worker) => worker.segmenter({ nSegments: 1000, temporal })));
  let next = 0;
  const work = async (segmenter, end) => {
    // As a camera's frames: each a buffer of its own.
    while (next < end) {
      const at = (next++ % count) * size;
      await segmenter.segment({ data: film.slice(at, at + size), width, height });
    }
  };
  // Two are on their way to each worker, so that none waits for the page. The first frames warm up.
  const run = (end) => Promise.all(segmenters.flatMap((segmenter) => [work(segmenter, end), work(segmenter, end)]));
  await run(frames);
  const start = performance.now();
  await run(2 * frames);
  const rate = (1000 * (next - frames)) / (performance.now() - start);
  const started = await all[0].threads();
  for (const worker of all) worker.terminate();
  return { rate, started };
}

try {
  const page = await openPage(browser, `http://127.0.0.1:${server.address().port}/`);
  const ways = [false, true].flatMap((temporal) => [
    { name: "superpixels", workers: 1, temporal },
    ...(temporal ? [] : [{ name: "superpixels", workers: 2, temporal }]),
    { name: "superpixels-threads", workers: 1, threads: 2, temporal },
  ]);
  const rates = ways.map(() => []);
  for (let turn = 0; turn < Number(turns); turn++) {
    for (const [i, way] of ways.entries()) {
      const { rate, started } = await page.evaluate(stream, { ...way, width: Number(width), height: Number(height), frames: FRAMES });
      if (started !== (way.threads ?? 1)) throw new Error(`${way.name} has ${started} threads`);
      rates[i].push(rate);
    }
  }
  for (const [i, { name, workers, threads = 1, temporal }] of ways.entries()) {
    const sorted = rates[i].sort((a, b) => a - b), [least, middle, most] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map((rate) => rate.toFixed(1));
    console.log(`${name}, ${temporal ? "temporal" : "independent"}, workers ${workers} of threads ${threads}: ${middle} frames a second (${least} to ${most})`);
  }
} finally {
  await browser.close();
  server.close();
}
