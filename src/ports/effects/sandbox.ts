import type { Effect, EffectResult, GatherRequest, SandboxFacts } from '../../contract/run/effect.js';

/**
 * The hands: what performs the sandbox actions. Each method is synchronous, because race-free synchronous file access
 * is several times faster than any asynchronous form, and takes no longer than one bounded file operation.
 * None of them throws for what it finds in the world; a throw is a bug and counts as an unknown outcome.
 * What they answer is copied before anything else is asked: the object is theirs to use again.
 */
export interface Sandbox {
  /** What stands at these paths now, without following any link. A local read. */
  gather(request: GatherRequest): SandboxFacts;
  /**
   * Does what was authorised, checking again at the moment of use, without a race.
   * A changed file and its directory are durable (fsync) before this returns (D9).
   */
  perform(effect: Effect): EffectResult;
  /**
   * Finds out, after a crash, whether a change that was committed as an intent has happened (D8); finishes one that
   * was left half done. @returns `failed`/INTERRUPTED when it certainly has not, `unknown` when nobody can tell
   */
  settle(effect: Effect): EffectResult;
  /** A command has run in the sandbox of this case: what was remembered of it is void. */
  forget?(case_id: string): void;
}
