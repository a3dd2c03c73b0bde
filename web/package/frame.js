// SPDX-License-Identifier: MPL-2.0
// Frames of WebCodecs as images: their bytes as they are, without a canvas.

/** Formats of WebCodecs by their names here. */
const FORMATS = {
  I420: "I420", I420P10: "I420_10LE", I420P12: "I420_12LE", I420A: "A420", I422: "Y42B", I422P10: "I422_10LE", I422P12: "I422_12LE", I444: "Y444",
  I444P10: "Y444_10LE", I444P12: "Y444_12LE", NV12: "NV12", RGBA: "RGBA", RGBX: "RGBx", BGRA: "BGRA", BGRX: "BGRx",
};

/** Whether a value is a `VideoFrame`, of whichever window. */
export const isFrame = (value) => typeof value?.copyTo === "function" && typeof value.allocationSize === "function";

/** The image that a `VideoFrame` shows. */
export async function readFrame(frame) {
  if (!isFrame(frame)) throw new TypeError("readFrame takes a VideoFrame");
  if (!frame.visibleRect) throw new TypeError("the VideoFrame is closed");
  const { visibleRect: { width, height }, colorSpace } = frame;
  // One whose pixels only the graphics card knows is asked for RGBA, which not every browser gives.
  const options = frame.format === null ? { format: "RGBA" } : {}, format = FORMATS[frame.format ?? "RGBA"];
  if (!format) throw new RangeError(`a VideoFrame of the format ${frame.format} is none of ${Object.keys(FORMATS).join(", ")}`);
  const data = new Uint8Array(frame.allocationSize(options));
  const copied = frame.copyTo(data, options);
  const image = { data, width, height, format };
  // Without a word about them they are those that WebCodecs gives to frames of Y'CbCr.
  if (!/RGB|BGR/.test(format)) Object.assign(image, { matrix: colorSpace?.matrix ?? "bt709", fullRange: colorSpace?.fullRange ?? false });
  await copied;
  return image;
}
