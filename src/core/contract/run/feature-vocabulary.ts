// What features add to the vocabulary of the ledger. Core knows no feature: a feature declares its name, and is loaded
// and installed when an entry that it has recorded is first read or decided, or a policy that needs it is first loaded.
// What it records carries its name, so a reader without it can say which feature it lacks.

import type { TSchema } from 'typebox';
import type { ArtifactRef } from '../artifact-ref.js';
import { isJsonObject } from '../json.js';
import type { AnyPolicyFile } from '../policy/pins.js';
import { CodedError, InvariantError, LedgerError } from '../../errors.js';

/** An input of a feature. Every one is addressed to a run of its tree, at a time, and names its feature. */
export interface RecordedByFeature {
  readonly kind: string;
  readonly feature: string;
  readonly run_id: string;
  readonly input_id: string;
  readonly time: string;
}

/** One kind of input of a feature. */
export interface FeatureInputKind<Input extends RecordedByFeature = RecordedByFeature> {
  readonly schema: TSchema;
  /**
   * The references whose content comes with the input, in the order of its materials; for an input that opens a tree,
   * those after the pinned policies.
   */
  references(input: Input): readonly ArtifactRef[];
  /** The actor whose work the input starts, and whom its bytes count for; null if it starts none. */
  actorId(input: Input): string | null;
  /** The lane whose rules withhold content that belongs to no run of the tree; null without one. */
  laneId?(input: Input): string | null;
}

/** The part of a feature in the vocabulary of the ledger. */
export interface FeatureVocabulary {
  /** Lower-case letters and hyphens; every input and entry of the feature has it as its member `feature`. */
  readonly feature: string;
  readonly inputs: Readonly<Record<string, FeatureInputKind<never>>>;
  /** The schema of each type of entry that it adds. */
  readonly entries: Readonly<Record<string, TSchema>>;
}

const installed = new Map<string, FeatureVocabulary>();
const inputKinds = new Map<string, FeatureInputKind>();
const entrySchemas = new Map<string, TSchema>();
/** The features that are declared and not loaded yet. */
const declared = new Map<string, DeclaredFeature>();
const stateMembers = new Set<string>();

/** A feature that may be loaded. */
export interface DeclaredFeature {
  readonly feature: string;
  /** The member of the ledger's state that lists its trees; absent if it opens none. */
  readonly stateMember?: string;
  /** Whether a policy with these files needs the feature. Absent: only what the feature records needs it. */
  isNeededBy?(policy: PolicyContents): boolean;
  /** The kinds of inputs of core that it decides, under any policy. Absent: none. */
  readonly inputKinds?: readonly string[];
  /** Installs the feature. */
  load(): Promise<unknown>;
}

/** The bytes of the files of a policy that there are. */
export type PolicyContents = { readonly [K in AnyPolicyFile]?: { readonly bytes: Uint8Array } | undefined };

/** Names a feature. Nothing of it is loaded before an entry or a policy needs it. */
export function declareFeature(declaration: DeclaredFeature): void {
  const { feature, stateMember } = declaration;
  if (stateMember !== undefined) stateMembers.add(stateMember);
  if (!installed.has(feature)) declared.set(feature, declaration);
}

/** Adds the vocabulary of a feature. @throws InvariantError if another feature has one of its kinds or types */
export function installVocabulary(vocabulary: FeatureVocabulary): void {
  const { feature, inputs, entries } = vocabulary;
  declared.delete(feature);
  if (installed.get(feature) === vocabulary) return;
  const names = [...Object.keys(inputs), ...Object.keys(entries)];
  if (installed.has(feature) || names.some((name) => inputKinds.has(name) || entrySchemas.has(name)))
    throw new InvariantError(`the vocabulary of the feature ${feature} is installed twice`);
  installed.set(feature, vocabulary);
  for (const [kind, input] of Object.entries(inputs)) inputKinds.set(kind, input);
  for (const [type, schema] of Object.entries(entries)) entrySchemas.set(type, schema);
}

/**
 * Loads the features that the text of an entry or snapshot names. The name may also be elsewhere in it: the feature is
 * then loaded too early, which changes nothing. @returns null if there is nothing to load
 */
export function loadFeaturesNamedIn(text: string): Promise<void> | null {
  if (declared.size === 0) return null;
  return loadAll([...declared.values()].filter((declaration) => isNamedIn(text, declaration)));
}

const isNamedIn = (text: string, { feature, inputKinds = [] }: DeclaredFeature): boolean =>
  text.includes(`"feature":"${feature}"`) || inputKinds.some((kind) => text.includes(`"kind":"${kind}"`));

/** Loads the features that a policy needs, before it is parsed. @returns null if there is nothing to load */
export const loadFeaturesOfPolicy = (policy: PolicyContents): Promise<void> | null =>
  loadAll([...declared.values()].filter((declaration) => declaration.isNeededBy?.(policy) === true));

const loadAll = (needed: readonly DeclaredFeature[]): Promise<void> | null =>
  needed.length === 0 ? null : Promise.all(needed.map(loadDeclared)).then(() => undefined);

/** Loads the feature that an input names, or that decides it. @returns null if there is nothing to load */
export function loadFeatureOf(input: object): Promise<void> | null {
  const { kind = '', feature } = input as { readonly kind?: string; readonly feature?: unknown };
  const declaration =
    typeof feature === 'string'
      ? declared.get(feature)
      : [...declared.values()].find(({ inputKinds }) => inputKinds?.includes(kind) === true);
  return declaration === undefined ? null : loadDeclared(declaration);
}

/** Loads every feature that is declared: for what needs all of them, such as the published schemas. */
export const loadAllFeatures = async (): Promise<void> => {
  await loadAll([...declared.values()]);
};

/** The features that are being loaded. */
const loading = new Map<string, Promise<void>>();

/** Loads a feature once, however many wait for it. After a failure the next call tries again. */
function loadDeclared(declaration: DeclaredFeature): Promise<void> {
  const { feature } = declaration;
  const known = loading.get(feature) ?? load(declaration).finally(() => loading.delete(feature));
  loading.set(feature, known);
  return known;
}

/** @throws CodedError: LEDGER_UNSUPPORTED if its modules cannot be imported */
async function load(declaration: DeclaredFeature): Promise<void> {
  try {
    await declaration.load();
  } catch (error) {
    throw error instanceof CodedError ? error : brokenFeatureError(declaration.feature, error);
  }
  if (!installed.has(declaration.feature))
    throw new InvariantError(`loading the feature ${declaration.feature} did not install it`);
}

/** The members of the ledger's state that list the trees of features. */
export const featureStateMembers = (): readonly string[] => [...stateMembers];

export const featureInputKind = (kind: string): FeatureInputKind | null => inputKinds.get(kind) ?? null;

/** The actor whose work an input of a feature starts; null for other inputs. */
export const featureActorId = (input: { readonly kind: string }): string | null =>
  inputKinds.get(input.kind)?.actorId(input as RecordedByFeature) ?? null;

/** The lane of content of a feature's tree that belongs to no run; null without one. */
export const featureLaneId = (input: { readonly kind: string }): string | null =>
  inputKinds.get(input.kind)?.laneId?.(input as RecordedByFeature) ?? null;

export const featureEntrySchema = (type: string): TSchema | null => entrySchemas.get(type) ?? null;

/** The names of the types of entries that features have installed. */
export const featureEntryTypes = (): readonly string[] => [...entrySchemas.keys()];

/** The vocabularies that are installed. */
export const installedVocabularies = (): readonly FeatureVocabulary[] => [...installed.values()];

const FEATURE_NAME = /^[a-z][a-z-]{0,39}$/;

/** The feature that a body names and that is not installed here; null if it names none, or an installed one. */
export function missingFeature(body: unknown): string | null {
  const feature = isJsonObject(body) ? body['feature'] : undefined;
  return typeof feature === 'string' && FEATURE_NAME.test(feature) && !installed.has(feature) ? feature : null;
}

/** The error for what a feature has recorded that is not installed here. */
export const missingFeatureError = (feature: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNSUPPORTED',
    message: `the feature ${feature} has recorded this, and this installation does not have it`,
  });

const brokenFeatureError = (feature: string, cause: unknown): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNSUPPORTED',
    message: `the feature ${feature} cannot be loaded: install this version of Turnpike again`,
    cause,
  });
