// The requests for approval of one agent run, and the request of one of its proposals (D7).

import type { TreeEngine } from '../../engine/tree-engine.js';
import { readLabel } from '../../kernel/label-after.js';
import type { Tree } from '../../kernel/tree.js';
import type { ApprovalEntry } from '../../core/contract/run/approval.js';
import type { ApprovalStatus } from '../../core/contract/run/approval-rules.js';
import { approvalDecider, ruleOfEntry, conditionVerdict, approvalRuleFor } from '../../core/policy/policy-features.js';
import { EMPTY_LABEL } from '../../core/policy/authorize-run.js';
import type { Policy } from '../../core/policy/policy.js';
import type { Clock } from '../../engine/ports/clock.js';
import { canonicalizeArgs, parseRequest, requestIn } from '../ledger/request-content.js';
import { rootRunIdOf, type RunContext } from '../../core/contract/run/run-context.js';
import type { JsonObject } from '../../core/contract/json.js';
import type { Label } from '../../core/contract/policy/labels.js';
import { approvalSubject } from '../../core/step/authorization.js';
import { mediatedContext } from '../../core/step/mediated-request.js';

/** A request of a run for the approval of one exact proposal. */
export interface RunRequest {
  /** What people vote on. */
  readonly digest: string;
  /** The action. */
  readonly name: string;
  /** `open`: people can vote on it. `granted`: approved, and not used yet. */
  readonly status: Exclude<ApprovalStatus, 'missing'>;
  readonly requested_at: string;
  /** Until when votes count, or the approval can be used. */
  readonly expires_at: string;
}

/** Whether policy asks for the approval of a proposal. */
export interface ProposalApproval {
  readonly isNeeded: boolean;
  /** The request that the proposal has made; null if it was not proposed yet. */
  readonly request: RunRequest | null;
}

export class RunRequests {
  readonly #engine: Pick<TreeEngine, 'peek'>;
  readonly #clock: Clock;

  constructor(engine: Pick<TreeEngine, 'peek'>, clock: Clock) {
    this.#engine = engine;
    this.#clock = clock;
  }

  /** The requests of a run in their order; none if it has ended. */
  async list(run_id: string): Promise<readonly RunRequest[]> {
    const tree = await this.#engine.peek(rootRunIdOf(run_id));
    const entries = tree?.approvals(run_id)?.entries ?? [];
    return entries.flatMap((entry) => this.#describe(tree, run_id, entry) ?? []);
  }

  /** The request that this payload has made in the run; null if it has made none. */
  async find(run_id: string, payload: Uint8Array): Promise<RunRequest | null> {
    const tree = await this.#engine.peek(rootRunIdOf(run_id));
    const entries = tree?.approvals(run_id)?.entries ?? [];
    const run = tree?.run(run_id)?.context;
    if (tree?.policy == null || run === undefined || entries.length === 0) return null;
    const digest = requestIn(payload, { run, policy: tree.policy })?.digest;
    const entry = entries.find((known) => known.digest === digest);
    return entry === undefined ? null : this.#describe(tree, run_id, entry);
  }

  /** Whether policy asks for an approval of a proposal, and its request. */
  async approvalOf(run_id: string, payload: Uint8Array): Promise<ProposalApproval> {
    const tree = await this.#engine.peek(rootRunIdOf(run_id));
    const agent = tree?.run(run_id)?.context;
    const proposal = tree?.policy == null || agent === undefined ? null : parseRequest(payload);
    if (tree?.policy == null || agent === undefined || proposal === null) return { isNeeded: false, request: null };
    const request = await this.find(run_id, payload);
    const { action } = proposal;
    const args = canonicalizeArgs(action, proposal.args, tree.policy);
    const label = readLabel(tree.actorState(run_id)?.memory) ?? EMPTY_LABEL;
    const at = new Date(this.#clock.now()).toISOString();
    const isNeeded = request !== null || needsApproval({ agent, action, args, label, at }, tree.policy);
    return { isNeeded, request };
  }

  #describe(tree: Tree | null, run_id: string, entry: ApprovalEntry): RunRequest | null {
    const policy: Policy | null = tree?.policy ?? null;
    const rule = ruleOfEntry(policy?.approvals ?? [], entry);
    if (rule === undefined) return null;
    const now = new Date(this.#clock.now()).toISOString();
    const status = approvalDecider().status({ run_id, entries: [entry] }, entry.digest, now, rule);
    if (status === 'missing') return null;
    const { digest, name, requested_at, expires_at } = entry;
    return { digest, name, status, requested_at, expires_at };
  }
}

// Whether policy asks for an approval of a proposal that was not made yet.

/** A proposal of an agent run. */
interface ExpectedProposal {
  readonly agent: RunContext;
  readonly action: string;
  /** With canonical paths. */
  readonly args: JsonObject;
  /** What the run has read so far. */
  readonly label: Label;
  readonly at: string;
}

/**
 * By the approval rules and conditions alone: the proposal can still be denied. Files are taken to be unknown, and
 * counters to have counted nothing.
 */
function needsApproval({ agent, action, args, label, at }: ExpectedProposal, policy: Policy): boolean {
  const step = { agent, action, args, mediated_run_id: `${agent.run_id}.0` };
  if (approvalRuleFor(policy.approvals, approvalSubject(step, policy)) !== undefined) return true;
  const definition = policy.catalogue.action(action);
  if (definition === undefined) return false;
  const run = mediatedContext(step, policy);
  const counters = (policy.counters?.all ?? []).map(({ name }) => ({ name, used: 0 }));
  return conditionVerdict({ definition, args, run, label, files: [], counters, at }, policy).kind === 'approval';
}
