// What people say of runs: their votes on what is asked of them (D7), and what they have found out of unknown outcomes
// (D8). Both are inputs of the tree that they speak of; what they come to, its audit says.

import type { Artifact } from '../../contract/artifact-ref.js';
import type { AuditEvent } from '../../contract/audit-event.js';
import { Identifier } from '../../contract/shapes.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import { RunError, UsageError } from '../../errors.js';
import type { Ids } from '../../ports/ids.js';
import type { LedgerStore } from '../../ports/ledger-store.js';
import { rootOf } from '../ledger-reader.js';
import { noteOf } from '../notes.js';
import { actorOf, checked, comparedAs } from '../open-request.js';
import type { Ballot, BallotResult, Resolution } from './options.js';

/** Where answers are handed in, and where it is read what became of them. */
export interface Answered {
  readonly engine: TreeEngine;
  readonly store: LedgerStore;
  readonly ids: Ids;
}

/** @throws RunError RUN_UNKNOWN, INVALID_STATE_TRANSITION for a run that takes no answers now */
export async function vote(
  where: Answered,
  { run, digests, decision, actor, role }: Ballot,
): Promise<readonly BallotResult[]> {
  const by = { actor_type: 'human', actor_id: actorOf(actor) } as const;
  const approver = { actor: by, role_id: roleOf(role), person: comparedAs(actor) };
  const input_id = where.ids.draw('inp_');
  const ballot: NewInput = { kind: 'vote', run_id: run, input_id, digests: [...digests], decision, approver };
  const events = await handIn(where, run, ballot);
  return events.flatMap(({ authz, target, request_hash_sha256 }) =>
    target?.name === 'approval' && authz !== undefined
      ? [{ digest: request_hash_sha256 ?? '', counted: COUNTED.has(authz.rule_id), rule_id: authz.rule_id }]
      : [],
  );
}

/** Rules of a ballot that has changed something. */
const COUNTED = new Set(['approval.accepted', 'approval.granted', 'approval.rejected']);

/** @throws RunError RUN_UNKNOWN, INVALID_STATE_TRANSITION for a run whose outcome is known */
export async function resolveOutcome(
  where: Answered,
  { run, outcome, actor, role, note = '' }: Resolution,
): Promise<void> {
  const by = { actor_type: 'human', actor_id: actorOf(actor) } as const;
  const input_id = where.ids.draw('inp_');
  if (note.length > NOTE_CHARS_MAX) {
    throw new UsageError({ code: 'USAGE', message: `note: at most ${NOTE_CHARS_MAX} characters` });
  }
  const { refers, materials } = noteOf(note, (await where.engine.peek(rootOf(run)))?.case_id ?? null);
  const resolved = { kind: 'resolve', run_id: run, input_id, outcome, actor: by, role_id: roleOf(role) } as const;
  await handIn(where, run, { ...resolved, note: '', ...refers }, materials);
}

/** Of what is said to an outcome. */
const NOTE_CHARS_MAX = 400;

/** Hands in what somebody says of a run. @returns what the audit says to it */
async function handIn(
  { engine, store }: Answered,
  run_id: string,
  input: NewInput,
  materials: readonly Artifact[] = [],
): Promise<readonly AuditEvent[]> {
  const tree_id = rootOf(run_id);
  const tree = await engine.peek(tree_id);
  if (tree === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no run ${run_id} in this ledger` });
  const from = tree.head.seq;
  const { refused } = await engine.submit(tree_id, { input, materials, external: false });
  const events: AuditEvent[] = [];
  let mine = false;
  for await (const { type, text } of store.tree(tree_id, from)) {
    const { body } = JSON.parse(text) as { readonly body: never };
    if (type === 'input') mine = (body as { readonly input_id: string }).input_id === input.input_id;
    else if (mine && type === 'audit_event') events.push(body);
  }
  if (!refused) return events;
  throw new RunError({
    code: 'INVALID_STATE_TRANSITION',
    message: `run ${run_id} does not take this now: \`turnpike runs ${run_id}\` shows where it stands`,
  });
}

export const roleOf = (role: string): string => checked('role', Identifier, role);
