// Checks the marks with which the store remembers proposal ids and the input ids that callers chose. A lost mark would
// let a request run twice, so the log determines which marks must exist.

import { nameInTree } from '../../contract/entry-name.js';
import { isJsonObject, type JsonObject } from '../../contract/json.js';
import type { InputKey, ReadableLedger, ProposalKey, StoredEntry } from '../readable-ledger.js';
import type { CheckedEntry } from './check-entry.js';
import type { LedgerFinding } from './ledger-problem.js';

export type MarkSource = Pick<ReadableLedger, 'marks'>;

interface PendingProposal {
  readonly seq: number;
  readonly input_id: string;
}

/** The phases that store no mark for a proposal that they reject (C19). */
const PHASES_WITHOUT_MARK: readonly unknown[] = ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA'];

/** Takes the entries of a log in order. Memory grows with the number of pending steps. */
export class MarkCheck {
  readonly #source: MarkSource;
  /** For each agent run, its proposal that has no trace yet. */
  readonly #pendingProposals = new Map<string, PendingProposal>();

  constructor(source: MarkSource) {
    this.#source = source;
  }

  /** Reports wrong or missing marks of a step, at its trace. @throws LedgerError */
  async take({ tree_id, seq }: StoredEntry, { envelope, findings }: CheckedEntry): Promise<readonly LedgerFinding[]> {
    const body = envelope?.body;
    // Another check has already reported an invalid entry.
    if (findings.length > 0 || !isJsonObject(body)) return [];
    const { kind, run_id, input_id } = body;
    if (typeof run_id !== 'string') return [];
    if (envelope?.type === 'input' && kind === 'proposal' && typeof input_id === 'string') {
      this.#pendingProposals.set(run_id, { seq, input_id });
    }
    const pending = envelope?.type === 'step_trace' ? this.#pendingProposals.get(run_id) : undefined;
    if (pending === undefined) return [];
    this.#pendingProposals.delete(run_id);
    return this.#checkMarks(tree_id, run_id, pending, body);
  }

  async #checkMarks(
    tree_id: string,
    run_id: string,
    pending: PendingProposal,
    trace: JsonObject,
  ): Promise<readonly LedgerFinding[]> {
    const { seq } = pending;
    const keys = [inputKey(tree_id, run_id, pending), proposalKey(run_id, trace)];
    const marks = await this.#source.marks(keys.filter((key) => key !== null));
    const [input, proposal] = keys.map((key) =>
      key === null ? undefined : marks[key === keys[0] ? 0 : marks.length - 1],
    );
    const findings: LedgerFinding[] = [];
    if (input !== undefined && input?.seq !== seq) {
      findings.push({
        rule: 'mark.input',
        message: `the mark of the input at ${nameInTree(tree_id, seq)} is missing or wrong: the input could be accepted again`,
      });
    }
    const isKnown = proposal != null && 'run_id' in proposal && proposal.run_id === run_id && proposal.seq === seq;
    if (proposal !== undefined && !isKnown) {
      findings.push({
        rule: 'mark.proposal',
        message: `the mark of the proposal at ${nameInTree(tree_id, seq)} is missing or wrong: its id could be accepted again`,
      });
    }
    return findings;
  }
}

/** Input ids that the engine derives begin with the run's id and need no mark. */
const inputKey = (tree_id: string, run_id: string, { input_id }: PendingProposal): InputKey | null =>
  input_id.startsWith(`${run_id}/`) ? null : { tree_id, input_id };

function proposalKey(run_id: string, { proposal_id, replay_of, phase_failed_at }: JsonObject): ProposalKey | null {
  if (typeof proposal_id !== 'string' || replay_of !== null || PHASES_WITHOUT_MARK.includes(phase_failed_at))
    return null;
  const root_run_id = run_id.slice(0, Math.max(run_id.lastIndexOf('.'), 0));
  return { root_run_id, proposal_id: proposal_id.toLowerCase() };
}
