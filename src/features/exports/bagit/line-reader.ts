// Decodes text from pieces of bytes strictly, and cuts it into lines of bounded length.

import { usageError } from '../../../core/errors.js';

export const TAG_ENCODINGS = ['UTF-8', 'UTF-16', 'UTF-16BE', 'UTF-16LE', 'ISO-8859-1', 'US-ASCII'] as const;
export type TagEncoding = (typeof TAG_ENCODINGS)[number];
export const isTagEncoding = (name: string): name is TagEncoding => (TAG_ENCODINGS as readonly string[]).includes(name);

const BYTE_ORDER_MARK = '\ufeff';

/** Why reading a text stopped: the bytes do not match their encoding, or a line is too long. */
export type TextFault = 'encoding' | 'line';

/** Lines end with CR, LF or both. Text after the last line end is a line if it is not empty. */
export class LineReader {
  /** Whether the text began with a byte order mark, which UTF-16 requires. */
  hasByteOrderMark = false;
  readonly #encoding: TagEncoding;
  readonly #max: number;
  #decode: ((bytes: Uint8Array | null) => string | null) | null = null;
  #head: Uint8Array = new Uint8Array(0);
  #started = false;
  #rest = '';
  #afterReturn = false;

  constructor(encoding: TagEncoding, line_characters_max: number) {
    if (line_characters_max < 1) throw usageError('a line has at least one character');
    this.#encoding = encoding;
    this.#max = line_characters_max;
  }

  /** The lines that end in these bytes. */
  push(bytes: Uint8Array): readonly string[] | TextFault {
    if (this.#decode !== null) return this.#take(this.#decode(bytes));
    // A byte order mark may be split between two pieces: wait for the rest.
    this.#head = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes]);
    return this.#head.length < 2 ? [] : this.#begin();
  }

  /** The last line, if it has no line end. */
  end(): readonly string[] | TextFault {
    const firstLines = this.#decode === null ? this.#begin() : [];
    if (typeof firstLines === 'string') return firstLines;
    // Not with `??`: null signals the end, which detects an incomplete last character.
    const decode = this.#decode;
    const lines = this.#take(decode === null ? '' : decode(null));
    if (typeof lines === 'string') return lines;
    const last = this.#rest === '' ? [] : [this.#rest];
    this.#rest = '';
    return [...firstLines, ...lines, ...last];
  }

  #begin(): readonly string[] | TextFault {
    this.#decode = decoderFor(this.#encoding, this.#head);
    const head = this.#head;
    this.#head = new Uint8Array(0);
    return this.#take(this.#decode(head));
  }

  #take(decoded: string | null): readonly string[] | TextFault {
    if (decoded === null) return 'encoding';
    if (decoded === '') return [];
    let text = decoded;
    if (!this.#started) {
      this.#started = true;
      this.hasByteOrderMark = text.startsWith(BYTE_ORDER_MARK);
      if (this.hasByteOrderMark) text = text.slice(1);
    }
    // The second half of a line end that was split between two pieces.
    if (this.#afterReturn && text.startsWith('\n')) text = text.slice(1);
    else if (text === '') return [];
    this.#afterReturn = text === '' ? false : text.endsWith('\r');
    const lines = (this.#rest + text).split(/\r\n|\r|\n/);
    this.#rest = lines.pop() ?? '';
    return this.#rest.length > this.#max || lines.some(({ length }) => length > this.#max) ? 'line' : lines;
  }
}

/** UTF-16 without a byte order mark is big-endian (RFC 2781 4.3). The decoder returns null for malformed bytes. */
function decoderFor(encoding: TagEncoding, head: Uint8Array): (bytes: Uint8Array | null) => string | null {
  if (encoding === 'ISO-8859-1') return (bytes) => (bytes === null ? '' : Buffer.from(bytes).toString('latin1'));
  if (encoding === 'US-ASCII') {
    return (bytes) => {
      if (bytes === null) return '';
      return bytes.some((byte) => byte > 0x7f) ? null : Buffer.from(bytes).toString('latin1');
    };
  }
  const little = encoding === 'UTF-16' && head[0] === 0xff && head[1] === 0xfe;
  const label = encoding === 'UTF-16' ? (little ? 'utf-16le' : 'utf-16be') : encoding.toLowerCase();
  const decoder = new TextDecoder(label, { fatal: true, ignoreBOM: true });
  return (bytes) => {
    try {
      return bytes === null ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      return null;
    }
  };
}
