// A home in which every kind of content contains a canary, in lanes that withhold it. One case is in a lane that does
// not, which shows that the search finds released content.

import Type from 'typebox';
import { systemClock } from '../../src/system/system-clock.js';
import type { SessionSpec } from '../../src/features/sessions/contract/session-spec.js';
import type { Log } from '../../src/engine/ports/log.js';
import type { Inspector } from '../../src/kernel/interpreter/inert-inspector.js';
import { defineTarget, defineTool } from '../../src/runtime/effects/define-effects.js';
import type { TurnpikeOptions } from '../../src/host/turnpike.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { serviceEdit } from '../fixtures/service.js';
import { canary, type Canary } from './canary-search.js';

const closed = { additionalProperties: false } as const;

/** Content: each kind is planted once, and occurs nowhere else. */
const KINDS = [
  'action name',
  'cancel reason',
  'pause reason',
  'resolution note',
  'reasoning',
  'WRITE_FILE content',
  'file content',
  'payload that is no JSON',
  'arguments that are refused',
  'final response',
  'tool input',
  'tool output',
  'tool error',
  'tool failure',
  'partial output',
  'record value',
  'record that waits for approval',
  'reasoning of what waits for approval',
  'promoted record',
  'spec title',
  'phase title',
  'task title',
  'task instruction',
  'acceptance',
  'verification argument',
  'verification output',
  'session report',
  'session reasoning',
  'review finding',
  'review summary',
] as const;

/** Free text of people and agents in addition to content. It is in entries. */
const ENTRY_KINDS = ['export reason'] as const;

type Kind = (typeof KINDS)[number] | (typeof ENTRY_KINDS)[number];
const textOf = (kind: Kind): string => canary(kind).text;

export const CANARIES: readonly Canary[] = KINDS.map(canary);
export const ENTRY_CANARIES: readonly Canary[] = ENTRY_KINDS.map(canary);
/** Content of a lane that withholds nothing. */
export const SHOWN: Canary = canary('content that is shown');

export const CASE = 'case-1';
export const OPEN_CASE = 'case-open';
const ANNA = { actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;
const MAINTAINER = { actor: 'anna', role: 'maintainer' } as const;
const RUNNER = { actor: 'agent', role: 'autonomy_runner' } as const;

const OPEN_LANE = `  - lane_id: OPEN_FILES
    purpose: Files whose content is shown.
    allowed_callers: { roles: [SANDBOX_AGENT] }
    allowed_actions:
      tools: [sandbox.read_file, sandbox.write_file]
      writes: [{ table: sandbox_files, mode: upsert }]
    scope: { requires: [case_id, run_id], prohibits: [] }
    audit: { required: true, level: full }
    partial_outputs: true
`;
const APPROVALS = `
approvals:
  - { for: WRITE_RECORD, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 600 }
  - { for: promotion, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 600 }
  - { for: export, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 600 }
`;

/**
 * Every lane withholds, except the one above. `exports`: those lanes let approved exports contain what they withhold.
 */
export const withholdingEdit =
  (exports = false): NonNullable<BenchOptions['edit']> =>
  (name, text) => {
    const edited = serviceEdit(name, text);
    if (name === 'roles') return edited.replace('lanes: [SANDBOX_FILES]', 'lanes: [SANDBOX_FILES, OPEN_FILES]');
    if (name === 'actions') return `${edited}${APPROVALS}`;
    const more = `    withholds_content: true\n${exports ? '    exports_content: true\n' : ''}`;
    return `${edited.replaceAll(/ {2}- lane_id: .*\n/g, `$&${more}`)}${OPEN_LANE}`;
  };

const Text = Type.Object({ text: Type.String() }, closed);
const tools = [
  defineTool({ name: 'billing.charge', input: Text, output: Text, run: () => ({ text: textOf('tool output') }) }),
  defineTool({
    name: 'slow.tool',
    input: Text,
    output: Text,
    run: () => {
      throw new Error(`the line is dead: ${textOf('tool error')}`, { cause: new Error(textOf('tool error')) });
    },
  }),
  defineTool({
    name: 'mail.send',
    input: Text,
    output: Text,
    run: () => ({ text: textOf('tool failure'), more: textOf('partial output') }) as { text: string },
  }),
];
const Row = Type.Object({ id: Type.String(), text: Type.String() }, closed);
const targets = [
  defineTarget({ name: 'facts', record: Row, key: ['id'], modes: ['append'] }),
  defineTarget({ name: 'entities', record: Row, key: ['id'], modes: ['append', 'upsert'] }),
  defineTarget({ name: 'shared_playbooks', record: Row, key: ['id'], plane: 'shared' }),
];

const PRINTING = `console.log(process.argv[1], '${textOf('verification output')}')`;
export const SPEC: SessionSpec = {
  spec_version: 1,
  id: 'canaries',
  title: textOf('spec title'),
  phases: [
    {
      id: 'p1',
      title: textOf('phase title'),
      tasks: [
        {
          id: 't1',
          title: textOf('task title'),
          instruction: textOf('task instruction'),
          acceptance: [textOf('acceptance')],
        },
        {
          id: 'v1',
          type: 'verify',
          title: 'Check',
          command: ['node', '-e', PRINTING, textOf('verification argument')],
        },
      ],
      gate: { reviewer: 'callback' },
    },
    {
      id: 'p2',
      title: textOf('phase title'),
      tasks: [{ id: 't2', title: textOf('task title'), instruction: 'More.' }],
    },
  ],
};

let proposals = 0;
export function proposal(action: string, args: object, reasoning = 'A test.'): string {
  const id = `00000000-0000-4000-8000-${String((proposals += 1)).padStart(12, '0')}`;
  return JSON.stringify({ schema_version: '1.0.0', id, reasoning, action, args });
}

/** Everything that was logged, with the errors and their causes. */
export class LogLines implements Log {
  readonly lines: string[] = [];
  readonly info = (message: string, fields?: object): void => void this.lines.push(lineOf(message, fields));
  readonly warn = this.info;
  readonly error = this.info;
}

const lineOf = (message: string, fields: object = {}): string =>
  `${message} ${JSON.stringify(fields, (_key, value: unknown) => (value instanceof Error ? errorOf(value) : value))}`;

const errorOf = (error: Error): object => ({ text: String(error), stack: error.stack, cause: error.cause });

export interface CanaryWorld {
  readonly bench: Bench;
  readonly log: LogLines;
  /** The request of an agent run to approvers; the request of a promotion. */
  readonly asked: readonly { readonly run_id: string; readonly digest: string }[];
  readonly sessions: readonly string[];
}

/** Plants all canaries. @param more further options, e.g. an inspector of XState */
export async function plantedWorld(
  more: Partial<TurnpikeOptions> & { readonly inspect?: Inspector; readonly exportsContent?: boolean } = {},
): Promise<CanaryWorld> {
  const { exportsContent = false, ...options } = more;
  const log = new LogLines();
  const review = { verdict: 'fail' as const, findings: [finding()], summary: textOf('review summary') };
  const bench = await Bench.open({
    edit: withholdingEdit(exportsContent),
    tools,
    targets,
    log,
    clock: systemClock(),
    reviewer: () => review,
    ...options,
  });
  await files(bench);
  await toolsAndRecords(bench);
  const sessions = [await session(bench)];
  await people(bench);
  const asked: { run_id: string; digest: string }[] = [];
  for await (const { run_id, digest } of bench.turnpike.ledger.approvals(new Date().toISOString())) {
    asked.push({ run_id, digest });
  }
  if (asked.length !== 2) throw new Error(`${asked.length} requests wait for approval, not 2`);
  return { bench, log, asked, sessions };
}

const finding = () => ({ severity: 'error' as const, message: textOf('review finding'), file: '/sandbox/a.md' });

async function files({ turnpike }: Bench): Promise<void> {
  const open = await turnpike.startAgent({ case: OPEN_CASE, lane: 'OPEN_FILES' });
  await done(open, proposal('WRITE_FILE', { path: '/sandbox/a.md', content: SHOWN.text }));
  await open.end();
}

type Run = Awaited<ReturnType<Bench['turnpike']['startAgent']>>;

async function done(agent: Pick<Run, 'submit'>, payload: string, outcome = 'SUCCESS'): Promise<void> {
  const response = await agent.submit(payload);
  if (!('outcome' in response) || response.outcome !== outcome)
    throw new Error(`${payload} came to ${JSON.stringify(response)}`);
}

async function toolsAndRecords(bench: Bench): Promise<void> {
  const { turnpike } = bench;
  bench.put('given.md', textOf('file content'), CASE);
  const agent = await turnpike.startAgent({ case: CASE });
  const content = textOf('WRITE_FILE content');
  await done(agent, proposal('WRITE_FILE', { path: '/sandbox/a.md', content }, textOf('reasoning')));
  await done(agent, proposal('READ_FILE', { path: '/sandbox/given.md' }));
  await done(agent, `{ ${textOf('payload that is no JSON')}`, 'VALIDATION_ERROR');
  const refused = { path: '/sandbox/b.md', content: [textOf('arguments that are refused')] };
  await done(agent, proposal('WRITE_FILE', refused), 'VALIDATION_ERROR');
  await done(agent, proposal(textOf('action name'), {}), 'DENIED');
  await done(agent, proposal('FINISH', { response: textOf('final response') }));
  const cancelled = await turnpike.startAgent({ case: CASE });
  await cancelled.cancel(textOf('cancel reason'));
  const clerk = await turnpike.startAgent({ case: CASE, lane: 'CASE_WORK', role: 'CASE_AGENT', link: 'remote' });
  const call = (tool: string) => proposal('CALL_TOOL', { tool, input: { text: textOf('tool input') } });
  await done(clerk, call('billing.charge'));
  await done(clerk, call('mail.send'), 'EXECUTION_ERROR');
  await done(clerk, call('slow.tool'), 'EXECUTION_ERROR');
  const record = (id: string, text: string) =>
    proposal('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id, text } });
  await done(clerk, record('f-1', textOf('record value')), 'DENIED');
  for await (const { run_id, digest } of turnpike.ledger.approvals(new Date().toISOString())) {
    await turnpike.approve({ run: run_id, digests: [digest], decision: 'approve', ...ANNA });
  }
  await done(clerk, record('f-1', textOf('record value')));
  await done(clerk, proposal('READ_RECORDS', { target: 'facts' }));
  const waiting = {
    target: 'facts',
    mode: 'append',
    record: { id: 'f-2', text: textOf('record that waits for approval') },
  };
  await done(clerk, proposal('WRITE_RECORD', waiting, textOf('reasoning of what waits for approval')), 'DENIED');
  const unknown = (await turnpike.ledger.treeOf(clerk.run_id))?.unknown.keys().next().value;
  if (unknown === undefined) throw new Error('no outcome is unknown');
  await turnpike.resolve({ run: unknown, outcome: 'not_executed', ...ANNA, note: textOf('resolution note') });
}

/** A session up to its second task: worked on, verified, reviewed, paused and resumed. */
async function session({ turnpike }: Bench): Promise<string> {
  const { sessions } = turnpike;
  const started = await sessions.start({ spec: SPEC, case: CASE, by: MAINTAINER, allowGateWaiver: true });
  const id = started.data?.session_id ?? '';
  const first = await sessions.next(id, {}, RUNNER);
  const step = first.data?.next_step;
  if (step == null) throw new Error(JSON.stringify(first));
  const write = { path: '/sandbox/s.md', content: 'x' };
  await done(
    { submit: (raw) => turnpike.submit(step.run_id ?? '', raw) },
    proposal('WRITE_FILE', write, textOf('session reasoning')),
  );
  const { step_id, type, step_proof, task_id } = step;
  const report = { step_id, step_type: type, outcome: 'success', step_proof, task_id, note: textOf('session report') };
  const second = await sessions.next(id, { last_step_result: report }, RUNNER);
  const check = second.data?.next_step;
  if (check?.type !== 'execute_verification') throw new Error(JSON.stringify(second));
  const verified = await sessions.verify(id, { step_id: check.step_id }, RUNNER);
  const receipt = { verification_receipt: verified.data?.verification_receipt };
  const result = { step_id: check.step_id, step_type: check.type, outcome: 'success', task_id: check.task_id };
  const third = await sessions.next(
    id,
    { last_step_result: { ...result, step_proof: check.step_proof, ...receipt } },
    RUNNER,
  );
  const gate = third.data?.next_step;
  if (gate?.type !== 'run_fidelity_gate') throw new Error(JSON.stringify(third));
  await sessions.review(id, { step_id: gate.step_id, phase_id: gate.phase_id ?? '' }, RUNNER);
  await sessions.pause(id, { reason: textOf('pause reason') }, MAINTAINER);
  return id;
}

async function people({ turnpike }: Bench): Promise<void> {
  const record = { id: 'p-1', text: textOf('promoted record') };
  await turnpike.promote({ ...ANNA, case: CASE, ticket: 'T-1', target: 'shared_playbooks', record });
  const bag = { case: CASE, reason: textOf('export reason'), destination: 'bag' };
  const { run_id, digest, finished } = await turnpike.export({ ...ANNA, ...bag });
  // If the lanes let exports contain what they withhold, the export waits for approval.
  if (digest !== null) {
    await turnpike.approve({
      run: run_id,
      digests: [digest],
      decision: 'reject',
      actor: 'berta',
      role: 'ATTORNEY_ADMIN',
    });
  }
  await finished;
}
