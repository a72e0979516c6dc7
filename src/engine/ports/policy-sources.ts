// Where the files of a policy come from.

import type { AnyPolicyFile, ForPolicyFiles, Pin, PinProblem } from '../../core/contract/policy/pins.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';

/** One loaded policy file. The bytes are not trusted: the policy loader parses them. */
export interface LoadedPolicyFile {
  readonly name: AnyPolicyFile;
  /** Where the file was read, for findings and messages. */
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly pin: Pin | { readonly problem: PinProblem };
}

/** Loads the policy files and their versions (C45). It is read once for every tree that is opened. */
export interface PolicySource {
  /** @throws PolicyError POLICY_UNREADABLE if a file is missing or larger than 1 MiB */
  load(): Promise<ForPolicyFiles<LoadedPolicyFile>>;
}

/** The loaded identities.yaml. The bytes are not trusted: the policy loader parses them. */
export interface LoadedIdentities {
  /** Where the file was read, for findings and messages. */
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly pin: Pin | { readonly problem: PinProblem };
}

/** Loads identities.yaml and its version (C45). It is read again while a service runs. */
export interface IdentitiesSource {
  /** @throws PolicyError POLICY_UNREADABLE if the file is missing or larger than 1 MiB */
  load(): Promise<LoadedIdentities>;
}

/** Provides the emergency overlay (D1). */
export interface OverlaySource {
  /**
   * The current overlay; null if there has never been one. Never throws: an untrusted overlay is a fact with a
   * `problem`, under which everything is denied. The call is cheap enough for every tick, and returns the same
   * read-only object while nothing has changed.
   */
  current(): OverlayFact | null;
}
