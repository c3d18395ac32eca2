export const title = name => `Route ${name}`;
export const text = name => `This is the route ${name}, made by a script.`;
