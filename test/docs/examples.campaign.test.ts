// Runs the examples as their readers would: `npm start` directly, the others in a folder in which the package is
// installed.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { parse } from 'yaml';
import { freePort } from '../fixtures/free-port.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT, textOf } from '../sources.js';
import { built } from './built.js';
import { installed, MS_MAX, put, run, type Ended } from './programs.js';

const folder = tempFolder('examples');

beforeAll(built, 300_000);

describe('npm start', () => {
  let demo: Ended;
  const part = (number: number): string =>
    new RegExp(`\\n${number}  [^\\n]+\\n([^]*?)(?=\\n\\d  |\\nRuns)`).exec(demo.stdout)?.[1] ?? '';
  const steps = (number: number): readonly string[] => part(number).match(/^ *\d+ [ !] .*$/gm) ?? [];

  beforeAll(async () => {
    demo = await run('docs/examples/start.mjs', [join(folder, 'demo')], ROOT);
  }, MS_MAX);

  test('succeeds, and reports that everything was as expected', () => {
    expect(demo).toMatchObject({ status: 0, stderr: '' });
    expect(demo.stdout).toMatch(/\nEverything was as expected\.\n$/);
  });

  test('S0-73 S2-02 S2-11 benign acceptance: every proposal of the session succeeds', () => {
    expect(steps(1).length).toBe(43);
    expect(steps(1).filter((line) => !line.endsWith(' SUCCESS'))).toEqual([]);
  });

  test('S2-04 S2-13 S2-17 every attack is rejected, and text alone changes nothing', () => {
    const succeeded = steps(2).filter((line) => line.endsWith(' SUCCESS'));
    expect(steps(2).length).toBe(38);
    expect(succeeded.length).toBe(5);
    expect(succeeded.filter((line) => !/injected/.test(line))).toEqual([]);
  });

  test('S0-67 with attacks in between, every proposal of the session still succeeds', () => {
    const own = steps(3).filter((line) => !/^ *\d+ !/.test(line));
    expect(own.length).toBe(43);
    expect(own.filter((line) => !line.endsWith(' SUCCESS'))).toEqual([]);
    expect(steps(3).length).toBe(80);
  });

  test('shows the runs, the counts, the proof and the file locations', () => {
    expect(demo.stdout).toMatch(/^ {2}run_\w{21} {2}orchestrator {2}completed:finished$/m);
    expect(demo.stdout).toMatch(/agent {2}denied:limit\.denials$/m);
    expect(demo.stdout).toMatch(/^ {2}session +43 steps +SUCCESS 43$/m);
    expect(demo.stdout).toMatch(/^ {2}verified {2}\d+ entries of 3 run trees, root [0-9a-f]{64}$/m);
    expect(demo.stdout).toMatch(/^ {2}replayed {2}161 steps and 161 responses, each the same byte for byte$/m);
    expect(demo.stdout).toContain(join(folder, 'demo/home/ledger.db'));
  });

  test('prints no terminal control characters, and fits a screen', () => {
    expect(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(demo.stdout)).toBe(false);
    expect(Math.max(...demo.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(140);
  });

  test('refuses a folder that is not empty', async () => {
    const refused = await run('docs/examples/start.mjs', [join(folder, 'demo')], ROOT);
    expect(refused).toMatchObject({ status: 3, stdout: '' });
    expect(refused.stderr).toContain('is not empty');
  });

  test(
    'when one step is not as expected, says which and fails',
    async () => {
      const clone = join(folder, 'clone');
      mkdirSync(join(clone, 'docs'), { recursive: true });
      cpSync(join(ROOT, 'docs/examples'), join(clone, 'docs/examples'), { recursive: true });
      for (const name of ['dist', 'machines', 'src', 'policies', 'package.json'])
        symlinkSync(join(ROOT, name), join(clone, name));
      appendFileSync(join(clone, 'docs/examples/material/case-files/README.md'), 'x'.repeat(1_100_000));
      const { status, stdout } = await run('docs/examples/start.mjs', [join(folder, 'broken')], clone);
      expect(status).toBe(1);
      expect(stdout).toContain('UNEXPECTED  session 2: expected SUCCESS , not EXECUTION_ERROR');
    },
    MS_MAX,
  );
});

test(
  'U-04 ten-lines.mjs starts an agent, takes its proposal, verifies and replays',
  async () => {
    const at = installed(join(folder, 'ten-lines'));
    const { status, stdout, stderr } = await run(put('ten-lines.mjs', at), [], at);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain(
      "action: 'WRITE_FILE',\n  outcome: 'SUCCESS',\n  result: { bytes_written: 7 },\n  error: null\n",
    );
    expect(stdout).toContain("state: 'completed'");
    expect(stdout).toMatch(/\ntrue true\n$/);
  },
  MS_MAX,
);

test(
  'refund.mjs, which the README shows, holds a refund until its approval, pays once, and prints what the README says',
  async () => {
    const at = installed(join(folder, 'refund'));
    const turnpike = join(at, 'node_modules/turnpike/dist/src/interfaces/cli/main.js');
    expect(await run(turnpike, ['init', '--template', 'support'], at)).toMatchObject({ status: 0 });
    const { status, stdout, stderr } = await run(put('refund.mjs', at), [], at);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: textOf('docs/examples/refund.txt'), stderr: '' });
  },
  MS_MAX,
);

test('refund.yaml is what the policy of that template says', () => {
  const template = (name: string): Policy => parse(textOf(`policies/templates/support/policy/${name}.yaml`)) as Policy;
  const shown = parse(textOf('docs/examples/refund.yaml')) as Policy;
  expect(template('lanes').lanes.find(({ lane_id }) => lane_id === 'REFUNDS')).toMatchObject(shown.lanes[0] ?? {});
  expect([shown.lanes.length, shown.approvals.length]).toEqual([1, 1]);
  expect(template('actions').approvals).toEqual(expect.arrayContaining([...shown.approvals]));
});

interface Policy {
  readonly lanes: readonly { readonly lane_id: string }[];
  readonly approvals: readonly unknown[];
}

test(
  'S4-14 S4-71 S4-75 service.mjs calls a tool, keeps a record, promotes with an approval and exports',
  async () => {
    const at = installed(join(folder, 'with-tools'));
    const turnpike = join(at, 'node_modules/turnpike/dist/src/interfaces/cli/main.js');
    expect(await run(turnpike, ['init', '--template', 'reference'], at)).toMatchObject({ status: 0 });
    cpSync(join(at, 'contract/policy/actions.service.yaml'), join(at, 'contract/policy/actions.yaml'));
    expect(await run(turnpike, ['policy', 'pin'], at)).toMatchObject({ status: 0 });
    const { status, stdout, stderr } = await run(put('service.mjs', at), [], at);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      "CALL_TOOL SUCCESS { question: 'What do you remember of the evening?' }",
      'CALL_TOOL DENIED This run is not allowed to do this',
      'WRITE_RECORD SUCCESS { written: 1 }',
      'READ_RECORDS SUCCESS {',
      '  records: [',
      '    {',
      "      id: 't1',",
      "      text: 'The witness saw a red car leave the yard at ten in the evening.'",
      '    }',
      '  ],',
      '  next: null',
      '}',
      'promotion prohibition.raw_case_text',
      'promotion completed',
      'export completed',
      'true true 1',
      '',
    ]);
    const verify = ['export', 'verify', 'service-home/exports/bundle', '--key', 'service-home/keys/ledger.vkey'];
    expect(await run(turnpike, verify, at)).toMatchObject({ status: 0, stderr: '' });
  },
  MS_MAX,
);

test(
  'http-server.mjs serves agents over HTTP in a server of its own, and ends on request',
  async () => {
    const at = installed(join(folder, 'http-server'));
    const port = await freePort();
    const child = spawn(process.execPath, [put('http-server.mjs', at), String(port)], { cwd: at, stdio: 'pipe' });
    const errors: string[] = [];
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()));
    const [shown] = (await once(child.stdout, 'data')) as [Buffer];
    const headers = { authorization: `Bearer ${shown.toString().trim()}`, 'content-type': 'application/json' };
    const post = async (path: string, body: string): Promise<Record<string, unknown>> =>
      (await (
        await fetch(`http://127.0.0.1:${port}/api/v1${path}`, { method: 'POST', headers, body })
      ).json()) as Record<string, unknown>;
    const { run_id } = await post('/agents', '{"case":"case-0001"}');
    const [proposal = ''] = textOf('docs/examples/material/session.jsonl').split('\n');
    expect(await post(`/agents/${String(run_id)}/steps`, proposal)).toMatchObject({ outcome: 'SUCCESS' });
    child.kill('SIGTERM');
    expect([...((await once(child, 'exit')) as unknown[]), errors]).toEqual([0, null, []]);
  },
  MS_MAX,
);

test(
  'U-05 inspect-live.mjs shows the states of a live run to an inspector of XState',
  async () => {
    const at = installed(join(folder, 'inspect-live'));
    const { status, stdout, stderr } = await run(put('inspect-live.mjs', at), [], at);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const lines = stdout.trim().split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'orchestrator {"running":"working"} active',
        'step "RESPOND" done',
        'mediated "completed" done',
        'agent "completed" done',
        'orchestrator "completed" done',
      ]),
    );
  },
  MS_MAX,
);

test(
  'retried-activity.mjs repeats an activity by input id, and the ledger has it once',
  async () => {
    const at = installed(join(folder, 'retried-activity'));
    const { status, stdout, stderr } = await run(put('retried-activity.mjs', at), [], at);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toBe('attempt 3: SUCCESS\nproposals in the ledger: 1\n');
  },
  MS_MAX,
);

test(
  'step-table.mjs executes a workflow function again, and the ledger has each step once',
  async () => {
    const at = installed(join(folder, 'step-table'));
    const { status, stdout, stderr } = await run(put('step-table.mjs', at), [], at);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'first execution: crash before the row is written',
      'second execution: SUCCESS SUCCESS SUCCESS',
      'proposals in the ledger: 3',
      '',
    ]);
  },
  MS_MAX,
);

test('the ten-line example has ten lines', () => {
  expect(textOf('docs/examples/ten-lines.mjs').trim().split('\n').length).toBe(10);
});

describe('U-04 embed-http-service.mjs', () => {
  const [first = '', second = ''] = textOf('docs/examples/material/session.jsonl').split('\n');
  let at: string;
  let service: { readonly child: ChildProcess; readonly url: string };
  let run_id: string;

  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${service.url}${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
  const propose = (body: string, headers?: Record<string, string>) =>
    post(`/agents/${run_id}/proposals`, body, headers);

  beforeAll(async () => {
    at = installed(join(folder, 'service'));
    put('embed-http-service.mjs', at);
    service = await started(at);
    const response = await post('/agents', '{"case":"case-0001"}');
    expect(response.status).toBe(201);
    ({ run_id } = (await response.json()) as { run_id: string });
  }, MS_MAX);
  afterAll(() => void service.child.kill('SIGKILL'));

  test('S2-19 S2-20 a proposal gets one response, whatever its outcome', async () => {
    expect(await (await propose(first)).json()).toMatchObject({ outcome: 'SUCCESS', result: { entries: [] } });
    expect(await (await propose('{ invalid json }')).json()).toEqual({
      proposal_id: null,
      action: null,
      outcome: 'VALIDATION_ERROR',
      result: null,
      error: { error_code: 'INVALID_JSON', message: 'Invalid JSON format' },
    });
  });

  test('a proposal with the same key is not executed twice', async () => {
    const [first_, again] = [
      await propose(second, { 'idempotency-key': 'k1' }),
      await propose(second, { 'idempotency-key': 'k1' }),
    ];
    const text = await first_.text();
    expect(JSON.parse(text)).toMatchObject({ outcome: 'EXECUTION_ERROR' });
    expect(await again.text()).toBe(text);
  });

  test('a run record can be read', async () => {
    const response = await fetch(`${service.url}/runs/${run_id}`);
    expect(await response.json()).toMatchObject({ run_id, run_kind: 'agent', status: 'running', case_id: 'case-0001' });
    expect((await fetch(`${service.url}/runs/run_none`)).status).toBe(404);
  });

  test.each([
    ['a body above the limit', 413, () => propose('x'.repeat(300_000)).then(({ status }) => status)],
    ['another content type', 415, () => propose(first, { 'content-type': 'text/plain' }).then(({ status }) => status)],
    ['another host name', 403, () => withHost(service.url, 'evil.example')],
    ['an unknown path', 404, () => post('/other', '').then(({ status }) => status)],
    ['an agent without a case', 400, () => post('/agents', '{}').then(({ status }) => status)],
    ['an unknown run', 404, () => post('/agents/run_none.1/proposals', first).then(({ status }) => status)],
  ] as const)('%s is refused with %d', async (_what, status, ask) => {
    expect(await ask()).toBe(status);
  });

  test('listens on this machine only', () => {
    expect(service.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  });

  test(
    'stops when it is asked to, and takes its agents up again when it is started again',
    async () => {
      const closed = once(service.child, 'close');
      service.child.kill('SIGTERM');
      expect(await closed).toEqual([0, null]);
      service = await started(at);
      expect(await (await propose('{}')).json()).toMatchObject({ outcome: 'VALIDATION_ERROR' });
    },
    MS_MAX,
  );
});

async function started(at: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, ['embed-http-service.mjs', 'home', '0'], {
    cwd: at,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, url: /http:\S+/.exec(line.toString())?.[0] ?? '' };
}

function withHost(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(`${url}/runs/run_none`, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

test(
  'S2-02 S2-23 U-04 agent.mjs lets a model work, says its responses in words, verifies and replays',
  async () => {
    const at = installed(join(folder, 'agent'));
    const { status, stdout, stderr } = await run(put('agent.mjs', at), [], at);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'The request was not valid, so nothing was done.',
      'The file was written.',
      'The requested action is not allowed due to security restrictions.',
      'The file content is:',
      '',
      'Hello.',
      '',
      'finished completed {',
      '  steps: 5,',
      '  denials: 1,',
      '  invalid: 1,',
      '  invalid_in_a_row: 0,',
      '  tokens: 5000,',
      '  unreported: 0',
      '}',
      'The note says hello.',
      'true true',
      '',
    ]);
  },
  MS_MAX,
);
