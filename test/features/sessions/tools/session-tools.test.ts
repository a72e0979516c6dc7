// The arguments of the session tools, and the session commands that they become. Sessions are tested in test/runtime.

import { describe, expect, test } from '@jest/globals';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  findSpecFile,
  callSessionTool,
  type SessionToolsOptions,
} from '../../../../src/features/sessions/tools/session-tools.js';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import { SESSION_ERRORS, type SessionAnswer } from '../../../../src/features/sessions/contract/session-answer.js';
import { RunError, UsageError } from '../../../../src/core/errors.js';
import type { Sessions } from '../../../../src/features/sessions/sessions.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';

type Asked = readonly [keyof Sessions, ...unknown[]];

const DONE: SessionAnswer = { success: true, data: { session_id: 'ses_1', spec_id: 'spec-1' } as never, error: null };
const by = { actor: 'agent', role: 'autonomy_runner' };
const SPEC = {
  spec_version: 1,
  id: 'spec-1',
  title: 'A spec',
  phases: [{ id: 'p', title: 'P', tasks: [{ id: 't', title: 'T', instruction: 'Do.' }] }],
};

/** Sessions that log each command and accept it; `status` knows one session of `spec-1`. */
function recording(over: Partial<Sessions> = {}): { readonly asked: Asked[]; readonly sessions: Sessions } {
  const asked: Asked[] = [];
  const note =
    (name: keyof Sessions, answer: unknown) =>
    (...args: unknown[]) => {
      asked.push([name, ...args]);
      return Promise.resolve(answer);
    };
  const names = [
    'start',
    'next',
    'replay',
    'heartbeat',
    'verify',
    'review',
    'pause',
    'resume',
    'end',
    'rebase',
    'waive',
  ] as const;
  const sessions = {
    ...Object.fromEntries(names.map((name) => [name, note(name, DONE)])),
    status: note('status', DONE),
    prepare: note('prepare', { task_id: 't', instruction: 'Do.' }),
    list: note('list', [
      { session_id: 'ses_0', spec_id: 'spec-1', status: 'ended' },
      { session_id: 'ses_1', spec_id: 'spec-1', status: 'paused' },
    ]),
    ...over,
  } as unknown as Sessions;
  return { asked, sessions };
}

async function told(
  tool: 'task' | 'review' | 'verification',
  args: object,
  over: Partial<SessionToolsOptions> = {},
  sessionsOver: Partial<Sessions> = {},
) {
  const { asked, sessions } = recording(sessionsOver);
  const options = {
    sessions,
    caller: by,
    settings: { lane: 'SANDBOX_FILES' },
    specFile: (id: string) => (id === 'spec-1' ? '/specs/spec-1.yaml' : null),
    inlineSpecs: false,
    ...over,
  };
  return { answer: await callSessionTool(tool, args as JsonObject, options), asked };
}

const refusal = (code: keyof typeof SESSION_ERRORS, details: readonly string[] = []) => ({
  success: false,
  data: null,
  error: { code, error_type: SESSION_ERRORS[code].type, message: SESSION_ERRORS[code].message, details },
});

const report = { step_id: 'x', step_type: 'implement_task', outcome: 'success', step_proof: 'p', task_id: 't' };

describe('S3-06: each call becomes one session command', () => {
  const step = (command: string, more: object = {}) =>
    [command, 'task', { action: 'session-step', command, session_id: 'ses_1', ...more }] as const;
  const START = { lane: 'SANDBOX_FILES', spec: '/specs/spec-1.yaml', by };
  const FIGURES = { context_usage_pct: 50, estimated_tokens_used: 7 };
  const FULL = { last_step_result: report, heartbeat: true, context_usage_pct: 12.5 };
  const OF_STEP = { phase_id: 'p', step_id: 'x' };

  test.each<readonly [string, 'task' | 'review' | 'verification', object, Asked]>([
    ['start', 'task', { action: 'session-step', command: 'start', spec_id: 'spec-1' }, ['start', START]],
    [
      'start, by its name in sessions',
      'task',
      { action: 'session', command: 'start', spec_id: 'spec-1', idempotency_key: 'k-1' },
      ['start', { ...START, idempotencyKey: 'k-1' }],
    ],
    [...step('next'), ['next', 'ses_1', {}, by]],
    [...step('next', FULL), ['next', 'ses_1', FULL, by]],
    // An invalid report, which the session refuses.
    [...step('next', { last_step_result: 'done' }), ['next', 'ses_1', { last_step_result: 'done' }, by]],
    [...step('replay'), ['replay', 'ses_1', by]],
    [...step('heartbeat', FIGURES), ['heartbeat', 'ses_1', FIGURES, by]],
    [...step('status'), ['status', 'ses_1']],
    ['resume', 'task', { action: 'session', command: 'resume', session_id: 'ses_1' }, ['resume', 'ses_1', {}, by]],
    ['list', 'task', { action: 'session', command: 'list' }, ['list', undefined]],
    ['prepare', 'task', { action: 'prepare', session_id: 'ses_1', task_id: 't' }, ['prepare', 'ses_1', 't']],
    [
      'review',
      'review',
      { action: 'fidelity-gate', session_id: 'ses_1', ...OF_STEP },
      ['review', 'ses_1', OF_STEP, by],
    ],
    [
      'verification',
      'verification',
      { action: 'execute', session_id: 'ses_1', step_id: 'x' },
      ['verify', 'ses_1', { step_id: 'x' }, by],
    ],
  ])('%s', async (_what, tool, args, question) => {
    const { answer, asked } = await told(tool, args);
    expect(asked).toEqual([question]);
    expect(answer).toMatchObject({ success: true, error: null });
  });

  test('S3-20: prepare finds the session of a spec, like status', async () => {
    expect((await told('task', { action: 'prepare', spec_id: 'spec-1' })).asked).toEqual([
      ['list', 'spec-1'],
      ['prepare', 'ses_1', undefined],
    ]);
    expect((await told('task', { action: 'session-step', command: 'status', spec_id: 'spec-1' })).asked).toEqual([
      ['list', 'spec-1'],
      ['status', 'ses_1'],
    ]);
    const { answer } = await told(
      'task',
      { action: 'prepare', spec_id: 'spec-1' },
      {},
      { list: () => Promise.resolve([]) },
    );
    expect(answer).toEqual(refusal('NO_ACTIVE_SESSION'));
  });

  test('a spec named together with a session must be the spec of that session', async () => {
    const gate = { action: 'fidelity-gate', session_id: 'ses_1', phase_id: 'p', step_id: 'x' };
    expect((await told('review', { ...gate, spec_id: 'spec-1' })).asked.map(([name]) => name)).toEqual([
      'status',
      'review',
    ]);
    const other = await told('review', { ...gate, spec_id: 'spec-2' });
    expect(other.asked.map(([name]) => name)).toEqual(['status']);
    expect(other.answer).toEqual(refusal('VALIDATION_ERROR', ['spec_id']));
  });
});

describe('S3-05 C64: the simple report', () => {
  test.each([[{}], [{ session_id: 'ses_1' }], [{ session_id: 'ses_1', last_step_result: report }]])(
    'is refused whatever its arguments, and reaches no session: %j',
    async (more) => {
      const { answer, asked } = await told('task', { action: 'session-step', command: 'report', ...more });
      expect(answer).toEqual(refusal('STEP_PROOF_MISSING'));
      expect(asked).toEqual([]);
    },
  );
});

describe('there is no argument for what an agent must not decide', () => {
  test.each([
    [
      'the command of a verification (C68)',
      'verification',
      { action: 'execute', session_id: 's', step_id: 'x', command: 'rm -rf /' },
    ],
    ['who it is', 'task', { action: 'session-step', command: 'start', spec_id: 'spec-1', role: 'maintainer' }],
    ['its posture', 'task', { action: 'session-step', command: 'start', spec_id: 'spec-1', posture: 'debug' }],
    ['its lane', 'task', { action: 'session-step', command: 'start', spec_id: 'spec-1', lane: 'EXPORT_CASE_DATA' }],
    [
      'the end of another session',
      'task',
      { action: 'session-step', command: 'start', spec_id: 'spec-1', force: true },
    ],
    ['that a gate is passed', 'task', { action: 'session', command: 'resume', session_id: 's', acknowledge: {} }],
  ] as const)('%s', async (_what, tool, args) => {
    const { answer, asked } = await told(tool, args);
    expect(answer).toEqual(refusal('VALIDATION_ERROR', ['an argument that this tool does not have']));
    expect(asked).toEqual([]);
  });

  test.each(['pause', 'end', 'rebase', 'waive', 'reset', 'constructor'])(
    'command %s is for people',
    async (command) => {
      const { answer, asked } = await told('task', { action: 'session', command, session_id: 's' });
      expect(answer).toEqual(refusal('VALIDATION_ERROR', ['command']));
      expect(asked).toEqual([]);
    },
  );
});

describe('all invalid arguments are named at once', () => {
  test.each([
    ['nothing', 'task', {}, ['action']],
    ['no command', 'task', { action: 'session-step' }, ['command']],
    ['a command of the other action', 'task', { action: 'session', command: 'next', session_id: 's' }, ['command']],
    ['a command for prepare', 'task', { action: 'prepare', command: 'next', session_id: 's' }, ['command']],
    ['no session', 'task', { action: 'session-step', command: 'next' }, ['session_id']],
    [
      'a spec in place of the session',
      'task',
      { action: 'session-step', command: 'next', spec_id: 'spec-1' },
      ['session_id'],
    ],
    [
      'types',
      'task',
      { action: 'session-step', command: 'next', session_id: 7, heartbeat: 'yes', context_usage_pct: 101 },
      ['session_id', 'heartbeat', 'context_usage_pct'],
    ],
    [
      'a key that is none',
      'task',
      { action: 'session-step', command: 'start', spec_id: 'spec-1', idempotency_key: 'a b' },
      ['idempotency_key'],
    ],
    ['neither spec nor its id', 'task', { action: 'session-step', command: 'start' }, ['spec_id', 'spec']],
    ['both', 'task', { action: 'session-step', command: 'start', spec_id: 'spec-1', spec: SPEC }, ['spec_id', 'spec']],
    ['a gate without its step', 'review', { action: 'fidelity-gate', session_id: 's' }, ['phase_id', 'step_id']],
    ['another action', 'verification', { action: 'run', session_id: 's', step_id: 'x' }, ['action']],
  ] as const)('%s', async (_what, tool, args, details) => {
    const { answer, asked } = await told(tool, args);
    expect(answer).toEqual(refusal('VALIDATION_ERROR', details));
    expect(asked).toEqual([]);
  });
});

describe('specs', () => {
  test('a spec from the agent is accepted only if inline specs are enabled and it is valid', async () => {
    const start = { action: 'session-step', command: 'start', spec: SPEC };
    expect((await told('task', start)).answer).toEqual(refusal('VALIDATION_ERROR', ['spec']));
    expect((await told('task', start, { inlineSpecs: true })).asked).toMatchObject([['start', { spec: SPEC }]]);
    const broken = { ...start, spec: { ...SPEC, phases: [] } };
    expect((await told('task', broken, { inlineSpecs: true })).answer).toEqual(refusal('VALIDATION_ERROR', ['spec']));
  });

  test('a spec outside the folder is not found', async () => {
    const { answer } = await told('task', { action: 'session-step', command: 'start', spec_id: 'spec-2' });
    expect(answer).toEqual(refusal('NOT_FOUND', ['spec_id']));
  });

  test('an id resolves only to a file of the folder', () => {
    const folder = tempFolder('specs');
    mkdirSync(join(folder, 'specs/inner.yaml'), { recursive: true });
    for (const name of ['outside.yaml', 'specs/a.yaml', 'specs/b.json', 'specs/.hidden.yaml'])
      writeFileSync(join(folder, name), '');
    symlinkSync('../outside.yaml', join(folder, 'specs/link.yaml'));
    const find = (id: string): string | null => findSpecFile(join(folder, 'specs'), id);
    expect([find('a'), find('b')]).toEqual([join(folder, 'specs/a.yaml'), join(folder, 'specs/b.json')]);
    const lost = [
      '../outside',
      '/etc/passwd',
      'link',
      'inner',
      '.hidden',
      'a.yaml',
      'a\u0000',
      '',
      '..',
      'c',
      'a/../a',
    ];
    expect(lost.filter((id) => find(id) !== null)).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});

test('a usage error of a session becomes an answer without its message; other errors are thrown', async () => {
  const start = { action: 'session-step', command: 'start', spec_id: 'spec-1' };
  const throwing = (error: Error) => told('task', start, {}, { start: () => Promise.reject(error) });
  const unreadable = new UsageError({ code: 'USAGE', message: '/home/anna/specs is not readable' });
  expect((await throwing(unreadable)).answer).toEqual(refusal('VALIDATION_ERROR'));
  expect((await throwing(new RunError({ code: 'AGENT_BUSY', message: 'x' }))).answer).toEqual(refusal('AGENT_BUSY'));
  await expect(throwing(new Error('the disk is gone'))).rejects.toThrow('the disk is gone');
});
