// SPDX-License-Identifier: MPL-2.0
// Times SLIC with tables in Chromium beside the native library with SSE2, one thread each, turn by turn:
// node speed.mjs FILE.rgba WIDTH HEIGHT [OTHER.js]
//
// SUPERPIXEL_WEB names the unpacked package, SUPERPIXEL_EXPECTED the program `expected` of a release build. OTHER is a module whose
// segment(imageData, size) is another implementation in JavaScript, timed with as many rounds on superpixels of the same size.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";

import { openPage, startBrowser } from "../../studio/browser/harness.mjs";

const [file, width, height, other] = process.argv.slice(2);
if (!height) throw new Error("usage: node speed.mjs FILE.rgba WIDTH HEIGHT [OTHER.js]");
const { SUPERPIXEL_WEB: web, SUPERPIXEL_EXPECTED: expected } = process.env;
const SIZE = 16, ITERATIONS = 10, TURNS = 12;

/** Milliseconds of a frame of the native library, without its start. */
function native() {
  const input = `${width} ${height} ${file} 1 superpixels=0 superpixel-size=${SIZE} iterations=${ITERATIONS}\n`;
  return 1000 * Number(execFileSync(expected, { input, encoding: "utf8" }).trim().split(" ").at(-1));
}

const server = createServer(async (request, answer) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const place = pathname === "/picture" ? file : pathname === "/other.js" ? other : join(web, pathname);
  const content = pathname === "/" ? "<!doctype html>" : await readFile(place).catch(() => null);
  const type = { js: "text/javascript", wasm: "application/wasm" }[pathname.split(".").at(-1)] ?? "text/html";
  answer.writeHead(content ? 200 : 404, { "content-type": type }).end(content ?? "");
}).listen(0, "127.0.0.1");
await once(server, "listening");
const browser = await startBrowser();
try {
  const page = await openPage(browser, `http://127.0.0.1:${server.address().port}/`);
  await page.evaluate(async ({ width, height, hasOther }) => {
    window.sp = await import("/browser.js");
    if (hasOther) window.other = await import("/other.js");
    const bytes = new Uint8ClampedArray(await (await fetch("/picture")).arrayBuffer());
    window.image = new ImageData(bytes.slice(0, 4 * width * height), width, height);
  }, { width: Number(width), height: Number(height), hasOther: !!other });
  const here = () => page.evaluate(([superpixelSize, iterations]) => {
    const start = performance.now();
    sp.segment(image, { superpixelSize, iterations, neighbors: true });
    return performance.now() - start;
  }, [SIZE, ITERATIONS]);
  const others = () => page.evaluate((size) => {
    const start = performance.now();
    other.segment(image, size);
    return performance.now() - start;
  }, SIZE);
  const times = { WebAssembly: [], native: [], ...(other && { other: [] }) };
  for (let turn = 0; turn < TURNS; turn++) {
    times.WebAssembly.push(await here());
    times.native.push(native());
    if (other) times.other.push(await others());
  }
  for (const all of Object.values(times)) all.sort((a, b) => a - b);
  for (const [name, all] of Object.entries(times)) {
    const [best, middle] = [all[0], all[TURNS >> 1]], { WebAssembly: own } = times;
    const ratio = name === "WebAssembly" ? "" : `, ${(best / own[0]).toFixed(2)} and ${(middle / own[TURNS >> 1]).toFixed(2)} times as long as WebAssembly`;
    console.log(`${name}: best ${best.toFixed(1)} ms, middle ${middle.toFixed(1)} ms of ${TURNS}${ratio}`);
  }
} finally {
  await browser.close();
  server.close();
}
