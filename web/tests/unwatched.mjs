// SPDX-License-Identifier: MPL-2.0
// A page of Firefox that nothing drives: it asks the test's server for what it is to do. Where Playwright drives Firefox, some workers
// with threads never start; docs/web.md says how many.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/** The page: does one job after another. */
export const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module">
  const problems = [];
  addEventListener("error", (event) => problems.push(event.message));
  addEventListener("unhandledrejection", (event) => problems.push(String(event.reason)));
  for (;;) {
    const { job, argument } = await (await fetch("/job")).json(), result = { problems };
    try {
      result.value = await (0, eval)(job)(argument);
    } catch (error) {
      result.error = String(error);
    }
    await fetch("/result", { method: "POST", body: JSON.stringify(result) });
  }
</script>`;

const files = (folder) => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};
const content = (file) => {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
};

export class Unwatched {
  problems = [];
  #profile = mkdtempSync(join(tmpdir(), "firefox-"));
  #child;
  /** The page's question for its next job, and what it is to do. */
  #question = null;
  #doing = null;

  /** Starts Firefox at the address of the page. */
  constructor(firefox, address) {
    // A group of its own, to end all of its processes.
    this.#child = spawn(firefox, ["--headless", "--no-remote", "--profile", this.#profile, address], { stdio: "ignore", detached: true });
  }

  /** Answers a request, where it is one of the page's. */
  async answer(request, answer) {
    if (request.url === "/job") {
      this.#question = answer;
      this.#give();
    } else if (request.url === "/result") {
      const { value, error, problems } = JSON.parse(await text(request)), { resolve, reject } = this.#doing;
      this.#doing = null;
      this.problems = problems;
      if (error) reject(new Error(error));
      else resolve(value);
      answer.end();
    } else return false;
    return true;
  }

  /** What a function or an expression gives in the page. */
  evaluate(job, argument, patience = 60000) {
    assert.equal(this.#doing, null, "one thing after another");
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no answer within ${patience} ms: ${job}`)), patience);
      const ended = (settle) => (value) => {
        clearTimeout(late);
        settle(value);
      };
      this.#doing = { message: { job: typeof job === "function" ? `(${job})` : `() => (${job})`, argument }, resolve: ended(resolve), reject: ended(reject) };
      this.#give();
    });
  }

  /** The threads that run workers or did so lately, as Playwright's pages have their workers. */
  workers() {
    const ours = (pid) => Number(content(`/proc/${pid}/stat`).replace(/.*\) /s, "").split(" ")[2]) === this.#child.pid;
    const names = files("/proc").filter((pid) => /^\d+$/.test(pid) && ours(pid)).flatMap((pid) => files(`/proc/${pid}/task`).map((task) => content(`/proc/${pid}/task/${task}/comm`)));
    assert.ok(names.length > 0, "Firefox has ended");
    return names.filter((name) => name.startsWith("DOM Worker"));
  }

  async close() {
    process.kill(-this.#child.pid, "SIGKILL");
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
    // Its other processes may still write.
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10 });
  }

  #give() {
    if (!this.#question || !this.#doing?.message) return;
    this.#question.end(JSON.stringify(this.#doing.message));
    this.#question = null;
    this.#doing.message = null;
  }
}
