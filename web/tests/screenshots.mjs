// SPDX-License-Identifier: MPL-2.0
// Takes the picture of docs/web.md: node screenshots.mjs ADDRESS-OF-THE-PLAYGROUND FOLDER

import { openPage, startBrowser } from "../../studio/browser/harness.mjs";

const [address, folder] = process.argv.slice(2);
if (!folder) throw new Error("usage: node screenshots.mjs ADDRESS FOLDER");

/** Strokes over the sample, in its pixels, and the number of regions at each. */
const STROKES = [
  [300, [[430, 110], [480, 180], [440, 230], [420, 300], [400, 420], [430, 520], [500, 560], [560, 480], [570, 380], [530, 280], [480, 350], [470, 470]]],
  [300, [[400, 200], [330, 160], [270, 150]]],
  [600, [[535, 190], [535, 120], [540, 80]]],
];

const browser = await startBrowser();
try {
  const page = await openPage(browser, address);
  const until = async (expression) => {
    for (const end = Date.now() + 20000; !(await page.evaluate(expression).catch(() => false));) {
      if (Date.now() > end) throw new Error(`waited in vain for ${expression}`);
      await page.waitForTimeout(50);
    }
  };
  await until("window.playground?.frame");
  await page.keyboard.press("6");
  await until("playground.brush.level > 0 && playground.brush.labels");
  const box = await page.locator("#brush").boundingBox();
  const place = ([x, y]) => [box.x + (x / 1280) * box.width, box.y + (y / 720) * box.height];
  for (const [level, points] of STROKES) {
    await page.evaluate((level) => { playground.brush.level = level; }, level);
    await until(`playground.brush.level === ${level}`);
    await page.mouse.move(...place(points[0]));
    await page.mouse.down();
    for (const point of points) await page.mouse.move(...place(point));
    await page.mouse.up();
  }
  await page.evaluate(() => { playground.brush.level = 120; });
  await until("playground.brush.level === 120");
  await page.mouse.move(...place([1000, 400]));
  await page.waitForTimeout(300);
  await page.screenshot({ path: `${folder}/web-brush.jpg`, type: "jpeg", quality: 82 });
  if (page.problems.length) throw new Error(page.problems.join("\n"));
} finally {
  await browser.close();
}
