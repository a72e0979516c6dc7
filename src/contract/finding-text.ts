// Findings quote files that anybody may have written. What they quote is made fit for terminals and logs here.

const QUOTED_CHARS_MAX = 60;
const MESSAGE_CHARS_MAX = 200;

/** Text that quotes a file: one line, printable ASCII, cut off. */
export const toPrintable = (text: string): string => escape(truncate(text, MESSAGE_CHARS_MAX));

/** A name or value of a file as it may stand in a message. */
export const quoteForMessage = (text: string): string => escape(JSON.stringify(truncate(text, QUOTED_CHARS_MAX)));

const truncate = (text: string, max: number): string => (text.length > max ? `${text.slice(0, max)}...` : text);

const escape = (text: string): string =>
  text.replace(/[^ -~]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
