// The steps that a session has handed out, as its tree is folded: each with its hash, and with where the content stands
// of which it was made. No content is kept.

import { artifactRef, type StoredArtifact } from '../contract/artifact-ref.js';
import { canonicalJson } from '../contract/canonical-json.js';
import type { Entry } from '../contract/run/entry.js';
import { sha256 } from '../contract/hash.js';
import type { Packet } from '../contract/inspection/inspection.js';
import type { SessionState } from '../session/session-state.js';
import type { ReplayEntry } from './replay.js';

export interface IssuedStep extends Omit<Packet, 'materials'> {
  readonly materials: readonly MaterialPlace[];
}
interface MaterialPlace {
  readonly log_index: number;
  readonly sha256: string;
}

export class IssuedSteps {
  readonly steps: IssuedStep[] = [];
  #spec: MaterialPlace | null = null;
  #review: MaterialPlace | null = null;
  /** What the present input has brought. */
  #attached: { readonly spec: MaterialPlace | null; readonly result: MaterialPlace | null } = {
    spec: null,
    result: null,
  };

  /** An entry that was folded, and the session as it stands with it. */
  take(entry: ReplayEntry, artifacts: readonly StoredArtifact[], session: () => SessionState | null): void {
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
      // A rebase that is refused has brought a spec as well.
      if (body.event === 'rebase') this.#spec = this.#attached.spec ?? this.#spec;
      if (body.event === 'gate_reviewed') this.#review = this.#attached.result;
      if (body.event === 'step_issued') this.#recordIssued(log_index, session());
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
      // A step that is taken up again says what it said.
      materials: before?.step_id === step.step_id ? before.materials : newMaterials,
    });
  }
}
