import type { AnyPolicyFile, ForPolicyFiles, Pin, PinProblem } from '../../core/contract/policy/pins.js';

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
