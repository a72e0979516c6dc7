// Decisions of people about runs: their votes on requests (D7), and their settlements of unknown outcomes (D8). Both
// are inputs of the run's tree; its audit records their effect.

import type { Artifact } from '../../contract/artifact-ref.js';
import type { AuditEvent } from '../../contract/run/audit-event.js';
import { Identifier } from '../../contract/shapes.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import { RunError, usageError } from '../../errors.js';
import type { Ids } from '../../ports/ids.js';
import type { LedgerStore } from '../../ports/ledger/ledger-store.js';
import { rootRunIdOf } from '../ledger/ledger-reader.js';
import { createNote } from '../agents/notes.js';
import { validateActor, validateField, asPerson } from '../agents/open-input.js';
import type { Ballot, BallotResult, Resolution } from './high-risk-options.js';

/** Where decisions are submitted, and where their effect is read. */
export interface AnswerEnvironment {
  readonly engine: TreeEngine;
  readonly store: LedgerStore;
  readonly ids: Ids;
}

/** @throws RunError RUN_UNKNOWN; INVALID_STATE_TRANSITION for a run that accepts no votes now */
export async function submitBallot(
  environment: AnswerEnvironment,
  { run, digests, decision, actor, role }: Ballot,
): Promise<readonly BallotResult[]> {
  const actorRef = { actor_type: 'human', actor_id: validateActor(actor) } as const;
  const approver = { actor: actorRef, role_id: validateRole(role), person: asPerson(actor) };
  const input_id = environment.ids.draw('inp_');
  const ballot: NewInput = { kind: 'vote', run_id: run, input_id, digests: [...digests], decision, approver };
  const events = await submitAnswer(environment, run, ballot);
  return events.flatMap(({ authz, target, request_hash_sha256 }) =>
    target?.name === 'approval' && authz !== undefined
      ? [{ digest: request_hash_sha256 ?? '', counted: COUNTED_RULES.has(authz.rule_id), rule_id: authz.rule_id }]
      : [],
  );
}

/** The rules of a ballot that had an effect. */
const COUNTED_RULES = new Set(['approval.accepted', 'approval.granted', 'approval.rejected']);

/** @throws RunError RUN_UNKNOWN; INVALID_STATE_TRANSITION for a run whose outcome is known */
export async function resolveOutcome(
  environment: AnswerEnvironment,
  { run, outcome, actor, role, note = '' }: Resolution,
): Promise<void> {
  const actorRef = { actor_type: 'human', actor_id: validateActor(actor) } as const;
  const input_id = environment.ids.draw('inp_');
  if (note.length > NOTE_CHARS_MAX) {
    throw usageError(`note: at most ${NOTE_CHARS_MAX} characters`);
  }
  const { references: refers, materials } = createNote(
    note,
    (await environment.engine.peek(rootRunIdOf(run)))?.case_id ?? null,
  );
  const resolved = {
    kind: 'resolve',
    run_id: run,
    input_id,
    outcome,
    actor: actorRef,
    role_id: validateRole(role),
  } as const;
  await submitAnswer(environment, run, { ...resolved, note: '', ...refers }, materials);
}

/** Limit of a note on an outcome, in characters. */
const NOTE_CHARS_MAX = 400;

/**
 * Submits a person's decision about a run.
 * @returns the audit events that record its effect
 */
async function submitAnswer(
  { engine, store }: AnswerEnvironment,
  run_id: string,
  input: NewInput,
  materials: readonly Artifact[] = [],
): Promise<readonly AuditEvent[]> {
  const tree_id = rootRunIdOf(run_id);
  const tree = await engine.peek(tree_id);
  if (tree === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no run ${run_id} in this ledger` });
  const from = tree.head.seq;
  const { refused } = await engine.submit(tree_id, { input, materials, external: false });
  const events: AuditEvent[] = [];
  let isOwnInput = false;
  for await (const { type, text } of store.tree(tree_id, from)) {
    const { body } = JSON.parse(text) as { readonly body: never };
    if (type === 'input') isOwnInput = (body as { readonly input_id: string }).input_id === input.input_id;
    else if (isOwnInput && type === 'audit_event') events.push(body);
  }
  if (!refused) return events;
  throw new RunError({
    code: 'INVALID_STATE_TRANSITION',
    message: `run ${run_id} does not take this now: \`turnpike runs ${run_id}\` shows where it stands`,
  });
}

export const validateRole = (role: string): string => validateField('role', Identifier, role);
