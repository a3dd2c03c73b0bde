// SPDX-License-Identifier: MPL-2.0
// A page with React: opens a picture, selects in it, saves the mask.

import { useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { SuperpixelBrush } from "./SuperpixelBrush.jsx";

function App() {
  const brush = useRef(null);
  const [image, setImage] = useState(null);
  const [mode, setMode] = useState("add");
  const [state, setState] = useState({ area: 0, canUndo: false, canRedo: false });
  const [level, setLevel] = useState(null);
  const [problem, setProblem] = useState("");

  async function save() {
    const address = URL.createObjectURL(await brush.current.toPNG());
    Object.assign(document.createElement("a"), { href: address, download: "mask.png" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }
  return (
    <main>
      <p>
        <input type="file" accept="image/*" aria-label="Picture" onChange={(event) => setImage(event.target.files[0] ?? null)} />
        <button onClick={() => setMode(mode === "add" ? "remove" : "add")}>Mode: {mode}</button>
        <button disabled={!state.canUndo} onClick={() => brush.current.undo()}>Undo</button>
        <button disabled={!state.canRedo} onClick={() => brush.current.redo()}>Redo</button>
        <button disabled={!state.area} onClick={save}>Save mask</button>
      </p>
      <p role="status">{problem || (level ? `${level} regions, ${state.area} px selected` : "Choose a picture.")}</p>
      <SuperpixelBrush
        ref={brush} image={image} mode={mode} options={{ nSegments: 1500 }}
        onChange={setState} onLevelChange={({ level }) => setLevel(level)} onError={(event) => setProblem(event.message)}
      />
    </main>
  );
}

createRoot(document.getElementById("root")).render(<App />);
