// The independent checker: reads an evidence bundle or a bag without any line of the attacked code. It is simple and
// slow. It reports only certain violations; the verifier may refuse more.

import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto';

export const hashOf = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');
const leafOf = (text: string): Buffer => createHash('sha256').update('\0').update(text).digest();
const nodeOf = (left: Buffer, right: Buffer): Buffer =>
  createHash('sha256').update(Buffer.of(1)).update(left).update(right).digest();

/** RFC 6962 §2.1, implemented literally. */
export function merkleRoot(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return createHash('sha256').digest();
  if (leaves.length === 1) return leaves[0]!;
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return nodeOf(merkleRoot(leaves.slice(0, split)), merkleRoot(leaves.slice(split)));
}

export interface Key {
  readonly name: string;
  readonly hash: string;
  readonly key: KeyObject;
}

/** A vkey: `name+hash+base64(01 || key)`. */
export function keyOf(vkey: string): Key {
  const [name = '', hash = '', encoded = ''] = vkey.split('+', 2).concat(vkey.split('+').slice(2).join('+'));
  const raw = Buffer.from(encoded, 'base64').subarray(1);
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), raw]);
  return { name, hash, key: createPublicKey({ key: der, format: 'der', type: 'spki' }) };
}

export interface Note {
  readonly size: number;
  readonly root: string;
  readonly extra: string | undefined;
}

/** The text of a note; null if the key has not signed it. */
export function readNote(note: string, key: Key): Note | null {
  const at = note.lastIndexOf('\n\n');
  const text = note.slice(0, at + 1);
  const signed = note
    .slice(at + 2)
    .split('\n')
    .some((line) => {
      const [, name, encoded = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
      const bytes = Buffer.from(encoded, 'base64');
      return (
        name === key.name &&
        bytes.toString('hex', 0, 4) === key.hash &&
        verify(null, Buffer.from(text), key.key, bytes.subarray(4))
      );
    });
  const [origin, size, root = '', extra] = text.split('\n');
  if (at < 0 || !signed || origin !== key.name) return null;
  return { size: Number(size), root: Buffer.from(root, 'base64').toString('hex'), extra };
}

export interface EntryOf {
  readonly type: string;
  readonly tree_id: string;
  readonly seq: number;
  readonly prev: string;
  readonly body: Readonly<Record<string, unknown>>;
}
export interface Content {
  readonly kind: string;
  readonly case_id: string | null;
  readonly content?: string;
  readonly withheld?: string;
  readonly sha256?: string;
}
export interface BundleLine {
  readonly entry: string;
  readonly artifacts: readonly Content[];
}

/** The chain of each tree: the first entry that does not follow the one before it. */
function chainProblem(texts: readonly string[]): string | null {
  const ends = new Map<string, { seq: number; prev: string }>();
  for (const text of texts) {
    const { tree_id, seq, prev } = JSON.parse(text) as EntryOf;
    const end = ends.get(tree_id) ?? { seq: 0, prev: '0'.repeat(64) };
    if (seq !== end.seq || prev !== end.prev) return `chain of ${tree_id} at ${seq}`;
    ends.set(tree_id, { seq: seq + 1, prev: leafOf(text).toString('hex') });
  }
  return null;
}

const STATES = ['running', 'completed', 'failed', 'cancelled', 'denied'];

/** The state of each run by its events alone: the last state that an event names. */
export function statesOf(entries: readonly EntryOf[]): ReadonlyMap<string, string> {
  const states = new Map<string, string>();
  for (const { type, body } of entries) {
    if (type === 'run_created') states.set(String(body['run_id']), 'created');
    if (type !== 'audit_event' || body['action_type'] !== 'system') continue;
    const reason = body['outcome_reason'];
    const [state = ''] = typeof reason === 'string' ? reason.split(':') : [];
    if (STATES.includes(state)) states.set(String(body['run_id']), state);
  }
  return states;
}

/** A run that continued although its authorization is a denial. */
function lawlessRun(entries: readonly EntryOf[]): string | null {
  const denied = new Set<string>();
  for (const { type, body } of entries) {
    if (type !== 'audit_event') continue;
    const run = String(body['run_id']);
    if (body['action_type'] === 'authz_decision' && body['outcome'] !== 'allow') denied.add(run);
    if (body['outcome_reason'] === 'running' && denied.has(run)) return run;
  }
  return null;
}

/** Violations in the content of an entry: withheld system content, a lane that does not withhold, other bytes. */
function contentProblem({ entry, artifacts }: BundleLine, withholding: ReadonlySet<string>): string | null {
  const tree = (JSON.parse(entry) as EntryOf).tree_id;
  for (const { kind, case_id, content, withheld, sha256 } of artifacts) {
    const hash = content === undefined ? (sha256 ?? '') : hashOf(Buffer.from(content, 'base64'));
    if (!entry.includes(`"${hash}"`)) return `content that entry does not name: ${kind}`;
    if (withheld === undefined) continue;
    if (case_id === null || kind === 'policy' || kind === 'machines') return `system content withheld: ${kind}`;
    if (withheld === 'lane' && !withholding.has(tree)) return `no lane withholds ${kind}`;
  }
  return null;
}

/** The trees with a lane that withholds content, by the text of the lanes policy in their opening input. */
const withholdingTrees = (lines: readonly BundleLine[]): ReadonlySet<string> =>
  new Set(
    lines.flatMap(({ entry, artifacts }) => {
      const { seq, tree_id, body } = JSON.parse(entry) as EntryOf;
      if (seq !== 0) return [];
      const pinned = (body['policies'] as { lanes: { sha256: string } } | undefined)?.lanes.sha256;
      const lanes =
        artifacts.find(({ content = '' }) => hashOf(Buffer.from(content, 'base64')) === pinned)?.content ?? '';
      return /withholds_content:\s*true/.test(Buffer.from(lanes, 'base64').toString()) ? [tree_id] : [];
    }),
  );

/** The entries of a bundle, as texts and content, without a judgement. @throws for a malformed bundle */
export function readBundle(text: string): {
  header: { key: string; checkpoint: string };
  lines: BundleLine[];
  last: string;
} {
  const all = text.split('\n');
  if (all.pop() !== '') throw new Error('no last newline');
  const last = all.pop() ?? '';
  const [header = '', ...lines] = all;
  return {
    header: JSON.parse(header) as { key: string; checkpoint: string },
    lines: lines.map((line) => JSON.parse(line) as BundleLine),
    last,
  };
}

/** A certain violation in a bundle that was accepted as signed by this key; otherwise null. */
export function bundleProblem(text: string, vkey: string): string | null {
  const key = keyOf(vkey);
  const { header, lines, last } = readBundle(text);
  const note = readNote(header.checkpoint, key);
  if (note === null) return 'checkpoint not signed';
  const { payload, signatures } = JSON.parse(last) as { payload: string; signatures: { sig: string }[] };
  const said = Buffer.from(payload, 'base64');
  const signed = Buffer.concat([Buffer.from(`DSSEv1 28 application/vnd.in-toto+json ${said.length} `), said]);
  if (!verify(null, signed, key.key, Buffer.from(signatures[0]?.sig ?? '', 'base64'))) return 'statement not signed';
  const statement = JSON.parse(said.toString()) as { predicate: { content_sha256: string } };
  const end = text.length - last.length - 1;
  if (hashOf(text.slice(0, end)) !== statement.predicate.content_sha256) return 'statement about other lines';
  const texts = lines.map(({ entry }) => entry);
  if (note.size !== texts.length || merkleRoot(texts.map(leafOf)).toString('hex') !== note.root) return 'another root';
  const chain = chainProblem(texts);
  if (chain !== null) return chain;
  const withholding = withholdingTrees(lines);
  for (const line of lines) {
    const problem = contentProblem(line, withholding);
    if (problem !== null) return problem;
  }
  const lawless = lawlessRun(texts.map((one) => JSON.parse(one) as EntryOf));
  return lawless === null ? null : `run ${lawless} was denied and went on`;
}
