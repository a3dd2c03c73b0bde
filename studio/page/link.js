// SPDX-License-Identifier: MPL-2.0
// The connection to the studio: newest frames and states in, requests out; connects again when it breaks.

import { readFrame } from "./frame.js";

const FIRST_WAIT = 300, LONGEST_WAIT = 4000;
/** A request of the same kind follows after so many milliseconds, the last one always. */
const PACE = 60;

export class Link extends EventTarget {
  #socket = null;
  #wait = FIRST_WAIT;
  #paced = new Map();
  #query = location.search;
  #layouts = null;

  constructor() {
    super();
    this.#connect();
  }

  /** An address of the studio, with the token where there is one. */
  address(path, parameters = {}) {
    const query = new URLSearchParams(this.#query);
    for (const [name, value] of Object.entries(parameters)) query.set(name, value);
    const text = query.toString();
    return text ? `${path}?${text}` : path;
  }

  /** Sends a request; `false` where there is no connection. */
  send(request) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(request));
    return true;
  }

  /** Sends one that changes all the time, such as that of a slider: not each, but always the last. */
  sendPaced(key, request) {
    const waiting = this.#paced.get(key);
    if (waiting) {
      waiting.request = request;
      return;
    }
    this.send(request);
    const entry = { request: null };
    this.#paced.set(key, entry);
    setTimeout(() => {
      this.#paced.delete(key);
      if (entry.request) this.sendPaced(key, entry.request);
    }, PACE);
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #connect() {
    const address = new URL(this.address("/socket"), location.href);
    address.protocol = "ws:";
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.onopen = () => {
      this.#wait = FIRST_WAIT;
      this.#tell("open");
    };
    socket.onmessage = ({ data }) => this.#receive(socket, data);
    socket.onclose = (event) => this.#lost(event);
  }

  async #receive(socket, data) {
    if (typeof data === "string") {
      const message = JSON.parse(data);
      // The hello comes before all frames.
      if (message.hello) this.#layouts = message.hello.records;
      for (const type of ["hello", "state", "refused"]) if (type in message) this.#tell(type, message[type]);
      return;
    }
    let number = 0;
    try {
      const frame = await readFrame(data, this.#layouts);
      number = frame.number;
      await new Promise((drawn) => this.#tell("frame", { frame, drawn }));
    } catch (error) {
      this.#tell("refused", `A frame cannot be read: ${error.message}. Load this page again.`);
    }
    // On the connection that it came by: another one has not sent it.
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ do: "seen", number }));
  }

  async #lost({ code, reason }) {
    this.#socket = null;
    let why = reason;
    if (code === 1006 && !why) {
      // Refused, or not there: a socket does not say which.
      const answer = await fetch(this.address("/"), { cache: "no-store" }).catch(() => null);
      if (answer?.status === 401) why = await answer.text();
    }
    this.#tell("lost", { why, wait: this.#wait });
    setTimeout(() => this.#connect(), this.#wait);
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
  }
}
