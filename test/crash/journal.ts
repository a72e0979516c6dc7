// The journal of what was done to the world: one line before and one after each effect, and around each settlement.
// Each line is one O_APPEND write, which a SIGKILL does not take back. Nothing in src knows of it.

import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { EffectResult } from '../../src/contract/run/effect.js';

/** Where everything of one case of the campaign lies. */
export interface Places {
  readonly folder: string;
  readonly home: string;
  readonly journal: string;
  /** What the executor has sent to where nobody can look it up. */
  readonly outbox: string;
  /** What clients have asked for, noted by them before they ask. */
  readonly client: string;
}

export const placesIn = (folder: string): Places => ({
  folder,
  home: join(folder, 'home'),
  journal: join(folder, 'journal.jsonl'),
  outbox: join(folder, 'outbox.jsonl'),
  client: join(folder, 'client.jsonl'),
});

export type JournalLine =
  | {
      readonly at: 'begin';
      readonly key: string;
      readonly action: string;
      readonly case_id: string;
      readonly args: Readonly<Record<string, string>>;
    }
  | { readonly at: 'done'; readonly key: string; readonly status: EffectResult['status'] }
  | {
      readonly at: 'settled';
      readonly key: string;
      readonly action: string;
      readonly status: EffectResult['status'];
      /** What the settlement changed in the sandbox: `-path` is gone, `+path` is new, `~path` is another. */
      readonly changed: readonly string[];
    }
  /** The fault that was injected: from here on nothing may be done. */
  | { readonly at: 'fault'; readonly moment: string }
  | { readonly at: 'commit failed'; readonly code: string }
  | { readonly at: 'life'; readonly life: string };

/** Appends lines to a file that is opened for each: slower, and nothing to close. */
export function append(file: string, line: object): void {
  const descriptor = openSync(file, 'a', 0o600);
  try {
    writeSync(descriptor, `${JSON.stringify(line)}\n`);
  } finally {
    closeSync(descriptor);
  }
}

/** The whole lines of a file; none where there is no file. */
export const linesOf = (file: string): readonly unknown[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as unknown)
    : [];

export const journalOf = ({ journal }: Places): readonly JournalLine[] => linesOf(journal) as readonly JournalLine[];
