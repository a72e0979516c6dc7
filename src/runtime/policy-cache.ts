import { artifactRef, type Artifact, type ArtifactRef } from '../core/contract/artifact-ref.js';
import { canonicalJson } from '../core/contract/json.js';
import type { Catalogue } from '../core/contract/policy/catalogue.js';
import type { OpenInput } from '../core/contract/run/entry.js';
import { mapOptional, valuesOf, type ForPolicyFiles } from '../core/contract/policy/pins.js';
import { PolicyError } from '../core/errors.js';
import { definitionsOf, newTreeFlags } from '../kernel/pinned-policy.js';
import { loadFeaturesOfPolicy } from '../core/contract/run/feature-vocabulary.js';
import { checkPolicy, formatFinding } from '../core/policy/files/check-policy.js';
import type { Policy } from '../core/policy/policy.js';
import type { Clock } from '../engine/ports/clock.js';
import type { LoadedPolicyFile, PolicySource } from '../engine/ports/policy-sources.js';

/**
 * Milliseconds that a loaded policy serves new trees: loading it calls Git several times. Running trees keep theirs.
 */
const CACHE_MS = 1_000;
const FINDINGS_SHOWN = 5;

/** A policy as a new tree pins it. */
export interface PinnedPolicy {
  readonly policy: Policy;
  readonly pins: OpenInput['policies'];
  readonly machines: ArtifactRef;
  /** Lanes, roles, actions, machines, and conditions if there are any: the artifacts of an `open` input. */
  readonly materials: readonly Artifact[];
}

/** Loads, checks and pins the policy for new trees. */
export class PolicyCache {
  readonly #source: PolicySource;
  readonly #clock: Clock;
  readonly #catalogue: Catalogue;
  #loaded: { readonly at: number; readonly pinned: Promise<PinnedPolicy> } | null = null;
  /** The last policy that was pinned, and the files that it was made of. */
  #last: { readonly files: LoadedPolicyFiles; readonly pinned: PinnedPolicy } | null = null;

  constructor(source: PolicySource, clock: Clock, catalogue: Catalogue) {
    this.#source = source;
    this.#clock = clock;
    this.#catalogue = catalogue;
  }

  /** @throws PolicyError POLICY_UNREADABLE or POLICY_INVALID; a missing pin is no error, but denies the run (C44) */
  async current(): Promise<PinnedPolicy> {
    const at = this.#clock.now();
    const cached = this.#loaded;
    if (cached !== null && at - cached.at < CACHE_MS) return cached.pinned;
    // Agents that start at the same time share one load; a failed load is not reused.
    const loaded = { at, pinned: this.#load() };
    this.#loaded = loaded;
    loaded.pinned.catch(() => {
      if (this.#loaded === loaded) this.#loaded = null;
    });
    return loaded.pinned;
  }

  async #load(): Promise<PinnedPolicy> {
    const files = await this.#source.load();
    await loadFeaturesOfPolicy(files);
    return this.#pin(files);
  }

  /** Unchanged files give the same object: parsing them and building their machines takes as long as many steps. */
  #pin(files: LoadedPolicyFiles): PinnedPolicy {
    const last = this.#last;
    if (last !== null && areSameFiles(files, last.files)) return last.pinned;
    const pinned = pinPolicy(files, this.#catalogue);
    this.#last = { files, pinned };
    return pinned;
  }
}

type LoadedPolicyFiles = ForPolicyFiles<LoadedPolicyFile>;

function areSameFiles(one: LoadedPolicyFiles, other: LoadedPolicyFiles): boolean {
  const others = valuesOf(other);
  const all = valuesOf(one);
  return all.length === others.length && all.every((file, i) => isSameFile(file, others[i] ?? file));
}

const isSameFile = (one: LoadedPolicyFile, other: LoadedPolicyFile): boolean =>
  one.path === other.path &&
  Buffer.compare(one.bytes, other.bytes) === 0 &&
  canonicalJson(one.pin) === canonicalJson(other.pin);

function pinPolicy(files: LoadedPolicyFiles, catalogue: Catalogue): PinnedPolicy {
  const { findings, policy: checked } = checkPolicy(files, catalogue);
  if (checked === null) {
    const shown = findings.slice(0, FINDINGS_SHOWN).map(formatFinding).join('\n');
    throw new PolicyError({
      code: 'POLICY_INVALID',
      message: `the policy has ${findings.length} finding(s); run \`turnpike policy check\`:\n${shown}`,
    });
  }
  const policy = { ...checked, flags: newTreeFlags(checked) };
  const [lanes, roles, actions, ...optional] = valuesOf(files).map(({ bytes }) => asArtifact('policy', bytes));
  const machines = asArtifact('machines', Buffer.from(definitionsOf(policy)));
  const pinOf = ({ pin, bytes }: LoadedPolicyFile) => ({ ...pin, artifact: artifactRef(asArtifact('policy', bytes)) });
  return {
    policy,
    pins: {
      lanes: pinOf(files.lanes),
      roles: pinOf(files.roles),
      actions: pinOf(files.actions),
      ...mapOptional(files, pinOf),
    },
    machines: artifactRef(machines),
    materials: [lanes, roles, actions, machines, ...optional].filter((artifact) => artifact !== undefined),
  };
}

const asArtifact = (kind: 'policy' | 'machines', bytes: Uint8Array): Artifact => ({ kind, case_id: null, bytes });
