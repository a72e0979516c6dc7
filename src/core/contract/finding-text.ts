// Findings quote files from untrusted authors. This file makes the quoted text safe for terminals and logs.

const QUOTED_CHARS_MAX = 60;
const MESSAGE_CHARS_MAX = 200;

/** A message that quotes a file: one line, printable ASCII, truncated. */
export const toPrintable = (text: string): string => escape(truncate(text, MESSAGE_CHARS_MAX));

/** A name or value of a file, quoted for a message. */
export const quoteForMessage = (text: string): string => escape(JSON.stringify(truncate(text, QUOTED_CHARS_MAX)));

const truncate = (text: string, max: number): string => (text.length > max ? `${text.slice(0, max)}...` : text);

const escape = (text: string): string =>
  text.replace(/[^ -~]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
