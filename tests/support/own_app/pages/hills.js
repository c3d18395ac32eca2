export function render(page, hills) {
  const list = document.createElement("ol");
  for (const { name, metres } of hills) {
    const item = document.createElement("li");
    item.textContent = `${name}: ${metres} m`;
    list.append(item);
  }
  page.replaceChildren("The hills by name.", list);
}
