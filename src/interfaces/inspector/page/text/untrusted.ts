// Text of an agent, a tool or a file, which may contain anything. It is split into plain text, and characters that
// invisibly change how text looks; those are named instead.

export type TextPiece = { readonly text: string } | { readonly mark: string };

/** The number of characters that are shown until the reader requests all. */
export const SHOWN_CHARS = 2_048;
/** A longer text is shown in parts of this size: laying out a line of megabytes blocks a browser. */
export const PART_CHARS = 32_768;

/**
 * Controls except line feed and tab; invisible characters that join, split or reorder text; lone surrogates; private
 * use; tag characters; unusual line ends.
 */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\u{e0000}-\u{e0fff}]/u;
const ALL_HIDDEN = new RegExp(HIDDEN.source, 'gu');

/** A text in pieces: plain text, and marks such as `U+202E`. Joined, with the marked characters, they are the text. */
export function splitPieces(text: string): readonly TextPiece[] {
  if (!HIDDEN.test(text)) return text === '' ? [] : [{ text }];
  const found: TextPiece[] = [];
  let from = 0;
  for (const { 0: character, index } of text.matchAll(ALL_HIDDEN)) {
    if (character === '\n' || character === '\t') continue;
    if (index > from) found.push({ text: text.slice(from, index) });
    found.push({ mark: characterMark(character) });
    from = index + character.length;
  }
  if (from < text.length) found.push({ text: text.slice(from) });
  return found;
}

export const characterMark = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** The beginning of a text, without splitting a surrogate pair. */
export function startOfText(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const last = text.charCodeAt(chars - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? chars - 1 : chars);
}

/** A long text in parts that can be laid out separately. */
export function splitParts(text: string, chars = PART_CHARS): readonly string[] {
  const found: string[] = [];
  for (let from = 0; from < text.length;) {
    const part = startOfText(text.slice(from, from + chars + 1), chars);
    found.push(part);
    from += part.length;
  }
  return found;
}

/** Bytes as text if they are UTF-8, otherwise null. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Bytes as hex pairs, sixteen per line, with the offset of each line. */
export function hexDump(bytes: Uint8Array, maxBytes = 1024): string {
  const lines: string[] = [];
  for (let from = 0; from < Math.min(bytes.length, maxBytes); from += 16) {
    const row = [...bytes.subarray(from, Math.min(from + 16, maxBytes))];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    lines.push(`${from.toString(16).padStart(6, '0')}  ${hex}`);
  }
  return lines.join('\n');
}
