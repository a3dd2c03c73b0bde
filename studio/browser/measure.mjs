// SPDX-License-Identifier: MPL-2.0
// Measures frames a second of server and page on this machine: node measure.mjs [PROPERTY=VALUE ...]

import { readFileSync, readdirSync } from "node:fs";

import { framed, openPage, startBrowser, startStudio } from "./harness.mjs";

const SECONDS = 15;

/** Processor time in ms of all processes that `is` chooses, by name and number. Ticks are 10 ms. */
function spent(is) {
  let ticks = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const text = readFileSync(`/proc/${pid}/stat`, "utf8"), end = text.lastIndexOf(")");
      const fields = text.slice(end + 2).split(" ");
      if (is(text.slice(text.indexOf("(") + 1, end), Number(pid))) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // It has ended meanwhile.
    }
  }
  return 10 * ticks;
}

const studio = await startStudio(undefined, process.argv.slice(2));
const browser = await startBrowser();
try {
  const page = await openPage(browser, studio.address);
  await framed(page);
  await page.waitForTimeout(2000);
  const server = (_, pid) => pid === studio.pid, browsers = (name) => name.startsWith("chrom");
  const before = [spent(server), spent(browsers)];
  const found = await page.evaluate(async (seconds) => {
    const { Painter } = await import("/painter.js");
    const { link } = window.studio, numbers = [], element = [], encode = [], bytes = [];
    link.addEventListener("frame", ({ detail: { frame } }) => {
      numbers.push(frame.number);
      element.push(frame.sides[0].timeUs / 1000);
      encode.push(frame.encodeUs / 1000);
      bytes.push(frame.bytes);
    });
    await new Promise((end) => setTimeout(end, seconds * 1000));
    const painter = new Painter(document.createElement("canvas")), start = performance.now();
    for (let i = 0; i < 20; i++) painter.paint(window.studio.frame, window.studio.look);
    const paint = (performance.now() - start) / 20;
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
    return {
      "frames a second, page": numbers.length / seconds,
      "frames a second, server": (numbers.at(-1) - numbers[0]) / seconds,
      "element, ms": mean(element), "message, ms": mean(encode), "paint, ms": paint, "message, bytes": mean(bytes),
    };
  }, SECONDS);
  const frames = [found["frames a second, server"], found["frames a second, page"]].map((rate) => rate * SECONDS);
  found["server, CPU ms a frame"] = (spent(server) - before[0]) / frames[0];
  found["browser, CPU ms a frame"] = (spent(browsers) - before[1]) / frames[1];
  for (const [name, value] of Object.entries(found)) console.log(name.padEnd(26), value.toFixed(value > 1000 ? 0 : 1));
} finally {
  await browser.close();
  await studio.stop();
}
