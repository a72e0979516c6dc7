// Settings files as their clients read them: JSON, and for some of them with comments and commas before a bracket.

import { isJsonObject, type JsonObject, readJson } from '../../../core/contract/json.js';

/** The object of a settings file; null if the text has no object. An empty text counts as an empty object. */
export function readJsonObject(text: string): JsonObject | null {
  if (text.trim() === '') return {};
  const value = readJson(text.replace(/^\uFEFF/, ''));
  return isJsonObject(value) ? value : null;
}

/** The same for a client that accepts comments. */
export const readCommentedObject = (text: string): JsonObject | null => readJsonObject(withoutComments(text));

/** The text with spaces in place of comments, and of commas before a closing bracket. */
function withoutComments(text: string): string {
  let clean = '';
  for (let at = 0; at < text.length;) {
    const end = endOfToken(text, at);
    const token = text.slice(at, end);
    clean += token.startsWith('//') || token.startsWith('/*') ? ' ' : token;
    at = end;
  }
  return withoutLastCommas(clean);
}

/** The end of the string, comment or character that begins here. */
function endOfToken(text: string, at: number): number {
  if (text.startsWith('//', at)) return endAfter(text, '\n', at, 0);
  if (text.startsWith('/*', at)) return endAfter(text, '*/', at + 2, 2);
  return text.charAt(at) === '"' ? endOfString(text, at) : at + 1;
}

const endAfter = (text: string, mark: string, from: number, length: number): number => {
  const found = text.indexOf(mark, from);
  return found < 0 ? text.length : found + length;
};

function endOfString(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end += 1) {
    if (text.charAt(end) === '\\') end += 1;
    else if (text.charAt(end) === '"') return end + 1;
  }
  return text.length;
}

function withoutLastCommas(text: string): string {
  const parts: string[] = [];
  let comma = -1;
  for (let at = 0; at < text.length;) {
    const end = endOfToken(text, at);
    const token = text.slice(at, end);
    if (/[\]}]/.test(token) && comma >= 0) parts[comma] = ' ';
    if (token === ',') comma = parts.length;
    else if (token.trim() !== '') comma = -1;
    parts.push(token);
    at = end;
  }
  return parts.join('');
}
