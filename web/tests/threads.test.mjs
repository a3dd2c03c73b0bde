// SPDX-License-Identifier: MPL-2.0
// Threads of the package superpixels-threads in Node: how many there are, and what happens where one fails. SUPERPIXEL_WEB names the
// unpacked package.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os, { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const web = process.env.SUPERPIXEL_WEB;
const SEGMENT = `
  const image = { data: new Uint8Array(4 * 320 * 240).map((_, i) => (i * 7919) >> 5), width: 320, height: 240 };
  const { labels } = sp.segment(image, { nSegments: 300 });
  console.log(sp.threads(), labels.reduce((sum, label, i) => (sum + label * (i % 251)) % 1000003, 0));`;

/** Runs a program that has loaded the package as `sp`: its status, what it said, and with which signal it ended. */
function run(before, code = SEGMENT, folder = web) {
  const module = JSON.stringify(pathToFileURL(join(folder, "node.js")).href);
  const all = `${before}; import(${module}).then((sp) => {${code}}, (error) => console.log(error.name + ": " + error.message));`;
  const { NODE_OPTIONS: _, ...env } = process.env;
  return spawnSync(process.execPath, ["-e", all], { encoding: "utf8", env, timeout: 60000 });
}

/** A copy of the package, to change. */
function copy(t) {
  const folder = mkdtempSync(join(tmpdir(), "superpixels-"));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(web, folder, { recursive: true });
  return folder;
}

test("there are as many threads as are asked for, or one per core, and labels are the same", () => {
  const said = [1, 2, 5].map((count) => run(`globalThis.SUPERPIXELS_THREADS = ${count}`));
  for (const { status, stderr } of said) assert.deepEqual([status, stderr], [0, ""]);
  const [one, two, five] = said.map(({ stdout }) => stdout.trim().split(" "));
  assert.deepEqual([one[0], two[0], five[0]], ["1", "2", "5"]);
  assert.equal(new Set([one[1], two[1], five[1]]).size, 1);
  const cores = os.availableParallelism?.() ?? os.cpus().length;
  assert.equal(run("").stdout.split(" ")[0], String(Math.min(cores, 8)));
});

test("a number of threads that there cannot be is refused in words", () => {
  for (const wrong of ["0", "65", "1.5", '"two"', "NaN"]) {
    assert.match(run(`globalThis.SUPERPIXELS_THREADS = ${wrong}`).stdout, /^RangeError: threads is a whole number from 1 to 64, got /, wrong);
  }
});

test("where threads cannot be started there is one, and a warning", (t) => {
  const folder = copy(t);
  writeFileSync(join(folder, "node-thread.js"), 'throw new Error("not today");');
  const { status, stdout, stderr } = run("globalThis.SUPERPIXELS_THREADS = 2", SEGMENT, folder);
  assert.equal(status, 0, stderr);
  assert.equal(stdout, run("globalThis.SUPERPIXELS_THREADS = 1").stdout);
  assert.match(stderr, /superpixels-threads works in one thread, as others could not be started: not today/);
});

test("a thread that fails ends the program instead of letting it wait forever", (t) => {
  const folder = copy(t), file = join(folder, "native.js"), code = readFileSync(file, "utf8");
  const failing = code.replace("export function runThread() {", '$& throw new Error("a panic");');
  assert.notEqual(failing, code);
  writeFileSync(file, failing);
  const { signal, stderr } = run("globalThis.SUPERPIXELS_THREADS = 2", SEGMENT, folder);
  assert.equal(signal, "SIGABRT");
  assert.match(stderr, /superpixels-threads: a thread failed: a panic/);
});
