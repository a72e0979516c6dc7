// The only file that parses YAML. The bytes are untrusted: a replay reads a policy out of a ledger. A file is read in
// three passes, and each one relies only on what the previous one has accepted:
//   1. bytes → text: size, encoding, and remnants of editors and shells;
//   2. the lexer alone, which takes linear time on any text, rejects dangerous or deep YAML. The parser must not see
//      such text: a megabyte of open brackets takes it seconds or ends the process;
//   3. the parser and the walk over its tree, to plain data without prototypes.

import {
  CST,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  stringify,
  type Pair,
  type Scalar,
} from 'yaml';
import { quoteForMessage, toPrintable } from '../../contract/finding-text.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';

const FLOW_DEPTH_MAX = 16;
const INDENT_COLUMNS_MAX = 64;
/** `-`, `?` and `:` in one line; each may open a level. */
const INDICATORS_PER_LINE_MAX = 8;
/** Maximum number of reported mistakes per file. */
const PROBLEMS_MAX = 10;

/** The rules for a file's syntax, which are checked before its content. */
export const YAML_RULES = [
  'yaml.too_large',
  'yaml.encoding',
  'yaml.bom',
  'yaml.control_character',
  'yaml.powershell_wrapping',
  'yaml.too_complex',
  'yaml.anchor',
  'yaml.alias',
  'yaml.tag',
  'yaml.directive',
  'yaml.multiple_documents',
  'yaml.syntax',
  'yaml.merge_key',
  'yaml.key',
  'yaml.duplicate_key',
  'yaml.number',
  'yaml.not_a_mapping',
] as const;
export type YamlRule = (typeof YAML_RULES)[number];

export interface YamlProblem {
  readonly line: number;
  readonly rule: YamlRule;
  readonly message: string;
}

/** The size limits of a file; depth has limits of its own. */
export interface YamlLimits {
  readonly bytes_max: number;
  /** Lexemes, escapes and line feeds: what the parser's time and memory depend on. A line has about five. */
  readonly parts_max: number;
}

/** A file as plain data, with the line of every part. */
export interface YamlDocument {
  /** Objects have no prototype. Numbers may be infinite, strings may contain half a surrogate pair (`"\ud800"`). */
  readonly data: JsonObject;
  /** The line (from 1) of the part that a JSON pointer names, or of the nearest existing part that encloses it. */
  readonly lineOf: (pointer: string) => number;
}

export type YamlReadResult =
  | { readonly document: YamlDocument; readonly problems: readonly [] }
  | { readonly document: null; readonly problems: readonly YamlProblem[] };

/** Reads one file: any bytes, without throwing, in time proportional to their number. */
export function readStrictYaml(bytes: Uint8Array, { bytes_max, parts_max }: YamlLimits): YamlReadResult {
  const text = decode(bytes, bytes_max);
  if (typeof text !== 'string') return { document: null, problems: [text] };
  const problem = checkLexemes(text, parts_max);
  return problem === null ? parse(text) : { document: null, problems: [problem] };
}

/** YAML for generated files: block style, no folded lines, keys in the order of the object. */
export const toYaml = (value: unknown): string =>
  stringify(value, { lineWidth: 0, aliasDuplicateObjects: false, version: '1.2' });

// Only tab, line feed and carriage return are allowed among printable characters.
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/u;

function decode(bytes: Uint8Array, bytes_max: number): string | YamlProblem {
  if (bytes.byteLength > bytes_max) {
    return { line: 1, rule: 'yaml.too_large', message: `is larger than ${bytes_max} bytes` };
  }
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { line: 1, rule: 'yaml.encoding', message: 'is not UTF-8; save it as UTF-8 without a byte order mark' };
  }
  if (text.startsWith('\ufeff')) {
    return { line: 1, rule: 'yaml.bom', message: 'starts with a byte order mark; save it as UTF-8 without one' };
  }
  const control = CONTROL.exec(text);
  if (control !== null) {
    const message = `holds the control character ${quoteForMessage(control[0])}`;
    return { line: lineAt(text, control.index), rule: 'yaml.control_character', message };
  }
  // A here-string that was committed with its quotes (this happened to the policies that this contract is based on).
  if (/^\s*@['"]/u.test(text)) {
    return { line: 1, rule: 'yaml.powershell_wrapping', message: "is wrapped in a PowerShell here-string (@' ... '@)" };
  }
  return text;
}

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length;

const REFUSED_LEXEMES: ReadonlyMap<string | null, { readonly rule: YamlRule; readonly message: string }> = new Map([
  ['anchor', { rule: 'yaml.anchor', message: 'has an anchor (&); write the value out' }],
  ['alias', { rule: 'yaml.alias', message: 'has an alias (*); write the value out' }],
  ['tag', { rule: 'yaml.tag', message: 'has a tag (!); plain values only' }],
  ['directive-line', { rule: 'yaml.directive', message: 'has a directive (%); YAML 1.2 without directives only' }],
]);

const FLOW_OPENS: readonly (string | null)[] = ['flow-map-start', 'flow-seq-start'];
const FLOW_CLOSES: readonly (string | null)[] = ['flow-map-end', 'flow-seq-end'];

function checkLexemes(text: string, parts_max: number): YamlProblem | null {
  let [line, budget, flowDepth, indicators] = [1, parts_max, 0, 0];
  let previous: string | null = null;
  for (const lexeme of new Lexer().lex(text)) {
    // The text of a scalar is no token: it may look like one.
    const type: string | null = previous === 'scalar' ? null : CST.tokenType(lexeme);
    const refused = REFUSED_LEXEMES.get(type);
    if (refused !== undefined) return { line, ...refused };
    const lines = lexeme.split('\n').length - 1;
    budget -= type === 'newline' ? 1 : lines + (type === 'double-quoted-scalar' ? weighEscapes(lexeme) : 1);
    if (FLOW_OPENS.includes(type)) flowDepth += 1;
    if (FLOW_CLOSES.includes(type)) flowDepth -= 1;
    // After this error, lexer, parser and this count would disagree about the nesting.
    if (flowDepth < 0 || type === 'flow-error-end') {
      return { line, rule: 'yaml.syntax', message: 'is not YAML: a bracket is never opened, or not closed' };
    }
    // In brackets a colon only makes a pair; the other indicators may open a level anywhere.
    if (type === 'seq-item-ind' || type === 'explicit-key-ind' || (type === 'map-value-ind' && flowDepth === 0)) {
      indicators += 1;
    }
    const indented = previous === 'newline' && type === 'space' && lexeme.length > INDENT_COLUMNS_MAX;
    if (budget < 0 || flowDepth > FLOW_DEPTH_MAX || indicators > INDICATORS_PER_LINE_MAX || indented) {
      return { line, rule: 'yaml.too_complex', message: 'is nested too deeply, or has too many parts' };
    }
    if (type === 'newline') indicators = 0;
    previous = type;
    line += lines;
  }
  return null;
}

const ESCAPES = /\\(?:[0abtnvfre "/\\N_LP\t\r\n]|x[\dA-Fa-f]{2}|u[\dA-Fa-f]{4}|U[\dA-Fa-f]{8}|([^]))/gu;
/** The parser creates an error for each invalid escape, which costs far more than an escape. */
const INVALID_ESCAPE_PARTS = 500;

/** The parts of a quoted scalar: one, and its escapes. */
function weighEscapes(lexeme: string): number {
  let parts = 1;
  for (const [, invalid] of lexeme.matchAll(ESCAPES)) parts += invalid === undefined ? 1 : INVALID_ESCAPE_PARTS;
  return parts;
}

function parse(text: string): YamlReadResult {
  const lineCounter = new LineCounter();
  const parsed = parseYamlDocument(text, lineCounter);
  // Stryker disable next-line all: no text is known that makes the parser throw
  if (parsed === null) {
    // Stryker disable next-line all: the same
    return { document: null, problems: [{ line: 1, rule: 'yaml.syntax', message: 'cannot be parsed' }] };
  }
  const walk: YamlWalk = { problems: [], lineAt: (offset) => lineCounter.linePos(offset).line };
  for (const { code, message, pos } of [...parsed.errors, ...parsed.warnings]) {
    if (code === 'MULTIPLE_DOCS') report(walk, pos[0], 'yaml.multiple_documents', 'holds more than one document');
    else report(walk, pos[0], 'yaml.syntax', `is not YAML: ${toPrintable(message)}`);
  }
  if (walk.problems.length > 0) return { document: null, problems: walk.problems };
  const { contents } = parsed;
  const data = toPlainData(walk, contents);
  if (!isJsonObject(data)) report(walk, 0, 'yaml.not_a_mapping', 'is not a mapping of keys to values');
  if (!isJsonObject(data) || walk.problems.length > 0) return { document: null, problems: walk.problems };
  return { document: { data, lineOf: (pointer) => lineOf(contents, pointer, walk.lineAt) }, problems: [] };
}

function parseYamlDocument(text: string, lineCounter: LineCounter): ReturnType<typeof parseDocument> | null {
  // The walk finds duplicate keys: the parser would compare every key with every other.
  const options = { version: '1.2', schema: 'core', merge: false, uniqueKeys: false, prettyErrors: false } as const;
  // The parser creates an error for every mistake and continues. Stack traces are most of that cost.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parseDocument(text, { ...options, strict: true, logLevel: 'error', lineCounter });
    // Stryker disable next-line all: the same
  } catch {
    // No text is known that makes the parser throw. But the parser is large, the bytes are untrusted, and such texts
    // existed for earlier versions.
    return null;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** The inputs and results of the walk over the parser's tree. */
interface YamlWalk {
  readonly problems: YamlProblem[];
  readonly lineAt: (offset: number) => number;
}

function report(walk: YamlWalk, offset: number, rule: YamlRule, message: string): void {
  if (walk.problems.length < PROBLEMS_MAX) walk.problems.push({ line: walk.lineAt(offset), rule, message });
}

/** The recursion is as deep as the nesting, which the lexical limits bound. */
function toPlainData(walk: YamlWalk, node: unknown): Json {
  if (isMap(node)) return toPlainObject(walk, node.items);
  if (isSeq(node)) return node.items.map((item) => toPlainData(walk, item));
  if (!isScalar(node)) return null;
  const { value } = node;
  if (typeof value === 'number') checkNumber(walk, node);
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

/**
 * C89: `010` is 10 in YAML 1.2 and 8 in YAML 1.1, and `0x1F` is a string to some readers: a limit must have one
 * meaning.
 */
function checkNumber(walk: YamlWalk, node: Scalar): void {
  const source = String(node.source);
  if (!/^[-+]?0[0-9oxXbB_]/u.test(source)) return;
  report(
    walk,
    offsetOf(node),
    'yaml.number',
    `has the number ${quoteForMessage(source)}; write it in decimal, without a zero`,
  );
}

function toPlainObject(walk: YamlWalk, pairs: readonly Pair[]): JsonObject {
  // Without a prototype, `__proto__` is a key like any other, and is rejected as unknown like any other.
  const object = Object.create(null) as Record<string, Json>;
  for (const { key, value } of pairs) {
    const name = nameOf(key);
    const mistake = checkKey(name, object);
    if (mistake !== null) report(walk, offsetOf(key), mistake.rule, mistake.message);
    else if (name !== null) object[name] = toPlainData(walk, value);
  }
  return object;
}

const nameOf = (key: unknown): string | null => (isScalar(key) && typeof key.value === 'string' ? key.value : null);

function checkKey(name: string | null, seen: object): Omit<YamlProblem, 'line'> | null {
  if (name === null) return { rule: 'yaml.key', message: 'has a key that is not a string' };
  if (name === '<<') return { rule: 'yaml.merge_key', message: 'has a merge key (<<); write the members out' };
  if (!Object.hasOwn(seen, name)) return null;
  return { rule: 'yaml.duplicate_key', message: `has the key ${quoteForMessage(name)} twice in one mapping` };
}

const offsetOf = (node: unknown): number => (isScalar(node) || isMap(node) || isSeq(node) ? (node.range?.[0] ?? 0) : 0);

/** The line of a member is the line of its key. */
function lineOf(contents: unknown, pointer: string, lineAt: (offset: number) => number): number {
  let [node, line] = [contents, 1];
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const pair = isMap(node) ? node.items.find(({ key }) => nameOf(key) === name) : undefined;
    const item = isSeq(node) ? node.items[Number(name)] : pair?.key;
    if (item === undefined) return line;
    line = lineAt(offsetOf(item));
    node = pair === undefined ? item : pair.value;
  }
  return line;
}
