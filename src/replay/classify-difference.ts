// What was done to a tree that departs from what the machines say, read off the entries around the place. Places are
// left out of the comparison: whoever removes an entry and puts the chain right gives new ones to all that follow.

import { canonicalJson } from '../contract/canonical-json.js';
import { isJsonObject, type JsonObject } from '../contract/json.js';
import type { Difference } from '../kernel/fold.js';
import type { ProblemKind } from '../ledger/verification/ledger-problem.js';

/** The surroundings of a difference, as texts of entries. */
export interface DifferenceContext {
  readonly rule: Difference['rule'];
  readonly found: string;
  /** What follows it. */
  readonly after: readonly string[];
  /** What the machines say, from here to the end of the turn. */
  readonly expected: readonly string[];
  /** The two entries before, the nearer one first. */
  readonly before: readonly string[];
  /** The input that the machines took last. */
  readonly input: string | null;
}

/** What of a body tells its place. */
const PLACE_MEMBERS = ['event_id', 'sequence'];

/** An entry without its place. */
interface EntryContent {
  readonly type: unknown;
  readonly body: JsonObject;
  readonly text: string;
  /** When it was written, as it says itself. */
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
    // The last entry of a turn behind the next input, whose own entries then follow; or an input that was put in.
    const isNext = (isOutput(later) && found.time === later?.time) || found.time !== input?.time;
    const moved = found.type === 'input' && nextExpected === undefined && isNext;
    return moved ? 'reordered' : 'inserted';
  }
  if (isRejection(expected)) return classifyRejected(found, expected, last ?? null, former ?? null);
  if (isSameContent(found, nextExpected) || (nextExpected === undefined && found.type === 'input')) return 'missing';
  return 'altered';
}

/** The machines would have written nothing, and here is something that is no input. */
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

/** The machines cannot take the last input: then it should not be there, or something before it should. */
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

/** One that says the same in all but one or two members is that one, altered. */
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

/** Null for what is no entry. */
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
