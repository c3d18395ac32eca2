export const word = () => 'from the chunk';
