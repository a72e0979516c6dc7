// Wraps a sandbox: passes every answer through the detector, and classifies it.

import type { EffectResult, PathFact, SandboxFacts } from '../../src/core/contract/run/effect.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import { BEYOND, type Outside } from './outside.js';

/** The answer showed the honest object; or the attacker's object was met and refused; or neither. */
export type Meeting = 'honest' | 'met' | 'other';

export interface Watch {
  readonly sandbox: Sandbox;
  /** The observations since the last query. */
  readonly take: () => { readonly meeting: Meeting; readonly seen: readonly string[] };
}

export function watch(sandbox: Sandbox, outside: Outside): Watch {
  let answers: { readonly meeting: Meeting; readonly seen: string | null }[] = [];
  const note = <T extends EffectResult | SandboxFacts>(answer: T): T => {
    const meeting = 'paths' in answer ? meetingOfFacts(answer) : meetingOfResult(answer);
    answers.push({ meeting, seen: outside.seenIn(answer) });
    return answer;
  };
  return {
    sandbox: {
      gather: (request) => note(sandbox.gather(request)),
      perform: (effect) => note(sandbox.perform(effect)),
      settle(effect) {
        const settled = note(sandbox.settle(effect));
        // No file inside has that content: an operation that returns it has read a file outside.
        if (effect.args['content'] === BEYOND && settled.status === 'done') {
          answers.push({ meeting: 'other', seen: 'content outside, by comparing' });
        }
        return settled;
      },
    },
    take() {
      const taken = answers;
      answers = [];
      const met = taken.some(({ meeting }) => meeting === 'met');
      const meeting = met ? 'met' : (taken.at(-1)?.meeting ?? 'other');
      return { meeting, seen: taken.flatMap(({ seen }) => seen ?? []) };
    },
  };
}

function meetingOfResult(result: EffectResult): Meeting {
  if (result.status === 'done') return 'honest';
  if (result.status === 'unknown') return 'other';
  // If a directory is swapped for a file, this is how the file shows.
  const swapped = ['SANDBOX_CHANGED', 'NOT_A_DIRECTORY', 'IS_A_DIRECTORY'];
  return swapped.includes(result.cause) ? 'met' : 'other';
}

function meetingOfFacts({ paths }: SandboxFacts): Meeting {
  const are = (...statuses: readonly PathFact['status'][]): boolean =>
    paths.some(({ status }) => statuses.includes(status));
  if (are('refused', 'not_a_directory')) return 'met';
  return are('file', 'directory') ? 'honest' : 'other';
}
