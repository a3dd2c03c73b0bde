// SPDX-License-Identifier: MPL-2.0
// The package's types as the compiler of users reads them: files of web/tests/types hold what it has to accept and, marked, what it has
// to refuse. SUPERPIXEL_WEB names the unpacked package.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

// Its lock file is that of all tests with packages of npm.
const compiler = createRequire(new URL("../../studio/browser/package.json", import.meta.url)).resolve("typescript/bin/tsc");
const folder = mkdtempSync(join(tmpdir(), "superpixels-types-"));
after(() => rmSync(folder, { recursive: true }));
cpSync(fileURLToPath(new URL("types", import.meta.url)), folder, { recursive: true });
cpSync(process.env.SUPERPIXEL_WEB, join(folder, "node_modules/superpixels"), { recursive: true });
writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));

function compile(...values) {
  const { status, stdout } = spawnSync(process.execPath, [compiler, "--noEmit", "--strict", "--target", "es2022", ...values], { cwd: folder, encoding: "utf8" });
  return status === 0 ? "" : stdout;
}

test("programs for Node, which knows nothing of pages", () => {
  assert.equal(compile("--module", "nodenext", "--lib", "es2022", "node.ts"), "");
});

test("pages, also as bundlers find modules", () => {
  const files = ["page.ts", "node.ts"];
  assert.equal(compile("--module", "nodenext", "--lib", "es2022,dom", ...files), "");
  assert.equal(compile("--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom,esnext.disposable", ...files), "");
});

test("what is wrong is found", () => {
  writeFileSync(join(folder, "wrong.ts"), 'import { segment } from "superpixels";\nsegment({ data: new Uint8Array(4), width: 1, height: "1" });\n');
  assert.match(compile("--module", "nodenext", "--lib", "es2022", "wrong.ts"), /wrong\.ts\(2,\d+\): error TS2\d+/);
});
