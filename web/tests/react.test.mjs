// SPDX-License-Identifier: MPL-2.0
// The example for React as a bundler packs it, with the package superpixels and with superpixels-threads in its place, in a real browser.
// SUPERPIXEL_REACT names a copy of the example whose packages are installed. studio/browser/harness.mjs says what else it needs.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { openPage, startBrowser } from "../../studio/browser/harness.mjs";

const root = process.env.SUPERPIXEL_REACT;
const { build } = await import(pathToFileURL(createRequire(join(root, "package.json")).resolve("vite")));
const photo = fileURLToPath(new URL("../playground/sample.jpg", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".css": "text/css" };

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser?.close());

/** Packs the example, serves it, and opens it. */
async function open(t, name) {
  const folder = mkdtempSync(join(tmpdir(), "superpixels-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const alias = name === "superpixels" ? {} : { superpixels: name };
  await build({ root, configFile: join(root, "vite.config.js"), logLevel: "error", resolve: { alias }, build: { outDir: folder, emptyOutDir: true } });
  const server = createServer(async (request, answer) => {
    const file = join(folder, normalize(new URL(request.url, "http://localhost").pathname.replace(/\/$/, "/index.html")));
    const content = await readFile(file).catch(() => null);
    const isolated = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
    answer.writeHead(content ? 200 : 404, { "content-type": TYPES[extname(file)] ?? "application/octet-stream", ...isolated }).end(content ?? "");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const page = await openPage(browser, `http://127.0.0.1:${server.address().port}/`);
  t.after(async () => {
    await page.context().close();
    assert.deepEqual(page.problems, []);
  });
  return page;
}

for (const [name, threads] of [["superpixels", 1], ["superpixels-threads", "some"]]) {
  test(`a picture is opened, selected in and undone, with ${name}`, async (t) => {
    const page = await open(t, name), status = page.locator("main > p[role=status]");
    await page.setInputFiles("input[type=file]", photo);
    await status.filter({ hasText: /^\d+ regions, 0 px selected$/ }).waitFor();
    const box = await page.locator("superpixel-brush").boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await status.filter({ hasText: /, [1-9]\d* px selected$/ }).waitFor();
    const area = Number(/(\d+) px/.exec(await status.textContent())[1]);
    assert.equal(await page.evaluate(() => document.querySelector("superpixel-brush").mask.reduce((sum, one) => sum + one, 0)), area);
    await page.click("text=Undo");
    await status.filter({ hasText: /, 0 px selected$/ }).waitFor();
    const started = page.workers().filter((worker) => /thread/.test(worker.url())).length;
    if (threads === 1) assert.equal(started, 0);
    else assert.ok(started > 0 || (await page.evaluate("navigator.hardwareConcurrency")) === 1, page.workers().map((worker) => worker.url()).join(" "));
  });
}
