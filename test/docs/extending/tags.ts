// A feature from nothing: a person puts a tag on a run, and the ledger has it.

import Type, { type Static } from 'typebox';
import { envelope } from '../../../src/core/contract/run/input.js';
import { Actor, closed, Identifier, RunId, Timestamp } from '../../../src/core/contract/shapes.js';
import type { TreeAccess, TreeFeature, TreePart } from '../../../src/kernel/tree-feature.js';

const feature = Type.Literal('tags');

/** The input: what a person asks for. */
export const TagInput = Type.Object(
  { ...envelope, kind: Type.Literal('tag'), feature, run_id: RunId, tag: Identifier, actor: Actor },
  closed,
);
export type TagInput = Static<typeof TagInput>;

/** The entry: what has happened. */
export const TagEvent = Type.Object(
  {
    feature,
    event: Type.Literal('tagged'),
    run_id: RunId,
    tag: Identifier,
    actor: Actor,
    timestamp_utc: Timestamp,
  },
  closed,
);
export type TagEvent = Static<typeof TagEvent>;

declare module '../../../src/core/contract/run/input.js' {
  interface FeatureInputs {
    readonly tag: TagInput;
  }
}
declare module '../../../src/core/contract/run/entry.js' {
  interface FeatureEntries {
    readonly tag_event: TagEvent;
  }
}

const TAGS_MAX = 32;

/** The tags of the runs of one tree. */
export class TagsPart implements TreePart {
  readonly #tree: TreeAccess;
  #tags: Readonly<Record<string, readonly string[]>> = {};

  constructor(tree: TreeAccess) {
    this.#tree = tree;
  }

  /** Refuses a tag of an unknown or ended run, a second equal tag, and too many. */
  decide({ run_id, tag, actor }: TagInput): boolean {
    const tags = this.#tags[run_id] ?? [];
    if (!this.#tree.isLive(run_id) || tags.includes(tag) || tags.length >= TAGS_MAX) return false;
    this.#tags = { ...this.#tags, [run_id]: [...tags, tag] };
    const body = { feature: 'tags', event: 'tagged', run_id, tag, actor, timestamp_utc: '' } as const;
    this.#tree.record({ type: 'feature_entry', entry_type: 'tag_event', body });
    return true;
  }

  snapshot(): object | null {
    return Object.keys(this.#tags).length === 0 ? null : this.#tags;
  }

  restore(stored: Readonly<Record<string, readonly string[]>>): void {
    this.#tags = stored;
  }
}

export const TAGS: TreeFeature = {
  feature: 'tags',
  inputs: { tag: { schema: TagInput, references: () => [], actorId: () => null } },
  entries: { tag_event: TagEvent },
  createPart: (tree) => new TagsPart(tree),
};
