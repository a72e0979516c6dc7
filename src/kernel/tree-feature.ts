// How a feature takes part in trees: it decides the inputs that it adds, and it may open trees with a root machine of
// its own. The tree offers it what it needs and nothing else; like the machines, it uses no clock, no randomness and no
// I/O.

import type { AnyStateMachine } from 'xstate';
import type { Emission } from '../../machines/emission.js';
import type { Machines } from '../../machines/index.js';
import type { Artifact, StoredArtifact } from '../core/contract/artifact-ref.js';
import type { Effect } from '../core/contract/run/effect.js';
import {
  installVocabulary,
  type FeatureVocabulary,
  type RecordedByFeature,
} from '../core/contract/run/feature-vocabulary.js';
import type { OpeningInput, RecordedInput } from '../core/contract/run/entry.js';
import type { OverlayFact } from '../core/contract/policy/overlay.js';
import type { RunContext } from '../core/contract/run/run-context.js';
import type { Secrets } from '../core/contract/secrets.js';
import type { Policy } from '../core/policy/policy.js';
import type { ActorEvent } from './interpreter/actors.js';
import type { KnownRun } from './tree-snapshot.js';

/** A feature with its part in trees. */
export interface TreeFeature extends FeatureVocabulary {
  /** The tool that a lane must list for each action of a run that the feature starts itself. Absent: it starts none. */
  readonly startedTools?: Readonly<Record<string, string>>;
  /** The root machine of the trees that it opens; absent if it opens none. */
  readonly root?: RootMachine;
  /** Creates the part of the feature in one tree. It must change nothing. */
  createPart(tree: TreeAccess): TreePart;
  /**
   * The members that an input is recorded with besides its time: what only this process knows, such as values under
   * keys of its home. Absent: none.
   */
  complete?(input: never, tree: TreeState, known: KnownAtSubmission): object;
}

/** The root machine of the trees that a feature opens. The machines of run trees run below it. */
export interface RootMachine {
  /** Its name in the machine definitions that a tree pins. */
  readonly name: string;
  create(machines: Machines): AnyStateMachine;
  /** The input that the machine starts with. `content` is what came with the opening after its pinned policies. */
  inputOf(open: never, base: RunContext, content: readonly Artifact[]): object;
  /** Collects something of each tree as its entries are folded, for readers of its course. Absent: nothing. */
  follow?(): RootFollower;
  /** A short description of the state of the tree as plain data, for readers of the ledger at an entry. */
  readonly summary: RootSummary;
}

/** Collects something of one tree of a feature from its folded entries. */
export interface RootFollower {
  /** Memory use, in entries. */
  readonly weight: number;
  /** Takes a folded entry with its content. `memory` reads the context of the root machine after it. */
  take(entry: FollowedEntry, artifacts: readonly StoredArtifact[], memory: () => unknown): void;
}

export interface FollowedEntry {
  readonly log_index: number;
  readonly type: string;
  readonly text: string;
}

/** How readers of the ledger at an entry see the trees of a feature. */
export interface RootSummary {
  /** The member of the ledger's state that lists the summaries. */
  readonly member: string;
  /** @param memory the context of the root machine, or its output once it has ended */
  of(memory: unknown): SummarizedRoot | null;
}

export interface SummarizedRoot {
  /** Plain JSON. */
  readonly summary: object;
  /** Whether the tree has ended. */
  readonly isOver: boolean;
}

/** What is read of a tree. */
export interface TreeState {
  readonly tree_id: string;
  /** The context of the root machine, or its output once it has ended; null before the tree is open. */
  readonly rootMemory: unknown;
}

/** What a tree offers to the parts of features. */
export interface TreeAccess extends TreeState {
  /** The input that opened the tree; null before. */
  readonly opening: OpeningInput | null;
  /** The policy of the tree; null before it is open. */
  readonly policy: Policy | null;
  run(run_id: string): KnownRun | null;
  /** Whether this run or step can take inputs now. */
  isLive(run_id: string): boolean;
  /** Sends an event to a run. @returns false if the run cannot take it; then nothing has changed */
  send(run_id: string, event: ActorEvent): boolean;
  /** Records an entry, as a machine would. */
  record(emission: Emission): void;
}

/** What the engine knows when an input is submitted. */
export interface KnownAtSubmission {
  readonly overlay: OverlayFact | null;
  readonly secrets: Secrets;
}

/** The part of a feature in one tree. */
export interface TreePart {
  /** Decides an input of the feature. @returns false to refuse it, which must leave the tree unchanged */
  decide(input: RecordedByFeature, materials: readonly Artifact[]): boolean;
  /** Whether others may not submit this input to the tree. Asked only of the feature that opened it. */
  isReserved?(input: RecordedInput, run: KnownRun | null): boolean;
  /** An effect of the tree was executed. */
  onEffectDone?(effect: Effect): void;
  /** Its state as plain JSON; null if it has none. */
  snapshot?(): object | null;
  restore?(stored: object): void;
}

const features = new Map<string, TreeFeature>();

/** Makes a feature known to all trees, with its vocabulary. @throws InvariantError if its names are taken */
export function installTreeFeature(feature: TreeFeature): void {
  installVocabulary(feature);
  features.set(feature.feature, feature);
}

/** The feature of this name, if it is installed. */
export const installedFeature = (name: string): TreeFeature | null => features.get(name) ?? null;

export const installedFeatures = (): readonly TreeFeature[] => [...features.values()];

/** The feature that decides an input; null for an input of core. */
export function featureOf(input: object): TreeFeature | null {
  const { feature } = input as { readonly feature?: unknown };
  return typeof feature === 'string' ? installedFeature(feature) : null;
}
