export function sum(one, other) {
  return one + other;
}
