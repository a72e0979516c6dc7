// What the outside answers is not believed to have the shape it should have: an executor is somebody's code.

import { SandboxFacts, type EffectResult } from '../contract/effect.js';
import { EXECUTION_CAUSES } from '../contract/fault.js';
import { isJsonObject } from '../contract/json.js';
import { conforms } from '../contract/validators.js';
import type { Effects } from './tree-engine.js';

/**
 * The same hands, with an answer for everything: facts that are none are an error at every path, which denies or fails;
 * a throw, or an answer that is no result, is an unknown outcome, since nobody can tell whether the effect happened.
 */
export const guarded = (effects: Effects): Effects => ({
  gather: (request) => {
    const facts = attempt(() => effects.gather(request));
    if (conforms(SandboxFacts, facts)) return facts as SandboxFacts;
    return { paths: request.paths.map(() => ({ status: 'error', cause: 'INTERNAL' })), usage: null };
  },
  perform: (effect) => resultOf(attempt(() => effects.perform(effect))),
  settle: (effect) => resultOf(attempt(() => effects.settle(effect))),
});

function attempt(work: () => unknown): unknown {
  try {
    return work();
  } catch {
    return undefined;
  }
}

const resultOf = (answer: unknown): EffectResult | Promise<EffectResult> =>
  answer instanceof Promise ? answer.then(asResult, () => UNKNOWN) : asResult(answer);

const UNKNOWN: EffectResult = { status: 'unknown' };

function asResult(answer: unknown): EffectResult {
  if (!isJsonObject(answer)) return UNKNOWN;
  const { status, result, cause } = answer;
  if (status === 'done' && isJsonObject(result) && isEncodable(result)) return { status, result };
  if (status !== 'failed' || typeof cause !== 'string' || !Object.hasOwn(EXECUTION_CAUSES, cause)) return UNKNOWN;
  return { status, cause: cause as keyof typeof EXECUTION_CAUSES };
}

const isEncodable = (result: object): boolean => typeof attempt(() => JSON.stringify(result)) === 'string';
