// Parses and writes bagit.txt, and bag-info.txt (RFC 8493 2.2.2): labels and values in order; labels may repeat.

import { usageError } from '../../../core/errors.js';
import { isBefore1, type BagVersion } from './manifest.js';
import type { BagRule } from './bag-finding.js';
import { isTagEncoding, type TagEncoding } from './line-reader.js';

/** The content of bagit.txt (RFC 8493 2.1.1). */
export interface Declaration {
  readonly version: BagVersion;
  readonly encoding: TagEncoding;
}

const KNOWN_VERSIONS: readonly string[] = ['0.93', '0.94', '0.95', '0.96', '0.97', '1.0'];
const VERSION = /^BagIt-Version([ \t]*):([ \t]*)(\d{1,3})\.(\d{1,3})([ \t]*)$/;
const ENCODING = /^Tag-File-Character-Encoding([ \t]*):([ \t]*)(\S+)([ \t]*)$/;

type DeclarationResult = { readonly declaration: Declaration; readonly loose: boolean } | { readonly broken: BagRule };

/** Parses the lines of bagit.txt. From version 1.0 on the format is strict; before, spaces were free. */
export function parseDeclaration(lines: readonly string[]): DeclarationResult {
  const [first = '', second = ''] = lines;
  const version = VERSION.exec(first);
  const encoding = ENCODING.exec(second);
  if (lines.length !== 2 || version === null || encoding === null) return { broken: 'declaration.malformed' };
  const [, , , major = '', minor = ''] = version;
  if (!KNOWN_VERSIONS.includes(`${major}.${minor}`)) return { broken: 'declaration.version_unknown' };
  const parsed = { major: Number(major), minor: Number(minor) };
  const loose = !isStrict(version[1], version[2], version[5]) || !isStrict(encoding[1], encoding[2], encoding[4]);
  if (loose && !isBefore1(parsed)) return { broken: 'declaration.malformed' };
  const name = (encoding[3] ?? '').toUpperCase();
  if (!isTagEncoding(name)) return { broken: 'declaration.encoding_unknown' };
  return { declaration: { version: parsed, encoding: name }, loose };
}

const isStrict = (before = '', after = '', end = ''): boolean => before === '' && after === ' ' && end === '';

export const DECLARATION_1_0 = 'BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n';

export interface InfoElement {
  readonly label: string;
  readonly value: string;
}

/** A line that begins with a space or tab continues the value of the previous line. */
const CONTINUED = /^[ \t]+/;
const ELEMENT = /^([^:]*):(.*)$/s;
const COLUMNS = 79;
const INDENT = '  ';

/** Elements, and the numbers (from 1) of malformed lines. */
export interface ParsedInfo {
  readonly elements: readonly InfoElement[];
  readonly malformed: readonly number[];
}

/** From version 1.0 on, a label has no spaces around it; before, they were allowed. */
export function parseBagInfo(lines: readonly string[], version: BagVersion): ParsedInfo {
  const elements: { label: string; parts: string[] }[] = [];
  const malformed: number[] = [];
  for (const [index, line] of lines.entries()) {
    const last = elements.at(-1);
    if (line.trim() === '') continue;
    if (CONTINUED.test(line) && last !== undefined) {
      last.parts.push(line.trim());
      continue;
    }
    const [, label = '', value = ''] = ELEMENT.exec(line) ?? [];
    const trimmed = label.trim();
    if (trimmed === '' || (label !== trimmed && !isBefore1(version))) malformed.push(index + 1);
    else elements.push({ label: trimmed, parts: [value.trim()] });
  }
  return { elements: elements.map(({ label, parts }) => ({ label, value: parts.join(' ').trim() })), malformed };
}

/** Labels are case-insensitive. */
export const infoValuesOf = (elements: readonly InfoElement[], label: string): readonly string[] =>
  elements.filter((element) => element.label.toLowerCase() === label.toLowerCase()).map(({ value }) => value);

const CONTROL = /[\0-\x1f\x7f-\x9f\u2028\u2029]/;

/** @throws UsageError for an element that would not read back as it was */
export function writeBagInfo(elements: readonly InfoElement[]): string {
  for (const { label, value } of elements) {
    const fits = label !== '' && label === label.trim() && value === value.trim() && !label.includes(':');
    if (fits && !CONTROL.test(label + value) && (label + value).isWellFormed()) continue;
    throw usageError(`bag-info.txt cannot represent ${JSON.stringify([label, value])}`);
  }
  return elements.map(({ label, value }) => `${wrapLine(`${label}: ${value}`)}\n`).join('');
}

/** Breaks a line only at single spaces of its value, so that joining the parts restores it. */
function wrapLine(line: string): string {
  const parts: string[] = [];
  let rest = line;
  const from = line.indexOf(':') + 2;
  while (rest.length > COLUMNS) {
    const at = findBreak(rest, parts.length === 0 ? from + 1 : 1);
    if (at === -1) break;
    parts.push(rest.slice(0, at));
    rest = rest.slice(at + 1);
  }
  return [...parts, rest].join(`\n${INDENT}`);
}

/** The last suitable space within the columns, otherwise the first one after them; otherwise -1. */
function findBreak(text: string, from: number): number {
  let found = -1;
  for (let at = text.indexOf(' ', from); at !== -1; at = text.indexOf(' ', at + 1)) {
    const single = /\S/.test(text.charAt(at - 1)) && /\S/.test(text.charAt(at + 1));
    if (!single) continue;
    if (at > COLUMNS - INDENT.length && found !== -1) break;
    found = at;
    if (at > COLUMNS - INDENT.length) break;
  }
  return found;
}

/** `Payload-Oxum`: the number of bytes and files of the payload. */
export interface Oxum {
  readonly bytes: number;
  readonly files: number;
}
export function parseOxum(value: string): Oxum | null {
  const [, bytes, files] = /^(\d{1,15})\.(\d{1,15})$/.exec(value) ?? [];
  return files === undefined ? null : { bytes: Number(bytes), files: Number(files) };
}
export const writeOxum = ({ bytes, files }: Oxum): string => `${bytes}.${files}`;
