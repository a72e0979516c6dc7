// The tokens of Cedar's grammar (docs.cedarpolicy.com, "Grammar for Cedar syntax"), for the reference evaluator.

export interface Token {
  readonly kind: 'identifier' | 'integer' | 'string' | 'symbol' | 'end';
  /** Of a string, what stands between the quotation marks, with its escapes. */
  readonly text: string;
  /** Where the token begins in the text. */
  readonly at: number;
}

/** A text that Cedar's grammar does not accept. */
export class ReferenceSyntaxError extends Error {}

const SPACE = /(?:\s|\/\/[^\n]*)+/y;
const TOKENS: readonly (readonly [Token['kind'], RegExp])[] = [
  ['identifier', /[_a-zA-Z][_a-zA-Z0-9]*/y],
  ['integer', /[0-9]+/y],
  ['string', /"(?:[^"\\]|\\[^])*"/y],
  ['symbol', /::|==|!=|<=|>=|&&|\|\||[()[\]{},;:.@<>+\-*!]/y],
];

/** The tokens of a text; the last one is the end. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = skipSpace(text, 0);
  while (at < text.length) {
    const token = tokenAt(text, at);
    tokens.push(token);
    at = skipSpace(text, at + token.text.length + (token.kind === 'string' ? 2 : 0));
  }
  return [...tokens, { kind: 'end', text: '', at }];
}

function skipSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  return SPACE.test(text) ? SPACE.lastIndex : at;
}

function tokenAt(text: string, at: number): Token {
  for (const [kind, pattern] of TOKENS) {
    pattern.lastIndex = at;
    const [found] = pattern.exec(text) ?? [];
    if (found !== undefined) return { kind, text: kind === 'string' ? found.slice(1, -1) : found, at };
  }
  throw new ReferenceSyntaxError(`no token begins at ${at}: ${text.slice(at, at + 20)}`);
}

const ESCAPE = /\\(?:x([0-7][0-9a-fA-F])|u\{([0-9a-fA-F]{1,6})\}|([^]))/g;
const PLAIN: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  '0': '\0',
  '\\': '\\',
  '"': '"',
  "'": "'",
};

/** The string that a literal means. */
export function unescapeString(raw: string): string {
  return raw.replace(ESCAPE, (whole: string, byte?: string, point?: string, letter?: string) => {
    const hex = byte ?? point;
    const plain = hex === undefined ? PLAIN[letter ?? ''] : characterOf(Number.parseInt(hex, 16));
    if (plain === undefined) throw new ReferenceSyntaxError(`invalid escape ${whole}`);
    return plain;
  });
}

function characterOf(point: number): string | undefined {
  const isScalar = point <= 0x10_ffff && (point < 0xd800 || point > 0xdfff);
  return isScalar ? String.fromCodePoint(point) : undefined;
}

const PATTERN_PIECE = /\\u\{[^}]*\}|\\x..|\\[^]|[^\\]/gsu;

/** The parts of a pattern of `like` between its wildcards: a pattern without a wildcard has one part. */
export function patternParts(raw: string): readonly string[] {
  const parts = [''];
  for (const [piece] of raw.matchAll(PATTERN_PIECE)) {
    const character = piece === '\\*' ? '\\*' : unescapeString(piece);
    // Cedar reads a star that is written as its number as a wildcard too.
    if (character === '*') parts.push('');
    else parts.push(`${parts.pop() ?? ''}${character === '\\*' ? '*' : character}`);
  }
  return parts;
}
