// The files of one case of the campaign: what its processes share, and what they write for the checks.

import { join } from 'node:path';
import { append, linesOf } from '../crash/journal.js';

export interface Places {
  readonly folder: string;
  /** The policy. */
  readonly contract: string;
  /** The keys, which all workers share. */
  readonly keys: string;
  /** The files of the cases, which all workers share. */
  readonly sandbox: string;
  /** What the workers note: effects, settlements and heads. */
  readonly journal: string;
  /** What the tools have done, seen from outside. */
  readonly deeds: string;
}

export const placesIn = (folder: string): Places => ({
  folder,
  contract: join(folder, 'contract'),
  keys: join(folder, 'keys'),
  sandbox: join(folder, 'sandbox'),
  journal: join(folder, 'journal.jsonl'),
  deeds: join(folder, 'deeds.jsonl'),
});

/** The local state of one worker. */
export const stateOf = ({ folder }: Places, worker: string): string => join(folder, `state-${worker}`);

/** A line of the journal. `t` is in ms of a clock that all processes of the machine share. */
export type JournalLine =
  /** A worker begins an effect. */
  | { readonly at: 'begin'; readonly key: string; readonly worker: string; readonly t: number }
  /** A worker begins to settle the effect of another one. */
  | { readonly at: 'settle'; readonly key: string; readonly worker: string; readonly t: number }
  /** A worker writes a head; `stored` is the size of the log in the database right before, null if unknown. */
  | {
      readonly at: 'head';
      readonly size: number;
      readonly root: string;
      readonly stored: number | null;
      readonly worker: string;
    }
  /** A worker refused to start, or to go on. */
  | { readonly at: 'refused'; readonly code: string; readonly message: string; readonly worker: string };

/** One action of a tool. */
export interface Deed {
  readonly tool: string;
  readonly key: string;
  readonly what: string;
}

export const note = ({ journal }: Places, line: JournalLine): void => append(journal, line);
export const journalOf = ({ journal }: Places): readonly JournalLine[] => linesOf(journal) as readonly JournalLine[];
export const addDeed = ({ deeds }: Places, deed: Deed): void => append(deeds, deed);
export const deedsOf = ({ deeds }: Places): readonly Deed[] => linesOf(deeds) as readonly Deed[];

/** Milliseconds on the monotonic clock of the machine. */
export const machineTime = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
