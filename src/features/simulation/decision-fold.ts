// Extracts the decisions of a recorded tree, entry by entry: each decision comes with the facts that it depended on.
// The tree is folded as recorded, even if another policy would have decided an earlier decision differently.

import { nameBoth } from '../../core/contract/entry-name.js';
import { checkAvailable, type Artifact } from '../../core/contract/artifact-ref.js';
import type { AuditEvent } from '../../core/contract/run/audit-event.js';
import type { Entry } from '../../core/contract/run/entry.js';
import type { StepTrace } from '../../core/contract/run/step-trace.js';
import { InvariantError, LedgerError } from '../../core/errors.js';
import { Fold, readContentToFold } from '../../kernel/fold.js';
import type { Decision } from '../../kernel/decision.js';
import { isUnsupported } from '../../kernel/pinned-policy.js';
import { withheldContentError, requireContent } from '../../core/ledger/require-content.js';
import { Tree } from '../../kernel/tree.js';
import type { ReplayEntry, ReplaySource } from '../../kernel/replay/replay.js';
import type { DecisionFacts, RecordedDecision, RecordedVerdict } from './recorded-decision.js';
import { DecisionNotes } from './decision-notes.js';

type PlacedDecision = Omit<RecordedDecision, 'log_index'>;

/** Extracts the decisions of one tree from its entries, which must arrive in order. */
export class DecisionFold {
  readonly #tree: Tree;
  readonly #fold: Fold;
  readonly #notes = new DecisionNotes();
  readonly #decisions = new Map<number, PlacedDecision>();

  constructor(tree_id: string) {
    this.#tree = new Tree(tree_id, { interpreter: 'table-driven', observer: this.#notes });
    this.#fold = new Fold(this.#tree);
  }

  /**
   * Folds the tree's next entry. `artifacts` is the content of that entry.
   * @returns the decision that it records, or null
   * @throws LedgerError LEDGER_TAMPERED for an entry that the machines would not have written;
   * LEDGER_OF_LATER_VERSION or LEDGER_UNSUPPORTED if this installation cannot evaluate the policy of the tree
   */
  take(entry: ReplayEntry, artifacts: readonly Artifact[]): RecordedDecision | null {
    const outcome = this.#fold.apply(entry, artifacts);
    if ('difference' in outcome) throw departedError(entry, outcome.difference.rule);
    if ('withheld' in outcome) throw withheldContentError(outcome.withheld);
    if ('unsupported' in outcome) throw outcome.unsupported;
    if (outcome.decision !== null) this.#collect(outcome.decision);
    const placed = this.#decisions.get(entry.seq);
    if (placed === undefined) return null;
    this.#decisions.delete(entry.seq);
    return { ...placed, log_index: entry.log_index };
  }

  #collect({ entries, commands, ended }: Decision): void {
    for (const command of commands)
      if (command.kind === 'gather') this.#notes.recordGather(command.run_id, command.request);
    let ballots = 0;
    for (const { entry } of entries) {
      if (entry.type === 'step_trace') this.#placeStep(entry);
      if (entry.type !== 'audit_event' || entry.body.action_type !== 'authz_decision') continue;
      if (isBallot(entry.body)) this.#placeBallot(entry, (ballots += 1) - 1);
      else this.#placeDecision(entry);
    }
    this.#notes.forget(ended.map(({ run_id }) => run_id));
  }

  #placeStep({ body, seq }: Extract<Entry, { type: 'step_trace' }>): void {
    if (body.mediated_run_id !== null) return;
    const facts = this.#notes.takeStep(body.run_id);
    if (facts === undefined) return;
    const { actor, role_id, lane_id } = facts.input.agent;
    const identity = { run_id: body.run_id, actor_id: actor.actor_id, role_id, lane_id };
    this.#place({ seq, ...identity, action: body.action ?? 'a proposal', said: traceVerdictOf(body) }, facts);
  }

  #placeDecision({ body, seq }: Extract<Entry, { type: 'audit_event' }>): void {
    const { run_id } = body;
    const facts = this.#notes.takeFacts(run_id) ?? this.#rootFacts(run_id);
    if (facts !== null)
      this.#place({ seq, ...identityIn(body), action: actionOf(facts), said: verdictIn(body) }, facts);
  }

  #placeBallot({ body, seq }: Extract<Entry, { type: 'audit_event' }>, nth: number): void {
    const facts = this.#notes.ballotOf(body.run_id, nth);
    if (facts !== undefined) this.#place({ seq, ...identityIn(body), action: 'vote', said: verdictIn(body) }, facts);
  }

  /** The tree's own root run, which no machine has spawned. */
  #rootFacts(run_id: string): DecisionFacts | null {
    const run = run_id === this.#tree.tree_id ? this.#tree.run(run_id) : null;
    return run === null ? null : { kind: 'orchestrator', run: run.context };
  }

  #place(partial: Omit<PlacedDecision, 'tree_id' | 'facts' | 'policy'>, facts: DecisionFacts): void {
    const { policy, tree_id } = this.#tree;
    if (policy === null) throw new InvariantError('a decision in a tree that is not open');
    this.#decisions.set(partial.seq, { tree_id, ...partial, facts, policy });
  }
}

/** The numbers of trees and entries read so far. */
export interface ReadCount {
  trees: number;
  entries: number;
  /** Trees whose later decisions were not read: content is withheld or erased, or the policy cannot be evaluated. */
  not_recomputed: number;
  /** What to install, if this installation cannot evaluate the policy of one of them. */
  needs?: string;
  /** How many archived entries precede those that were read; absent if none do. */
  archived?: number;
}

/**
 * Yields every decision of a ledger, or of one of its trees, in log order. Memory grows with the number of trees.
 * @param onIncomplete receives each tree whose later decisions are not read
 */
export async function* decisionsIn(
  source: Pick<ReplaySource, 'log' | 'tree' | 'artifactsOf'>,
  tree_id: string | undefined,
  count: ReadCount,
  onIncomplete: (tree_id: string) => void = () => undefined,
): AsyncGenerator<RecordedDecision> {
  const folds = new Map<string, DecisionFold | null>();
  for await (const entry of tree_id === undefined ? source.log() : source.tree(tree_id)) {
    let fold = folds.get(entry.tree_id);
    if (fold === undefined) {
      fold = new DecisionFold(entry.tree_id);
      folds.set(entry.tree_id, fold);
      count.trees += 1;
    }
    if (tree_id === undefined && count.entries === 0 && entry.log_index > 0) count.archived = entry.log_index;
    count.entries += 1;
    if (fold === null) continue;
    const artifacts = checkAvailable(await readContentToFold(entry, source));
    const decision = 'withheld' in artifacts ? 'incomplete' : takeIfSupported(fold, entry, artifacts, count);
    if (decision === 'incomplete') {
      folds.set(entry.tree_id, null);
      count.not_recomputed += 1;
      onIncomplete(entry.tree_id);
    } else if (decision !== null) yield decision;
  }
}

function takeIfSupported(
  fold: DecisionFold,
  entry: ReplayEntry,
  artifacts: readonly Artifact[],
  count: ReadCount,
): RecordedDecision | null | 'incomplete' {
  try {
    return fold.take(entry, artifacts);
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    count.needs ??= error.message;
    return 'incomplete';
  }
}

const departedError = ({ log_index, tree_id, seq }: ReplayEntry, rule: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `entry ${nameBoth(log_index, tree_id, seq)} is not what the machines wrote (${rule}): run \`turnpike replay\``,
  });

const isBallot = ({ target }: AuditEvent): boolean => target?.target_type === 'system' && target.name === 'approval';

const identityIn = ({ run_id, actor, role_id, lane_id }: AuditEvent) => ({
  run_id,
  actor_id: actor.actor_id,
  role_id: role_id ?? '',
  lane_id: lane_id ?? null,
});

/** A run that waits for an approval counts as denied, although the policy allows it otherwise. */
const verdictIn = ({ authz, target }: AuditEvent): RecordedVerdict => {
  const { decision, rule_id } = authz ?? { decision: 'deny' as const, rule_id: null };
  const waits = rule_id === 'approval.required' && target?.name !== 'approval';
  return { decision: waits ? 'deny' : decision, rule_id };
};

const traceVerdictOf = ({ decision, rule_id }: StepTrace): RecordedVerdict => ({
  decision: decision === 'ALLOW' ? 'allow' : 'deny',
  rule_id,
});

function actionOf(facts: DecisionFacts): string {
  switch (facts.kind) {
    case 'orchestrator':
      return 'start a run tree';
    case 'agent':
      return 'start an agent';
    case 'run':
      return facts.event.run_kind === 'tool_gateway' ? facts.event.act.action : facts.event.run_kind;
    case 'step':
      return facts.act?.action ?? 'a proposal';
    case 'retry':
      return facts.act.action;
    case 'write':
    case 'approval':
      return actionOf(facts.of);
    case 'ballot':
      return 'vote';
  }
}

export interface EntryDecisions {
  /** Whether the tree has a matching entry. */
  readonly found: boolean;
  /** The decision that the entry records; if it records no decision, all decisions of the same input. */
  readonly decisions: readonly RecordedDecision[];
}

/**
 * Folds a tree up to an entry and returns the decisions of its input. Awaits `pause` between entries, so that a service
 * can process other requests.
 * @throws LedgerError LEDGER_TAMPERED, or LEDGER_ERASED if content that the fold needs is withheld or erased
 */
export async function readDecisionsAt(
  source: Pick<ReplaySource, 'tree' | 'artifactsOf'>,
  tree_id: string,
  isEntry: (place: Pick<ReplayEntry, 'seq' | 'log_index'>) => boolean,
  pause: () => Promise<void> | undefined = () => undefined,
): Promise<EntryDecisions> {
  const fold = new DecisionFold(tree_id);
  let [turnDecisions, found]: [RecordedDecision[], boolean] = [[], false];
  for await (const entry of source.tree(tree_id)) {
    if (entry.type === 'input') {
      if (found) break;
      turnDecisions = [];
    }
    const artifacts = requireContent(await readContentToFold(entry, source));
    const decision = fold.take(entry, artifacts);
    if (decision !== null) turnDecisions.push(decision);
    found ||= isEntry(entry);
    await pause();
  }
  if (!found) return { found, decisions: [] };
  const exact = turnDecisions.filter(isEntry);
  return { found, decisions: exact.length > 0 ? exact : turnDecisions };
}
