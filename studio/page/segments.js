// SPDX-License-Identifier: MPL-2.0
// Buttons of which one is chosen, menus, and dark or light: what pages have around the picture.

/** A button of a group of which one is chosen. */
export function segment(title, chosen, action) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: title });
  button.setAttribute("role", "radio");
  button.setAttribute("aria-checked", chosen);
  button.onclick = action;
  return button;
}

/** Chooses the button of an index. */
export function check(group, index) {
  [...group.children].forEach((button, i) => button.setAttribute("aria-checked", i === index));
}

/** Lets the menus of some names open, one at a time: `NAME-open` is the button, `NAME-menu` what opens. Returns what opens one, or with null none. */
export function menus(names) {
  const $ = (id) => document.getElementById(id);
  const open = (name) => {
    for (const menu of names) {
      const opens = menu === name && $(`${menu}-menu`).hidden;
      $(`${menu}-menu`).hidden = !opens;
      $(`${menu}-open`).setAttribute("aria-expanded", opens);
      if (opens) $(`${menu}-menu`).querySelector("button").focus();
    }
  };
  for (const name of names) $(`${name}-open`).onclick = () => open(name);
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".menu")) open(null);
  });
  return open;
}

const THEME = "superpixel-studio-theme";

/** Shows the page dark or light, and remembers it. */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem(THEME, theme);
}

/** Dark where it is light, and the other way around. */
export function otherTheme() {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
  setTheme(dark ? "light" : "dark");
}

/** As it was chosen here before. */
export function rememberTheme() {
  const kept = localStorage.getItem(THEME);
  if (kept === "dark" || kept === "light") setTheme(kept);
}

/** True if a key is typed into something, or pressed on a button that takes it. */
export function isTyped(event) {
  const typing = event.target.closest("input:not([type=checkbox]):not([type=range]), select, textarea, dialog");
  return Boolean(typing || (event.key === " " && event.target.closest("button, input, summary")));
}
