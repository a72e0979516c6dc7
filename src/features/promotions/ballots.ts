// Decisions of people about runs: their votes on requests (D7), and their settlements of unknown outcomes (D8). Both
// are inputs of the run's tree; its audit records their effect.

import { parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import type { Artifact } from '../../core/contract/artifact-ref.js';
import type { AuditEvent } from '../../core/contract/run/audit-event.js';
import { VerifiedIdentity } from '../../core/contract/run/verified-identity.js';
import { isConforming } from '../../core/contract/validators.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import { RunError, usageError } from '../../core/errors.js';
import type { Tree } from '../../kernel/tree.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import { requireMembers } from '../../runtime/required-members.js';
import {
  validateActor,
  validateRole,
  asPerson,
  checkInputId,
  createNote,
  isPrintable,
} from '../../runtime/agents/caller-input.js';
import type { Ballot, BallotResult, Ballots, Resolution } from '../../runtime/high-risk-options.js';
import { compareNames, type Person } from '../../core/contract/person.js';
import { personOf } from '../../names/person-name.js';

/** Where decisions are submitted, and where their effect is read. */
interface AnswerEnvironment {
  readonly engine: TreeEngine;
  readonly store: LedgerStore;
  readonly ids: Ids;
}

export const openBallots = (environment: AnswerEnvironment): Ballots => ({
  submit: (ballot) => submitBallot(environment, ballot),
  resolve: (resolution) => resolveOutcome(environment, resolution),
});

/**
 * @throws RunError RUN_UNKNOWN; INVALID_STATE_TRANSITION for a run that accepts no votes now
 * @throws UsageError for an input id that another ballot has
 */
async function submitBallot(environment: AnswerEnvironment, given: Ballot): Promise<readonly BallotResult[]> {
  requireMembers(given, { run: 'text', digests: 'texts', decision: 'text', actor: 'text', role: 'text' });
  const { run, digests, decision, actor, role, person = actor, identity, inputId } = given;
  checkInputId(run, inputId);
  if (inputId !== undefined && !isPrintable(inputId)) throw usageError('inputId: printable ASCII without spaces');
  const actorRef = { actor_type: 'human', actor_id: validateActor(actor) } as const;
  if (identity !== undefined && !isConforming(VerifiedIdentity, identity)) {
    throw usageError('identity: it does not match the schema of verified identities');
  }
  const tree = await environment.engine.peek(rootRunIdOf(run));
  const approver = {
    actor: actorRef,
    role_id: validateRole(role),
    person: countedPerson(tree, { run, digests, names: [actor, person] }, asPerson(person)),
    ...(identity === undefined ? {} : { identity }),
  };
  const input_id = inputId ?? environment.ids.draw('inp_');
  const ballot: NewInput = { kind: 'vote', run_id: run, input_id, digests: [...digests], decision, approver };
  const events = await submitAnswer(environment, run, ballot, [], inputId !== undefined);
  const reminder = identity === undefined && isOfCodingAgent(tree, run) ? ({ reminder: true } as const) : {};
  return events.flatMap(({ authz, target, request_hash_sha256: digest = '' }) =>
    target?.name === 'approval' && authz !== undefined
      ? [{ digest, counted: COUNTED_RULES.has(authz.rule_id), rule_id: authz.rule_id, ...reminder }]
      : [],
  );
}

/** Sessions of coding agents name their client in the scope. */
const isOfCodingAgent = (tree: Tree | null, run: string): boolean =>
  tree?.run(run)?.context.scope['client_session'] !== undefined;

/** The rules of a ballot that had an effect. */
const COUNTED_RULES = new Set(['approval.accepted', 'approval.granted', 'approval.rejected']);

/** @throws RunError RUN_UNKNOWN; INVALID_STATE_TRANSITION for a run whose outcome is known */
async function resolveOutcome(environment: AnswerEnvironment, resolution: Resolution): Promise<void> {
  requireMembers(resolution, { run: 'text', outcome: 'text', actor: 'text', role: 'text' });
  const { run, outcome, actor, role, note = '' } = resolution;
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
  rememberInputId = false,
): Promise<readonly AuditEvent[]> {
  const tree_id = rootRunIdOf(run_id);
  const tree = await engine.peek(tree_id);
  if (tree === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no run ${run_id} in this ledger` });
  const before = tree.head.seq;
  const isOperatorAct = tree.pendingHighRiskRuns.some(
    (one) => one.run_id === run_id && one.run_kind === 'tool_gateway',
  );
  const effectless = isOperatorAct ? ({ startsNoEffect: true } as const) : {};
  const { refused, repeat_of } = await engine.submit(tree_id, { input, materials, rememberInputId, ...effectless });
  const events: AuditEvent[] = [];
  let isOwnInput = false;
  for await (const { seq, type, text } of store.tree(tree_id, repeat_of ?? before)) {
    const { body } = parseOwnJson(text) as { readonly body: never };
    if (seq === repeat_of) checkSameAnswer(input, body);
    // A repeated input ends where the next one begins.
    if (type === 'input' && isOwnInput && repeat_of !== null) break;
    if (type === 'input') isOwnInput = (body as { readonly input_id: string }).input_id === input.input_id;
    else if (isOwnInput && type === 'audit_event') events.push(body);
  }
  if (!refused) return events;
  throw new RunError({
    code: 'INVALID_STATE_TRANSITION',
    message: `run ${run_id} does not take this now: \`turnpike runs ${run_id}\` shows where it stands`,
  });
}

/** The members of an input, as they are recorded. */
type Answer = Readonly<Record<string, unknown>>;

/** @throws UsageError if the input id belongs to another decision of a person */
function checkSameAnswer(input: NewInput, recorded: Answer): void {
  const given = input as unknown as Answer;
  const names = ['kind', 'run_id', 'digests', 'decision', 'approver'];
  if (names.some((name) => canonicalJson(given[name] ?? null) !== canonicalJson(recorded[name] ?? null)))
    throw usageError('inputId: another decision of this run has it');
}

/**
 * The person that a voter counts as. An actor stands for the person of its run: a voter who votes under the name of an
 * agent of the tree, or of the actor that has made the request, or under a name that looks like one of them, counts as
 * the requester, and policy refuses the vote (`approval.by_requester`).
 * @param names the names under which the vote is given
 */
function countedPerson(
  tree: Pick<Tree, 'approvals' | 'runs'> | null,
  {
    run,
    digests,
    names,
  }: { readonly run: string; readonly digests: readonly string[]; readonly names: readonly string[] },
  person: Person,
): Person {
  const requests = tree?.approvals(run)?.entries.filter(({ digest }) => digests.includes(digest)) ?? [];
  const [requester] = requests.flatMap((entry) => (entry.requester === undefined ? [] : [entry.requester]));
  // Whom policy refuses anyway, it refuses with its own rule.
  if (tree === null || requester === undefined || compareNames(requester, person) !== 'other') return person;
  const agents = tree.runs.filter(({ context }) => context.run_kind === 'agent');
  const actors = [
    ...requests.map(({ requested_by }) => requested_by),
    ...agents.map(({ context }) => context.actor.actor_id),
  ];
  const isActor = names.some((name) => actors.some((actor) => isAlike(actor, name)));
  return isActor ? requester : person;
}

/** Names that cannot be compared are no names of voters. */
function isAlike(actor: string, name: string): boolean {
  const [a, b] = [personOf(actor), personOf(name)];
  return typeof a !== 'string' && typeof b !== 'string' && compareNames(a, b) !== 'other';
}
