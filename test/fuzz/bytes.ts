const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The UTF-8 form of a text; a lone surrogate, which has none, becomes the three bytes that some encoders write. */
export function bytesOf(text: string): Uint8Array {
  if (text.isWellFormed()) return new Uint8Array(Buffer.from(text));
  const parts = Array.from(text, (char) => {
    if (char.isWellFormed()) return Buffer.from(char);
    const unit = char.charCodeAt(0);
    return Buffer.from([0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)]);
  });
  return new Uint8Array(Buffer.concat(parts));
}

/** @returns null for bytes that are not UTF-8; a byte order mark stays */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return UTF8.decode(bytes);
  } catch {
    return null;
  }
}
