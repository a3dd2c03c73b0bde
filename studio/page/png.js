// SPDX-License-Identifier: MPL-2.0
// Label maps and masks as PNG of gray, which a canvas cannot write. The npm package has this file, too.

const TABLE = new Uint32Array(256).map((_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
  return ~value >>> 0;
}

function chunk(name, data) {
  const bytes = new Uint8Array(12 + data.length), view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(name), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc(bytes.subarray(4, 8 + data.length)));
  return bytes;
}

/** The PNG of width * height samples: of 8 bits from a Uint8Array, of 16 from a Uint16Array. */
export async function grayPng(samples, width, height) {
  const bytes = samples.BYTES_PER_ELEMENT, length = 1 + bytes * width;
  const rows = new Uint8Array(height * length), view = new DataView(rows.buffer);
  for (let y = 0; y < height; y++) {
    // Rows as they are: the first byte names no filter.
    const own = samples.subarray(y * width, (y + 1) * width), at = y * length + 1;
    if (bytes === 1) rows.set(own, at);
    else own.forEach((sample, x) => view.setUint16(at + 2 * x, sample));
  }
  const head = new Uint8Array(13), shape = new DataView(head.buffer);
  shape.setUint32(0, width);
  shape.setUint32(4, height);
  head[8] = 8 * bytes;
  const packed = new Response(new Blob([rows]).stream().pipeThrough(new CompressionStream("deflate")));
  const data = new Uint8Array(await packed.arrayBuffer());
  const signature = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10);
  return new Blob([signature, chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", new Uint8Array())], { type: "image/png" });
}
