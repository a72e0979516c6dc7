import type { Effect, EffectResult, SandboxFacts, SandboxRequest } from '../../../core/contract/run/effect.js';

/**
 * Executes the sandbox actions. Each method is synchronous: synchronous file access can be free of races, is several
 * times faster than any asynchronous form, and takes no longer than one bounded file operation. No method throws
 * because of the state of the files; a throw is a bug and counts as an unknown outcome. The caller copies each result
 * before the next call, so the implementation may reuse the object.
 * @see FileSandbox in src/sandbox/files/file-sandbox.ts
 */
export interface Sandbox {
  /** Whether the files are on a volume that this process does not have. Then no other method may be called. */
  readonly isElsewhere?: boolean;
  /** The facts about the files at these paths now, without following links. A local read. */
  gather(request: SandboxRequest): SandboxFacts;
  /**
   * Executes an authorized effect, and checks its conditions again at the time of use, without a race. A changed file
   * and its directory are durable (fsync) before this returns (D9).
   */
  perform(effect: Effect): EffectResult;
  /**
   * Determines, after a crash, whether a change that was committed as an intent has happened (D8); completes a partial
   * change. @returns `failed`/INTERRUPTED if it certainly has not happened, `unknown` if that cannot be determined
   */
  settle(effect: Effect): EffectResult;
  /** A command has run in the sandbox of this case, so cached facts about it are invalid. */
  forget?(case_id: string): void;
}
