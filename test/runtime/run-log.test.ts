// The service log of runs, as every Turnpike has it: here without telemetry.

import { expect, test } from '@jest/globals';
import type { Log } from '../../src/engine/ports/log.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { Bench } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';

type Line = Readonly<Record<string, unknown>> & { readonly message: string };

const DENIED = JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/run.sh', content: 'x' }));
const UNKNOWN = JSON.stringify(proposal('NO_SUCH_ACTION', {}));

function recordingLog(): { readonly log: Log; readonly lines: Line[] } {
  const lines: Line[] = [];
  const ignored = (): void => undefined;
  return {
    lines,
    log: { info: (message, fields) => lines.push({ ...fields, message }), warn: ignored, error: ignored },
  };
}

test('has a line for a denied step and for the end of each run, with neither content nor traces', async () => {
  const { log, lines } = recordingLog();
  const bench = await Bench.open({ log });
  const agent = await bench.turnpike.startAgent({ actor: 'agent-one' });
  await agent.submit(DENIED);
  await agent.submit(UNKNOWN);
  await agent.end();
  await bench.close();
  const { run_id, root_run_id } = agent;
  const denied = { message: 'a step was denied', run_id, actor: 'agent-one' };
  const ended = { message: 'a run has ended', state: 'completed', rule: 'end_of_input' };
  expect(lines).toEqual([
    { ...denied, rule: 'extension.not_allowed', code: 'POLICY_VIOLATION', action: 'WRITE_FILE' },
    { ...denied, rule: 'action.not_in_allowlist', code: 'ACTION_NOT_ALLOWED', action: '_OTHER' },
    { ...ended, run_id, kind: 'agent', actor: 'agent-one' },
    { ...ended, run_id: root_run_id, kind: 'orchestrator', actor: 'turnpike' },
  ]);
});

test('names the end of an export by its kind and the person who started it', async () => {
  const { log, lines } = recordingLog();
  const bench = await Bench.open({ log });
  const started = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local' };
  const run = await bench.turnpike.export({ ...started, reason: 'A test.', destination: 'bag' });
  await run.finished;
  await bench.close();
  const { run_id } = run;
  expect(lines).toContainEqual(
    expect.objectContaining({ message: 'a run has ended', run_id, kind: 'export', state: 'completed', actor: 'anna' }),
  );
});

test('writes at most 100 lines for one second, and the next line counts the others', async () => {
  const { log, lines } = recordingLog();
  const bench = await Bench.open({ log, store: memoryStore() });
  const startAndEnd = async (): Promise<void> => {
    const agent = await bench.turnpike.startAgent();
    await agent.end();
  };
  for (let runs = 0; runs < 60; runs += 1) await startAndEnd();
  expect(lines.length).toBe(100);
  bench.clock.advance(1_000);
  await startAndEnd();
  expect(lines.slice(100).map(({ suppressed_lines }) => suppressed_lines)).toEqual([20, undefined]);
  await bench.turnpike.close();
});

/** A log that fails for the lines of runs. */
const failingLog = (error: Log['error']): Log => ({
  info: (message) => {
    if (/^a (?:step was denied|run has ended)$/.test(message)) throw new Error('the disk of the log is full');
  },
  warn: () => undefined,
  error,
});

test.each<readonly [string, Error | null]>([
  ['throws', null],
  ['throws for errors too', new Error('the disk of the log is full')],
])('a log that %s ends no step, and its failure is logged at most once', async (_what, thrown) => {
  const errors: string[] = [];
  const log = failingLog((message) => {
    errors.push(message);
    if (thrown !== null) throw thrown;
  });
  const bench = await Bench.open({ log });
  const agent = await bench.turnpike.startAgent();
  expect(await agent.submit(DENIED)).toMatchObject({ outcome: 'DENIED' });
  expect(await agent.submit(UNKNOWN)).toMatchObject({ outcome: 'DENIED' });
  await agent.end();
  await bench.close();
  expect(errors).toEqual(['a line of the service log has failed; further failures are not logged']);
});
