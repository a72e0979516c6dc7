// The journal of effects: one line before and one after each effect, and around each settlement. Each line is one
// O_APPEND write, which a SIGKILL does not undo. Nothing in src knows of it.

import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { EffectResult } from '../../src/core/contract/run/effect.js';

/** The folder of one case of the campaign. */
export interface Places {
  readonly folder: string;
  readonly home: string;
  readonly journal: string;
  /** What the executor has sent to a place that cannot be queried. */
  readonly outbox: string;
  /** The requests of clients, noted before they are sent. */
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
      /** The changes of the settlement in the sandbox: `-path` was removed, `+path` is new, `~path` was replaced. */
      readonly changed: readonly string[];
    }
  /** The injected fault: after it no effect may run. */
  | { readonly at: 'fault'; readonly moment: string }
  | { readonly at: 'commit failed'; readonly code: string }
  | { readonly at: 'life'; readonly life: string };

/** Appends lines to a file that is opened for each: slower, but nothing has to be closed. */
export function append(file: string, line: object): void {
  const descriptor = openSync(file, 'a', 0o600);
  try {
    writeSync(descriptor, `${JSON.stringify(line)}\n`);
  } finally {
    closeSync(descriptor);
  }
}

/** The complete lines of a file; empty if there is no file. */
export const linesOf = (file: string): readonly unknown[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as unknown)
    : [];

export const journalOf = ({ journal }: Places): readonly JournalLine[] => linesOf(journal) as readonly JournalLine[];
