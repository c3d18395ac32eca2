export function legend(hill) {
  return `Romulus chose the ${hill.name}, all ${hill.metres} m of it.`;
}
