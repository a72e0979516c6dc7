// What a hook denies without a decision is counted, for each client and each cause, and `agents sessions` shows it. The
// hook program, the service and the command are the real ones.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { CallCoverage } from '../../../src/features/hooks/comparisons/call-coverage.js';
import { DIALECTS } from '../../../src/features/hooks/dialects.js';
import { CLIENTS, type Client } from '../../../src/features/hooks/hook-event.js';
import { isCallIn, sessionIn } from '../../../src/features/hooks/client-files/count-files.js';
import { jsonLines, turnpike } from '../../interfaces/cli/fake-io.js';
import { Bench } from '../../fixtures/bench.js';
import { codingEdit } from '../../fixtures/coding-policy.js';
import { shellCall } from '../../fixtures/hooks/call-event.js';
import { HttpBench } from '../../interfaces/http/http-harness.js';
import { HookClient, isAllowed, type HookEnd } from '../../fixtures/hooks/hook-client.js';

let bench: Bench;
const OPTIONS = { edit: codingEdit, hooks: true };
beforeAll(async () => {
  bench = await Bench.open(OPTIONS);
});
afterAll(() => bench.close());

/** One call of a session that is denied without a decision. */
type Denial = (agent: HookClient, session: string) => Promise<HookEnd>;
const changed = (agent: HookClient, session: string, change: (text: string) => string): Promise<HookEnd> =>
  agent.send(change(JSON.stringify(agent.event(shellCall(agent.client, 'git status'), session))));
const DENIALS: Readonly<Record<string, Denial>> = {
  'no JSON': (agent, session) => changed(agent, session, (text) => `${text}}`),
  'a repeated member': (agent, session) =>
    changed(agent, session, (text) => `${text.slice(0, -1)},"cwd":"/","cwd":"/"}`),
  'an input of another form': (agent, session) => changed(agent, session, (text) => text.replace(/"git status"/, '7')),
  'too long': (agent, session) => changed(agent, session, (text) => text.replace('git status', 'x'.repeat(4_200_000))),
  'another project': (agent, session) =>
    agent.send(agent.event(shellCall(agent.client, 'git status'), session), ['--project', '/']),
};

/** What `agents sessions` prints on the machine of a client. */
async function sessionsOf({ machine }: HookClient, home: string, more: readonly string[]): Promise<string> {
  const environment = { ...machine.environment } as Record<string, string>;
  const { stdout } = await turnpike(machine.project, ['agents', 'sessions', '--home', home, ...more], { environment });
  return stdout;
}

/** A call that is allowed and reported. */
async function allow(agent: HookClient, session: string, id: string): Promise<void> {
  const call = agent.event(shellCall(agent.client, `echo ${id}`), session, id);
  expect(isAllowed(await agent.send(call))).toBe(true);
  await agent.report(call);
}

interface Row {
  readonly session: string | null;
  readonly coverage: CallCoverage;
  readonly undecided?: number;
}

describe.each(CLIENTS)('0088: what the hook of %s denies without a decision is counted', (client: Client) => {
  let agent: HookClient;
  beforeAll(() => {
    agent = new HookClient(client, bench.home);
  });
  const sessions = (...more: string[]): Promise<string> => sessionsOf(agent, bench.home, more);
  const rowOf = async (session: string): Promise<Row | undefined> =>
    jsonLines<Row>(await sessions('--json')).find((row) => row.session === session);

  test.each(Object.entries(DENIALS))('%s', async (name, deny) => {
    const session = `${client}-${name.replaceAll(' ', '-')}`;
    await allow(agent, session, 'one');
    expect(isAllowed(await deny(agent, session))).toBe(false);
    const before = await sessions('--limit', '1');
    expect(before).toContain('not compared: 1 calls denied without a decision, which are not recorded');
    await allow(agent, session, 'two');
    const after = await sessions('--limit', '1');
    expect(after).toContain('3 calls seen · 2 gated (2 allowed, 0 denied, 0 for approval)');
    expect(after).toContain('gaps: 1 denied without a decision');
    expect(`${before}${after}`).not.toContain('no gaps');
  });

  test('the service is away, also for sessions that it never knows', async () => {
    const [session, unknown] = [`${client}-away`, `${client}-never`];
    await allow(agent, session, 'one');
    await bench.turnpike.close();
    for (const of of [session, unknown, unknown]) {
      const { code, err } = await agent.shell('git status', of, 'away');
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('no service decides for') });
    }
    expect(await sessions('--limit', '1')).toContain('not compared: 1 calls denied without a decision');
    expect(await sessions()).toContain(`${client}: 2 calls of other sessions were denied`);
    bench = await Bench.reopen(bench, { ...OPTIONS, clock: bench.clock });
    await allow(agent, session, 'two');
    expect(await sessions('--limit', '1')).toContain('gaps: 1 denied without a decision');
    const end = { 'gemini-cli': 'SessionEnd', cursor: 'sessionEnd' }[client as string] ?? 'SessionEnd';
    const event = Object.entries(agent.event(shellCall(client, 'x'), session));
    const head = Object.fromEntries(event.filter(([member]) => !member.startsWith('tool_')));
    await agent.send(
      client === 'cline' ? { ...head, hookName: 'session_shutdown' } : { ...head, hook_event_name: end },
    );
    // The ledger has it: the file is gone, and nothing is counted twice.
    expect((await rowOf(session))?.coverage).toMatchObject({ undecided: 1 });
    expect(await sessions('--limit', '1')).not.toContain('not recorded');
  });

  test('what its client refuses after an allow', async () => {
    const session = `${client}-refused`;
    await allow(agent, session, 'one');
    expect(isAllowed(await agent.shell('git status', session, 'two'))).toBe(true);
    const listed = await sessions('--limit', '1');
    expect(listed).toContain('not compared: 1 allowed calls without an outcome so far');
    expect(listed).not.toContain('no gaps');
  });

  test('events that are no call are not counted, and each call names its session', () => {
    const call = JSON.stringify(agent.event(shellCall(client, 'x'), 'session 1'));
    expect([isCallIn(call), sessionIn(client, call), sessionIn(client, call.slice(0, -20))]).toEqual([
      true,
      'session 1',
      'session 1',
    ]);
    const read = DIALECTS[client].readEvent(JSON.parse(call) as never);
    expect(read?.session).toBe('session 1');
  });
});

/** One request over HTTP whose call its client denies: nothing is recorded. */
interface HttpDenial {
  readonly change?: (text: string) => string;
  readonly query?: string;
  readonly type?: string;
  readonly by?: 'none' | 'other case' | 'no right';
  readonly status: number;
}
const HTTP_DENIALS: Readonly<Record<string, HttpDenial>> = {
  'no JSON': { change: (text) => `${text}}`, status: 200 },
  'a repeated member': { change: (text) => `${text.slice(0, -1)},"cwd":"/","cwd":"/"}`, status: 200 },
  'an input of another form': { change: (text) => text.replace(/"git status"/, '7'), status: 200 },
  'another project': { query: '?project=/&case=project-1', status: 200 },
};
const UNNAMED_DENIALS: Readonly<Record<string, HttpDenial>> = {
  'no session': { change: (text) => text.replaceAll(/"(?:session_id|conversation_id|taskId)"/g, '"x"'), status: 200 },
  'too long': { change: (text) => text.replace('git status', 'x'.repeat(4_200_000)), status: 413 },
  'another type': { type: 'text/plain', status: 415 },
  'no project': { query: '', status: 422 },
  'no token': { by: 'none', status: 401 },
  'the token of another case': { by: 'other case', status: 403 },
  'a token without the right': { by: 'no right', status: 403 },
};

describe.each(CLIENTS)('0088: what a service denies to %s over HTTP without a record is counted', (client: Client) => {
  let own: Bench;
  let http: HttpBench;
  let agent: HookClient;
  let tokens: Readonly<Record<string, string>>;
  beforeAll(async () => {
    own = await Bench.open(OPTIONS);
    agent = new HookClient(client, own.home);
    const environment = agent.machine.environment;
    http = await HttpBench.on(own, { hookCounts: { home: own.home, environment } });
    const caller = { actor: client, role: 'CODING_AGENT' };
    tokens = {
      own: http.token(caller),
      none: 'none',
      'other case': http.token({ ...caller, case: 'project-2' }),
      'no right': http.token({ ...caller, rights: ['observe'] }),
    };
  });
  afterAll(() => http.close());
  const sessions = (...more: string[]): Promise<string> => sessionsOf(agent, own.home, more);
  async function post(session: string, { change, query, type, by = 'own' as never }: Partial<HttpDenial>, id = 'two') {
    const text = JSON.stringify(agent.event(shellCall(client, 'git status'), session, id));
    const project = `?project=${encodeURIComponent(agent.machine.project)}&case=project-1`;
    const response = await http.ask(`/hooks/${client}${query ?? project}`, tokens[by] ?? '', {
      body: change === undefined ? text : change(text),
      headers: { 'content-type': type ?? 'application/json' },
    });
    const out = await response.text();
    return { status: response.status, isAllowed: isAllowed({ code: response.status === 200 ? 0 : 2, out, err: '' }) };
  }

  test.each(Object.entries(HTTP_DENIALS))('%s', async (name, denial) => {
    const session = `${client}-http-${name.replaceAll(' ', '-')}`;
    await allow(agent, session, 'one');
    expect(await post(session, denial)).toEqual({ status: denial.status, isAllowed: false });
    const before = await sessions('--limit', '1');
    expect(before).toContain('not compared: 1 calls denied without a decision, which are not recorded');
    expect(await post(session, {}, 'three')).toEqual({ status: 200, isAllowed: true });
    const after = await sessions('--limit', '1');
    expect(after).toContain('gaps: 1 denied without a decision');
    expect(`${before}${after}`).not.toContain('no gaps');
  });

  test('a session whose client was not checked', async () => {
    expect(await post(`${client}-never`, {})).toEqual({ status: 200, isAllowed: false });
    expect(await sessions()).toContain(`${client}: 1 calls of other sessions were denied`);
  });

  test.each(Object.entries(UNNAMED_DENIALS))('%s, which names no session that is known', async (name, denial) => {
    const session = `${client}-unnamed-${name.replaceAll(' ', '-')}`;
    const unnamed = async () => Number(/(\d+) calls denied .* which name no session/.exec(await sessions())?.[1] ?? 0);
    await allow(agent, session, 'one');
    const before = await unnamed();
    expect(await post(session, denial)).toEqual({ status: denial.status, isAllowed: false });
    const limit = Date.now() + 10_000;
    while ((await unnamed()) === before && Date.now() < limit) await new Promise(setImmediate);
    expect(await unnamed()).toBe(before + 1);
    expect(await sessions()).not.toContain('no gaps');
  });
});
