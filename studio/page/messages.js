// SPDX-License-Identifier: MPL-2.0
// Words for the person: the banner for what went wrong, short notes, progress, and what screen readers say.

const $ = (id) => document.getElementById(id);

/** Shows a problem until it is over, closed or another comes. */
export function showProblem(what, advice, retry = null) {
  $("banner").hidden = !what;
  $("banner-what").textContent = what;
  $("banner-advice").textContent = advice;
  $("banner-retry").hidden = !retry;
  $("banner-retry").onclick = retry;
  $("banner-close").onclick = () => showProblem("", "");
}

/** A note that goes by itself. */
export function note(text, milliseconds = 5000) {
  const element = Object.assign(document.createElement("div"), { className: "toast", textContent: text });
  $("toasts").append(element);
  setTimeout(() => element.remove(), milliseconds);
}

/** A note with a bar; `cancel` ends what it is about. */
export class Progress {
  constructor(text, cancel) {
    this.element = Object.assign(document.createElement("div"), { className: "toast" });
    this.bar = Object.assign(document.createElement("progress"), { max: 1, value: 0 });
    this.bar.setAttribute("aria-label", text);
    const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "Cancel" });
    button.onclick = () => {
      cancel();
      this.close();
    };
    this.element.append(text, this.bar, button);
    $("toasts").append(this.element);
  }

  set(part) {
    this.bar.value = part;
  }

  close() {
    this.element.remove();
  }
}

/** A text to copy by hand, where the clipboard is not allowed. */
export function showText(text) {
  const dialog = document.createElement("dialog"), area = document.createElement("textarea");
  Object.assign(area, { value: text, rows: 12, cols: 80, readOnly: true });
  area.setAttribute("aria-label", "Text to copy");
  const close = Object.assign(document.createElement("button"), { textContent: "Close" });
  close.onclick = () => dialog.close();
  dialog.onclose = () => dialog.remove();
  dialog.append(area, close);
  document.body.append(dialog);
  dialog.showModal();
  area.select();
}

let waiting = 0;
/** Says something to screen readers, the last of what comes quickly. */
export function announce(text) {
  clearTimeout(waiting);
  waiting = setTimeout(() => { $("announce").textContent = text; }, 250);
}
