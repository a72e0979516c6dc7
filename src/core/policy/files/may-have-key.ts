/**
 * Whether a policy file may have a key, by its text: a feature that decides by the key is loaded before the file is
 * parsed. In a file with a backslash, escapes can stand for the letters of the key.
 */
export const mayHaveKey = ({ buffer, byteOffset, byteLength }: Uint8Array, key: string): boolean =>
  [key, '\\'].some((text) => Buffer.from(buffer, byteOffset, byteLength).includes(text));
