// C93: one authorisation for each effect, on every route. An agent that may not pause, end, waive or rebase its session
// cannot achieve that through its own run either.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { COMMAND_RULES } from '../../../src/features/sessions/rules/apply-command.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import { HttpBench } from '../../interfaces/http/http-harness.js';
import { RUNNER, SESSION, SessionDriver } from '../../fixtures/session.js';
import { proposal } from '../../fixtures/tree.js';

const BY = { actor: 'agent', role: 'autonomy_runner' } as const;
const SPEC = {
  spec_version: 1 as const,
  id: 'spec-a',
  title: 'One file',
  phases: [{ id: 'p1', title: 'One', tasks: [{ id: 't1', title: 'First', instruction: 'Write a.md.' }] }],
};

let http: HttpBench;
let session_id = '';
let run_id = '';
beforeEach(async () => {
  http = await HttpBench.open();
  const { sessions } = http.bench.turnpike;
  const started = await sessions.start({ spec: SPEC, by: { actor: 'anna', role: 'maintainer' } });
  session_id = started.data?.session_id ?? '';
  const answer = await sessions.next(session_id, { context_usage_pct: 1 }, BY);
  run_id = answer.data?.next_step?.run_id ?? '';
});
afterEach(() => http.close());

const statusNow = async () => (await http.bench.turnpike.sessions.status(session_id)).data;

/** Everything that an agent can do to its own run, on each route. */
const ROUTES: Readonly<Record<string, () => Promise<unknown>>> = {
  'cancel by the library': () => ownRun((run) => run.cancel('I would like a pause')),
  'end by the library': () => ownRun((run) => run.end()),
  'interrupt by the library': () => ownRun((run) => run.interrupt()),
  'cancel over HTTP': async () => {
    const token = http.token({ actor: 'agent', role: 'SANDBOX_AGENT', rights: ['act'] });
    const response = await http.ask(`/runs/${run_id}/cancel`, token, { json: { reason: 'I would like a pause' } });
    expect(response.status).toBe(200);
  },
  'FINISH as a proposal': () => propose(proposal('FINISH', { response: 'Pause, please.' })),
  'denials up to the limit': async () => {
    for (let n = 0; n < 10; n += 1) await propose(proposal('DELETE_FILE', { path: '/sandbox/a.sh' }));
  },
};

async function ownRun(act: (run: AgentRun) => Promise<unknown>): Promise<unknown> {
  const run = await http.bench.turnpike.agent(run_id);
  if (run === null) throw new Error('the run of the step is not live');
  return act(run);
}
const propose = (payload: object): Promise<unknown> => http.bench.turnpike.submit(run_id, JSON.stringify(payload));

describe('C93: an agent that ends its own run', () => {
  test.each(Object.keys(ROUTES))('leaves its session running: %s', async (route) => {
    const before = await statusNow();
    await ROUTES[route]?.();
    expect(await statusNow()).toEqual(before);
    const events = (await http.bench.entries()).flatMap(({ type, body }) =>
      type === 'session_event' ? [body.event] : [],
    );
    expect(events.filter((event) => ['pause', 'end', 'fail', 'resume', 'rebase'].includes(event))).toEqual([]);
    const { sessions } = http.bench.turnpike;
    // The step must still be reported, as after any other end of its run.
    expect(await sessions.next(session_id, { context_usage_pct: 2 }, BY)).toMatchObject({
      error: { code: 'STEP_RESULT_REQUIRED' },
    });
  });

  test('cannot use the session commands of maintainers', async () => {
    const { sessions } = http.bench.turnpike;
    const override = { reason_code: 'testing' } as const;
    const calls = {
      pause: sessions.pause(session_id, {}, BY),
      waive: sessions.waive(session_id, { ...override, phase_id: 'p1' }, BY),
      end: sessions.end(session_id, override, BY),
      rebase: sessions.rebase(session_id, { spec: SPEC }, BY),
    };
    const people = Object.entries(COMMAND_RULES).flatMap(([name, { roles }]) =>
      roles.includes('autonomy_runner') ? [] : [name],
    );
    expect(Object.keys(calls).sort()).toEqual(people.sort());
    for (const answer of Object.values(calls)) {
      expect(await answer).toMatchObject({ success: false, error: { code: 'AUTHORIZATION' } });
    }
  });
});

describe('C93: in the kernel', () => {
  const begun = (): SessionDriver => {
    const d = new SessionDriver().start();
    d.by = RUNNER;
    d.next();
    return d;
  };

  test.each([`${SESSION}.1`, SESSION])('a cancel of %s is rejected, recorded and changes nothing', (run) => {
    const d = begun();
    const before = d.session;
    const decision = d.cancel(run, 'operator');
    expect(decision.refused).toBe(true);
    expect(d.session).toEqual(before);
    expect(decision.entries.map(({ entry }) => entry.type)).toEqual(['input', 'audit_event']);
  });

  test('a cancel of the run of a step ends only that run', () => {
    const d = begun();
    expect(d.cancel(`${SESSION}.1.1`, 'operator').refused).toBe(false);
    expect(d.session.status).toBe('running');
  });
});
