// Static imports of each kind: relative, absolute, by a name and by a prefix of the import map.
import { say } from "./say.js";
import { start } from "./router.js";
import { label } from "/lib/label.js";
import { greet } from "greeting";
import { sum } from "tools/sum.js";

say("static", `static imports: ${greet(label)}, ${sum(3, 4)}`);

// A module script waits at its top level, and finds data beside itself.
const answer = await fetch(new URL("./data/hills.json", import.meta.url));
const hills = await answer.json();
say("data", `data beside the module: ${hills.length} hills`);

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
worker.onmessage = (event) => say("worker", `module worker: ${event.data}`);
worker.postMessage([3, 4]);

const clip = document.getElementById("clip");
const tellOfClip = () => say("video", `video: ${clip.videoWidth} by ${clip.videoHeight}`);
if (clip.readyState >= 2) tellOfClip();
else clip.addEventListener("loadeddata", tellOfClip, { once: true });

start(hills);
