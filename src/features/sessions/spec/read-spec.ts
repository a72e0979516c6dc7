// Reads the bytes of a spec, for `turnpike session check`, the start of a session and a rebase: parses them to plain
// data and checks that. They are untrusted, so only the strict readers parse them.

import { type Json, findErrorPosition, scanJson, type JsonProblem } from '../../../core/contract/json.js';
import { SPEC_BYTES_MAX, type SessionSpec } from '../contract/session-spec.js';
import { readStrictYaml, type YamlRule } from '../../../core/policy/files/strict-yaml.js';
import { findPointerLines } from './json-pointer-lines.js';
import { checkSpec, type SpecSeverity, type SpecRule } from '../rules/spec/check-spec.js';

const YAML_LIMITS = { bytes_max: SPEC_BYTES_MAX, parts_max: 500_000 };
/**
 * Limit of arrays, objects, colons and commas, which determine memory and time. A task with ten members has about 25.
 */
const JSON_PARTS_MAX = 1_000_000;
const JSON_DEPTH_MAX = 16;

/** Why a spec can be rejected before its content is validated. */
export const JSON_SPEC_PROBLEMS = {
  syntax: 'is not JSON; what begins with { is read as that',
  byte_order_mark: 'starts with a byte order mark; save it as UTF-8 without one',
  control_character: 'holds a control character in a string',
  lone_surrogate: 'holds half of a surrogate pair',
  duplicate_key: 'has a key twice in one object',
  reserved_key: 'has the key "__proto__"',
  number_not_finite: 'has a number that is too large',
  too_deep: `nests deeper than ${JSON_DEPTH_MAX} levels`,
  text_after_value: 'has something behind its end',
  number_not_exact: 'has a number that would be rounded',
  too_large: `is larger than ${SPEC_BYTES_MAX} bytes`,
  encoding: 'is not UTF-8',
  too_complex: `has more than ${JSON_PARTS_MAX} parts`,
} as const satisfies Record<JsonProblem, string> & Record<string, string>;
type JsonSpecProblem = keyof typeof JSON_SPEC_PROBLEMS;

/** A problem of a spec file. The message is one line of printable ASCII, whatever the file contains. */
export interface SpecFileFinding {
  /** From 1. */
  readonly line: number;
  readonly severity: SpecSeverity;
  readonly rule: SpecRule | SpecParseRule;
  /** JSON pointer of the place; empty for the whole spec, or if it could not be parsed. */
  readonly path: string;
  readonly message: string;
}

/** `spec` is set exactly if no finding is an error. */
export interface SpecFileCheck {
  /** Errors first, then by line. */
  readonly findings: readonly SpecFileFinding[];
  readonly spec: SessionSpec | null;
}

/**
 * Takes any bytes: every problem is a finding.
 * @param lanes those of the contract; null if the caller checks them elsewhere
 */
export function readSpec(bytes: Uint8Array, lanes: ReadonlySet<string> | null): SpecFileCheck {
  const reading = parseSpec(bytes);
  if (reading.value === null) {
    return { findings: reading.problems.map((problem) => ({ ...problem, severity: 'error', path: '' })), spec: null };
  }
  const { findings, spec } = checkSpec(reading.value, lanes);
  const lines = findings.length === 0 ? [] : reading.linesOf(findings.map(({ path }) => path));
  const located = findings.map((finding, index) => ({ line: lines[index] ?? 1, ...finding }));
  return { findings: located.toSorted((a, b) => rankOf(a) - rankOf(b) || a.line - b.line), spec };
}

const rankOf = ({ severity }: SpecFileFinding): number => (severity === 'error' ? 0 : 1);

export type SpecParseRule = YamlRule | `json.${JsonSpecProblem}`;

export interface SpecProblem {
  /** From 1. */
  readonly line: number;
  readonly rule: SpecParseRule;
  readonly message: string;
}

export type ParsedSpec =
  | {
      /** Objects have no prototype. */
      readonly value: Json;
      /** The lines (from 1) of what JSON pointers name, or of the nearest existing value around it. */
      readonly linesOf: (pointers: readonly string[]) => readonly number[];
      readonly problems: readonly [];
    }
  | { readonly value: null; readonly problems: readonly [SpecProblem, ...SpecProblem[]] };

/**
 * Parses a spec: as JSON if its first character is `{`, otherwise as YAML. Takes any bytes and never throws. Time and
 * memory are bounded by SPEC_BYTES_MAX, 16 levels, and the number of parts of the largest specs (half of it for YAML,
 * whose parser is slower).
 */
export function parseSpec(bytes: Uint8Array): ParsedSpec {
  if (isBraced(bytes)) return parseJson(bytes);
  const { document, problems } = readStrictYaml(bytes, YAML_LIMITS);
  if (document !== null) {
    return { value: document.data, linesOf: (pointers) => pointers.map(document.lineOf), problems: [] };
  }
  const [first, ...others] = problems;
  return { value: null, problems: [first ?? { line: 1, rule: 'yaml.syntax', message: 'is not YAML' }, ...others] };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;
/** `{`, `[`, `,` and `:`. */
const PARTS: ReadonlySet<number | undefined> = new Set([OPENING_BRACE, 0x5b, 0x2c, 0x3a]);
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;
const SPACES: readonly (number | undefined)[] = [0x20, 0x09, 0x0a, 0x0d];

function isBraced(bytes: Uint8Array): boolean {
  let at = BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte) ? BYTE_ORDER_MARK.length : 0;
  while (SPACES.includes(bytes[at])) at += 1;
  return bytes[at] === OPENING_BRACE;
}

function parseJson(bytes: Uint8Array): ParsedSpec {
  if (bytes.byteLength > SPEC_BYTES_MAX) return parseFailure('too_large', 1);
  if (countParts(bytes) > JSON_PARTS_MAX) return parseFailure('too_complex', 1);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return parseFailure('encoding', 1);
  }
  const scanned = scanJson(text, JSON_DEPTH_MAX);
  if (!scanned.ok) return parseFailure(scanned.problem, lineAt(text, findErrorPosition(text, JSON_DEPTH_MAX)));
  return { value: scanned.value, linesOf: (pointers) => findPointerLines(text, pointers), problems: [] };
}

/** Arrays, objects, colons and commas outside strings. For malformed JSON the number has no meaning. */
function countParts(bytes: Uint8Array): number {
  let [parts, inString] = [0, false];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) inString = !inString;
    else if (inString) at += byte === BACKSLASH ? 1 : 0;
    else if (PARTS.has(byte)) parts += 1;
  }
  return parts;
}

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length;

const parseFailure = (why: JsonSpecProblem, line: number): ParsedSpec => ({
  value: null,
  problems: [{ line, rule: `json.${why}`, message: JSON_SPEC_PROBLEMS[why] }],
});
