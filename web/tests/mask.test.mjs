// SPDX-License-Identifier: MPL-2.0
// The parts of the brush that need no browser: its mask against copies of the whole mask, and imports on servers. SUPERPIXEL_WEB names the
// unpacked package.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { PixelMask } = await import(pathToFileURL(join(process.env.SUPERPIXEL_WEB, "brush-mask.js")));

test("undo and redo give every mask that there was", () => {
  let state = 7;
  const random = (range) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % range;
  };
  const [width, height] = [37, 23], mask = new PixelMask(width, height);
  const labels = Uint16Array.from({ length: width * height }, (_, i) => ((i % width) >> 3) + 5 * (Math.floor(i / width) >> 3));
  const copy = () => mask.data.slice();
  let before = [], after = [], changed = 0;
  for (let turn = 0; turn < 3000; turn++) {
    const now = copy(), kind = random(10);
    if (kind < 2) {
      assert.equal(mask.undo().length > 0, before.length > 0);
      if (before.length) {
        after.push(now);
        assert.deepEqual(mask.data, before.pop());
      }
    } else if (kind < 4) {
      assert.equal(mask.redo().length > 0, after.length > 0);
      if (after.length) {
        before.push(now);
        assert.deepEqual(mask.data, after.pop());
      }
    } else {
      mask.begin();
      const expected = now.slice();
      for (let i = random(4); i >= 0; i--) {
        const [x0, y0] = [random(width), random(height)], x1 = x0 + 1 + random(width - x0), y1 = y0 + 1 + random(height - y0);
        const label = random(8) ? random(15) : null, value = random(2);
        let differs = false;
        for (let y = y0; y < y1; y++) {
          for (let x = x0; x < x1; x++) {
            const at = y * width + x;
            if (label !== null && labels[at] !== label) continue;
            differs ||= expected[at] !== value;
            expected[at] = value;
          }
        }
        assert.equal(mask.paint([x0, y0, x1, y1], label === null ? null : labels, label, value), differs);
      }
      assert.deepEqual(mask.data, expected);
      if (kind === 9) {
        mask.cancel();
        assert.deepEqual(mask.data, now);
      } else if (mask.end()) {
        changed++;
        before.push(now);
        after = [];
      }
    }
    assert.equal(mask.area, mask.data.reduce((sum, one) => sum + one, 0));
    assert.deepEqual([mask.canUndo, mask.canRedo], [before.length > 0, after.length > 0]);
  }
  assert.ok(changed > 500, `${changed}`);
});

test("old strokes are forgotten before they take too much memory", () => {
  // A bit a pixel: eight strokes.
  const side = 256, mask = new PixelMask(side, side, 8 * (side * side) / 8), box = [0, 0, side, side];
  for (let i = 0; i < 20; i++) {
    mask.begin();
    mask.paint(box, null, 0, (i + 1) % 2);
    mask.end();
  }
  let undone = 0;
  while (mask.canUndo) {
    mask.undo();
    undone++;
  }
  assert.equal(undone, 8);
  while (mask.canRedo) mask.redo();
  assert.equal(mask.area, 0);
});

test("servers that make pages can import brush and worker", async () => {
  const { SuperpixelBrush } = await import(pathToFileURL(join(process.env.SUPERPIXEL_WEB, "brush.js")));
  const { SuperpixelWorker } = await import(pathToFileURL(join(process.env.SUPERPIXEL_WEB, "client.js")));
  assert.equal(typeof SuperpixelBrush, "function");
  assert.throws(() => new SuperpixelWorker(), /needs the Worker of browsers/);
  assert.throws(() => new SuperpixelWorker({}), TypeError);
});
