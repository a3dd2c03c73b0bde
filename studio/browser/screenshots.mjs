// SPDX-License-Identifier: MPL-2.0
// Takes the pictures of docs/studio.md and README.md, into the folder that is named.

import { framed, openPage, startBrowser, startStudio } from "./harness.mjs";

const folder = process.argv[2];
if (!folder) throw new Error("usage: node screenshots.mjs FOLDER");

const studio = await startStudio(undefined, ["superpixel-size=24"]);
const browser = await startBrowser();
try {
  const page = await openPage(browser, studio.address);
  await framed(page);
  const send = (request) => page.evaluate((request) => window.studio.link.send(request), request);
  const shot = (name) => page.screenshot({ path: `${folder}/studio-${name}.jpg`, type: "jpeg", quality: 82 });
  /** Where a pixel of the picture stands on the page. */
  const place = (x, y) => page.evaluate(([x, y]) => {
    const box = document.querySelector("#picture").getBoundingClientRect();
    return [box.left + (x / 1280) * box.width, box.top + (y / 720) * box.height];
  }, [x, y]);

  // The plots fill.
  await page.waitForTimeout(9000);
  await send({ do: "seek", to: 2 });
  await page.waitForTimeout(2500);
  await send({ do: "pause", on: true });
  await page.waitForTimeout(700);
  await page.mouse.move(...await place(640, 330));
  await page.waitForTimeout(400);
  await shot("inspect");

  await page.keyboard.press("4");
  for (const [x, y] of [[520, 300], [760, 380]]) await page.mouse.click(...await place(x, y));
  await send({ do: "pause", on: false });
  await page.waitForTimeout(3500);
  await send({ do: "pause", on: true });
  await page.waitForTimeout(500);
  await shot("pins");

  await page.mouse.move(5, 5);
  await page.click("#tab-tune");
  await page.check("#compare");
  await framed(page, (studio) => studio.frame?.sides.length === 2);
  await page.click("#side-choice button:nth-child(2)");
  await page.click("#presets button:text('100 regions')");
  await page.keyboard.press("3");
  await framed(page, (studio) => studio.frame?.sides[1]?.regions === 100);
  await page.check("#edges");
  await page.waitForTimeout(500);
  await shot("compare");

  await page.uncheck("#edges");
  await page.uncheck("#compare");
  await framed(page, (studio) => studio.frame?.sides.length === 1);
  await page.click("#presets button:text-is('Ink')");
  await page.check("#beside");
  await framed(page, (studio) => studio.frame.sides[0].regions === 400 && studio.frame.sides[0].abstraction);
  await page.waitForTimeout(500);
  await shot("abstraction");

  // Three objects, a while after they were marked.
  await page.uncheck("#beside");
  await send({ do: "apply", side: "a", values: { superpixels: 1000 } });
  await framed(page, (studio) => studio.state.values[0].superpixels === 1000);
  await page.keyboard.press("1");
  await page.keyboard.press("o");
  await send({ do: "seek", to: 0 });
  await framed(page, (studio) => studio.frame.time === 0);
  for (const [x, y, width, height] of [[230, 250, 305, 315], [780, 260, 400, 180], [1150, 120, 1, 1]]) {
    const before = await page.evaluate(() => window.studio.state.objects.length);
    await page.mouse.move(...await place(x, y));
    await page.mouse.down();
    await page.mouse.move(...await place(x + width - 1, y + height - 1));
    await page.mouse.up();
    await framed(page, (studio, before) => studio.frame.sides[0].objects.length > before, before);
  }
  await page.mouse.move(5, 5);
  await page.keyboard.press("o");
  await send({ do: "pause", on: false });
  await framed(page, (studio) => studio.frame.time > 0.5 && studio.frame.time < 1);
  await send({ do: "pause", on: true });
  // Without the ring around what the keyboard is on.
  await page.evaluate(() => document.activeElement.blur());
  await page.waitForTimeout(700);
  await shot("objects");
  await page.click("#objects-clear");
  await page.click("#tab-tune");

  await page.keyboard.press("3");
  await page.check("#edges");
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1024, height: 768 });
  await page.waitForTimeout(700);
  await shot("light");
  if (page.problems.length) throw new Error(page.problems.join("\n"));
} finally {
  await browser.close();
  await studio.stop();
}
