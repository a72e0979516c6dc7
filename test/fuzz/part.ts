// One part of a campaign in its own worker thread, so that the main thread notices a hang or a crash.

import { parentPort, workerData } from 'node:worker_threads';
import { fixtureChunks, fuzzChunk, fuzzSteps, type Report, type Violation } from './campaign.js';
import { corpora } from './corpora.js';
import { fuzzPolicies, type PolicyReport } from './policy-loader.js';
import { readChunk, writeChunk } from './reproduction.js';

export interface PartOptions {
  readonly seed: number;
  readonly payloads: number;
  readonly policies: number;
  /** Whether to start with the fixtures; one part does. */
  readonly fixtures: boolean;
  /** The file to which the running chunk is written. */
  readonly file: string;
  /** Runs the chunk of this file instead of a campaign. */
  readonly replay: string | null;
}

export interface PartMessage {
  readonly kind: 'progress' | 'done';
  readonly steps: Omit<Report, 'violations'>;
  readonly policies: Omit<PolicyReport, 'violations'> | null;
  /** The first violations, with the file that contains their chunk. */
  readonly violations: readonly { readonly what: string; readonly payload: string; readonly file: string | null }[];
}

async function run(options: PartOptions): Promise<void> {
  const { seed, payloads, file } = options;
  if (options.replay !== null) {
    const report = await fuzzChunk(readChunk(options.replay), { measure: true });
    sendMessage('done', report, null, options.replay);
    return;
  }
  for (const chunk of options.fixtures ? fixtureChunks() : []) {
    writeChunk(file, chunk);
    const report = await fuzzChunk(chunk, { measure: true });
    if (report.violations.length > 0) {
      sendMessage('done', report, null, kept(report.violations, file));
      return;
    }
  }
  const policies = await fuzzPolicies({ seed, files: options.policies, measure: true });
  const report = await fuzzSteps({
    seed,
    payloads,
    corpus: corpora().payloads,
    measure: true,
    before: (chunk) => writeChunk(file, chunk),
    after: (soFar) => sendMessage('progress', soFar, policies, null),
  });
  sendMessage('done', report, policies, kept(report.violations, file));
}

/** Saves the chunk of the first violation. */
function kept([first]: readonly Violation[], file: string): string | null {
  if (first === undefined) return null;
  writeChunk(file, first.chunk);
  return file;
}

function sendMessage(
  kind: PartMessage['kind'],
  report: Readonly<Report>,
  policies: PolicyReport | null,
  file: string | null,
): void {
  const { violations, ...steps } = report;
  const { violations: ofPolicies = [], ...counts } = policies ?? {};
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
  const message: PartMessage = {
    kind,
    steps,
    policies: policies === null ? null : (counts as Omit<PolicyReport, 'violations'>),
    violations: [
      ...violations.map(({ what, payload }) => ({ what, payload: base64(payload), file })),
      ...ofPolicies.map(({ what, name, bytes }) => ({
        what: `${name}.yaml: ${what}`,
        payload: base64(bytes),
        file: null,
      })),
    ],
  };
  parentPort?.postMessage(message);
}

await run(workerData as PartOptions);
