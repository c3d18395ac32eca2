export const label = "Rome";
