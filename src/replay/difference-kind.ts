// What was done to a tree that departs from what the machines say, read off the entries around the place. Places are
// left out of the comparison: whoever removes an entry and puts the chain right gives new ones to all that follow.

import { canonicalJson } from '../contract/canonical-json.js';
import { isJsonObject, type JsonObject } from '../contract/json.js';
import type { Difference } from '../kernel/fold.js';
import type { ProblemKind } from '../ledger/ledger-problem.js';

/** The surroundings of a difference, as texts of entries. */
export interface Scene {
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
const PLACE = ['event_id', 'sequence'];

/** An entry without its place. */
interface Content {
  readonly type: unknown;
  readonly body: JsonObject;
  readonly text: string;
  /** When it was written, as it says itself. */
  readonly time: unknown;
}

export function kindOf(scene: Scene): ProblemKind {
  if (scene.rule === 'artifact.differs' || scene.rule === 'seen.differs') return 'altered';
  const found = contentOf(scene.found);
  const [next, later] = scene.after.map(contentOf);
  const [due, then] = scene.expected.map(contentOf);
  const [last, former] = scene.before.map(contentOf);
  const input = scene.input === null ? null : contentOf(scene.input);
  if (found === null) return 'altered';
  if (due === undefined || due === null) return ofUnexpected(found, next ?? null, last ?? null, input);
  if (same(found, due)) return 'altered';
  if (same(found, then) && same(next, due)) return 'reordered';
  if (same(next, due)) {
    if (same(found, last)) return 'duplicated';
    // The last entry of a turn behind the next input, whose own entries then follow; or an input that was put in.
    const isNext = (isOutput(later) && found.time === later?.time) || found.time !== input?.time;
    const moved = found.type === 'input' && then === undefined && isNext;
    return moved ? 'reordered' : 'inserted';
  }
  if (isRefusal(due)) return ofRefused(found, due, last ?? null, former ?? null);
  if (same(found, then) || (then === undefined && found.type === 'input')) return 'missing';
  return 'altered';
}

/** The machines would have written nothing, and here is something that is no input. */
function ofUnexpected(found: Content, next: Content | null, last: Content | null, input: Content | null): ProblemKind {
  if (found.type === 'input') return 'altered';
  if (same(found, last)) return 'duplicated';
  if (next?.type === 'input' && next.time === found.time) return 'reordered';
  return input?.time === found.time ? 'inserted' : 'missing';
}

/** The machines cannot take the last input: then it should not be there, or something before it should. */
function ofRefused(found: Content, due: Content, last: Content | null, former: Content | null): ProblemKind {
  if (last !== null && same(last, former)) return 'duplicated';
  if (isLike(found, due)) return 'altered';
  return found.type === 'input' ? 'inserted' : 'missing';
}

/** One that says the same in all but one or two members is that one, altered. */
function isLike(found: Content, due: Content): boolean {
  if (found.type !== due.type) return false;
  const names = new Set([...Object.keys(found.body), ...Object.keys(due.body)]);
  const textOf = ({ body }: Content, name: string): string => JSON.stringify(body[name] ?? null);
  return [...names].filter((name) => textOf(found, name) !== textOf(due, name)).length <= 2;
}

const isOutput = (content: Content | null | undefined): boolean =>
  content !== null && content !== undefined && content.type !== 'input';

const isRefusal = ({ body }: Content): boolean => body['outcome_reason'] === 'INVALID_STATE_TRANSITION';

const same = (one: Content | null | undefined, other: Content | null | undefined): boolean =>
  one !== null && one !== undefined && one.text === other?.text;

/** Null for what is no entry. */
function contentOf(text: string): Content | null {
  try {
    const entry: unknown = JSON.parse(text);
    if (!isJsonObject(entry) || !isJsonObject(entry['body'])) return null;
    const body = Object.fromEntries(Object.entries(entry['body']).filter(([name]) => !PLACE.includes(name)));
    const { type } = entry;
    const time = body['time'] ?? body['timestamp_utc'] ?? body['created_at_utc'] ?? body['completed_at'];
    return { type, body, time, text: canonicalJson({ type: type ?? null, body }) };
  } catch {
    return null;
  }
}
