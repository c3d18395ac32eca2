import { sum } from "./lib/tools/sum.js";

onmessage = (event) => postMessage(`the sum is ${sum(...event.data)}`);
