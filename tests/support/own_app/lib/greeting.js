export function greet(name) {
  return `Salve, ${name}`;
}
