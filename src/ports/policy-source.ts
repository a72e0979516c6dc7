import type { Pin, PinProblem, PolicyFile } from '../contract/policy/pins.js';

/** One policy file as it was loaded. The bytes are not trusted: the policy loader parses them. */
export interface LoadedPolicyFile {
  readonly name: PolicyFile;
  /** For people, in findings and messages: where it was read. */
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly pin: Pin | { readonly problem: PinProblem };
}

/** Where policies come from, and how their version is known (C45). Read once per tree that is opened. */
export interface PolicySource {
  /** @throws PolicyError POLICY_UNREADABLE when a file is not there or too large (1 MiB) */
  load(): Promise<Readonly<Record<PolicyFile, LoadedPolicyFile>>>;
}
