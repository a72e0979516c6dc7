// What the inspector shows of a session. The feature of sessions computes it, and the page draws it. Types only.

import type { ArtifactInfo } from '../../../core/contract/inspection/inspection.js';

/** The state of a session at one position. Plain data; titles are empty if the spec is withheld. */
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
  /** The newest packets that the agent got, in order, and the number of earlier ones. */
  readonly packets: readonly Packet[];
  readonly packets_before: number;
}

/**
 * One issue of a step: the agent's packet without its texts, which are content. A reader who may read the materials
 * rebuilds the packet from them and compares it with its hash.
 */
export interface Packet {
  /** The log index of the entry that issued the packet. */
  readonly log_index: number;
  readonly step_id: string;
  readonly type: string;
  readonly phase_id: string;
  readonly task_id: string | null;
  /** The agent run that gets the proposals of this step, and its lane. */
  readonly run_id: string;
  readonly lane_id: string;
  /**
   * The issue number of the step that its step proof is for, and the hash of that proof. The proof itself is not
   * stored.
   */
  readonly issue: number;
  readonly proof_sha256: string;
  /** SHA-256 of the canonical JSON of the packet without its proof. */
  readonly sha256: string;
  /** The spec and, for a step that addresses findings, the review that reported them. */
  readonly materials: readonly PacketMaterial[];
}

export interface PacketMaterial extends ArtifactInfo {
  readonly log_index: number;
}
