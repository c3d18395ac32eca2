// Of the small pages: what a page asks for that shows its own words.
const number = document.body.dataset.number;
Promise.all(['numbers', 'words'].map(async name => {
  const value = await (await fetch(`/api/${name}?page=${number}`)).json();
  document.getElementById(name).textContent = value.word;
})).then(() => { document.title = `page ${number}, shown`; });
