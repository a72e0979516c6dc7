// Collects the steps that a session has issued while its tree is folded: the hash of each step, and where the content
// is stored from which it was made. It retains no content.

import { artifactRef, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { canonicalJson } from '../../core/contract/json.js';
import type { Entry } from '../../core/contract/run/entry.js';
import type { StepType } from './contract/session.js';
import type { SessionState } from './rules/session-state.js';
import type { FollowedEntry, RootFollower } from '../../kernel/tree-feature.js';
import { sessionOf } from './tree/session-of.js';

/** One issue of a step. */
export interface IssuedStep {
  /** The log index of the entry that issued it. */
  readonly log_index: number;
  readonly step_id: string;
  readonly type: StepType;
  readonly phase_id: string;
  readonly task_id: string | null;
  readonly run_id: string;
  readonly lane_id: string;
  /** The issue number that its step proof is for, and the hash of that proof. */
  readonly issue: number;
  readonly proof_sha256: string;
  /** SHA-256 of the canonical JSON of the packet without its proof. */
  readonly sha256: string;
  readonly materials: readonly MaterialPlace[];
}
interface MaterialPlace {
  readonly log_index: number;
  readonly sha256: string;
}

export class IssuedSteps implements RootFollower {
  readonly steps: IssuedStep[] = [];
  #spec: MaterialPlace | null = null;
  #review: MaterialPlace | null = null;
  /** The content that came with the current input. */
  #attached: { readonly spec: MaterialPlace | null; readonly result: MaterialPlace | null } = {
    spec: null,
    result: null,
  };

  get weight(): number {
    return this.steps.length;
  }

  take(entry: FollowedEntry, artifacts: readonly StoredArtifact[], memory: () => unknown): void {
    const { log_index, type, text } = entry;
    if (type === 'input') {
      const materialOf = (kind: StoredArtifact['kind']): MaterialPlace | null => {
        const found = artifacts.find((artifact) => artifact.kind === kind);
        return found === undefined ? null : { log_index, sha256: artifactRef(found).hash_sha256 };
      };
      this.#attached = { spec: materialOf('session_spec'), result: materialOf('result') };
      this.#spec ??= this.#attached.spec;
    } else if (type === 'session_event') {
      const { body } = JSON.parse(text) as Extract<Entry, { type: 'session_event' }>;
      // A rejected rebase also comes with a spec, so only the event of an accepted one replaces the spec.
      if (body.event === 'rebase') this.#spec = this.#attached.spec ?? this.#spec;
      if (body.event === 'gate_reviewed') this.#review = this.#attached.result;
      if (body.event === 'step_issued') this.#recordIssued(log_index, sessionOf({ rootMemory: memory() }));
    }
  }

  #recordIssued(log_index: number, session: SessionState | null): void {
    if (session?.outstanding == null) return;
    const { step, issue, proof_sha256 } = session.outstanding;
    const before = this.steps.at(-1);
    const newMaterials = [this.#spec, step.findings.length > 0 ? this.#review : null].filter((one) => one !== null);
    this.steps.push({
      log_index,
      step_id: step.step_id,
      type: step.type,
      phase_id: step.phase_id ?? '',
      task_id: step.task_id,
      run_id: step.run_id ?? '',
      lane_id: step.lane_id ?? '',
      issue,
      proof_sha256,
      sha256: sha256(canonicalJson(step)),
      // A resumed step has the same content as before.
      materials: before?.step_id === step.step_id ? before.materials : newMaterials,
    });
  }
}
