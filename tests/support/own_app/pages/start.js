export function render(page) {
  page.textContent = "Seven hills, shown by modules.";
}
