// What a page of scripts asks for, one thing after the other in the table below. Each outcome has a paragraph of its
// own, which is there from the start: so the DOM does not depend on which answer comes first.
import { title, text } from './words.js';

const app = document.getElementById('app');
const here = location.origin;
// A second host of the same server: of a test's names, or this machine's other name.
const others = location.hostname === '127.0.0.1' ? 'localhost' : 'other.test';
const other = `http://${others}${location.port ? ':' + location.port : ''}`;

async function json(url, options) {
  const answer = await fetch(url, options);
  return answer.json();
}

function post(url, value) {
  return json(url, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value),
  });
}

function sendForm() {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', '/api/form');
    request.setRequestHeader('Content-Type', 'application/x-www-form-urlencoded');
    request.onload = () => resolve(request.responseText);
    request.onerror = () => reject(new Error('no answer'));
    request.send('first=1&second=two');
  });
}

function firstMessage(source) {
  return new Promise((resolve, reject) => {
    source.onmessage = event => resolve(event.data);
    source.onerror = () => reject(new Error('failed'));
  });
}

function blobWorker() {
  const source = `fetch('${here}/api/from-blob').then(answer => answer.json()).then(value => postMessage(value.word))`;
  return firstMessage(new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' }))));
}

function framed() {
  const frame = document.createElement('iframe');
  frame.src = `${other}/frame.html`;
  return new Promise(resolve => {
    addEventListener('message', event => event.data && event.data.frame && resolve(event.data.frame));
    document.getElementById('frames').append(frame);
  });
}

function sound() {
  const audio = document.createElement('audio');
  audio.preload = 'auto';
  return new Promise((resolve, reject) => {
    audio.onloadedmetadata = () => resolve(`${audio.duration} seconds`);
    audio.onerror = () => reject(new Error('no sound'));
    audio.src = '/media/tone.wav';
    document.getElementById('frames').append(audio);
  });
}

async function stream() {
  const source = new EventSource('/events');
  return firstMessage(source); // and it stays open
}

function evaluate() {
  return new Promise(resolve => resolve((0, eval)('"allowed"')));
}

// Name of a paragraph → what it asks for.
const ASKED = {
  'dynamic-import': async () => (await import('/assets/chunk.js')).word(),
  'get': async () => (await json('/api/hello?x=1')).word,
  'post-alpha': async () => (await post('/api/search', { q: 'alpha' })).hit,
  'post-beta': async () => (await post('/api/search', { q: 'beta' })).hit,
  'graphql': async () => (await post('/graphql', { query: '{ me { name } }', variables: { n: 1 } })).data.me.name,
  'form': sendForm,
  'put': async () => (await fetch('/api/put', { method: 'PUT', body: 'x' })).text(),
  'packed': async () => (await json('/api/packed')).word,
  'redirect': async () => (await fetch('/old')).text(),
  'worker': () => firstMessage(new Worker('/assets/worker.js', { type: 'module' })),
  'blob-worker': blobWorker,
  'socket': () => firstMessage(new WebSocket(`ws://${location.host}/socket`)),
  'events': stream,
  'frame': framed,
  'sound': sound,
  'cors-read': async () => (await fetch(`${other}/api/closed`)).text(),
  'cors-preflight': async () => (await fetch(`${other}/api/closed`, { method: 'PUT', body: 'x' })).text(),
  'robots': async () => String(window.forbidden || 'not run'),
  'eval': evaluate,
};

function show(name, words) {
  document.getElementById(name).textContent = `${name}: ${words}`;
}

async function ask(name) {
  try {
    show(name, await ASKED[name]());
  } catch (error) {
    show(name, 'refused');
  }
}

function pictures(box) {
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) {
      if (entry.isIntersecting && !entry.target.src) entry.target.src = entry.target.dataset.later;
    }
  });
  for (let number = 0; number < 20; number++) {
    const row = document.createElement('div');
    const picture = new Image(100, 100);
    if (number % 2) {
      picture.loading = 'lazy';
      picture.src = `/pic/lazy-${number}.png`;
    } else {
      picture.dataset.later = `/pic/seen-${number}.png`;
      seen.observe(picture);
    }
    row.className = 'row';
    row.append(picture);
    box.append(row);
  }
}

function scrolling(list, end) {
  let page = 0;
  let busy = false;
  async function more() {
    if (busy || page === 5) return;
    busy = true;
    page++;
    for (const item of (await json(`/api/items?page=${page}`)).items) {
      const line = document.createElement('li');
      line.innerHTML = `<a href="/item/${item}">item ${item}</a>`;
      list.append(line);
    }
    busy = false;
    // Seen anew, since the end of the list may not have left the window.
    watcher.unobserve(end);
    watcher.observe(end);
  }
  const watcher = new IntersectionObserver(entries => entries.some(entry => entry.isIntersecting) && more());
  watcher.observe(end);
}

function button(more, out) {
  let clicks = 0;
  more.onclick = async () => {
    const number = ++clicks;
    if (number === 3) more.remove();
    out.textContent += `${(await json(`/api/more?n=${number}`)).word} `;
  };
}

function route() {
  const name = location.pathname + location.hash;
  document.title = title(name);
  document.getElementById('route').textContent = text(name);
}

function whole() {
  app.innerHTML = '<h1 id=route></h1>' + Object.keys(ASKED).map(name => `<p id="${name}"></p>`).join('')
    + '<div id=frames></div><button id=more>Load more</button><p id=loaded></p>'
    + '<div id=pictures></div><ul id=list></ul><div id=end></div>';
  route();
  for (const name of Object.keys(ASKED)) ask(name);
  pictures(document.getElementById('pictures'));
  scrolling(document.getElementById('list'), document.getElementById('end'));
  button(document.getElementById('more'), document.getElementById('loaded'));
  for (const inside of ['127.0.0.1', '10.0.0.1', '169.254.169.254']) {
    if (inside !== location.hostname) fetch(`http://${inside}/inside/secret`, { mode: 'no-cors' }).catch(() => 0);
  }
}

async function part() {
  app.innerHTML = '<h1 id=route></h1><p id=part></p>';
  route();
  document.getElementById('part').textContent = (await json(`/api/part?of=${location.pathname}`)).word;
}

addEventListener('hashchange', route);
addEventListener('click', event => {
  const link = event.target.closest('a');
  if (!link || link.origin !== here || link.hash) return;
  event.preventDefault();
  history.pushState({}, '', link.href);
  part();
});
if (location.pathname === '/') whole(); else part();
