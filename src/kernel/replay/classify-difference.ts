// Classifies the damage to a tree that differs from what the machines produce, by the entries around the difference.
// Positions are not compared: an attacker who removes an entry and repairs the chain gives new positions to all entries
// after it.

import { isJsonObject, type JsonObject, canonicalJson } from '../../core/contract/json.js';
import type { Difference } from '../fold.js';
import type { ProblemKind } from '../../core/ledger/verification/ledger-problem.js';

/** The surroundings of a difference, as texts of entries. */
export interface DifferenceContext {
  readonly rule: Difference['rule'];
  readonly found: string;
  /** The entries that follow it. */
  readonly after: readonly string[];
  /** The entries that the machines produce, from here to the end of the turn. */
  readonly expected: readonly string[];
  /** The two entries before, the nearer one first. */
  readonly before: readonly string[];
  /** The last input that the machines took. */
  readonly input: string | null;
}

/** Members of a body that depend on its position. */
const PLACE_MEMBERS = ['event_id', 'sequence'];

/** An entry without its position. */
interface EntryContent {
  readonly type: unknown;
  readonly body: JsonObject;
  readonly text: string;
  /** The timestamp in the entry. */
  readonly time: unknown;
}

export function classifyDifference(context: DifferenceContext): ProblemKind {
  if (context.rule === 'artifact.differs' || context.rule === 'seen.differs') return 'altered';
  const found = contentOf(context.found);
  const [next, later] = context.after.map(contentOf);
  const [expected, nextExpected] = context.expected.map(contentOf);
  const [last, former] = context.before.map(contentOf);
  const input = context.input === null ? null : contentOf(context.input);
  if (found === null) return 'altered';
  if (expected === undefined || expected === null) return classifyUnexpected(found, next ?? null, last ?? null, input);
  if (isSameContent(found, expected)) return 'altered';
  if (isSameContent(found, nextExpected) && isSameContent(next, expected)) return 'reordered';
  if (isSameContent(next, expected)) {
    if (isSameContent(found, last)) return 'duplicated';
    // Either the last entry of a turn after the next input, whose own entries then follow; or an inserted input.
    const isNext = (isOutput(later) && found.time === later?.time) || found.time !== input?.time;
    const moved = found.type === 'input' && nextExpected === undefined && isNext;
    return moved ? 'reordered' : 'inserted';
  }
  if (isRejection(expected)) return classifyRejected(found, expected, last ?? null, former ?? null);
  if (isSameContent(found, nextExpected) || (nextExpected === undefined && found.type === 'input')) return 'missing';
  return 'altered';
}

/** Classifies an entry that is not an input and that the machines do not produce. */
function classifyUnexpected(
  found: EntryContent,
  next: EntryContent | null,
  last: EntryContent | null,
  input: EntryContent | null,
): ProblemKind {
  if (found.type === 'input') return 'altered';
  if (isSameContent(found, last)) return 'duplicated';
  if (next?.type === 'input' && next.time === found.time) return 'reordered';
  return input?.time === found.time ? 'inserted' : 'missing';
}

/** Classifies a last input that the machines cannot take: it was inserted, or an entry before it is missing. */
function classifyRejected(
  found: EntryContent,
  expected: EntryContent,
  last: EntryContent | null,
  former: EntryContent | null,
): ProblemKind {
  if (last !== null && isSameContent(last, former)) return 'duplicated';
  if (isSimilar(found, expected)) return 'altered';
  return found.type === 'input' ? 'inserted' : 'missing';
}

/** Whether the found entry is the expected one with one or two altered members. */
function isSimilar(found: EntryContent, expected: EntryContent): boolean {
  if (found.type !== expected.type) return false;
  const names = new Set([...Object.keys(found.body), ...Object.keys(expected.body)]);
  const textOf = ({ body }: EntryContent, name: string): string => JSON.stringify(body[name] ?? null);
  return [...names].filter((name) => textOf(found, name) !== textOf(expected, name)).length <= 2;
}

const isOutput = (content: EntryContent | null | undefined): boolean =>
  content !== null && content !== undefined && content.type !== 'input';

const isRejection = ({ body }: EntryContent): boolean => body['outcome_reason'] === 'INVALID_STATE_TRANSITION';

const isSameContent = (one: EntryContent | null | undefined, other: EntryContent | null | undefined): boolean =>
  one !== null && one !== undefined && one.text === other?.text;

/** Null if the text is not an entry. */
function contentOf(text: string): EntryContent | null {
  try {
    const entry: unknown = JSON.parse(text);
    if (!isJsonObject(entry) || !isJsonObject(entry['body'])) return null;
    const body = Object.fromEntries(Object.entries(entry['body']).filter(([name]) => !PLACE_MEMBERS.includes(name)));
    const { type } = entry;
    const time = body['time'] ?? body['timestamp_utc'] ?? body['created_at_utc'] ?? body['completed_at'];
    return { type, body, time, text: canonicalJson({ type: type ?? null, body }) };
  } catch {
    return null;
  }
}
