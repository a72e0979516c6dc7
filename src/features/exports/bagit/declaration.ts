import type { BagRule } from './bag-finding.js';
import { isBefore1, type BagVersion } from './paths.js';
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
