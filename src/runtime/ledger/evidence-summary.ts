// What a bundle says of itself: the writer and the verifier of a bundle compute the same statement from its lines.

import { isWithheld, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { PREDICATE_TYPE, STATEMENT_TYPE, type EvidenceStatement } from '../../core/contract/evidence/evidence.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { RunRecords } from './run-records.js';

/** What a bundle contains. */
export interface EvidenceCounts {
  readonly entries: number;
  readonly artifacts: number;
  readonly runs: number;
}

/** The signed statement about the lines before it. */
export class EvidenceSummary {
  readonly #runs = new RunRecords();
  readonly #pinned = { policy: new Set<string>(), machines: new Set<string>() };
  #entries = 0;
  #artifacts = 0;
  #withheld = 0;

  /** @param entry null if it does not concern a run */
  add(entry: Entry | null, artifacts: readonly StoredArtifact[]): void {
    this.#entries += 1;
    this.#artifacts += artifacts.length;
    if (entry !== null) this.#runs.fold(entry);
    for (const artifact of artifacts) {
      const { kind } = artifact;
      if (isWithheld(artifact)) this.#withheld += 1;
      else if (kind === 'policy' || kind === 'machines') this.#pinned[kind].add(sha256(artifact.bytes));
    }
  }

  get counts(): EvidenceCounts {
    return { entries: this.#entries, artifacts: this.#artifacts, runs: this.#runs.all().length };
  }

  statement(name: string, root: string, content_sha256: string): EvidenceStatement {
    return {
      _type: STATEMENT_TYPE,
      subject: [{ name, digest: { sha256: root } }],
      predicateType: PREDICATE_TYPE,
      predicate: {
        entries: this.#entries,
        artifacts: this.#artifacts,
        withheld: this.#withheld,
        content_sha256,
        policies: [...this.#pinned.policy].sort(),
        machines: [...this.#pinned.machines].sort(),
        runs: this.#runs.all().map(({ run_id, run_kind, status, outcome = null }) => ({
          run_id,
          run_kind,
          status,
          outcome,
        })),
      },
    };
  }
}
