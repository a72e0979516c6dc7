// What an inspector is told of a ledger: the vocabulary between a service and the page that draws it. Types only, so
// that the page carries none of the schemas.
//
// A ledger is looked at as a list of *marks*: every entry, and after it the *moves* that machines made before the next
// entry was written. A moment is a place in that list: the log index of an entry, and how many moves after it.

import type { RunKind, RunState } from '../run/run-state.js';
import type { Outcome } from '../run/phase.js';
import type { StepType } from '../session/session.js';

/** Which ledger this is. A page never mixes what has another `ledger_id`. */
export interface LedgerInfo {
  /** SHA-256 of the key by which the ledger is signed and of its first entry; of an unsigned one, of that alone. */
  readonly ledger_id: string;
  /** Entries `begin` to `size - 1` are here; what comes before is archived, or in another bundle. */
  readonly begin: number;
  readonly size: number;
  /** The newest signed checkpoint (a C2SP signed note) and the public key `name+hash+base64`; null where unsigned. */
  readonly checkpoint: string | null;
  readonly key: string | null;
  /** Hashes of the perfect subtrees before `begin`, largest first; empty where it is 0. */
  readonly frontier: readonly string[];
  /** Whether it is still written to: then there is a stream. */
  readonly live: boolean;
  /** Whether whoever serves it takes the answers of people to what waits for approval. */
  readonly approvals: boolean;
  /** What the page calls it: the home's folder, or the bundle's file. */
  readonly title: string;
}

/** How the mark of an entry is coloured, and whether it is a problem. */
export type Tone = 'plain' | RunState | Outcome | 'allow' | 'deny';

/** What of a run never changes, told with the entry that created it. */
export interface RunCreationFacts {
  readonly kind: RunKind;
  readonly parent: string | null;
  readonly lane: string | null;
  readonly role: string;
  readonly actor: string;
  readonly case: string | null;
  readonly correlation: string;
  readonly link: string | null;
  /** Git SHAs, or blob ids, of the policy files. */
  readonly pins: { readonly contract: string; readonly lanes: string; readonly roles: string };
  /** The tool or table that it was asked to act on. */
  readonly request: string | null;
  /** The run of which it is another attempt. */
  readonly retry_of: string | null;
}

/** An entry in one line. */
export interface EventRow {
  readonly log_index: number;
  readonly seq: number;
  /** Whom it is about: a run, or for the events of a session itself its tree. */
  readonly run_id: string;
  readonly tree_id: string;
  readonly type: 'input' | 'run_created' | 'audit_event' | 'step_trace' | 'session_event';
  /** What happened, in a few words of the contract: `proposal`, `authz deny`, `running`, `SUCCESS`, `gate_passed`. */
  readonly label: string;
  readonly tone: Tone;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Of a step trace its step, else 0. */
  readonly step: number;
  /** The first eight hex digits of the leaf hash. */
  readonly hash: string;
  /** The state that a run has from here on; null where the entry moves none. */
  readonly state: RunState | null;
  readonly creation: RunCreationFacts | null;
}

/**
 * Rows `from` and on, one after the other without a gap, as tuples whose texts stand in `texts` once.
 * [seq, tree, run, type, label, tone, time - time_base, step, hash, state (-1: none), born?]
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

/** A state of a machine as it is drawn. `id` is the path from the root, its keys joined by dots; the root is ''. */
export interface ChartNode {
  readonly id: string;
  /** The last key; of the root the machine's name. */
  readonly name: string;
  readonly parent: string | null;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final';
  /** The inner state that is entered first. */
  readonly initial: string | null;
  /** Names of entry actions. */
  readonly entry: readonly string[];
}

/** A transition. `id` is `source|event|place`: of several for one event the first whose guard holds is taken. */
export interface ChartEdge {
  readonly id: string;
  readonly source: string;
  /** `always` for one that waits for nothing. */
  readonly event: string;
  readonly place: number;
  /** Null for what is done without leaving the state: it is listed, and not drawn. */
  readonly target: string | null;
  /** `else` for the last of several where the others have guards. */
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

/** One line for all edges with the same ends. Corners are absolute; labels are texts with their middle. */
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

/** A recorded machine, drawn in both directions: the page takes the one that fits larger. */
export interface Chart {
  /** SHA-256 of the machine's definition as canonical JSON. */
  readonly hash: string;
  /** `session`, `orchestrator`, `agent`, `step` or `mediated`. */
  readonly machine: string;
  readonly nodes: readonly ChartNode[];
  readonly edges: readonly ChartEdge[];
  readonly layouts: { readonly down: Layout; readonly right: Layout };
}

/** One transition that was taken: after which entry, by which step (0: the run itself), over which edge, to where. */
export type Move = readonly [log_index: number, step: number, edge: number, to: number];

/** The way of one run through its machine, and of its steps through theirs, as replay gives it. */
export interface Course {
  readonly run_id: string;
  readonly tree_id: string;
  /** The first entry of the log that is not in it: what a further question names as `after`. */
  readonly through: number;
  /** Hashes of the charts: of the run's machine, and of an agent's steps'. */
  readonly chart: string;
  readonly step_chart: string | null;
  /** Texts that moves name by their place: ids of edges, and of the states where the machine rests after them. */
  readonly edges: readonly string[];
  readonly states: readonly string[];
  /** In order. A run that begins rests in its machine's initial state; a step too. */
  readonly moves: readonly Move[];
  /** The entry that began each step, from step 1 on: its proposal's input. */
  readonly steps: readonly number[];
  /**
   * Why it is not all there: content that the fold needs was erased or withheld; or the machines of this version would
   * not have written what was recorded, from an entry on.
   */
  readonly cut: { readonly log_index: number; readonly why: 'withheld' | 'differs' } | null;
}

/** Content that an entry brought. */
export interface ArtifactInfo {
  readonly sha256: string;
  readonly kind: string;
  readonly case_id: string | null;
  readonly byte_size: number;
  /** Why it is not to be had; null where it is. */
  readonly withheld: 'erased' | 'lane' | null;
}

/** One entry in full: its text is canonical JSON, of which `leaf_hash` is the RFC 6962 leaf hash. */
export interface EventDetails {
  readonly log_index: number;
  readonly text: string;
  readonly leaf_hash: string;
  readonly artifacts: readonly ArtifactInfo[];
}

/** One check of a decision, in the order in which they are made. */
export interface ExplainedCheck {
  readonly check: string;
  readonly passed: boolean | null;
  readonly detail: string;
}

/** Why a decision came out as it did (`policy explain`). */
export interface DecisionExplanation {
  readonly log_index: number;
  readonly decision: 'allow' | 'deny';
  readonly rule_id: string;
  readonly checks: readonly ExplainedCheck[];
  /** The smallest changes of the policy that would flip it. */
  readonly changes: readonly { readonly text: string; readonly gives: string }[];
}

/** One step as the agent saw it, beside what was recorded of it. */
export interface StepStory {
  readonly run_id: string;
  readonly step: number;
  /** The entry of its proposal, whose first artifact is the payload; and of its trace, null while there is none. */
  readonly proposal: number;
  readonly trace: number | null;
  /** The response, byte for byte as it was given; null while there is none or where its content is not to be had. */
  readonly response: string | null;
  /** The log index of the decision, for `why`; null where none was taken. */
  readonly decision: number | null;
}

/** A session as it stood. Plain data of the session's own state; where its spec is withheld, titles are empty. */
export interface SessionView {
  readonly session_id: string;
  readonly at: number;
  readonly status: string;
  readonly pause_reason: string | null;
  readonly failure_reason: string | null;
  readonly posture: string | null;
  readonly activation: number;
  readonly steps_issued: number;
  readonly outstanding: { readonly step_id: string; readonly type: string; readonly task_id: string | null } | null;
  readonly phases: readonly {
    readonly id: string;
    readonly title: string;
    readonly state: 'open' | 'current' | 'done';
    readonly gate: { readonly state: string; readonly detail: string } | null;
    readonly tasks: readonly { readonly id: string; readonly title: string; readonly state: string }[];
  }[];
  /** What the agent was handed, in order: the last ones, and how many there were before them. */
  readonly packets: readonly Packet[];
  readonly packets_before: number;
}

/**
 * One issue of a step, as the agent was handed it: all of it but its words, which are content. Whoever may read the
 * materials makes the packet of them again (`stepPacket`), and holds it against its hash.
 */
export interface Packet {
  /** The entry with which it was handed out. */
  readonly log_index: number;
  readonly step_id: string;
  readonly type: StepType;
  readonly phase_id: string;
  readonly task_id: string | null;
  /** The agent run into which its proposals go, and its lane. */
  readonly run_id: string;
  readonly lane_id: string;
  /** The how-manieth issue of the step its proof is of, and the hash of that: the proof itself is nowhere. */
  readonly issue: number;
  readonly proof_sha256: string;
  /** SHA-256 of the canonical JSON of the packet without its proof. */
  readonly sha256: string;
  /** The spec, and of a step that addresses findings the review that found them. */
  readonly materials: readonly PacketMaterial[];
}

/** Content that an entry brought. */
export interface PacketMaterial extends ArtifactInfo {
  readonly log_index: number;
}

/** What the one-file page holds of a ledger. Members of maps are named as the routes of a service name them. */
export interface InlineData {
  readonly info: LedgerInfo;
  readonly pages: RowPage[];
  readonly entries: string[];
  readonly events: Record<string, Pick<EventDetails, 'leaf_hash' | 'artifacts'>>;
  /** By SHA-256, in base64. */
  readonly artifacts: Record<string, string>;
  readonly courses: Record<string, Course>;
  readonly charts: Record<string, Chart>;
  readonly steps: Record<string, StepStory>;
  readonly whys: Record<string, DecisionExplanation>;
  readonly sessions: Record<string, SessionView>;
}
