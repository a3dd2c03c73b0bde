// SPDX-License-Identifier: MPL-2.0
// Outlines of regions as SVG paths, on the edges between pixels.

/** The outline of the region of `label`, as path data in pixels of the picture. */
export function outline(side, label) {
  return around(side, side.region(label).bounds, (other) => other === label);
}

/** The outline of all regions of an object. */
export function outlineOfObject(side, { id, box: [x, y, width, height] }) {
  return around(side, [x, y, x + width, y + height], (label) => side.owners[label] === id);
}

/** The outline of the pixels within bounds whose label `belongs`. */
function around({ labels, width, height }, [x0, y0, x1, y1], belongs) {
  const is = (x, y) => x >= 0 && y >= 0 && x < width && y < height && belongs(labels[y * width + x]);
  let path = "";
  // Horizontal edges above row y, then vertical ones left of column x, each as long as it goes.
  for (let y = y0; y <= y1; y++) {
    for (let x = x0, start = -1; x <= x1; x++) {
      const edge = x < x1 && is(x, y) !== is(x, y - 1);
      if (edge && start < 0) start = x;
      if (!edge && start >= 0) {
        path += `M${start} ${y}H${x}`;
        start = -1;
      }
    }
  }
  for (let x = x0; x <= x1; x++) {
    for (let y = y0, start = -1; y <= y1; y++) {
      const edge = y < y1 && is(x, y) !== is(x - 1, y);
      if (edge && start < 0) start = y;
      if (!edge && start >= 0) {
        path += `M${x} ${start}V${y}`;
        start = -1;
      }
    }
  }
  return path;
}
