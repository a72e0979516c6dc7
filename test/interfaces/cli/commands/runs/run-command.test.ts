import { beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, readFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { sha256 } from '../../../../../src/core/contract/hash.js';
import { createDeferred } from '../../../../../src/runtime/deferred.js';
import {
  finish,
  initialised,
  jsonLines,
  line,
  linesOf,
  outcomes,
  put,
  read,
  tempFolder,
  think,
  turnpike,
  write,
} from '../../fake-io.js';

let folder: string;
beforeEach(async () => {
  folder = await initialised();
});

const runOf = (stdout: string) =>
  jsonLines<{ run: { run_id: string; state: string; reason: string; counts: object } }>(stdout).at(-1)!.run;

interface Step {
  readonly payload: { readonly hash_sha256: string };
  readonly response_sha256: string;
  readonly outcome: string;
}
/** The recorded steps of the only agent run in the ledger. */
async function stepsOf(run_id: string): Promise<readonly Step[]> {
  const { stdout } = await turnpike(folder, ['runs', run_id, '--json']);
  return (JSON.parse(stdout) as { steps: Step[] }).steps;
}

describe('run', () => {
  test('S2-05 S2-19 S2-20 every line is one step with one response line, in order', async () => {
    const lines = [write('/sandbox/a.txt', 'hello'), read('/sandbox/a.txt'), think(), finish('bye')];
    put(folder, 'p.jsonl', `${lines.join('\n')}\n`);
    const { code, stdout, stderr } = await turnpike(folder, ['run', 'p.jsonl', '--json']);
    expect(code).toBe(0);
    const responses = linesOf(stdout).slice(0, -1);
    expect(responses.map((text) => (JSON.parse(text) as { action: string }).action)).toEqual([
      'WRITE_FILE',
      'READ_FILE',
      'THINK',
      'FINISH',
    ]);
    const { run_id, ...end } = runOf(stdout);
    expect(end).toEqual({ state: 'completed', reason: 'finished', counts: { SUCCESS: 4 } });
    expect(stderr).toBe(`${run_id} completed (finished): 4 proposals: 4 SUCCESS\n`);
    const steps = await stepsOf(run_id);
    expect(steps.map(({ payload }) => payload.hash_sha256)).toEqual(lines.map((text) => sha256(text)));
    // S2-22: exactly the recorded JSON.
    expect(steps.map(({ response_sha256 }) => response_sha256)).toEqual(responses.map((text) => sha256(text)));
  });

  test('D5 a run whose input ends is completed, and denials do not change the exit code', async () => {
    put(folder, 'p.jsonl', [write('/sandbox/a.sh', 'x'), '{ no json', read('/sandbox/none.txt')].join('\n'));
    const { code, stdout } = await turnpike(folder, ['run', 'p.jsonl', '--json']);
    expect(code).toBe(0);
    expect(runOf(stdout)).toMatchObject({
      state: 'completed',
      reason: 'end_of_input',
      counts: { DENIED: 1, VALIDATION_ERROR: 1, EXECUTION_ERROR: 1 },
    });
  });

  test('a run that is denied after too many denials exits with 1, before the rest of its input', async () => {
    const lines = Array.from({ length: 12 }, () => write('/sandbox/a.sh', 'x'));
    put(folder, 'p.jsonl', lines.join('\n'));
    const { code, stdout, stderr } = await turnpike(folder, ['run', 'p.jsonl']);
    expect(code).toBe(1);
    expect(linesOf(stdout)).toHaveLength(10);
    expect(stderr).toMatch(
      /^the run ended before its input.*\n\S+ denied \(limit\.denials\): 10 proposals: 10 DENIED\n$/,
    );
  });

  test('every line is a payload, unchanged: empty, with a carriage return, not UTF-8; a final newline adds none', async () => {
    const lines = [
      Buffer.from(''),
      Buffer.from(`${think()}\r`),
      Buffer.from([0xff, 0xfe, 0x00, 0x7b]),
      Buffer.from('['),
    ];
    const bytes = Buffer.concat(lines.flatMap((each) => [each, Buffer.from('\n')]));
    put(folder, 'p.jsonl', bytes);
    const { code, stdout } = await turnpike(folder, ['run', 'p.jsonl', '--json']);
    expect(code).toBe(0);
    const errors = jsonLines<{ error: { error_code: string } | null }>(stdout).slice(0, -1);
    expect(errors.map(({ error }) => error?.error_code ?? null)).toEqual([
      'EMPTY_PAYLOAD',
      null,
      'INVALID_ENCODING',
      'INVALID_JSON',
    ]);
    const steps = await stepsOf(runOf(stdout).run_id);
    expect(steps.map(({ payload }) => payload.hash_sha256)).toEqual(lines.map((each) => sha256(each)));
  });

  test('an empty input is a run without a step', async () => {
    const { code, stdout } = await turnpike(folder, ['run', '-', '--json'], { stdin: '' });
    expect(code).toBe(0);
    expect(jsonLines(stdout)).toEqual([{ run: expect.objectContaining({ reason: 'end_of_input', counts: {} }) }]);
  });

  test('S2-05 S2-11 prints each response before it waits for the next proposal', async () => {
    const stdin = new PassThrough();
    const asked = [read('/sandbox/a.txt'), finish()];
    stdin.write(`${write('/sandbox/a.txt', 'loop')}\n`);
    const { code, stdout } = await turnpike(folder, ['run', '-'], {
      stdin,
      onStdout: () => {
        const next = asked.shift();
        if (next !== undefined) stdin.write(`${next}\n`);
      },
    });
    expect(code).toBe(0);
    expect(outcomes(stdout)).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
  });

  test('FINISH ends the run: later input is not submitted, even if the input stays open', async () => {
    const stdin = new PassThrough();
    stdin.write(`${finish()}\n${write('/sandbox/late.txt', 'x')}\n`);
    const { code, stdout, stderr } = await turnpike(folder, ['run', '-'], { stdin });
    expect(code).toBe(0);
    expect(outcomes(stdout)).toEqual(['SUCCESS']);
    expect(stderr).toContain('the run ended before its input did: the rest of the input was not submitted\n');
    expect(existsSync(join(folder, '.turnpike/sandbox/case-local/late.txt'))).toBe(false);
  });

  test('an input that ends with FINISH causes no note', async () => {
    const { stderr } = await turnpike(folder, ['run', '-'], { stdin: `${think()}\n${finish()}\n` });
    expect(linesOf(stderr)).toEqual([expect.stringContaining('completed (finished)')]);
  });

  test('a line of more than 32 MiB is a usage error, and the run fails as interrupted', async () => {
    const stdin = new PassThrough();
    stdin.write(`${think()}\n`);
    const chunk = Buffer.alloc(1_048_576, 0x61);
    for (let i = 0; i < 33; i += 1) stdin.write(chunk);
    const { code, stdout, stderr } = await turnpike(folder, ['run', '-', '--json'], { stdin });
    expect(code).toBe(2);
    expect(stderr).toContain('"code":"USAGE","message":"line 2 has more than 33554432 bytes"');
    expect(runOf(stdout)).toMatchObject({ state: 'failed', reason: 'INTERRUPTED', counts: { SUCCESS: 1 } });
  });

  test('a line of 32 MiB is a payload, which is rejected', async () => {
    const { code, stdout } = await turnpike(folder, ['run', '-'], { stdin: Buffer.alloc(33_554_432, 0x61) });
    expect(code).toBe(0);
    expect(jsonLines(stdout)).toMatchObject([{ error: { error_code: 'PAYLOAD_TOO_LARGE' } }]);
  });

  test('D3 a stopped command interrupts its run after the response in flight', async () => {
    const stdin = new PassThrough();
    const controller = new AbortController();
    stdin.write(`${think()}\n`);
    const { code, stdout } = await turnpike(folder, ['run', '-', '--json'], {
      stdin,
      stop: controller.signal,
      onStdout: () => controller.abort(),
    });
    expect(code).toBe(1);
    expect(runOf(stdout)).toMatchObject({ state: 'failed', reason: 'INTERRUPTED', counts: { SUCCESS: 1 } });
  });

  test('if the reader of the responses is gone, the run is interrupted without a message', async () => {
    const stdin = [think(), think(), write('/sandbox/late.txt', 'x')].join('\n');
    const { code, stdout, stderr, log } = await turnpike(folder, ['run', '-'], { stdin, readerLeavesAfter: 1 });
    expect(code).toBe(1);
    expect(linesOf(stdout)).toHaveLength(1);
    expect(stderr).toMatch(/^\S+ failed \(INTERRUPTED\): 2 proposals: 2 SUCCESS\n$/);
    expect(log).toEqual([]);
    expect(existsSync(join(folder, '.turnpike/sandbox/case-local/late.txt'))).toBe(false);
  });

  test('an agent that policy denies submits no proposal, and the command exits with 1', async () => {
    const { code, stdout, stderr } = await turnpike(folder, ['run', '-', '--role', 'NOBODY'], { stdin: think() });
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toContain('denied (role.unknown): 0 proposals\n');
  });

  test('a policy without pins denies the run', async () => {
    put(folder, 'contract/pins.json', JSON.stringify({ version: 'v1', files: [] }));
    const { code, stderr } = await turnpike(folder, ['run', '-'], { stdin: think() });
    expect(code).toBe(1);
    expect(stderr).toContain('denied (pin.missing.lanes)');
    expect(stderr).toContain('`turnpike policy pin`');
  });

  test('--exposure decision narrows the responses, and counts decisions', async () => {
    const stdin = [think(), '{'].join('\n');
    const { stdout } = await turnpike(folder, ['run', '-', '--json', '--exposure', 'decision'], { stdin });
    expect(jsonLines(stdout).slice(0, 2)).toMatchObject([{ decision: 'ALLOW' }, { decision: 'DENY' }]);
    expect(stdout).not.toContain('error');
    expect(runOf(stdout).counts).toEqual({ ALLOW: 1, DENY: 1 });
  });

  test('D12 the run record has the given actor, case, scope and correlation', async () => {
    const options = ['--actor', 'tester', '--case', 'case-77', '--scope', 'coa_version=a=b', '--correlation', 'cor_1'];
    const { stdout } = await turnpike(folder, ['run', '-', '--json', ...options], {
      stdin: write('/sandbox/a.txt', 'x'),
    });
    expect(readFileSync(join(folder, '.turnpike/sandbox/case-77/a.txt'), 'utf8')).toBe('x');
    const shown = await turnpike(folder, ['runs', runOf(stdout).run_id, '--json']);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      record: { actor: { actor_id: 'tester' }, case_id: 'case-77', correlation_id: 'cor_1' },
    });
  });

  test('escapes responses for a terminal, and they stay the same JSON', async () => {
    const content = '\u001b[2J\u009b31m\u202e\u200b\u{e0041}\u2028ok';
    const stdin = [write('/sandbox/a.txt', content), read('/sandbox/a.txt')].join('\n');
    const { stdout } = await turnpike(folder, ['run', '-'], { stdin, stdoutTTY: true });
    expect(stdout).not.toMatch(/[^\P{C}\n]|[\u2028\u2029]/u);
    expect(jsonLines(stdout)[1]).toMatchObject({ result: { content } });
  });

  test('shows progress on a terminal, and afterwards only the end of the run', async () => {
    const stdin = Array.from({ length: 130 }, think).join('\n');
    const { stderr } = await turnpike(folder, ['run', '-'], { stdin, stderrTTY: true });
    expect(stderr).toContain('\r\u001b[K64 proposals: 64 SUCCESS\r\u001b[K128 proposals: 128 SUCCESS\r\u001b[Krun_');
    const { stderr: piped } = await turnpike(folder, ['run', '-'], { stdin });
    expect(linesOf(piped)).toHaveLength(1);
  });

  test.each([
    ['a file that is not there', ['run', 'none.jsonl']],
    ['a directory', ['run', 'contract']],
    ['an actor of two letters', ['run', '-', '--actor', 'me']],
    ['a case that is no id', ['run', '-', '--case', '../..']],
    ['a home that there is not', ['run', '-', '--home', 'none']],
  ])('%s is wrong usage: one line that says what to do, and exit code 2', async (_name, argv) => {
    const { code, stdout, stderr, log } = await turnpike(folder, argv, { stdin: think() });
    expect({ code, stdout, log }).toEqual({ code: 2, stdout: '', log: [] });
    expect(stderr).toMatch(/^USAGE: [^\n]+\n$/);
  });

  test('never creates a home directory implicitly', async () => {
    const empty = tempFolder();
    mkdirSync(join(empty, '.turnpike'));
    expect(await turnpike(empty, ['run', '-'], { stdin: think() })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('create one with `turnpike init`'),
    });
    expect(existsSync(join(empty, '.turnpike/ledger.db'))).toBe(false);
  });

  test('an unusable policy is one line and exit code 1', async () => {
    put(folder, 'contract/policy/roles.yaml', 'roles: [\u001b[31m');
    const { code, stderr, log } = await turnpike(folder, ['run', '-'], { stdin: think() });
    expect({ code, log }).toEqual({ code: 1, log: [] });
    expect(stderr).toMatch(/^POLICY_INVALID: [ -~]+\n$/);
  });
});

describe('step', () => {
  test('S2-19 S2-20 each file is one payload, unchanged, with one response line in the order of the arguments', async () => {
    const files = [
      put(folder, 'write', write('/sandbox/a.txt', 'one\ntwo')),
      put(folder, 'binary', Buffer.from([0, 255, 10, 13])),
      put(folder, 'empty', ''),
      put(folder, 'lines', `${think()}\n`),
    ];
    const { code, stdout } = await turnpike(folder, ['step', ...files, '-', '--json'], {
      stdin: read('/sandbox/a.txt'),
    });
    expect(code).toBe(0);
    expect(outcomes(stdout).slice(0, -1)).toEqual([
      'SUCCESS',
      'VALIDATION_ERROR',
      'VALIDATION_ERROR',
      'SUCCESS',
      'SUCCESS',
    ]);
    const { run_id, reason } = runOf(stdout);
    expect(reason).toBe('end_of_input');
    const steps = await stepsOf(run_id);
    const bytes = files.map((name) => sha256(readFileSync(join(folder, name))));
    expect(steps.slice(0, 4).map(({ payload }) => payload.hash_sha256)).toEqual(bytes);
  });

  test('files after FINISH are not submitted', async () => {
    const files = [put(folder, 'a', finish()), put(folder, 'b', write('/sandbox/b.txt', 'x'))];
    const { code, stdout, stderr } = await turnpike(folder, ['step', ...files]);
    expect(code).toBe(0);
    expect(linesOf(stdout)).toHaveLength(1);
    expect(stderr).toContain('was not submitted');
  });

  test('starts nothing if one of the files is missing', async () => {
    const { code, stdout } = await turnpike(folder, ['step', put(folder, 'a', think()), 'none']);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect((await turnpike(folder, ['runs', '--json'])).stdout).toBe('');
  });

  test('stdin can be a payload only once', async () => {
    expect(await turnpike(folder, ['step', '-', '-'])).toMatchObject({ code: 2 });
  });

  test('rejects a proposal id that was used before in the run', async () => {
    const same = line('THINK');
    const files = [put(folder, 'a', same), put(folder, 'b', same)];
    expect(outcomes((await turnpike(folder, ['step', ...files])).stdout)).toEqual(['SUCCESS', 'VALIDATION_ERROR']);
  });
});

test('D13 two concurrent commands on one home directory: the second works through the first, and both complete', async () => {
  const stdin = new PassThrough();
  stdin.write(`${write('/sandbox/a.txt', 'first')}\n`);
  let first!: ReturnType<typeof turnpike>;
  await new Promise<void>((resolve) => {
    first = turnpike(folder, ['run', '-'], { stdin, onStdout: () => resolve() });
  });
  const second = await turnpike(folder, ['run', '-', '--json'], {
    stdin: [read('/sandbox/a.txt'), '\ufeff', write('/sandbox/b.sh', 'x'), finish(), think()].join('\n'),
  });
  expect(second.code).toBe(0);
  expect(outcomes(second.stdout).slice(0, -1)).toEqual(['SUCCESS', 'VALIDATION_ERROR', 'DENIED', 'SUCCESS']);
  expect(runOf(second.stdout)).toMatchObject({ state: 'completed', reason: 'finished' });
  expect(second.stderr).toContain('the run ended before its input');
  const steps = await stepsOf(runOf(second.stdout).run_id);
  expect(steps.map(({ response_sha256 }) => response_sha256)).toEqual(
    linesOf(second.stdout)
      .slice(0, -1)
      .map((text) => sha256(text)),
  );
  stdin.end(finish());
  expect(await first).toMatchObject({ code: 0 });
  expect(await turnpike(folder, ['ledger', 'verify'])).toMatchObject({ code: 0 });
});

test('D13 the owner of a home directory ends only after the commands that work through it', async () => {
  const [one, two] = [new PassThrough(), new PassThrough()];
  const waiting = createDeferred<string>();
  const onStderr = (text: string): void => {
    if (text.startsWith('waiting for')) waiting.resolve(text);
  };
  const started = async (stdin: PassThrough) => {
    let run!: ReturnType<typeof turnpike>;
    await new Promise<void>((resolve) => {
      run = turnpike(folder, ['run', '-'], { stdin, onStdout: () => resolve(), onStderr });
      stdin.write(`${think()}\n`);
    });
    return { run };
  };
  const holder = await started(one);
  const client = await started(two);
  one.end();
  const first = await Promise.race([holder.run.then(() => 'the owner has ended'), waiting.promise]);
  expect(first).toBe('waiting for 1 other command connected to this home directory\n');
  two.end(think());
  const ended: string[] = [];
  const [ofClient, ofHolder] = await Promise.all([
    client.run.finally(() => ended.push('client')),
    holder.run.finally(() => ended.push('owner')),
  ]);
  expect([ofClient.code, ofHolder.code, ended]).toEqual([0, 0, ['client', 'owner']]);
});
