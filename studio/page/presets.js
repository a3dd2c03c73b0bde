// SPDX-License-Identifier: MPL-2.0
// Settings to begin with, and a person's own, which the browser keeps.

/** Values that differ from the defaults, and the view to choose, if they show in that one alone. */
const BUNDLED = [
  { name: "Defaults", values: {} },
  { name: "Fine", values: { "superpixel-size": 10 } },
  { name: "Large tiles", values: { "superpixel-size": 48, compactness: 30 } },
  { name: "Follow edges", values: { "superpixel-size": 24, compactness: 3, refine: 2 } },
  { name: "100 regions", values: { regions: 100, refine: 1 } },
  { name: "12 regions", values: { regions: 12, refine: 2, smoothness: 12 } },
  { name: "Merged", values: { "superpixel-size": 14, merge: 2, "merge-max-distance": 12, "merge-passes": 3 } },
  { name: "LSC", values: { algo: "lsc", "superpixel-size": 24 } },
  {
    name: "Poster", view: "abstraction",
    values: { superpixels: 1500, regions: 150, refine: 1, palette: 12, ink: 0, "outline-smoothness": 3 },
  },
  { name: "Ink", view: "abstraction", values: { superpixels: 1500, regions: 400, shading: false, ink: 3 } },
  {
    name: "Watercolor", view: "abstraction",
    values: { superpixels: 2500, regions: 800, ink: 1, "ink-color": 0x60402818, "outline-smoothness": 3, steadiness: 12 },
  },
  {
    // Merged, so that neighbors differ: no line is drawn between like colors.
    name: "Stained glass", view: "abstraction",
    values: { superpixels: 600, compactness: 25, regions: 200, "regions-compactness": 30, shading: false, ink: 8, "ink-color": 0xff08080c },
  },
  {
    name: "Low detail", view: "abstraction",
    values: { superpixels: 1000, regions: 60, ink: 0, "outline-smoothness": 5, steadiness: 12 },
  },
];
const KEY = "superpixel-studio-presets";

const own = () => {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return found.filter(({ name, values }) => typeof name === "string" && typeof values === "object");
  } catch {
    return [];
  }
};

/** Buttons in `root`; `apply(values, view)` gets what a person chooses, `current()` says what "Keep" keeps. */
export function showPresets(root, apply, current) {
  const button = (text, action, title = "") => {
    const element = Object.assign(document.createElement("button"), { type: "button", textContent: text, title, className: "pill" });
    element.onclick = action;
    return element;
  };
  const store = (presets) => {
    localStorage.setItem(KEY, JSON.stringify(presets));
    show();
  };
  const show = () => {
    const bundled = BUNDLED.map(({ name, values, view }) => button(name, () => apply(values, view), describe(values)));
    const kept = own().map((preset) => {
      const element = button(preset.name, () => apply(preset.values), describe(preset.values));
      const remove = button("✕", () => store(own().filter(({ name }) => name !== preset.name)), `Forget ${preset.name}`);
      remove.setAttribute("aria-label", `Forget the preset ${preset.name}`);
      element.classList.add("own");
      const pair = document.createElement("span");
      pair.className = "pair";
      pair.append(element, remove);
      return pair;
    });
    const keep = button("+ Keep these", () => {
      const name = prompt("Name for these settings:")?.trim().slice(0, 40);
      if (name) store([...own().filter((preset) => preset.name !== name), { name, values: current() }]);
    }, "Keep the settings of now in this browser");
    keep.classList.add("keep");
    root.replaceChildren(...bundled, ...kept, keep);
  };
  show();
}

function describe(values) {
  const text = Object.entries(values).map(([name, value]) => `${name}=${value}`).join(" ");
  return text || "All properties at their defaults";
}
