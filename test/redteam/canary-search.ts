// Canaries: texts that occur only in content that a lane withholds, and the search for them in all output.

import { brotliDecompressSync, inflateRawSync, inflateSync } from 'node:zlib';
import { sha256 } from '../../src/core/contract/hash.js';

export interface Canary {
  /** The place where it was planted. */
  readonly kind: string;
  /** Only letters and digits: no encoding of text changes it. */
  readonly text: string;
}

/** Always the same canary for the same kind. */
export const canary = (kind: string): Canary => ({ kind, text: `Cny${sha256(`canary: ${kind}`).slice(0, 24)}` });

export interface CanaryFinding {
  readonly kind: string;
  /** The encodings around it, the outermost first: `gzip > base64 > plain`. */
  readonly form: string;
}

/** Maximum nesting of containers that are opened. */
const DEPTH_MAX = 3;
/** Per container. */
const BYTES_MAX = 256 * 1_048_576;
/** Shorter encoded text contains no canary in a container. */
const BASE64_MIN = 40;

/** Every canary in an output, in any form. */
export function canariesIn(output: Uint8Array | string, canaries: readonly Canary[]): readonly CanaryFinding[] {
  const found = new Map<string, CanaryFinding>();
  search(Buffer.from(output as Uint8Array), { canaries, forms: [], found });
  return [...found.values()];
}

interface Search {
  readonly canaries: readonly Canary[];
  /** The containers that were opened on the way. */
  readonly forms: readonly string[];
  readonly found: Map<string, CanaryFinding>;
}

function search(bytes: Buffer, { canaries, forms, found }: Search): void {
  const text = bytes.toString('latin1');
  for (const { form, at, common } of sharedParts(canaries)) {
    // First search for the common part of all canaries: most outputs do not contain it.
    if (!text.includes(common)) continue;
    for (const canary of canaries) {
      const variant = formsOf(canary.text).find(([name]) => name === form)?.[1][at];
      if (variant === undefined || !text.includes(variant)) continue;
      const whole = [...forms, form].join(' > ');
      found.set(`${canary.kind} ${whole}`, { kind: canary.kind, form: whole });
    }
  }
  if (forms.length >= DEPTH_MAX) return;
  for (const [form, content] of contentsIn(bytes, text)) search(content, { canaries, forms: [...forms, form], found });
}

/** A variant of a form, and the beginning or end that it has for every canary. */
interface SharedPart {
  readonly form: string;
  readonly at: number;
  readonly common: string;
}

const shared = new WeakMap<readonly Canary[], readonly SharedPart[]>();

function sharedParts(canaries: readonly Canary[]): readonly SharedPart[] {
  const before = shared.get(canaries);
  if (before !== undefined) return before;
  const [first] = canaries;
  const parts = (first === undefined ? [] : formsOf(first.text)).flatMap(([form, variants], index) =>
    variants.map((_variant, at) => {
      const all = canaries.map(({ text }) => formsOf(text)[index]?.[1][at] ?? '');
      const [begin, end] = [commonBegin(all), reversed(commonBegin(all.map(reversed)))];
      return { form, at, common: begin.length >= end.length ? begin : end };
    }),
  );
  shared.set(canaries, parts);
  return parts;
}

const reversed = (text: string): string => Array.from(text).reverse().join('');

function commonBegin(texts: readonly string[]): string {
  const [first = ''] = texts;
  let length = first.length;
  for (const text of texts) while (!text.startsWith(first.slice(0, length))) length -= 1;
  return first.slice(0, length);
}

const known = new Map<string, readonly (readonly [form: string, variants: readonly string[]])[]>();

/** A canary in every form that an output may have it in, outside of containers. */
function formsOf(wanted: string): readonly (readonly [form: string, variants: readonly string[]])[] {
  const before = known.get(wanted);
  if (before !== undefined) return before;
  const bytes = Buffer.from(wanted);
  const hex = bytes.toString('hex');
  const escaped = Array.from(wanted, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const forms = [
    ['plain', [wanted, wanted.toLowerCase(), wanted.toUpperCase()]],
    ['JSON escapes', [escaped, escaped.toUpperCase().replaceAll('\\U', '\\u')]],
    ['percent', [bytes.toString('hex').replace(/../g, '%$&'), hex.toUpperCase().replace(/../g, '%$&')]],
    ['base64', aligned(bytes, 'base64')],
    ['base64url', aligned(bytes, 'base64url')],
    ['hex', [hex, hex.toUpperCase()]],
    ['UTF-16', [Buffer.from(wanted, 'utf16le').toString('latin1')]],
    ['backwards', [reversed(wanted)]],
  ] as const;
  known.set(wanted, forms);
  return forms;
}

/** In base64 three bytes are four characters: the same text has three forms, without the characters at both ends. */
const aligned = (bytes: Buffer, encoding: 'base64' | 'base64url'): readonly string[] =>
  [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString(encoding)
      .replace(/=+$/, '');
    return text.slice(Math.ceil((before * 4) / 3), -1);
  });

/** Opens the compressed or encoded parts of an output. */
function* contentsIn(bytes: Buffer, text: string): Generator<readonly [form: string, content: Buffer]> {
  yield* packed(bytes, 'gzip', Buffer.from([0x1f, 0x8b, 0x08]), (at) =>
    inflateRawSync(bytes.subarray(at + gzipHeader(bytes, at)), { maxOutputLength: BYTES_MAX, finishFlush: SYNC_FLUSH }),
  );
  yield* packed(bytes, 'zip', Buffer.from('PK\u0003\u0004'), (at) => zipEntry(bytes, at));
  for (const level of [0x01, 0x5e, 0x9c, 0xda]) {
    yield* packed(bytes, 'zlib', Buffer.from([0x78, level]), (at) =>
      inflateSync(bytes.subarray(at), { maxOutputLength: BYTES_MAX, finishFlush: SYNC_FLUSH }),
    );
  }
  const whole = attempt(() => brotliDecompressSync(bytes, { maxOutputLength: BYTES_MAX }));
  if (whole !== null && whole.length > 0) yield ['brotli', whole];
  for (const [encoded] of text.matchAll(/[A-Za-z0-9+/_-]{40,}={0,2}/g)) {
    if (encoded.length < BASE64_MIN || /^[0-9a-f]+$/.test(encoded)) continue;
    const content = Buffer.from(encoded, /[_-]/.test(encoded) ? 'base64url' : 'base64');
    // Base64 of plain text is one of the forms above: here only a container counts.
    if (content.includes('PK\u0003\u0004') || content.includes(Buffer.from([0x1f, 0x8b, 0x08])))
      yield ['base64', content];
  }
}

/** Z_SYNC_FLUSH: truncated data, or data with a trailing part, is decompressed as far as possible. */
const SYNC_FLUSH = 2;

function* packed(
  bytes: Buffer,
  form: string,
  magic: Buffer,
  open: (at: number) => Buffer | null,
): Generator<readonly [form: string, content: Buffer]> {
  for (let at = bytes.indexOf(magic); at >= 0; at = bytes.indexOf(magic, at + 1)) {
    const content = attempt(() => open(at));
    if (content !== null && content.length > 0) yield [form, content];
  }
}

/** The length of the header of a gzip member: data after its end is then irrelevant. */
function gzipHeader(bytes: Buffer, at: number): number {
  const flags = bytes[at + 3] ?? 0;
  let length = 10;
  if ((flags & 4) !== 0) length += 2 + bytes.readUInt16LE(at + length);
  for (const name of [8, 16]) {
    if ((flags & name) !== 0) length = bytes.indexOf(0, at + length) + 1 - at;
  }
  return (flags & 2) !== 0 ? length + 2 : length;
}

/** The content after a local header of a zip archive; its sizes are not trusted. */
function zipEntry(bytes: Buffer, at: number): Buffer | null {
  const method = bytes.readUInt16LE(at + 8);
  const begin = at + 30 + bytes.readUInt16LE(at + 26) + bytes.readUInt16LE(at + 28);
  if (method === 0) return null;
  return inflateRawSync(bytes.subarray(begin), { maxOutputLength: BYTES_MAX, finishFlush: SYNC_FLUSH });
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}
