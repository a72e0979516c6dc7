// What an inspector reports about a ledger: the vocabulary between a service and the page that draws it. Types only, so
// that the page contains none of the schemas. A page shows a ledger as a list of *marks*: each entry, followed by the
// *moves* (transitions) that machines made before the next entry was written. A position in that list is the log index
// of an entry and a number of moves after it.

import type { EntryType } from '../run/entry.js';
import type { PolicyCoverage } from '../evidence/coverage-proof.js';
import type { NEEDS_APPROVAL } from './needs-approval.js';
import type { RunKind, RunState } from '../run/run-context.js';
import type { Outcome } from '../run/phase.js';

/** Identifies a ledger. A page never mixes data of two `ledger_id`s. */
export interface LedgerInfo {
  /** SHA-256 of the ledger's signing key and its first entry; for an unsigned ledger, of the first entry only. */
  readonly ledger_id: string;
  /** Entries `begin` to `size - 1` are available. Earlier entries are in an archive or in another bundle. */
  readonly begin: number;
  readonly size: number;
  /**
   * The newest signed checkpoint (a C2SP signed note) and the public key `name+hash+base64`; null if the ledger is
   * unsigned.
   */
  readonly checkpoint: string | null;
  readonly key: string | null;
  /** Hashes of the perfect subtrees before `begin`, largest first; empty if `begin` is 0. */
  readonly frontier: readonly string[];
  /** Whether the ledger is still written to. If so, the service streams its new entries. */
  readonly live: boolean;
  /** Whether the service accepts answers to pending approvals. */
  readonly approvals: boolean;
  /** The title on the page: the home directory, or the file name of the bundle. */
  readonly title: string;
  /** Why the file is not the one that was signed. Then nothing of it is shown as verified. Absent: no such reason. */
  readonly flaw?: string;
  /** What a replay of all entries has found; null while it runs. Absent: nothing is replayed for this page. */
  readonly replayed?: ReplayedInfo | null;
}

/** The verdict of a replay, as `turnpike replay` gives it, and why it is not `replayed`. */
export interface ReplayedInfo {
  readonly verdict: 'replayed' | 'by_hash_alone' | 'nothing' | 'differs';
  readonly notes: readonly string[];
}

/** The colour of an entry's mark, which also shows whether the entry is a problem. */
export type Tone = 'plain' | RunState | Outcome | 'allow' | 'deny' | typeof NEEDS_APPROVAL;

/** The facts of a run that never change. They come with the entry that created it. */
export interface RunCreationFacts {
  readonly kind: RunKind;
  readonly parent: string | null;
  readonly lane: string | null;
  readonly role: string;
  readonly actor: string;
  readonly case: string | null;
  readonly correlation: string;
  readonly link: string | null;
  /** Git commit or blob ids of the policy files. */
  readonly pins: { readonly contract: string; readonly lanes: string; readonly roles: string };
  /** The tool or table of the run's request. */
  readonly request: string | null;
  /** The run that this one retries. */
  readonly retry_of: string | null;
  /** `caller`: the caller of the agent executes the request and reports the outcome. Null: the platform executes it. */
  readonly executor: 'caller' | null;
  /** For an agent run: the session of a coding agent. */
  readonly client: ClientSession | null;
}

/** A session of a coding agent, as its client names it. */
export interface ClientSession {
  readonly name: string;
  /** The client's id of the session, or its hash. */
  readonly session: string;
  readonly version: string | null;
  /** The folder of the project, or its hash. */
  readonly project: string;
  /** What its calls cannot be compared with (`call-coverage.ts`); null if nothing is recorded of that. */
  readonly uncompared: string | null;
}

/** An entry as one row. */
export interface EventRow {
  readonly log_index: number;
  readonly seq: number;
  /** The run that the entry is about; for events of a session itself, the root of its tree. */
  readonly run_id: string;
  readonly tree_id: string;
  readonly type: EntryType;
  /** What happened, in a few words: `proposal`, `authz deny`, `running`, `SUCCESS`, `needs approval`, `gate_passed`. */
  readonly label: string;
  readonly tone: Tone;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** The step number of a step trace; 0 for other entries. */
  readonly step: number;
  /** The first eight hex digits of the leaf hash. */
  readonly hash: string;
  /** The state of the run after this entry; null if the entry does not change it. */
  readonly state: RunState | null;
  readonly creation: RunCreationFacts | null;
}

/**
 * Consecutive rows from `from`, as tuples; texts are stored once, in `texts`. [seq, tree, run, type, label, tone, time
 * - time_base, step, hash, state (-1: none), born?]
 */
export interface RowPage {
  readonly from: number;
  readonly texts: readonly string[];
  readonly time_base: number;
  readonly rows: readonly RowTuple[];
}
export type RowTuple = readonly [
  seq: number,
  tree: number,
  run: number,
  type: number,
  label: number,
  tone: number,
  time: number,
  step: number,
  hash: string,
  state: number,
  born?: RunCreationFacts,
];

/** A drawn state of a machine. `id` is the path from the root, with its keys joined by dots; the root is ''. */
export interface ChartNode {
  readonly id: string;
  /** The last key of the path; for the root, the name of the machine. */
  readonly name: string;
  readonly parent: string | null;
  readonly type: 'atomic' | 'compound' | 'final';
  /** The child state that is entered first. */
  readonly initial: string | null;
  /** Names of entry actions. */
  readonly entry: readonly string[];
}

/** A transition. `id` is `source|event|place`: of several for one event, the first whose guard holds is taken. */
export interface ChartEdge {
  readonly id: string;
  readonly source: string;
  /** `always` for a transition that waits for no event. */
  readonly event: string;
  readonly place: number;
  /** Null for an internal transition, which is listed and not drawn. */
  readonly target: string | null;
  /** `else` for the last of several transitions if the others have guards. */
  readonly guard: string | null;
  readonly actions: readonly string[];
}

export interface Box {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/**
 * One line for all edges with the same ends. Corners are absolute; labels are texts with the position of their centre.
 */
export interface ChartLine {
  readonly edges: readonly string[];
  readonly points: readonly (readonly [x: number, y: number])[];
  readonly labels: readonly { readonly edge: string; readonly x: number; readonly y: number }[];
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly Box[];
  readonly lines: readonly ChartLine[];
}

/** A recorded machine, laid out in both directions: the page uses the layout that it can show larger. */
export interface Chart {
  readonly hash: string;
  /** `session`, `orchestrator`, `agent`, `step` or `mediated`. */
  readonly machine: string;
  readonly nodes: readonly ChartNode[];
  readonly edges: readonly ChartEdge[];
  readonly layouts: { readonly down: Layout; readonly right: Layout };
}

/** One transition: the entry before it, its step (0: the run itself), its edge and the state it leads to. */
export type Move = readonly [log_index: number, step: number, edge: number, to: number];

/** The transitions of one run and of its steps, as replay computes them. */
export interface Course {
  readonly run_id: string;
  readonly tree_id: string;
  /** The index of the first entry that this course does not cover; the next request passes it as `after`. */
  readonly through: number;
  /** Hashes of the charts of the run's machine and of an agent's steps. */
  readonly chart: string;
  readonly step_chart: string | null;
  /** The texts that moves refer to by index: ids of edges, and of the states they lead to. */
  readonly edges: readonly string[];
  readonly states: readonly string[];
  /** In order. A run or step starts in the initial state of its machine. */
  readonly moves: readonly Move[];
  /** The entry that began each step, from step 1: the input with its proposal. */
  readonly steps: readonly number[];
  /**
   * Why the course ends early: `withheld` if the fold needs content that was erased or withheld; `differs` if the
   * machines of this version would have written another entry than the recorded one; `unsupported` if this installation
   * cannot evaluate the policy of the tree. Null if the course is complete.
   */
  readonly cut: {
    readonly log_index: number;
    readonly why: 'withheld' | 'differs' | 'unsupported';
    /** For `unsupported`: what to install. */
    readonly needs?: string;
  } | null;
}

/** Content that came with an entry. */
export interface ArtifactInfo {
  readonly sha256: string;
  readonly kind: string;
  readonly case_id: string | null;
  readonly byte_size: number;
  /** Why the content is unavailable; null if it is available. */
  readonly withheld: 'erased' | 'lane' | null;
}

/** One entry in full. The text is canonical JSON; `leaf_hash` is its RFC 6962 leaf hash. */
export interface EventDetails {
  readonly log_index: number;
  readonly text: string;
  readonly leaf_hash: string;
  readonly artifacts: readonly ArtifactInfo[];
}

/** One check of a decision. Checks are listed in the order in which they ran. */
export interface ExplainedCheck {
  readonly check: string;
  readonly passed: boolean | null;
  readonly detail: string;
}

/** Explains why a decision came out as it did (`policy explain`). */
export interface DecisionExplanation {
  readonly log_index: number;
  readonly decision: 'allow' | 'deny';
  readonly rule_id: string;
  readonly checks: readonly ExplainedCheck[];
  /** The smallest policy changes that would reverse the decision. */
  readonly changes: readonly { readonly text: string; readonly gives: string }[];
}

/** How often each element of the pinned policies decided in a range of the log (`policy coverage`). */
export interface CoverageReport {
  /** The entries with `from` <= index < `to`. */
  readonly from: number;
  readonly to: number;
  /** Trees of the range that were counted only in part: content is not available, or a policy cannot be evaluated. */
  readonly not_recomputed: number;
  /** What to install, if this installation cannot evaluate the policy of one of them. */
  readonly needs?: string;
  readonly policies: readonly PolicyCoverage[];
}

/** One step: what the agent saw, together with what the ledger recorded. */
export interface StepStory {
  readonly run_id: string;
  readonly step: number;
  /**
   * The entry of the proposal, whose first artifact is the payload, and the entry of the trace; null if there is no
   * trace yet.
   */
  readonly proposal: number;
  readonly trace: number | null;
  /** The response, byte for byte; null if it is missing or its content is unavailable. */
  readonly response: string | null;
  /** The log index of the decision, for `why`; null if the step has no decision. */
  readonly decision: number | null;
  /** The field and the constraint that it breaks, if the proposal does not match its schema (C94). */
  readonly explanation?: string;
}
