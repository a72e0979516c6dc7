// Stands between a sandbox and whoever uses it: every answer goes through the detector, and is told apart.

import type { EffectResult, PathFact, SandboxFacts } from '../../src/contract/run/effect.js';
import type { Sandbox } from '../../src/ports/effects/sandbox.js';
import { BEYOND, type Outside } from './outside.js';

/** The answer showed the honest thing; or that the attacker's was met, and refused; or neither. */
export type Meeting = 'honest' | 'met' | 'other';

export interface Watch {
  readonly sandbox: Sandbox;
  /** What has been seen since this was last asked. */
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
        // No file inside has that content: whoever finds it has read what is outside.
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
  // Where a directory is swapped for a file, that is how the other one shows.
  const swapped = ['SANDBOX_CHANGED', 'NOT_A_DIRECTORY', 'IS_A_DIRECTORY'];
  return swapped.includes(result.cause) ? 'met' : 'other';
}

function meetingOfFacts({ paths }: SandboxFacts): Meeting {
  const are = (...statuses: readonly PathFact['status'][]): boolean =>
    paths.some(({ status }) => statuses.includes(status));
  if (are('refused', 'not_a_directory')) return 'met';
  return are('file', 'directory') ? 'honest' : 'other';
}
