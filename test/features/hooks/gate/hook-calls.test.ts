// 0078: equal calls of one agent run in a ledger that has very many of them. The recorded steps are a table here: a run
// with so many real steps takes minutes.

import { expect, test } from '@jest/globals';
import type { CompletedStep } from '../../../../src/engine/trees/completed-step.js';
import type { SubmitOptions } from '../../../../src/runtime/agents/agent-run.js';
import { HookCalls, proposalIdOf } from '../../../../src/features/hooks/gate/hook-calls.js';

const RUN = 'run_1.1';
const DIGEST = 'a'.repeat(64);
const ORIGIN = { session: 'session-1', agent: null } as const;
const inputIdOf = (number: number): string =>
  `hook:${proposalIdOf({ client: 'claude-code', ...ORIGIN, call: DIGEST, number, attempt: 0 })}`;
const allowed = JSON.stringify({ result: { authorized: true, run_id: `${RUN}.1` } });

test.each([0, 1, 2, 3, 65_535, 65_536, 65_537, 131_072])(
  '0078: after %d equal calls that have ended, the next one is decided by itself, also in a new process',
  async (count) => {
    const recorded = new Map(Array.from({ length: count }, (_, number) => [inputIdOf(number), allowed]));
    const repeated: string[] = [];
    const calls = () =>
      new HookCalls({
        agents: {
          findStep: (_run, inputId) => {
            const response = recorded.get(inputId);
            return Promise.resolve(response === undefined ? null : ({ response } as CompletedStep));
          },
          respond: (_run, _payload, { inputId = '' }: SubmitOptions) => {
            if (recorded.has(inputId)) repeated.push(inputId);
            recorded.set(inputId, allowed);
            return Promise.resolve(allowed);
          },
        },
        engine: { peek: () => Promise.resolve(null) },
        requests: { find: () => Promise.resolve(null) },
        report: () => Promise.resolve(),
      });
    for (let process = 0; process < 3; process += 1) {
      const call = { tool: 'Bash', input: { command: 'git status' }, call_id: null };
      await calls().decide({ client: 'claude-code', origin: ORIGIN, call, digest: DIGEST, run_id: RUN }, '{}');
    }
    expect(repeated).toEqual([]);
    expect([...recorded.keys()].slice(count)).toEqual([0, 1, 2].map((more) => inputIdOf(count + more)));
  },
);
