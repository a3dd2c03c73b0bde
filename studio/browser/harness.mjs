// SPDX-License-Identifier: MPL-2.0
// Starts the studio and a headless Chromium for tests and screenshots. SUPERPIXEL_STUDIO and CHROMIUM name both programs; FIREFOX
// names that browser, where it takes the place of Chromium.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import playwright, { chromium } from "playwright-core";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const clip = `${root}media/bigbuckbunny.mp4`;

/** A studio on a port, any by default: {address, port, stop(signal), ended}. */
export async function startStudio(source = clip, properties = [], port = 0) {
  const program = process.env.SUPERPIXEL_STUDIO ?? `${root}target/release/superpixel-studio`;
  const child = spawn(program, [source, ...properties, "--port", String(port)], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, "line"), ended.then(([code]) => Promise.reject(new Error(`the studio ended: ${code}`)))]);
  const address = first[0];
  return {
    address,
    pid: child.pid,
    port: Number(new URL(address).port),
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      await ended;
    },
  };
}

/** A browser, with more arguments where a test needs them; its pages are 1440x900 unless told otherwise. */
export function startBrowser(more = []) {
  if (process.env.FIREFOX) {
    // A camera of its own making, as Chromium has it by an argument, which nobody has to allow.
    const firefoxUserPrefs = { "media.navigator.streams.fake": true, "media.navigator.permission.disabled": true };
    return playwright._bidiFirefox.launch({ executablePath: process.env.FIREFOX, firefoxUserPrefs });
  }
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // In a container there is neither a user for the sandbox nor much shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", ...more],
  });
}

/** Opens the studio's page and waits for frames. Errors of the page become failures of `problems`. */
export async function openPage(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: "dark", acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  await page.goto(address);
  return page;
}

/** Asks the page until `holds`, a function of what it draws, gives something; returns that. */
export async function framed(page, holds = (studio) => studio.frame !== null, argument = null, patience = 20000) {
  const end = Date.now() + patience;
  for (;;) {
    // The page's policy forbids code from text, which is what Playwright's own way to wait needs.
    const found = await page.evaluate(`(${holds})(window.studio ?? { frame: null }, ${JSON.stringify(argument)})`).catch(() => null);
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain for ${holds}`);
    await new Promise((next) => setTimeout(next, 50));
  }
}
