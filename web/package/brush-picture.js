// SPDX-License-Identifier: MPL-2.0
// Pixels of whatever shows a picture on a page.

const KINDS = ["ImageData", "ImageBitmap", "HTMLImageElement", "HTMLCanvasElement", "Blob"];
/** The library's largest side in px. */
const MOST = 16384;

const is = (value, kind) => typeof globalThis[kind] === "function" && value instanceof globalThis[kind];

/** Refuses what is no picture, with words that say what one is. */
export function checkPicture(picture) {
  if (!KINDS.some((kind) => is(picture, kind))) {
    throw new TypeError(`image must be ${KINDS.slice(0, -1).join(", ")} or ${KINDS.at(-1)}, got ${picture === null ? "null" : typeof picture}`);
  }
}

/** The bytes of the picture that an address names. */
export async function fetched(address) {
  const answer = await fetch(address).catch(() => null);
  if (!answer) throw new Error(`the picture ${address} could not be fetched; its server must be reached and, if it is another one, allow this page (CORS)`);
  if (!answer.ok) throw new Error(`the picture ${address} could not be fetched: ${answer.status} ${answer.statusText}`.trim());
  return answer.blob();
}

/** A picture as ImageData: its own bytes where it is one already. */
export async function pixels(picture) {
  if (is(picture, "ImageData")) return picture;
  let drawn = picture;
  if (is(picture, "Blob")) {
    drawn = await createImageBitmap(picture).catch(() => {
      throw new Error(`the file is no picture that this browser can read (${picture.type || "of an unknown type"}); PNG, JPEG and WebP are`);
    });
  } else if (is(picture, "HTMLImageElement")) {
    await picture.decode();
  }
  const width = drawn.naturalWidth ?? drawn.width, height = drawn.naturalHeight ?? drawn.height;
  if (!(width >= 1 && height >= 1 && width <= MOST && height <= MOST)) {
    throw new RangeError(`a picture has 1 to ${MOST} px on each side, got ${width}x${height}; scale it`);
  }
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(drawn, 0, 0);
  if (drawn !== picture) drawn.close();
  try {
    return context.getImageData(0, 0, width, height);
  } catch {
    throw new Error(`the pixels of this picture of ${width}x${height} cannot be read: it comes from a server that does not allow it (CORS), or is too large for this browser`);
  }
}
