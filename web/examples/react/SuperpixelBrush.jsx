// SPDX-License-Identifier: MPL-2.0
// <superpixel-brush> as a component of React 18 or newer: properties in, events out, the element itself by ref.

import { forwardRef, useEffect, useImperativeHandle, useRef } from "react";
import "superpixels/brush";

/**
 * `image` is what the element takes (ImageData, ImageBitmap, Blob, ...), `src` an address instead. `options` are compared by content, so
 * that an object which is written anew in each render does not segment anew.
 */
export const SuperpixelBrush = forwardRef(function SuperpixelBrush({ image, src, options, mode = "add", level, color, onLoad, onChange, onLevelChange, onHover, onError, ...others }, ref) {
  const element = useRef(null);
  const handlers = useRef({});
  handlers.current = { load: onLoad, change: onChange, levelchange: onLevelChange, hover: onHover, error: onError };
  useImperativeHandle(ref, () => element.current, []);

  // Before the picture, so that it is segmented once. The handlers of the last render are called.
  useEffect(() => {
    const own = element.current, call = (event) => handlers.current[event.type]?.(event.detail ?? event);
    for (const name of Object.keys(handlers.current)) own.addEventListener(name, call);
    return () => {
      for (const name of Object.keys(handlers.current)) own.removeEventListener(name, call);
    };
  }, []);
  const written = JSON.stringify(options ?? {});
  useEffect(() => {
    element.current.options = JSON.parse(written);
  }, [written]);
  useEffect(() => {
    element.current.mode = mode;
  }, [mode]);
  useEffect(() => {
    if (level) element.current.level = level;
  }, [level]);
  useEffect(() => {
    if (image) element.current.image = image;
  }, [image]);

  return <superpixel-brush ref={element} src={image ? undefined : src} color={color} {...others} />;
});
