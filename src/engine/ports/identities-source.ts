import type { Pin, PinProblem } from '../../core/contract/policy/pins.js';

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
