import type { ExportBundle } from '../core/contract/evidence/export-bundle.js';
import type { JsonObject } from '../core/contract/json.js';
import type { ConfidentialityFlag } from '../core/contract/policy/labels.js';
import type { WriteMode } from '../core/contract/policy/lanes.js';
import type { VerifiedIdentity } from '../core/contract/run/verified-identity.js';
import type { TraceCarrier } from '../core/contract/trace-context.js';
import type { RunEnding } from './agents/agent-run.js';

/** The person who starts a promotion or an export. */
export interface RunStarter {
  /** For the audit; 3 to 120 characters. */
  readonly actor: string;
  readonly role: string;
  /** Absent: policy denies the run, if its lane requires a case. */
  readonly case?: string;
  readonly lane?: string;
  /** Further scope fields that the lane requires. */
  readonly scope?: Readonly<Record<string, string>>;
  readonly correlation?: string;
  /** The trace to which the run tree belongs. It decides nothing and is not recorded. */
  readonly trace?: TraceCarrier;
  /** The person behind the actor, if it has another name. */
  readonly person?: string;
}

/** Options of a promotion: a record of shared knowledge that a person makes from a case. */
export interface PromoteOptions extends RunStarter {
  /** `promotion_ticket_id` (S4-71). */
  readonly ticket: string;
  /** A registered target of shared knowledge. */
  readonly target: string;
  readonly mode?: WriteMode;
  /** The sanitized insight, as a record of that target. */
  readonly record: JsonObject;
  /** SHA-256 hashes of the case's artifacts that the record was made from. */
  readonly sources?: readonly string[];
  /** Confidentiality flags of the record itself; a promotion lane prohibits all of them. */
  readonly confidentiality?: readonly ConfidentialityFlag[];
}

/** Options of an export of a case as a BagIt bag. */
export interface ExportOptions extends RunStarter {
  readonly reason: string;
  readonly kind?: ExportBundle['bundle_kind'];
  /** A path that does not exist yet, below the folder of exports: relative to that folder, or absolute. */
  readonly destination: string;
  readonly format?: 'folder' | 'zip';
}

/** The handle of a promotion or export run. */
export interface HighRiskRun {
  readonly run_id: string;
  readonly root_run_id: string;
  readonly correlation_id: string;
  /** The digest that people must approve first (D7); null if none is needed, or the run was denied at once. */
  readonly digest: string | null;
  /** Resolves when the run has ended; rejects if this process releases the run before. */
  readonly finished: Promise<RunEnding>;
}

/** A promotion or export that this process follows. */
export interface CancellableRun extends HighRiskRun {
  /**
   * Cancels the run: at once while it waits for approval, else when its effect has ended.
   * @throws RunError INVALID_STATE_TRANSITION if it has ended
   */
  cancel(reason: string): Promise<RunEnding>;
}

/** A person's vote on requests of one run. */
export interface Ballot {
  readonly run: string;
  /** SHA-256 digests of exact requests, as `approvals` lists them. */
  readonly digests: readonly string[];
  readonly decision: 'approve' | 'reject';
  readonly actor: string;
  readonly role: string;
  /** The person behind the actor, if it has another name. */
  readonly person?: string;
  /** How the caller has authenticated the person. Absent: by nothing that the ledger records. */
  readonly identity?: VerifiedIdentity;
  /** The caller's id of this ballot: a second one with it gets the recorded results and has no effect. */
  readonly inputId?: string;
}

/** The result of a ballot for one digest: `counted`, and the rule behind it. */
export interface BallotResult {
  readonly digest: string;
  readonly counted: boolean;
  readonly rule_id: string;
  /**
   * Nothing proves who votes on a request of a coding agent, so a program that the agent may run could have done it.
   * Absent: the voter was authenticated, or no coding agent makes the request.
   */
  readonly reminder?: true;
}

/** D8: the outcome of an action, found out by a person because it was unknown. */
export interface Resolution {
  /** The mediated run that ended as OUTCOME_UNKNOWN. */
  readonly run: string;
  readonly outcome: 'done' | 'not_executed';
  readonly actor: string;
  readonly role: string;
  readonly note?: string;
}

/** Starts promotions and exports, and follows them to their end. */
export interface HighRiskStarts {
  promote(options: PromoteOptions): Promise<CancellableRun>;
  export(options: ExportOptions): Promise<CancellableRun>;
  /** The run of this id, if it has not ended. */
  find(run_id: string): Promise<CancellableRun | null>;
}

/** Records what people decide about runs. */
export interface Ballots {
  submit(ballot: Ballot): Promise<readonly BallotResult[]>;
  resolve(resolution: Resolution): Promise<void>;
}
