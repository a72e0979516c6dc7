import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gitBlobId } from '../../src/home/policy/manifest-policy-source.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { POLICY_FILES, type Pin, type PinProblem, type PolicyFile } from '../../src/core/contract/policy/pins.js';
import { PolicyError } from '../../src/core/errors.js';
import type { LoadedPolicyFile, PolicySource } from '../../src/engine/ports/policy-sources.js';
import { shippedContract } from '../../src/runtime/shipped-contract.js';
import { unapproved } from '../fixtures/unapproved.js';
import { never, type Process } from './process.js';
import type { World } from './world.js';

const read = (file: string): string => readFileSync(join(shippedContract(), 'policy', file), 'utf8');
const SHIPPED = { lanes: read('lanes.yaml'), roles: read('roles.yaml'), actions: unapproved(read('actions.yaml')) };

/** Small limits and other knobs, so that runs end in every way within a few steps. */
const EDITS: readonly (readonly [string | RegExp, string])[] = [
  ['duplicate_proposal_ids: reject', 'duplicate_proposal_ids: replay'],
  ['on_child_failure: fail', 'on_child_failure: continue'],
  ['denials_per_run_max: 10', 'denials_per_run_max: 2'],
  ['steps_per_run_max: 100000', 'steps_per_run_max: 9'],
  ['exposure: detailed', 'exposure: decision'],
  ['dotdot: reject', 'dotdot: defer'],
  ['extensions_stage: authorize', 'extensions_stage: validate'],
  ['files_max: 10000', 'files_max: 3'],
  [/ {2}- action: DELETE_FILE\n {4}extensions:\n {6}path: .*\n/, ''],
];
const EDITED = 0.3;

/** The policy files of the world. An edit affects the trees that are opened after it (D1). */
export class SimPolicies {
  readonly #world: World;
  #actions: string;

  constructor(world: World) {
    this.#world = world;
    this.#actions = this.#shipped();
  }

  edit(): void {
    let text = this.#shipped();
    for (const [found, put] of EDITS) if (this.#world.random.chance(EDITED)) text = text.replace(found, put);
    this.#actions = text;
  }

  /** With the quota of the world, if it has one. */
  #shipped(): string {
    const { quota } = this.#world;
    if (quota === null) return SHIPPED.actions;
    const { bytes, files } = quota;
    return SHIPPED.actions
      .replace(/^ {2}bytes_max: \d+/m, `  bytes_max: ${bytes}`)
      .replace(/^ {2}files_max: \d+/m, `  files_max: ${files}`);
  }

  of(process: Process): PolicySource {
    return {
      load: async () => {
        const { faults, agenda } = this.#world;
        const odds = { held: 0.05, fails: 0.01, unpinned: 0.02, stale: 0.02, 'no policy': 0.01, crash: 0.001 };
        const fault = faults.draw('policies.load', odds);
        if (fault === 'crash') this.#world.crash(process, 'policies.load');
        if (!process.alive) return never();
        if (fault === 'held') await agenda.hold(process, 'policies.load');
        if (fault === 'fails') throw new PolicyError({ code: 'POLICY_UNREADABLE', message: 'the simulation took it' });
        return this.#loaded(fault);
      },
    };
  }

  #loaded(fault: string): Record<PolicyFile, LoadedPolicyFile> {
    const struck = this.#world.random.pick(POLICY_FILES);
    const load = (name: PolicyFile): LoadedPolicyFile => {
      const text = name === 'actions' ? this.#actions : SHIPPED[name];
      const hit = name === struck;
      const bytes = Buffer.from(hit && fault === 'no policy' ? 'version: v9\n' : text);
      return { name, path: `${name}.yaml`, bytes, pin: pinOf(bytes, hit ? fault : 'none') };
    };
    return { lanes: load('lanes'), roles: load('roles'), actions: load('actions') };
  }
}

function pinOf(bytes: Uint8Array, fault: string): Pin | { readonly problem: PinProblem } {
  if (fault === 'unpinned') return { problem: 'never_committed' };
  // A pin of other bytes than the loaded ones.
  const pinned = fault === 'stale' ? Buffer.from('another version') : bytes;
  return { git_sha: gitBlobId(pinned), sha256: sha256(pinned), source: 'manifest' };
}
