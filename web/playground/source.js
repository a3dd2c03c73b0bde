// SPDX-License-Identifier: MPL-2.0
// Sources of pictures: files, the clipboard, a camera, films.

/** Larger pictures are made smaller: views are drawn anew for each change. */
const MOST_PIXELS = 16e6;
/** Larger frames of a film are made smaller, so that it goes on. */
const FILM_SIDE = 640;

/** A canvas with something drawn into it, at most so many times as large as it is. */
function drawn(what, width, height, scale) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) });
  canvas.getContext("2d", { willReadFrequently: true }).drawImage(what, 0, 0, canvas.width, canvas.height);
  return canvas;
}

const bytes = (canvas) => canvas.getContext("2d", { willReadFrequently: true }).getImageData(0, 0, canvas.width, canvas.height);

/** A picture that stays as it is: `canvas` shows it, `image` has its bytes. */
export class Picture {
  constructor(canvas, name, isScaled = false) {
    Object.assign(this, { canvas, name, isScaled, isFilm: false, image: bytes(canvas) });
  }

  stop() {}
}

/** A film or a camera. */
export class Film {
  constructor(video, name, stop = () => {}) {
    Object.assign(this, { video, name, stop, isFilm: true });
  }

  get paused() {
    return this.video.paused;
  }

  toggle() {
    if (this.video.paused) this.video.play();
    else this.video.pause();
  }

  /** The frame of now. */
  frame() {
    const { videoWidth: width, videoHeight: height } = this.video;
    const canvas = drawn(this.video, width, height, Math.min(1, FILM_SIDE / Math.max(width, height)));
    return { canvas, image: bytes(canvas) };
  }

  /** Waits until there is another frame, or a while. */
  next() {
    return new Promise((done) => {
      setTimeout(done, 500);
      if (this.video.requestVideoFrameCallback) this.video.requestVideoFrameCallback(() => done());
      else requestAnimationFrame(() => done());
    });
  }
}

/** A picture or film from a file. */
export async function opened(file) {
  if (file.type.startsWith("video/")) return film(file);
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name || "This"} is no picture or video that this browser can read; PNG, JPEG, WebP, MP4 and WebM are`);
  });
  const scale = Math.min(1, Math.sqrt(MOST_PIXELS / (bitmap.width * bitmap.height)));
  const canvas = drawn(bitmap, bitmap.width, bitmap.height, scale);
  bitmap.close();
  return new Picture(canvas, file.name || "pasted picture", scale < 1);
}

async function film(file) {
  const address = URL.createObjectURL(file);
  const video = Object.assign(document.createElement("video"), { muted: true, loop: true, playsInline: true, src: address });
  try {
    await video.play();
  } catch {
    URL.revokeObjectURL(address);
    throw new Error(`${file.name} is no video that this browser can play; MP4 with H.264 and WebM usually are`);
  }
  return new Film(video, file.name, () => {
    video.pause();
    video.removeAttribute("src");
    URL.revokeObjectURL(address);
  });
}

/** The camera that the browser offers. */
export async function camera() {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Error("The camera needs a secure page: open this one by https, or as localhost");
  }
  const stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: FILM_SIDE } } }).catch((error) => {
    throw new Error(error.name === "NotAllowedError" ? "The browser was not allowed to use the camera" : `There is no camera that can be used: ${error.message}`);
  });
  const stop = () => stream.getTracks().forEach((track) => track.stop());
  const video = Object.assign(document.createElement("video"), { muted: true, playsInline: true, srcObject: stream });
  await video.play();
  return new Film(video, "camera", stop);
}
