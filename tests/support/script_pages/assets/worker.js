import { title } from './words.js';

const value = await (await fetch('/api/from-worker')).json();
postMessage(`${title('worker')} ${value.word}`);
