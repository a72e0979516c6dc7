// The environment of a campaign: a real Turnpike with a sandbox of real files, traps among them, under one of four
// policies.

import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { manifestPolicySource, pinManifest } from '../../src/home/policy/manifest-policy-source.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { POLICY_FILES } from '../../src/core/contract/policy/pins.js';
import type { StoredEntry } from '../../src/engine/ports/ledger/ledger-store.js';
import { openTurnpike, type Turnpike, type TurnpikeOptions } from '../../src/host/turnpike.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from './places.js';

export const CASES = 32;
export const caseOf = (caller: number): string => `case-${String(caller % CASES).padStart(2, '0')}`;

/** The part of a Turnpike that the campaign needs: small enough that a test can replace it by a faulty one. */
export interface Opened extends Pick<Turnpike, 'startAgent' | 'close'> {
  replay(): Promise<{ readonly ok: boolean; readonly steps: number; readonly responses: number }>;
  readonly ledger: { log(): AsyncIterable<StoredEntry>; verify(): Promise<{ readonly ok: boolean }> };
}
export type Open = (options: TurnpikeOptions) => Promise<Opened>;

export const STORES = ['memory', 'sqlite'] as const;
export type Store = (typeof STORES)[number];

type Edits = Readonly<Record<string, string | number | boolean>>;

/** Each policy as a shipped file with changed values. */
const POLICIES = {
  /** The shipped policy: ten denials end a run, so ended runs occur all the time. */
  documents: { file: 'actions.yaml', edits: {} },
  /** Runs live long, and a repeated proposal gets its response again. */
  patient: { file: 'actions.yaml', edits: { denials_per_run_max: 1_000_000, duplicate_proposal_ids: 'replay' } },
  /** Every knob has its other value. */
  coding: {
    file: 'actions.coding.yaml',
    edits: {
      denials_per_run_max: 1_000_000,
      dotdot: 'defer',
      extensions_stage: 'validate',
      portable_names: true,
      on_child_failure: 'continue',
    },
  },
  /** Limits so small that all of them are reached; agents see only the decision. */
  narrow: {
    file: 'actions.yaml',
    edits: {
      payload_bytes_max: 2_048,
      payload_depth_max: 6,
      path_bytes_max: 64,
      content_bytes_max: 256,
      read_bytes_max: 512,
      list_entries_max: 11,
      steps_per_run_max: 150,
      denials_per_run_max: 100,
      bytes_max: 4_096,
      files_max: 18,
      depth_max: 3,
      exposure: 'decision',
      duplicate_proposal_ids: 'replay',
    },
  },
} as const satisfies Record<string, { readonly file: string; readonly edits: Edits }>;
export type PolicyName = keyof typeof POLICIES;
export const POLICY_NAMES = Object.keys(POLICIES) as readonly PolicyName[];

const SHIPPED = join(ROOT, 'policies/contract/v1/policy');

/**
 * A shipped policy file with other values. @throws if a key is missing, because the campaign would then test nothing
 */
function edited(file: string, edits: Edits): string {
  let text = readFileSync(join(SHIPPED, file), 'utf8');
  for (const [key, value] of Object.entries(edits)) {
    const line = new RegExp(`^(  ${key}:) [^\\s#]+`, 'm');
    if (!line.test(text)) throw new Error(`${file} has no ${key}`);
    text = text.replace(line, `$1 ${value}`);
  }
  return text;
}

export class World {
  readonly policy: PolicyName;
  readonly folder: string;
  readonly #open: Open;

  constructor(policy: PolicyName, open: Open = openTurnpike) {
    this.policy = policy;
    this.#open = open;
    this.folder = tempFolder('fuzz');
    this.#writeContract();
    this.#writeOutside();
    for (let number = 0; number < CASES; number += 1) this.#fill(join(this.folder, 'sandbox', caseOf(number)));
    this.#makePipes();
  }

  /** Strings that only this host knows: the name of its folder, and the content of a file outside the sandbox. */
  get secrets(): readonly string[] {
    return [basename(this.folder), this.#canary];
  }

  open(store: Store): Promise<Opened> {
    return this.#open({
      ...(store === 'sqlite' ? { home: join(this.folder, 'home') } : { store: memoryStore() }),
      sandbox: join(this.folder, 'sandbox'),
      policies: manifestPolicySource(join(this.folder, 'contract')),
      clock: new ManualClock(),
      ids: countedIds(),
      log: winstonLog('silent'),
      control: false,
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  get #canary(): string {
    return `canary of ${basename(this.folder).slice(-6)}`;
  }

  #writeContract(): void {
    const { file, edits } = POLICIES[this.policy];
    const contract = join(this.folder, 'contract');
    mkdirSync(join(contract, 'policy'), { recursive: true });
    const files = POLICY_FILES.map((name) => {
      const text = name === 'actions' ? edited(file, edits) : edited(`${name}.yaml`, {});
      writeFileSync(join(contract, 'policy', `${name}.yaml`), text);
      const pin = { problem: 'never_committed' } as const;
      return { path: `policy/${name}.yaml`, bytes: new Uint8Array(Buffer.from(text)), pin };
    });
    writeFileSync(join(contract, 'pins.json'), JSON.stringify(pinManifest(files)));
  }

  #writeOutside(): void {
    mkdirSync(join(this.folder, 'outside'), { recursive: true });
    writeFileSync(join(this.folder, 'outside/secret.txt'), `${this.#canary}\n`);
  }

  /** Files for every outcome of an executor; the grammar knows their names. */
  #fill(folder: string): void {
    mkdirSync(join(folder, 'notes/deep'), { recursive: true });
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'README.md'), '# A case\n');
    writeFileSync(join(folder, 'todo.txt'), 'Nothing yet.\n');
    writeFileSync(join(folder, 'config.json'), '{}\n');
    writeFileSync(join(folder, 'notes/draft.md'), 'é '.repeat(40));
    writeFileSync(join(folder, 'notes/deep/a.md'), 'a\n');
    writeFileSync(join(folder, 'binary.txt'), Uint8Array.of(0xff, 0xfe, 0x00, 0x80));
    writeFileSync(join(folder, 'large.txt'), '');
    truncateSync(join(folder, 'large.txt'), this.policy === 'narrow' ? 513 : 1_048_577);
    const outside = join(this.folder, 'outside');
    symlinkSync(join(outside, 'secret.txt'), join(folder, 'link.txt'));
    symlinkSync(outside, join(folder, 'linkdir'));
    symlinkSync('loop', join(folder, 'loop'));
    linkSync(join(outside, 'secret.txt'), join(folder, 'hard.txt'));
  }

  #makePipes(): void {
    const pipes = Array.from({ length: CASES }, (_, number) =>
      join(this.folder, 'sandbox', caseOf(number), 'pipe.txt'),
    );
    execFileSync('mkfifo', pipes);
  }
}

/** Ids in the order in which they are drawn, so that a seed gives the same ledger again. */
function countedIds(): NonNullable<TurnpikeOptions['ids']> {
  let drawn = 0;
  return { draw: (prefix) => `${prefix}${String((drawn += 1)).padStart(21, '0')}` };
}
