// Text that an agent, a tool or a file brought: anything may be in it. It is cut into what can be shown as it is, and
// characters that change how text looks without being seen, which are named instead.

export type TextPiece = { readonly text: string } | { readonly mark: string };

/** What is shown before somebody asks for all. */
export const SHOWN_CHARS = 2_048;
/** A longer text is shown in parts of this size: to lay out a line of megabytes stops a browser. */
export const PART_CHARS = 32_768;

/**
 * Controls except line feed and tab; what joins, splits or turns text without being seen; surrogates without their
 * other half; private use; characters of tags; line ends that are none.
 */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\u{e0000}-\u{e0fff}]/u;
const ALL_HIDDEN = new RegExp(HIDDEN.source, 'gu');

/** A text in pieces: plain text, and marks such as `U+202E`. Joined, with the marks' characters, they are the text. */
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

/** The beginning of a text, not cut between two halves of one character. */
export function startOfText(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const last = text.charCodeAt(chars - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? chars - 1 : chars);
}

/** A long text in parts, each of which can be laid out alone. */
export function splitParts(text: string, chars = PART_CHARS): readonly string[] {
  const found: string[] = [];
  for (let from = 0; from < text.length;) {
    const part = startOfText(text.slice(from, from + chars + 1), chars);
    found.push(part);
    from += part.length;
  }
  return found;
}

/** Bytes as text where they are UTF-8, else null. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Bytes as pairs of hex digits, sixteen to a line, with where the line begins. */
export function hexDump(bytes: Uint8Array, maxBytes = 1024): string {
  const lines: string[] = [];
  for (let from = 0; from < Math.min(bytes.length, maxBytes); from += 16) {
    const row = [...bytes.subarray(from, Math.min(from + 16, maxBytes))];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    lines.push(`${from.toString(16).padStart(6, '0')}  ${hex}`);
  }
  return lines.join('\n');
}
